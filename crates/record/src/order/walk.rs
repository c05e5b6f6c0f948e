//! The one sequence that the turns of all threads make.

use std::collections::BTreeMap;

use crate::error::RecordError;
use crate::event::{Clock, Event, ThreadId};
use crate::reader::Record;
use crate::trace::Frame;

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'a> {
    Block { id: u32, slots: &'a [u64] },
    Event(&'a Event),
}

/// Who has which turn, in order. A turn ends where the thread's next one begins.
pub(super) struct Turns(Vec<ThreadId>);

/// An event with which a turn begins.
fn begins_turn(event: &Event) -> bool {
    matches!(event, Event::Turn { .. } | Event::ThreadStart { .. })
}

impl Turns {
    pub(super) fn of(record: &Record) -> Result<Self, RecordError> {
        let mut turns: BTreeMap<Clock, ThreadId> = BTreeMap::new();
        let mut has_turns = false;
        record.visit_events(|thread, event| {
            has_turns |= matches!(event, Event::Turn { .. });
            if begins_turn(event)
                && let Some(clock) = event.clock()
            {
                turns.insert(clock, thread);
            }
        })?;
        Ok(Self(if has_turns { turns.into_values().collect() } else { Vec::new() }))
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands everything to `visit`, with its thread and its number among the thread's blocks and events. Gives the
    /// numbers of the first ones of all frames, and how many there are.
    pub(super) fn walk(
        &self,
        record: &Record,
        mut visit: impl FnMut(usize, u64, What<'_>),
    ) -> Result<Vec<Vec<u64>>, RecordError> {
        let mut cursors: Vec<Cursor> = (0..record.threads()).map(|thread| Cursor::new(thread as u32)).collect();
        for &thread in &self.0 {
            cursors[thread.0 as usize].run(record, &mut visit)?;
        }
        let frames = |cursor: Cursor| {
            let mut frames = cursor.frames;
            frames.push(cursor.number);
            frames
        };
        Ok(cursors.into_iter().map(frames).collect())
    }
}

/// Where a thread stands.
struct Cursor {
    thread: ThreadId,
    next_frame: usize,
    frame: Frame,
    step: usize,
    slot: usize,
    event: usize,
    number: u64,
    frames: Vec<u64>,
}

impl Cursor {
    fn new(thread: u32) -> Self {
        Self {
            thread: ThreadId(thread),
            next_frame: 0,
            frame: Frame::default(),
            step: 0,
            slot: 0,
            event: 0,
            number: 0,
            frames: Vec::new(),
        }
    }

    /// The next turn: from the event with which it begins to the one with which the next does.
    fn run(&mut self, record: &Record, visit: &mut impl FnMut(usize, u64, What<'_>)) -> Result<(), RecordError> {
        let shapes = record.program().shapes();
        let mut is_begun = false;
        loop {
            if self.step == self.frame.steps.len() {
                if !record.frame_as_recorded(self.thread, self.next_frame, &mut self.frame)? {
                    return Ok(());
                }
                self.next_frame += 1;
                self.frames.push(self.number);
                (self.step, self.slot, self.event) = (0, 0, 0);
                continue;
            }
            let id = self.frame.steps[self.step];
            if id == 0 {
                let event = &self.frame.events[self.event];
                if begins_turn(event) {
                    if is_begun {
                        return Ok(());
                    }
                    is_begun = true;
                }
                visit(self.thread.0 as usize, self.number, What::Event(event));
                self.event += 1;
            } else {
                let slots = shapes[id as usize].slots as usize;
                let values = &self.frame.slots[self.slot..self.slot + slots];
                visit(self.thread.0 as usize, self.number, What::Block { id, slots: values });
                self.slot += slots;
            }
            self.step += 1;
            self.number += 1;
        }
    }
}
