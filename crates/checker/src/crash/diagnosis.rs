//! From two stores, of which the first should have been durable before the second, to what is missing in the program
//! between them.
//!
//! It goes by the program order of the thread that made the lost store: what was flushed there, and what the flushes
//! waited for.

use std::ops::Range;

use fencepost_isa::micro_op::Operation;
use serde::Serialize;

use super::content_hash::LINE;
use super::recorded_stores::{Act, PlacedAct, RecordedStores, StoreId, lines_of};
use super::sites::SiteId;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The line of the store is not flushed before the other store, or at all.
    MissingFlush,
    /// Its line is flushed to a point that the machine does not keep through a power cut.
    WrongPoint,
    /// Its flush comes before the store, with no other one after it.
    FlushBeforeStore,
    /// It is flushed, but no fence comes before the other store.
    MissingFence,
    /// The fence comes before the flush.
    FenceBeforeFlush,
    /// Both stores are flushed together and wait for one fence: either may be durable first.
    OneFenceForBoth,
    /// The lost store comes after the durable one, in the program or as other threads see them: it should have been
    /// durable first.
    LaterStore,
    /// Everything visible is durable, and still the check fails: the cut fell between two stores that belong together.
    BetweenStores,
    /// Another thread's store depends on it, and nothing in this one says when.
    AcrossThreads,
    /// It is flushed and fenced before the thread's other store: the machine acknowledges a flush before it is durable.
    AcknowledgedEarly,
    /// One store is durable in part: it is longer than what the platform keeps whole, or lies in two lines.
    Torn,
    /// It is flushed and fenced, and nothing else was durable: the check wants it there from the start.
    NothingDurable,
}

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What is wrong.
    pub fault: Fault,
    /// The flush that comes too early or too late, if there is one.
    pub flush: Option<SiteId>,
    /// The fence that comes too early, or that both wait for.
    pub fence: Option<SiteId>,
}

impl Diagnosis {
    /// Without a flush or fence.
    pub fn of(fault: Fault) -> Diagnosis {
        Diagnosis { fault, flush: None, fence: None }
    }
}

/// What a thread did, seen from one of its stores.
struct View<'a> {
    recorded: &'a RecordedStores,
    acts: &'a [PlacedAct],
    line: u64,
    is_non_temporal: bool,
}

impl View<'_> {
    fn first(&self, range: Range<usize>, is_meant: impl Fn(&Self, Act) -> bool) -> Option<usize> {
        range.into_iter().find(|&place| is_meant(self, self.acts[place].act))
    }

    fn flushes_line(&self, act: Act) -> bool {
        match act {
            Act::Flush { address, .. } => address / LINE as u64 == self.line,
            Act::Sync { start, length } => lines_of(start, length).contains(&self.line),
            _ => false,
        }
    }

    fn flushes_elsewhere(&self, act: Act) -> bool {
        matches!(act, Act::FlushElsewhere { address } if address / LINE as u64 == self.line)
    }

    fn stores_to_line(&self, act: Act) -> bool {
        matches!(act, Act::Store(store) if self.recorded.stores[store as usize].address / LINE as u64 == self.line)
    }

    fn is_fence(&self, act: Act) -> bool {
        matches!(act, Act::Fence { .. } | Act::Sync { .. })
    }

    /// Whether somebody wrote a fence there; locked instructions and locks order too, and are there for something else.
    fn is_fence_instruction(&self, act: Act) -> bool {
        matches!(act, Act::Fence { operation: Operation::Fence(_) } | Act::Sync { .. })
    }

    /// A flush of what was in the line before the store at `place`, with nothing between them that it was for.
    fn early_flush(&self, place: usize) -> Option<usize> {
        let group = self.acts[..place].iter().rposition(|act| self.is_fence(act.act)).map_or(0, |fence| fence + 1);
        let flush = (group..place).rfind(|&place| self.flushes_line(self.acts[place].act))?;
        self.first(flush + 1..place, Self::stores_to_line).is_none().then_some(flush)
    }

    /// The line's flush behind `from`, if it comes before the line is stored to again.
    fn late_flush(&self, from: usize) -> Option<usize> {
        let flush = self.first(from..self.acts.len(), Self::flushes_line)?;
        self.first(from + 1..flush, Self::stores_to_line).is_none().then_some(flush)
    }
}

/// Looks for what should have made `lost` durable before `durable`, or at all if there is no other store.
pub fn diagnose(recorded: &RecordedStores, lost: StoreId, durable: Option<StoreId>) -> Diagnosis {
    let store = &recorded.stores[lost as usize];
    let (acts, view) = view_of(recorded, lost);
    let place = store.place as usize;
    let own = durable.map(|durable| &recorded.stores[durable as usize]).filter(|other| other.thread == store.thread);
    let other = own.map(|other| other.place as usize);
    if other.is_some_and(|other| other < place) {
        return Diagnosis::of(Fault::LaterStore);
    }
    let (fault, flush, fence) = match view_from(&view, place, other) {
        (Fault::AcrossThreads, flush, fence) if durable.is_none() => (Fault::NothingDurable, flush, fence),
        found => found,
    };
    let site = |place: usize| acts[place].site;
    Diagnosis { fault, flush: flush.map(site), fence: fence.map(site) }
}

/// Looks for what should have made `lost` durable before its thread's act number `end`.
pub fn diagnose_until(recorded: &RecordedStores, lost: StoreId, end: usize) -> Diagnosis {
    let (acts, view) = view_of(recorded, lost);
    let (fault, flush, fence) = match view_from(&view, recorded.stores[lost as usize].place as usize, Some(end)) {
        (Fault::OneFenceForBoth, flush, _) => (Fault::MissingFlush, flush, None),
        found => found,
    };
    let site = |place: usize| acts[place].site;
    Diagnosis { fault, flush: flush.map(site), fence: fence.map(site) }
}

fn view_of(recorded: &RecordedStores, store: StoreId) -> (&[PlacedAct], View<'_>) {
    let store = &recorded.stores[store as usize];
    let acts = &recorded.threads[store.thread as usize][..];
    let line = store.address / LINE as u64;
    (acts, View { recorded, acts, line, is_non_temporal: store.is_non_temporal })
}

/// What lies between the store at `place` and the other one, which comes later if it is this thread's.
fn view_from(view: &View<'_>, place: usize, other: Option<usize>) -> (Fault, Option<usize>, Option<usize>) {
    let until = other.unwrap_or(view.acts.len());
    if view.is_non_temporal {
        return around_the_caches(view, place + 1..until, other.is_some());
    }
    if let Some(flush) = view.first(place + 1..until, View::flushes_line) {
        let fence = view.first(flush + 1..until, View::is_fence);
        let early_fence = view.first(place + 1..flush, View::is_fence_instruction);
        return match (fence, early_fence) {
            (None, None) => (Fault::MissingFence, Some(flush), None),
            (None, Some(early)) => (Fault::FenceBeforeFlush, Some(flush), Some(early)),
            (Some(fence), _) if other.is_some() => (Fault::AcknowledgedEarly, Some(flush), Some(fence)),
            (Some(fence), _) => (Fault::AcrossThreads, Some(flush), Some(fence)),
        };
    }
    if let Some(flush) = view.first(place + 1..until, View::flushes_elsewhere) {
        return (Fault::WrongPoint, Some(flush), None);
    }
    if let Some(early) = view.early_flush(place) {
        return (Fault::FlushBeforeStore, Some(early), None);
    }
    let late = other.and_then(|other| view.late_flush(other));
    match late {
        Some(late) if view.first(place + 1..late, View::is_fence_instruction).is_none() => {
            (Fault::OneFenceForBoth, Some(late), view.first(late + 1..view.acts.len(), View::is_fence))
        }
        _ => (Fault::MissingFlush, late, view.first(place + 1..until, View::is_fence_instruction)),
    }
}

/// A non-temporal store needs no flush: a fence makes it durable.
fn around_the_caches(view: &View<'_>, between: Range<usize>, is_own: bool) -> (Fault, Option<usize>, Option<usize>) {
    match view.first(between, View::is_fence) {
        None => (Fault::MissingFence, None, None),
        fence if is_own => (Fault::AcknowledgedEarly, None, fence),
        fence => (Fault::AcrossThreads, None, fence),
    }
}

#[cfg(test)]
mod tests {
    use fencepost_isa::micro_op::{Fence, Flush};

    use super::super::recorded_stores::RecordedStore;
    use super::*;

    /// Of a line: `s0` stores to line 0, `n0` around the caches, `f0` flushes it, `w0` to the wrong point, `F` is a
    /// fence, `L` a lock. Instructions of each thread are numbered from 100.
    fn threads(all: &[&str]) -> RecordedStores {
        let mut recorded = RecordedStores::default();
        for (thread, acts) in all.iter().enumerate() {
            for (place, act) in acts.split_whitespace().enumerate() {
                let address = act[1..].parse::<u64>().unwrap_or_default() * LINE as u64;
                let act = match &act[..1] {
                    "s" => {
                        recorded.stores.push(RecordedStore::plain(thread as u32, place as u32, address, 8));
                        Act::Store(recorded.stores.len() as StoreId - 1)
                    }
                    "n" => {
                        let mut store = RecordedStore::plain(thread as u32, place as u32, address, 8);
                        store.is_non_temporal = true;
                        recorded.stores.push(store);
                        Act::Store(recorded.stores.len() as StoreId - 1)
                    }
                    "w" => Act::FlushElsewhere { address },
                    "f" => Act::Flush { address, operation: Operation::Flush(Flush::CLWB) },
                    "F" => Act::Fence { operation: Operation::Fence(Fence::SFENCE) },
                    _ => Act::Fence { operation: Operation::Atomic(Fence::MFENCE) },
                };
                recorded.add_act(thread as u32, act);
            }
        }
        recorded
    }

    /// The first store to line 0 is lost, the first to line 1 durable, if there is one. What is wrong, and the
    /// instructions of flush and fence.
    fn diagnosed(recorded: &RecordedStores) -> (Fault, Option<u64>, Option<u64>) {
        let of_line = |line: u64| recorded.stores.iter().position(|store| store.address == line * 64);
        let lost = of_line(0).expect("there is one") as StoreId;
        let Diagnosis { fault, flush, fence } = diagnose(recorded, lost, of_line(1).map(|store| store as StoreId));
        let instruction = |site: SiteId| recorded.sites.get(site).instruction;
        (fault, flush.map(instruction), fence.map(instruction))
    }

    #[test]
    fn what_is_missing_between_two_stores_has_a_name_and_a_place() {
        use Fault::*;
        let cases = [
            ("s0 s1 f1 F", MissingFlush, None, None),
            ("s0 F s1 f1 F", MissingFlush, None, Some(101)),
            ("s0 F s1 f1 F f0 F", MissingFlush, Some(105), Some(101)),
            ("f0 s0 F s1 f1 F", FlushBeforeStore, Some(100), None),
            ("s0 f0 s1 f1 F", MissingFence, Some(101), None),
            ("s0 L f0 s1 f1 F", MissingFence, Some(102), None),
            ("s0 F f0 s1 f1 F", FenceBeforeFlush, Some(102), Some(101)),
            ("s0 s1 f0 f1 F", OneFenceForBoth, Some(102), Some(104)),
            ("s0 L s1 f1 f0 F", OneFenceForBoth, Some(104), Some(105)),
            ("s1 s0 f0 f1 F", LaterStore, None, None),
            ("s0 f0 F s1 f1 F", AcknowledgedEarly, Some(101), Some(102)),
            ("n0 s1 f1 F", MissingFence, None, None),
            ("n0 f0 s1 f1 F", MissingFence, None, None),
            ("n0 F s1 f1 F", AcknowledgedEarly, None, Some(101)),
            ("s0 w0 F s1 f1 F", WrongPoint, Some(101), None),
            // The flush belongs to the line's next store.
            ("s0 F s1 f1 F s0 f0 F", MissingFlush, None, Some(101)),
        ];
        for (acts, fault, flush, fence) in cases {
            assert_eq!(diagnosed(&threads(&[acts])), (fault, flush, fence), "{acts}");
        }
    }

    #[test]
    fn what_is_missing_before_an_operation_ends_has_a_name_and_a_place() {
        use Fault::*;
        let cases = [
            ("s1 f1 F s0 | f0 F", MissingFlush, Some(105), None),
            ("s0 F |", MissingFlush, None, Some(101)),
            ("s0 f0 | F", MissingFence, Some(101), None),
            ("f0 s0 F |", FlushBeforeStore, Some(100), None),
            ("s0 f0 F |", AcknowledgedEarly, Some(101), Some(102)),
            ("n0 | F", MissingFence, None, None),
        ];
        for (acts, fault, flush, fence) in cases {
            let end = acts.split_whitespace().position(|act| act == "|").expect("it ends");
            // A lock stands for the end: it takes part in nothing that is asked for.
            let recorded = threads(&[acts.replace('|', "L").as_str()]);
            let lost = recorded.stores.iter().position(|store| store.address == 0).expect("there is one");
            let found = diagnose_until(&recorded, lost as StoreId, end);
            let instruction = |site: SiteId| recorded.sites.get(site).instruction;
            let places = (found.flush.map(instruction), found.fence.map(instruction));
            assert_eq!((found.fault, places), (fault, (flush, fence)), "{acts}");
        }
    }

    #[test]
    fn a_store_that_is_flushed_and_fenced_is_lost_to_another_thread_or_to_a_check_that_wants_it_from_the_start() {
        use Fault::*;
        let cases: [(&[&str], _, _, _); 4] = [
            (&["s0 f0 F", "s1 f1 F"], AcrossThreads, Some(101), Some(102)),
            (&["s0 f0", "s1 f1 F"], MissingFence, Some(101), None),
            (&["s0 f0 F"], NothingDurable, Some(101), Some(102)),
            (&["s0 F"], MissingFlush, None, Some(101)),
        ];
        for (acts, fault, flush, fence) in cases {
            assert_eq!(diagnosed(&threads(acts)), (fault, flush, fence), "{acts:?}");
        }
    }
}
