//! What is left out of the frames of a record, and what is put in.

use crate::code::Program;
use crate::event::{Clock, Event};
use crate::trace::Frame;

/// Places between two of the record's own clocks.
const PLACES: u64 = 1 << 14;

/// At one of a thread's blocks or events.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Comes before it.
    Insert(Event),
    /// It goes, and all up to this number.
    Skip(u64),
}

/// Of one thread, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct OfThread {
    pub changes: Vec<(u64, Change)>,
    /// The number of the first block or event of each frame.
    pub frames: Vec<u64>,
}

/// Of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    threads: Vec<OfThread>,
}

/// A place in the process clock of a replay, behind one of the record's.
pub(super) fn place_behind(clock: Clock, count: u64) -> Clock {
    Clock(clock.0 * PLACES + count.min(PLACES - 1))
}

impl Changes {
    pub(super) fn new(mut threads: Vec<OfThread>) -> Self {
        for thread in &mut threads {
            thread.changes.sort_by_key(|(number, change)| (*number, matches!(change, Change::Skip(_))));
        }
        Self { threads }
    }

    /// Changes the frame with this number of a thread.
    pub(crate) fn apply(&self, program: &Program, thread: usize, number: usize, frame: &mut Frame) {
        frame.events.iter_mut().for_each(Event::spread_clocks);
        let thread = &self.threads[thread];
        let first = thread.frames[number];
        let end = first + frame.steps.len() as u64;
        let from = thread.changes.partition_point(|(at, change)| match change {
            Change::Insert(_) => *at < first,
            Change::Skip(to) => *to <= first,
        });
        let changes = &thread.changes[from..];
        if changes.first().is_none_or(|(at, _)| *at >= end) {
            return;
        }
        let old = std::mem::take(frame);
        frame.first_instruction = old.first_instruction;
        frame.clocks = old.clocks;
        frame.values = old.values;
        frame.written = old.written;
        let mut changes = changes.iter().peekable();
        let (mut slot, mut events) = (0, old.events.into_iter());
        let (mut skipped_to, mut last) = (0, 0);
        for (index, &id) in old.steps.iter().enumerate() {
            let at = first + index as u64;
            while let Some((_, change)) = changes.next_if(|(place, _)| *place <= at) {
                match change {
                    Change::Insert(event) => {
                        if at >= skipped_to {
                            frame.steps.push(0);
                            frame.events.push(event.clone());
                        }
                    }
                    Change::Skip(to) => skipped_to = skipped_to.max(*to),
                }
            }
            let is_kept = at >= skipped_to;
            if id == 0 {
                let event = events.next().expect("an event for each");
                if is_kept {
                    if let Event::Interrupted { instructions } = event {
                        frame.instructions -= last - instructions;
                    }
                    frame.steps.push(0);
                    frame.events.push(event);
                }
                continue;
            }
            let block = program.block(id);
            let count = block.slots.len();
            if is_kept {
                frame.steps.push(id);
                frame.slots.extend_from_slice(&old.slots[slot..slot + count]);
                last = block.instruction_count() as u64;
                frame.instructions += last;
            }
            slot += count;
        }
    }
}

impl Event {
    /// Makes room between the places of the process clock.
    fn spread_clocks(&mut self) {
        let spread = |clock: &mut Clock| clock.0 *= PLACES;
        self.visit_clocks(spread);
    }
}
