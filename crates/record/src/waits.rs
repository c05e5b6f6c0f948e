//! Where the threads of a record waited: what replays leave out of it, by loops, and whose stores ended it.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::code::{Block, Program, SlotKind};
use super::error::RecordError;
use super::event::{Clock, Event, SpinReleaseKind, ThreadId};
use super::order::FrameChanges;
use super::reader::Record;
use super::trace::Frame;

/// From the end of a wait to what it waited for.
const STEPS_TO_READ_MAX: u64 = 4096;

/// A loop, or a place where a thread looked several times, that was taken for waiting.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitingLoop {
    /// Its first instruction.
    pub address: u64,
    /// How often a thread waited there.
    pub waits: u64,
    /// Rounds that are left out.
    pub rounds: u64,
    /// Instructions that are left out.
    pub instructions: u64,
    /// The instructions whose stores ended waits, and how many; of the others the record does not name any.
    pub ended_by: BTreeMap<u64, u64>,
}

/// What a thread waited for, by places of the process clock.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    Store(Clock),
    Lock { object: u64, taken: Clock },
}

/// A wait of a thread.
#[derive(Clone, Debug)]
struct Wait {
    /// How often it came to each block, in the order in which they first came.
    blocks: Vec<(u32, u64)>,
    instructions: u64,
    /// The thread's step at which it is over.
    end: u64,
    awaited: Option<Awaited>,
}

#[derive(Default)]
struct Waits {
    all: Vec<Wait>,
    /// Which instruction stores at a place of the process clock.
    stores: HashMap<Clock, u64>,
    /// When each lock was given back.
    given: HashMap<u64, Vec<Clock>>,
}

/// Loops that waited, those first of which most instructions are left out.
///
/// # Errors
/// If a frame cannot be read.
pub fn waiting_loops(record: &Record) -> Result<Vec<WaitingLoop>, RecordError> {
    let Some(changes) = record.changes()? else { return Ok(Vec::new()) };
    let (mut waits, mut frame) = (Waits::default(), Frame::default());
    for thread in (0..record.threads() as u32).map(ThreadId) {
        let (mut number, mut steps) = (0, 0);
        while record.frame_as_recorded(thread, number, &mut frame)? {
            waits.take_in(record.program(), &frame, changes.of_frame(thread, number), steps);
            steps += frame.steps.len() as u64;
            number += 1;
        }
        waits.end_thread();
    }
    Ok(waits.by_loops(record.program()))
}

impl Wait {
    /// The block to which it came most often, the first of several, and how often.
    fn rounds(&self) -> (u32, u64) {
        let most = self.blocks.iter().rev().max_by_key(|(_, times)| *times);
        *most.expect("it begins with one")
    }
}

impl Waits {
    /// A frame of a thread that has made `before` steps.
    fn take_in(&mut self, program: &Program, frame: &Frame, changes: &FrameChanges, before: u64) {
        let mut skips = changes.skips().iter().peekable();
        let mut inserts = changes.inserts().iter().peekable();
        let mut slot = 0;
        for (at, &id) in (0..).zip(&frame.steps) {
            let block = (id != 0).then(|| program.block(id));
            let slots = &frame.slots[slot..slot + block.map_or(0, |block| block.slots.len())];
            slot += slots.len();
            while let Some((_, event)) = inserts.next_if(|(step, _)| *step == at) {
                self.event(event, before + u64::from(at), block, slots);
            }
            while skips.next_if(|(_, to)| *to <= at).is_some() {}
            if let Some(&&(from, to)) = skips.peek()
                && from <= at
                && let Some(block) = block
            {
                self.leave_out(id, block, before + u64::from(from), before + u64::from(to));
            }
        }
    }

    fn leave_out(&mut self, id: u32, block: &Block, from: u64, to: u64) {
        let goes_on = |wait: &&mut Wait| wait.end == to || wait.end == from && wait.awaited.is_none();
        let instructions = block.instruction_count() as u64;
        if let Some(wait) = self.all.last_mut().filter(goes_on) {
            match wait.blocks.iter_mut().find(|(known, _)| *known == id) {
                Some((_, times)) => *times += 1,
                None => wait.blocks.push((id, 1)),
            }
            wait.instructions += instructions;
            wait.end = to;
            return;
        }
        self.all.push(Wait { blocks: vec![(id, 1)], instructions, end: to, awaited: None });
    }

    /// What a replay has before a step.
    fn event(&mut self, event: &Event, step: u64, block: Option<&Block>, slots: &[u64]) {
        let awaited = match *event {
            Event::SpinWait { wake, .. } => Awaited::Store(wake),
            Event::SpinRelease { clock, object, kind, lock } => {
                if let Some(store) = block.and_then(|block| store_to(block, slots, object)) {
                    self.stores.insert(clock, store);
                }
                match kind {
                    SpinReleaseKind::TakesLock => Awaited::Lock { object: lock, taken: clock },
                    SpinReleaseKind::GivesLock => return self.given.entry(lock).or_default().push(clock),
                    _ => return,
                }
            }
            _ => return,
        };
        let last = self.all.last_mut().filter(|wait| (wait.end..wait.end + STEPS_TO_READ_MAX).contains(&step));
        if let Some(wait) = last {
            wait.awaited.get_or_insert(awaited);
        }
    }

    /// The steps of the next one begin anew.
    fn end_thread(&mut self) {
        if let Some(last) = self.all.last_mut() {
            last.end = u64::MAX - STEPS_TO_READ_MAX;
        }
    }

    fn by_loops(mut self, program: &Program) -> Vec<WaitingLoop> {
        self.given.values_mut().for_each(|clocks| clocks.sort_unstable());
        let mut loops: BTreeMap<u64, WaitingLoop> = BTreeMap::new();
        for wait in &self.all {
            let (block, rounds) = wait.rounds();
            let address = program.block(block).address;
            let of = loops.entry(address).or_insert_with(|| WaitingLoop { address, ..WaitingLoop::default() });
            of.waits += 1;
            of.rounds += rounds;
            of.instructions += wait.instructions;
            if let Some(store) = wait.awaited.and_then(|awaited| self.ender(awaited)) {
                *of.ended_by.entry(store).or_default() += 1;
            }
        }
        let mut loops: Vec<_> = loops.into_values().collect();
        loops.sort_by_key(|of| std::cmp::Reverse(of.instructions));
        loops
    }

    fn ender(&self, awaited: Awaited) -> Option<u64> {
        let clock = match awaited {
            Awaited::Store(clock) => clock,
            Awaited::Lock { object, taken } => {
                let given = self.given.get(&object)?;
                given[..given.partition_point(|clock| *clock < taken)].last().copied()?
            }
        };
        self.stores.get(&clock).copied()
    }
}

/// The instruction of a block that stores to an address.
fn store_to(block: &Block, slots: &[u64], address: u64) -> Option<u64> {
    let stores = |kind| matches!(kind, SlotKind::Store | SlotKind::Update);
    let mut both = block.slots.iter().zip(slots);
    let (slot, _) = both.find(|(slot, value)| stores(slot.kind) && **value / 4 == address / 4)?;
    block.instructions().nth(slot.instruction.into()).map(|(address, _)| address)
}
