//! Stores of which the walk has only seen that they came before some step: the thread stored to the same line again,
//! long after. Where threads wait for them it is looked for them in the frames before.

use rustc_hash::{FxHashMap, FxHashSet};

use super::history::Place;
use super::outlines::Outlines;
use super::words::{Words, word_of};
use crate::code::SlotKind;
use crate::error::RecordError;
use crate::event::{Event, ThreadId};
use crate::reader::Record;
use crate::trace::Frame;

/// A store to a word, which is the last one of its thread up to a step.
#[derive(Clone, Copy, Debug)]
struct Unplaced {
    /// Its number from 0 in the log.
    at: usize,
    to: u64,
    found: Option<(u64, Place, u64)>,
}

/// Finds the stores with these numbers from 0 in the log. `frames` are the numbers of the first steps of all frames, by
/// thread.
pub(super) fn place(
    record: &Record,
    outlines: &Outlines,
    words: &mut Words,
    frames: &[Vec<u64>],
    stores: FxHashSet<usize>,
) -> Result<(), RecordError> {
    let mut of_threads: Vec<FxHashMap<u64, Unplaced>> = vec![FxHashMap::default(); frames.len()];
    for at in stores {
        let store = words.log.get(at);
        let unplaced = Unplaced { at, to: store.step, found: None };
        of_threads[store.thread as usize].insert(word_of(store.address), unplaced);
    }
    let mut frame = Frame::default();
    for (thread, mut unplaced) in of_threads.into_iter().enumerate().filter(|(_, unplaced)| !unplaced.is_empty()) {
        let mut missing: FxHashSet<u64> = unplaced.keys().copied().collect();
        for (number, first) in frames[thread][..frames[thread].len() - 1].iter().enumerate().rev() {
            if missing.is_empty() {
                break;
            }
            if missing.iter().all(|word| unplaced[word].to < *first) {
                continue;
            }
            record.frame_as_recorded(ThreadId(thread as u32), number, &mut frame)?;
            look_through(outlines, record, &frame, *first, &missing, &mut unplaced);
            missing.retain(|word| unplaced[word].found.is_none());
        }
        for (at, (step, place, address)) in unplaced.values().filter_map(|store| Some((store.at, store.found?))) {
            let number = words.number(thread, step);
            words.log.place(at, number, step, place, address);
        }
    }
    words.log.sort();
    Ok(())
}

/// Finds the last of these stores in a frame, outside of calls, as the walk sees it.
fn look_through(
    outlines: &Outlines,
    record: &Record,
    frame: &Frame,
    first: u64,
    missing: &FxHashSet<u64>,
    unplaced: &mut FxHashMap<u64, Unplaced>,
) {
    let call = frame.events.iter().find(|event| matches!(event, Event::CallBegin | Event::CallEnd));
    let mut is_in_call = matches!(call, Some(Event::CallEnd));
    let (mut events, mut slot) = (frame.events.iter(), 0);
    for (step, &id) in (first..).zip(&frame.steps) {
        if id == 0 {
            match events.next() {
                Some(Event::CallBegin) => is_in_call = true,
                Some(Event::CallEnd) => is_in_call = false,
                _ => {}
            }
            continue;
        }
        let slots = &frame.slots[slot..];
        slot += record.program().block(id).slots.len();
        if is_in_call {
            continue;
        }
        for access in outlines.accesses(outlines.block(id)) {
            let address = slots[usize::from(access.slot)];
            let word = word_of(address);
            if access.kind != SlotKind::Load && missing.contains(&word) {
                let store = unplaced.get_mut(&word).expect("what is missing is unplaced");
                if step <= store.to {
                    store.found = Some((step, (id, access.slot), address));
                }
            }
        }
    }
}
