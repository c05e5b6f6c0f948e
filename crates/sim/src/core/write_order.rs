//! Which writes of a thread came before what another one did, as the record has it, and how far each thread's writes
//! have got in the replay.
//!
//! A record with values says where a thread saw what another one had written ([`Event::Order`]). A replay in recorded
//! order lets it go on there when that write has taken effect. The thread that makes the write has a mark behind it: an
//! `Order` event that names the thread itself, which is in no record but put into its frames as they are read.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use fencepost_record::{Event, Frame, Record, RecordError, ThreadId};

/// The first so many writes of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// The thread.
    pub of: ThreadId,
    /// How many executions of blocks that write.
    pub count: u64,
}

/// The writes of one thread that others wait for.
#[derive(Clone, Debug)]
pub struct AwaitedWrites {
    /// By block, whether it has a slot that writes.
    writing_blocks: Arc<[bool]>,
    awaited: FxHashSet<u64>,
    /// Writes so far.
    count: u64,
}

impl AwaitedWrites {
    /// Those of each thread of a record that has any.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn of_record(record: &Record) -> Result<FxHashMap<ThreadId, AwaitedWrites>, RecordError> {
        let writing_blocks: Arc<[bool]> = record.program().writing_blocks().into();
        let mut of_threads: FxHashMap<ThreadId, AwaitedWrites> = FxHashMap::default();
        record.visit_events(|_, event| {
            if let Event::Order { thread, writes } = *event {
                let none = || AwaitedWrites {
                    writing_blocks: writing_blocks.clone(),
                    awaited: FxHashSet::default(),
                    count: 0,
                };
                of_threads.entry(thread).or_insert_with(none).awaited.insert(writes);
            }
        })?;
        Ok(of_threads)
    }

    /// Puts a mark behind each of them in the next frame of their thread.
    pub(super) fn mark(&mut self, thread: ThreadId, frame: &mut Frame) {
        let steps = std::mem::take(&mut frame.steps);
        let mut events = std::mem::take(&mut frame.events).into_iter();
        let mut mark = None;
        let put = |frame: &mut Frame, mark: Option<u64>| {
            if let Some(writes) = mark {
                frame.steps.push(0);
                frame.events.push(Event::Order { thread, writes });
            }
        };
        for step in steps {
            let event = (step == 0).then(|| events.next().expect("each step 0 has an event"));
            if !matches!(event, Some(Event::Interrupted { .. })) {
                put(frame, mark.take());
            }
            frame.steps.push(step);
            if step != 0 && self.writing_blocks[step as usize] {
                self.count += 1;
                mark = self.awaited.contains(&self.count).then_some(self.count);
            }
            if matches!(event, Some(Event::Exec { .. })) {
                // The new image counts anew.
                self.count = 0;
                mark = Some(0);
            }
            frame.events.extend(event);
        }
        put(frame, mark);
    }
}

/// How far the awaited writes of all threads have got, and which threads wait for them.
#[derive(Clone, Debug, Default)]
pub struct WriteOrder {
    /// By thread: the last that took effect, and when.
    performed: FxHashMap<ThreadId, (u64, u64)>,
    /// Cores whose threads wait without leaving them.
    stalled: Vec<(usize, Writes)>,
    /// Threads that wait without a core.
    blocked: Vec<(usize, Writes)>,
    /// Whether threads wait for a core.
    pub is_core_wanted: bool,
}

/// Which cores and threads can go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Cores, whose threads do.
    pub cores: Vec<usize>,
    /// Threads without a core.
    pub threads: Vec<usize>,
}

impl WriteOrder {
    /// When these writes had taken effect, if they have.
    pub fn performed(&self, writes: Writes) -> Option<u64> {
        let (count, cycle) = self.performed.get(&writes.of)?;
        (*count >= writes.count).then_some(*cycle)
    }

    /// The thread of `core` waits there.
    pub(super) fn stall(&mut self, core: usize, writes: Writes) {
        self.stalled.retain(|(stalled, _)| *stalled != core);
        self.stalled.push((core, writes));
    }

    /// `thread` waits without a core.
    pub fn block(&mut self, thread: usize, writes: Writes) {
        self.blocked.push((thread, writes));
    }

    /// These writes have taken effect, at `cycle`.
    pub fn perform(&mut self, writes: Writes, cycle: u64) -> Released {
        let performed = self.performed.entry(writes.of).or_default();
        // A new image counts from 0 again.
        if writes.count == 0 || writes.count > performed.0 {
            *performed = (writes.count, cycle);
        }
        let is_over = |waits: &Writes| waits.of == writes.of && waits.count <= writes.count;
        let cores = self.stalled.extract_if(.., |(_, waits)| is_over(waits)).map(|(core, _)| core).collect();
        let threads = self.blocked.extract_if(.., |(_, waits)| is_over(waits)).map(|(thread, _)| thread).collect();
        Released { cores, threads }
    }

    /// Cores that could have another thread.
    pub fn take_stalled(&mut self) -> Vec<usize> {
        self.stalled.drain(..).map(|(core, _)| core).collect()
    }

    /// One of the writes that are waited for: the first that `is_missing` if there is one, else the first.
    pub fn awaited(&self, is_missing: impl Fn(ThreadId) -> bool) -> Option<Writes> {
        let mut all = self.stalled.iter().chain(&self.blocked).map(|(_, writes)| *writes);
        all.clone().find(|writes| is_missing(writes.of)).or_else(|| all.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(of: u32, count: u64) -> Writes {
        Writes { of: ThreadId(of), count }
    }

    #[test]
    fn whoever_waits_goes_on_when_so_many_writes_have_taken_effect() {
        let mut order = WriteOrder::default();
        order.stall(3, writes(1, 5));
        order.block(8, writes(1, 6));
        assert_eq!(order.perform(writes(2, 9), 10), Released::default());
        assert_eq!(order.perform(writes(1, 5), 20), Released { cores: vec![3], threads: vec![] });
        assert_eq!((order.performed(writes(1, 4)), order.performed(writes(1, 6))), (Some(20), None));
        assert_eq!(order.awaited(|_| false), Some(writes(1, 6)));
        assert_eq!(order.perform(writes(1, 7), 30), Released { cores: vec![], threads: vec![8] });
        assert_eq!(order.awaited(|_| true), None);
    }

    #[test]
    fn a_mark_stands_behind_the_block_that_writes_and_its_interruption() {
        let awaited = [2, 3].into_iter().collect();
        let mut own = AwaitedWrites { writing_blocks: [false, true, false].into(), awaited, count: 0 };
        let interrupted = Event::Interrupted { instructions: 1 };
        let exec = Event::Exec { clock: fencepost_record::Clock(1), path: "".into() };
        let mut frame = Frame {
            steps: vec![1, 2, 1, 0, 0, 2, 1, 1, 1],
            events: vec![interrupted.clone(), exec.clone()],
            ..Frame::default()
        };
        own.mark(ThreadId(4), &mut frame);
        let mark = |writes| Event::Order { thread: ThreadId(4), writes };
        assert_eq!(frame.steps, [1, 2, 1, 0, 0, 0, 0, 2, 1, 1, 0, 1, 0]);
        assert_eq!(frame.events, [interrupted, mark(2), exec, mark(0), mark(2), mark(3)]);
    }
}
