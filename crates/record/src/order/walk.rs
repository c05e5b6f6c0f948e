//! The one sequence that the turns of all threads make.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustc_hash::FxHashMap;

use crate::code::Shape;
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

/// Frames that are unpacked before somebody needs them.
const FRAMES_AHEAD: usize = 2;

/// Who has which turn, in order. A turn ends where the thread's next one begins.
pub(super) struct Turns {
    /// All threads, one after the other, where there were no turns.
    threads: Vec<ThreadId>,
    are_known: bool,
    /// Thread and number of all frames, about in the order in which the turns come to them.
    frames: Vec<(ThreadId, usize)>,
}

/// An event with which a turn begins.
pub(super) fn begins_turn(event: &Event) -> bool {
    matches!(event, Event::Turn { .. } | Event::ThreadStart { .. })
}

impl Turns {
    pub(super) fn of(record: &Record) -> Result<Self, RecordError> {
        let mut turns: BTreeMap<Clock, ThreadId> = BTreeMap::new();
        let mut frames: Vec<(Clock, ThreadId, usize)> = Vec::new();
        let (mut has_turns, mut frame, mut turn) = (false, Frame::default(), Clock(0));
        record.visit_trace(|thread, decoder, _| {
            decoder.events(&mut frame)?;
            let number = decoder.header.sequence as usize;
            if record.is_alone(thread) {
                return Ok(());
            }
            let begun = |event: &Event| if begins_turn(event) { event.clock() } else { None };
            // A frame is come to in the turn in which the one before it ends.
            let first = frame.events.iter().find_map(begun).unwrap_or_default();
            frames.push((if number == 0 { first } else { turn }, thread, number));
            has_turns |= frame.events.iter().any(|event| matches!(event, Event::Turn { .. }));
            turns.extend(frame.events.iter().filter_map(begun).map(|clock| (clock, thread)));
            turn = frame.events.iter().rev().find_map(begun).unwrap_or(if number == 0 { first } else { turn });
            Ok(())
        })?;
        let threads = if has_turns {
            frames.sort_unstable();
            turns.into_values().collect()
        } else {
            (0..record.threads() as u32).map(ThreadId).collect()
        };
        Ok(Self {
            threads,
            are_known: has_turns,
            frames: frames.into_iter().map(|(_, thread, number)| (thread, number)).collect(),
        })
    }

    pub(super) fn are_known(&self) -> bool {
        self.are_known
    }

    /// Hands everything to `visit`, with its thread and its number among the thread's blocks and events. Gives the
    /// numbers of the first ones of all frames, and how many there are.
    pub(super) fn walk(
        &self,
        record: &Record,
        mut visit: impl FnMut(usize, u64, What<'_>),
    ) -> Result<Vec<Vec<u64>>, RecordError> {
        let mut cursors: Vec<Cursor> = (0..record.threads()).map(|thread| Cursor::new(thread as u32)).collect();
        std::thread::scope(|scope| {
            let (unpacked, coming) = sync_channel(FRAMES_AHEAD);
            let (used, reused) = channel();
            scope.spawn(move || self.unpack(record, &unpacked, &reused));
            let mut frames = Frames { coming, counts: self.counts(record), early: FxHashMap::default(), used };
            let shapes = record.program().shapes();
            self.threads
                .iter()
                .try_for_each(|thread| cursors[thread.0 as usize].run(shapes, &mut frames, self.are_known, &mut visit))
        })?;
        let frames = |cursor: Cursor| {
            let mut frames = cursor.frames;
            if record.is_alone(cursor.thread) {
                // Nothing of them changes: where they begin does not matter.
                frames.resize(record.trace_frames(cursor.thread).len(), 0);
            }
            frames.push(cursor.number);
            frames
        };
        Ok(cursors.into_iter().map(frames).collect())
    }

    fn counts(&self, record: &Record) -> Vec<usize> {
        let mut counts = vec![0; record.threads()];
        self.frames.iter().for_each(|(thread, _)| counts[thread.0 as usize] += 1);
        counts
    }

    /// Unpacks all frames, as long as somebody takes them.
    fn unpack(&self, record: &Record, unpacked: &SyncSender<Unpacked>, reused: &Receiver<Frame>) {
        for &(thread, number) in &self.frames {
            let mut frame = reused.try_recv().unwrap_or_default();
            let result = record.frame_as_recorded(thread, number, &mut frame);
            if unpacked.send(result.map(|_| (thread, number, frame))).is_err() {
                return;
            }
        }
    }
}

type Unpacked = Result<(ThreadId, usize, Frame), RecordError>;

/// The frames that another thread of ours unpacks.
struct Frames {
    coming: Receiver<Unpacked>,
    /// How many each thread has.
    counts: Vec<usize>,
    /// What came before it was needed.
    early: FxHashMap<(ThreadId, usize), Frame>,
    used: Sender<Frame>,
}

impl Frames {
    /// Puts the frame with this number of a thread in the place of `frame`; false where there is none.
    fn take(&mut self, thread: ThreadId, number: usize, frame: &mut Frame) -> Result<bool, RecordError> {
        if number == self.counts[thread.0 as usize] {
            return Ok(false);
        }
        let next = loop {
            if let Some(next) = self.early.remove(&(thread, number)) {
                break next;
            }
            match self.coming.recv() {
                Ok(unpacked) => {
                    let (of, at, frame) = unpacked?;
                    self.early.insert((of, at), frame);
                }
                Err(_) => return Ok(false),
            }
        };
        // Nobody takes it any more once all are unpacked.
        _ = self.used.send(std::mem::replace(frame, next));
        Ok(true)
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

    /// The next turn: from the event with which it begins to the one with which the next does. All of the thread where
    /// there are none.
    fn run(
        &mut self,
        shapes: &[Shape],
        frames: &mut Frames,
        takes_turns: bool,
        visit: &mut impl FnMut(usize, u64, What<'_>),
    ) -> Result<(), RecordError> {
        let mut is_begun = false;
        loop {
            if self.step == self.frame.steps.len() {
                if !frames.take(self.thread, self.next_frame, &mut self.frame)? {
                    _ = frames.used.send(std::mem::take(&mut self.frame));
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
                if takes_turns && begins_turn(event) {
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
