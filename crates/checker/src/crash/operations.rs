//! What a program says of its operations (`fencepost.h`), and the pool as each of them left it.

use std::collections::HashMap;

use fencepost_kernel::time::Time;
use fencepost_record::{Clock, MarkKind};

use super::Exploration;
use super::content_hash::{ContentHash, LINE};
use super::exploration::Patch;
use super::recorded_stores::{RecordedStores, StoreId};
use super::replay::{Change, LineHistory};

/// A mark as it is in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMark {
    /// What it says.
    pub kind: MarkKind,
    /// Of which operation.
    pub text: String,
    /// Its place in the process clock.
    pub clock: Clock,
    /// How many acts of its thread come before.
    pub acts_before: u32,
}

/// A mark, and when its thread passed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedMark {
    /// The thread.
    pub thread: u32,
    /// The mark.
    pub mark: RecordedMark,
    /// When a store in its place would have taken effect.
    pub time: Time,
}

/// When marks were passed, by thread in its order.
pub(super) type MarkTimes = HashMap<u32, Vec<Time>>;

/// All marks in the order of time.
pub(super) fn in_order(recorded: &RecordedStores, times: &MarkTimes) -> Vec<PassedMark> {
    let of_thread = |(&thread, times): (&u32, &Vec<Time>)| {
        let marks = recorded.marks[thread as usize].iter().zip(times);
        marks.map(|(mark, &time)| PassedMark { thread, mark: mark.clone(), time }).collect::<Vec<_>>()
    };
    let mut passed: Vec<PassedMark> = times.iter().flat_map(of_thread).collect();
    passed.sort_by_key(|passed| (passed.time, passed.mark.clock));
    passed
}

/// Puts marks into what happened: behind all that happened by then.
pub(super) fn with_marks(changes: Vec<(Time, Change)>, marks: &[PassedMark]) -> Vec<(Time, Change)> {
    let mut marks = marks.iter().enumerate().peekable();
    let mut all = Vec::with_capacity(changes.len() + marks.len());
    for next in changes.into_iter().map(Some).chain([None]) {
        while let Some((number, passed)) = marks.next_if(|(_, mark)| next.is_none_or(|(time, _)| mark.time < time)) {
            all.push((passed.time, Change::Mark(number as u32)));
        }
        all.extend(next);
    }
    all
}

/// Puts calls of named functions into what happened: right before what their thread stores next, or at the end. Until
/// then nobody can tell from its stores that it went on.
pub(super) fn with_calls(
    changes: Vec<(Time, Change)>,
    recorded: &RecordedStores,
    lines: &[LineHistory],
) -> (Vec<(Time, Change)>, Vec<PassedMark>) {
    let mut ahead: Vec<_> = recorded.marks.iter().map(|marks| marks.iter().peekable()).collect();
    let mut calls: HashMap<&str, u32> = HashMap::new();
    let (mut all, mut passed) = (Vec::with_capacity(changes.len()), Vec::new());
    let mut made = vec![0; lines.len()];
    let mut pass = |thread: u32, until: u32, time: Time, all: &mut Vec<(Time, Change)>| {
        while let Some(mark) = ahead[thread as usize].next_if(|mark| mark.acts_before <= until) {
            all.push((time, Change::Mark(passed.len() as u32)));
            let mut text = mark.text.clone();
            if mark.kind == MarkKind::Begin {
                let number = calls.entry(&mark.text).or_default();
                *number += 1;
                text = format!("{text} {number}");
            }
            passed.push(PassedMark { thread, mark: RecordedMark { text, ..mark.clone() }, time });
        }
    };
    for (time, change) in changes {
        if let Change::Visible(line) = change {
            let line = line as usize;
            for &store in &lines[line].versions[made[line]].stores {
                let store = &recorded.stores[store as usize];
                pass(store.thread, store.place, time, &mut all);
            }
            made[line] += 1;
        }
        all.push((time, change));
    }
    let end = all.last().map_or(Time::ZERO, |(time, _)| *time);
    (0..recorded.marks.len() as u32).for_each(|thread| pass(thread, u32::MAX, end, &mut all));
    (all, passed)
}

/// How marks bear on an exploration.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarksMatter {
    /// The check is told of them: an image is another one once another mark was passed.
    pub check_is_told: bool,
    /// Instants before the first operation begins are not looked at.
    pub skips_creation: bool,
}

impl MarksMatter {
    /// An image of this content, when so many marks were passed.
    pub(super) fn hash(self, content: ContentHash, passed: u32) -> ContentHash {
        const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        if self.check_is_told { ContentHash(content.0.wrapping_add(ODD.wrapping_mul(passed.into()))) } else { content }
    }
}

/// How many operations of a thread are open behind a mark, of so many before it.
fn open_after(open: u32, mark: MarkKind) -> u32 {
    match mark {
        MarkKind::Begin => open + 1,
        MarkKind::End => open.saturating_sub(1),
        MarkKind::Acknowledged => open,
    }
}

/// The end of the innermost operation that is open before these marks of its thread.
fn end_of_open<'a>(marks: &[&'a RecordedMark]) -> Option<&'a RecordedMark> {
    let mut open = 1;
    marks.iter().copied().find(|mark| {
        open = open_after(open, mark.kind);
        open == 0
    })
}

impl Exploration {
    /// Before which act of its thread someone was told of a store's operation, or else it had ended; if the check is
    /// told of that. A store in no operation has no end.
    pub(super) fn end_after(&self, store: StoreId) -> Option<usize> {
        let store = &self.recorded.stores[store as usize];
        let passed = &self.replayed.marks[..self.marks_passed() as usize];
        let own = passed.iter().filter(|passed| passed.thread == store.thread);
        let (before, behind): (Vec<_>, Vec<_>) =
            own.map(|passed| &passed.mark).partition(|mark| mark.acts_before <= store.place);
        let is_in_operation = before.iter().fold(0_u32, |open, mark| open_after(open, mark.kind)) > 0;
        let acknowledged = behind.iter().find(|mark| mark.kind == MarkKind::Acknowledged);
        let end = acknowledged.copied().or_else(|| end_of_open(&behind));
        end.filter(|_| is_in_operation && self.marks_matter.check_is_told).map(|mark| mark.acts_before as usize)
    }

    /// All that is performed before the mark with this number, as if all of it were durable.
    pub fn at_mark(&self, number: u32) -> Vec<Patch> {
        let mut ahead = self.clone();
        let mark = &self.replayed.marks[number as usize];
        for (place, &(_, change)) in self.replayed.changes.iter().enumerate() {
            if change == Change::Mark(number) {
                break;
            }
            ahead.pass(place);
        }
        // Of non-temporal stores some still wait to be written together.
        let is_before = |store: &u32| {
            let store = &self.recorded.stores[*store as usize];
            store.thread == mark.thread && store.place < mark.mark.acts_before
        };
        for (line, history) in self.replayed.lines.iter().enumerate() {
            let (durable, visible) = ahead.versions(line as u32);
            let mut bytes = ahead.base_of(line as u32);
            for version in durable..history.versions.len() as u32 {
                let stores = history.versions[version as usize].stores.iter().copied();
                let performed = stores.filter(|store| version < visible || is_before(store));
                ahead.lay_stores(line as u32, version, performed, &mut bytes);
            }
            ahead.set_base(history.file_line, bytes);
        }
        ahead.take_changes().into_iter().filter(|(_, bytes)| *bytes != [0; LINE]).collect()
    }
}
