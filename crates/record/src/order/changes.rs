//! What is left out of the frames of a record, and what is put in; as an ORDER frame has it.

use super::polling::Polled;
use crate::code::Program;
use crate::error::Problem;
use crate::event::{Clock, Event, ThreadId};
use crate::event_codec::{EventEncoder, decode_events};
use crate::trace::Frame;
use crate::varint::{Fields, encode};

/// Places between two of the record's own clocks.
pub(super) const PLACES: u64 = 1 << 14;

/// At one of a thread's blocks or events.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Comes before it.
    Insert(Event),
    /// It goes, and all up to this number.
    Skip(u64),
}

/// Of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct OfThread {
    /// By the number of the block or event.
    pub changes: Vec<(u64, Change)>,
    /// The number of the first block or event of each frame, and that behind the last.
    pub frames: Vec<u64>,
}

/// Of all threads, by frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    threads: Vec<Vec<FrameChanges>>,
    /// Whether no place of the process clock is among what is put in.
    keeps_clocks: bool,
    /// Accesses that were forgotten before it was found what they have to come behind.
    pub undecided: u64,
}

/// Of one frame. Steps are its blocks and events, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameChanges {
    /// From where to where steps go, ascending.
    skips: Vec<(u32, u32)>,
    /// Events, and the steps before which they come, ascending.
    inserts: Vec<(u32, Event)>,
}

/// A place in the process clock of a replay, behind one of the record's.
pub(super) fn place_behind(clock: Clock, count: u64) -> Clock {
    Clock(clock.0 * PLACES + count.min(PLACES - 1))
}

impl OfThread {
    /// Counts rounds that are kept, before the last block of each run: where that is left out after all, so are they.
    pub(super) fn keep_polled(&mut self, runs: &[Polled]) {
        self.changes.extend(runs.iter().map(|&Polled { to, instructions, by_count, .. }| {
            (to - 1, Change::Insert(Event::Polling { instructions, by_count }))
        }));
    }

    fn by_frame(mut self) -> Vec<FrameChanges> {
        self.changes.sort_by_key(|(number, change)| (*number, matches!(change, Change::Skip(_))));
        let mut frames = vec![FrameChanges::default(); self.frames.len().saturating_sub(1)];
        let end = self.frames.last().copied().unwrap_or_default();
        let frame_of = |number: u64| self.frames.partition_point(|first| *first <= number) - 1;
        let (mut skipped_from, mut skipped_to) = (0, 0);
        for (number, change) in self.changes.into_iter().filter(|(number, _)| *number < end) {
            match change {
                Change::Insert(event) if number >= skipped_to => {
                    let frame = frame_of(number);
                    frames[frame].inserts.push(((number - self.frames[frame]) as u32, event));
                }
                Change::Insert(Event::SpinWait { .. } | Event::SpinRelease { .. }) => {
                    let frame = frame_of(skipped_from);
                    let step = (skipped_from - self.frames[frame]) as u32;
                    frames[frame].inserts.push((step, Event::DroppedEdges { count: 1 }));
                }
                Change::Insert(_) => {}
                Change::Skip(to) => {
                    if number >= skipped_to {
                        skipped_from = number;
                    }
                    let mut from = number.max(skipped_to);
                    skipped_to = skipped_to.max(to);
                    while from < to.min(end) {
                        let frame = frame_of(from);
                        let (first, next) = (self.frames[frame], self.frames[frame + 1]);
                        frames[frame].skips.push(((from - first) as u32, (to.min(next) - first) as u32));
                        from = next;
                    }
                }
            }
        }
        frames
    }
}

impl From<Vec<Vec<FrameChanges>>> for Changes {
    fn from(threads: Vec<Vec<FrameChanges>>) -> Self {
        Self { threads, ..Self::default() }
    }
}

impl Changes {
    pub(super) fn new(threads: Vec<OfThread>) -> Self {
        let threads: Vec<_> = threads.into_iter().map(OfThread::by_frame).collect();
        threads.into()
    }

    /// Nothing goes, and rounds that polled are counted.
    pub(super) fn that_keep(polled: &[Vec<Polled>], frames: Vec<Vec<u64>>) -> Self {
        let of_thread = |(runs, frames): (&Vec<Polled>, Vec<u64>)| {
            let mut thread = OfThread { frames, changes: Vec::new() };
            thread.keep_polled(runs);
            thread
        };
        Self { keeps_clocks: true, ..Self::new(polled.iter().zip(frames).map(of_thread).collect()) }
    }

    /// Changes the frame with this number of a thread.
    pub(crate) fn apply(
        &self,
        program: &Program,
        thread: usize,
        number: usize,
        frame: &mut Frame,
    ) -> Result<(), Problem> {
        let changes = &self.threads[thread][number];
        if self.keeps_clocks { changes.change(program, frame) } else { changes.apply(program, frame) }
    }

    /// Those of one frame.
    pub(crate) fn of_frame(&self, thread: ThreadId, number: usize) -> &FrameChanges {
        &self.threads[thread.0 as usize][number]
    }

    /// Instructions of rounds that polled: what ended them nobody knows, or it was a count or a clock.
    pub(crate) fn polling(&self) -> (u64, u64) {
        let inserts = self.threads.iter().flatten().flat_map(|frame| &frame.inserts);
        inserts.fold((0, 0), |(open, counted), (_, event)| match event {
            Event::Polling { instructions, by_count } => (open + instructions, counted + by_count),
            _ => (open, counted),
        })
    }

    /// What should come behind something of another thread that is not named.
    pub(crate) fn dropped_edges(&self) -> u64 {
        let inserts = self.threads.iter().flatten().flat_map(|frame| &frame.inserts);
        inserts.map(|(_, event)| if let Event::DroppedEdges { count } = event { *count } else { 0 }).sum()
    }

    /// Those of each frame: its thread, its number and they.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u32, u32, &FrameChanges)> {
        (0..)
            .zip(&self.threads)
            .flat_map(|(thread, frames)| (0..).zip(frames).map(move |(number, changes)| (thread, number, changes)))
    }
}

impl FrameChanges {
    /// From where to where steps go.
    pub(crate) fn skips(&self) -> &[(u32, u32)] {
        &self.skips
    }

    /// Events, and the steps before which they come.
    pub(crate) fn inserts(&self) -> &[(u32, Event)] {
        &self.inserts
    }

    /// How many instructions of a frame, as the recorder wrote it, go.
    pub(crate) fn left_out(&self, program: &Program, frame: &Frame) -> u64 {
        let steps = self.skips.iter().filter_map(|&(from, to)| frame.steps.get(from as usize..to as usize)).flatten();
        steps.filter(|id| **id != 0).map(|&id| program.block(id).instruction_count() as u64).sum()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        encode(&mut payload, self.skips.len() as u64);
        let mut last = 0;
        for &(from, to) in &self.skips {
            encode(&mut payload, (from - last).into());
            encode(&mut payload, (to - from).into());
            last = to;
        }
        encode(&mut payload, self.inserts.len() as u64);
        last = 0;
        for &(step, _) in &self.inserts {
            encode(&mut payload, (step - last).into());
            last = step;
        }
        let mut events = EventEncoder { stream: payload, clock: 0 };
        self.inserts.iter().for_each(|(_, event)| events.encode(event));
        events.stream
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::new(payload);
        let step = |fields: &mut Fields<'_>, last: u32| {
            let further = fields.varint_up_to(u32::MAX.into(), "a step of a frame")? as u32;
            last.checked_add(further).ok_or(Problem::Malformed("a step of it is beyond 32 bits"))
        };
        let mut skips = Vec::new();
        let mut last = 0;
        for _ in 0..count(&mut fields)? {
            let from = step(&mut fields, last)?;
            last = step(&mut fields, from)?;
            skips.push((from, last));
        }
        let mut steps = Vec::new();
        last = 0;
        for _ in 0..count(&mut fields)? {
            last = step(&mut fields, last)?;
            steps.push(last);
        }
        let mut events = Vec::new();
        decode_events(fields.take(fields.remaining())?, 0, &mut events)?;
        if events.len() != steps.len() {
            return Err(Problem::Malformed("it has another number of events than of places for them"));
        }
        Ok(Self { skips, inserts: steps.into_iter().zip(events).collect() })
    }

    /// Changes the frame, and makes room in its clocks.
    pub(crate) fn apply(&self, program: &Program, frame: &mut Frame) -> Result<(), Problem> {
        frame.events.iter_mut().for_each(Event::spread_clocks);
        self.change(program, frame)
    }

    fn change(&self, program: &Program, frame: &mut Frame) -> Result<(), Problem> {
        let end = frame.steps.len() as u32;
        let is_beyond = self.skips.last().is_some_and(|(_, to)| *to > end)
            || self.inserts.last().is_some_and(|(step, _)| *step >= end);
        if is_beyond {
            return Err(Problem::Malformed("it changes steps that its frame does not have"));
        }
        if self.skips.is_empty() && self.inserts.is_empty() {
            return Ok(());
        }
        let old = std::mem::take(frame);
        frame.first_instruction = old.first_instruction;
        frame.clocks = old.clocks;
        frame.values = old.values;
        frame.written = old.written;
        let (mut skips, mut inserts) = (self.skips.iter().peekable(), self.inserts.iter().peekable());
        let (mut slot, mut events, mut last) = (0, old.events.into_iter(), 0);
        for (at, &id) in (0..).zip(&old.steps) {
            while let Some((_, event)) = inserts.next_if(|(step, _)| *step == at) {
                frame.steps.push(0);
                frame.events.push(event.clone());
            }
            while skips.next_if(|(_, to)| *to <= at).is_some() {}
            let is_kept = skips.peek().is_none_or(|(from, _)| at < *from);
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
        Ok(())
    }
}

/// How many follow, each of a byte at least.
fn count(fields: &mut Fields<'_>) -> Result<u64, Problem> {
    let count = fields.varint()?;
    if count > fields.remaining() as u64 {
        return Err(Problem::Malformed("it has more changes than bytes"));
    }
    Ok(count)
}

impl Event {
    /// Makes room between the places of the process clock.
    fn spread_clocks(&mut self) {
        let spread = |clock: &mut Clock| clock.0 *= PLACES;
        self.visit_clocks(spread);
    }
}
