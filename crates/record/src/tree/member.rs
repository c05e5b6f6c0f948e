//! A process of a tree, and what its frames are there.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Survey;
use super::pairing::{Pairing, Woken};
use super::spaces::Spaces;
use crate::code::{Block, SlotKind};
use crate::event::{Clock, Event, ThreadId};
use crate::frame::FrameHeader;
use crate::reader::{Ended, Record};
use crate::trace::Frame;

/// One process.
pub(crate) struct Member {
    /// Of the tree, from 0.
    pub(crate) number: u64,
    pub(crate) record: Record,
    pub(super) spaces: Spaces,
    /// Threads and blocks of the processes before it.
    pub(crate) first_thread: u32,
    blocks_before: u32,
    /// The first thread of each process, and the one that ended last.
    firsts: FxHashMap<u64, ThreadId>,
    lasts: FxHashMap<u64, ThreadId>,
    /// At objects that processes share.
    woken: FxHashMap<Clock, Woken>,
    /// Whether it has anything mapped to which a process stores.
    shares: bool,
    /// The first threads of children that it has forked without a word.
    untold: Vec<ThreadId>,
    /// The thread that ended last, as its record numbers it, and how many frames that has.
    last_frame: (ThreadId, usize),
}

impl Member {
    pub(super) fn new(number: u64, record: Record, survey: Survey, first_thread: u32, blocks_before: u32) -> Self {
        let mut spaces = survey.spaces;
        spaces.set_part(number);
        let last_frame = (survey.last_thread, record.trace_frames(survey.last_thread).len());
        let (firsts, lasts, woken) = Default::default();
        let untold = Vec::new();
        Self {
            number,
            record,
            spaces,
            first_thread,
            blocks_before,
            firsts,
            lasts,
            woken,
            shares: true,
            untold,
            last_frame,
        }
    }

    /// Or its launcher was, as far as is known.
    pub(super) fn was_killed(&self) -> bool {
        !matches!(self.record.ended(), Ended::Sealed { how, .. } if how.starts_with("exit"))
    }

    /// It has forked the process whose first thread that is, and its record does not say so.
    pub(super) fn has_forked(&mut self, child: ThreadId) {
        self.untold.push(child);
    }

    /// The threads of all processes, the objects to which one of them stores, and who woke whom.
    pub(super) fn know(
        &mut self,
        firsts: &BTreeMap<u64, ThreadId>,
        lasts: &BTreeMap<u64, ThreadId>,
        written: &FxHashSet<u64>,
        pairing: &Pairing,
    ) {
        self.shares = self.spaces.objects().iter().any(|(object, _)| written.contains(object));
        self.firsts = firsts.iter().map(|(process, thread)| (*process, *thread)).collect();
        self.lasts = lasts.iter().map(|(process, thread)| (*process, *thread)).collect();
        if self.spaces.has_shared() {
            self.woken.clone_from(&pairing.woken);
        }
    }

    /// Its code, where it lies.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> {
        let place = |block: &Block| Block { address: self.spaces.place(block.address, Clock(0)), ..block.clone() };
        self.record.program().blocks[1..].iter().map(place)
    }

    /// Whether what it stores no other thread can see.
    pub(crate) fn is_alone(&self) -> bool {
        self.record.threads() == 1 && !self.shares
    }

    fn thread(&self, own: ThreadId) -> ThreadId {
        ThreadId(own.0 + self.first_thread)
    }

    /// A whole frame of it becomes one of the tree.
    pub(crate) fn place_frame(&self, header: &FrameHeader, frame: &mut Frame) {
        let program = self.record.program();
        let (mut clock, mut event, mut slot) = (frame.clocks.0, 0, 0);
        for step in &mut frame.steps {
            if *step == 0 {
                let next = &mut frame.events[event];
                clock = next.clock().unwrap_or(clock);
                self.place_event(next, clock);
                event += 1;
                continue;
            }
            let slots = &program.block(*step).slots;
            for (value, of) in frame.slots[slot..slot + slots.len()].iter_mut().zip(slots) {
                let is_masked = *value == 0 && matches!(of.kind, SlotKind::Gather | SlotKind::Scatter);
                if of.kind != SlotKind::Value && !is_masked {
                    *value = self.spaces.place(*value, clock);
                }
            }
            slot += slots.len();
            *step += self.blocks_before;
        }
        let before = frame.events.len();
        self.fork_untold(header, frame);
        frame.steps.resize(frame.steps.len() + frame.events.len() - before, 0);
    }

    /// The events of a frame of it, without what is between them.
    pub(crate) fn place_events(&self, header: &FrameHeader, frame: &mut Frame) {
        let mut clock = frame.clocks.0;
        for event in &mut frame.events {
            clock = event.clock().unwrap_or(clock);
            self.place_event(event, clock);
        }
        self.fork_untold(header, frame);
    }

    /// One that was killed may not have told of the children that it forked last: they begin at its end.
    fn fork_untold(&self, header: &FrameHeader, frame: &mut Frame) {
        let (last, frames) = self.last_frame;
        if self.untold.is_empty() || (header.thread, header.sequence as usize + 1) != (last.0, frames) {
            return;
        }
        let clock = frame.clocks.1;
        frame.events.extend(self.untold.iter().map(|&thread| Event::ThreadCreate { clock, thread }));
    }

    fn place_event(&self, event: &mut Event, clock: Clock) {
        use Event as E;
        match event {
            E::ThreadCreate { thread, .. } | E::ThreadJoin { thread, .. } | E::Order { thread, .. } => {
                *thread = self.thread(*thread);
            }
            E::ThreadStart { stack_low, stack_high, .. } if *stack_low < *stack_high => {
                let bytes = *stack_high - *stack_low;
                *stack_low = self.spaces.place(*stack_low, clock);
                *stack_high = *stack_low + bytes;
            }
            // A child begins as a thread does, and is waited for as one.
            E::Fork { child } => {
                if let Some(&thread) = self.firsts.get(child) {
                    *event = E::ThreadCreate { clock, thread };
                }
            }
            E::ChildWait { clock, process } => {
                if let Some(&thread) = self.lasts.get(process) {
                    *event = E::ThreadJoin { clock: *clock, thread };
                }
            }
            E::Map { start, .. }
            | E::Unmap { start, .. }
            | E::SharedMapping { start, .. }
            | E::PersistCall { start, .. }
            | E::Module { base: start, .. } => *start = self.spaces.place(*start, clock),
            _ => self.place_object(event, clock),
        }
    }

    /// Of synchronisation: its object, and at one that processes share, who woke it.
    fn place_object(&self, event: &mut Event, clock: Clock) {
        use Event as E;
        let woken = self.woken.get(&clock);
        match event {
            E::MutexLock { object, .. }
            | E::MutexUnlock { object, .. }
            | E::SpinLock { object, .. }
            | E::SpinUnlock { object, .. }
            | E::ReadLock { object, .. }
            | E::WriteLock { object, .. }
            | E::RwUnlock { object, .. }
            | E::AttemptFailed { object, .. }
            | E::ConditionSignal { object, .. }
            | E::ConditionBroadcast { object, .. }
            | E::SemaphorePost { object, .. }
            | E::FutexWake { object, .. } => *object = self.spaces.place(*object, clock),
            E::ConditionWait { object, mutex, wake, .. } => {
                *object = self.spaces.place(*object, clock);
                *mutex = self.spaces.place(*mutex, clock);
                *wake = woken.map_or(*wake, |woken| woken.by);
            }
            E::SemaphoreWait { object, wake, .. } | E::FutexWait { object, wake, .. } => {
                *object = self.spaces.place(*object, clock);
                *wake = woken.map_or(*wake, |woken| woken.by);
            }
            E::BarrierWait { object, participants, generation, .. } => {
                *object = self.spaces.place(*object, clock);
                if let Some(woken) = woken {
                    (*participants, *generation) = (woken.participants, woken.generation);
                }
            }
            _ => {}
        }
    }
}
