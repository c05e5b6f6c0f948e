//! The control stream of a trace frame: which blocks ran, as the mistakes of a predictor that reader and writer share.

use super::code::Shape;
use super::error::Problem;
use super::event::Event;
use super::varint::{decode, encode};

/// For each block the one that came after it last, within the frame.
#[derive(Default)]
pub(super) struct Successors {
    entries: Vec<Successor>,
    epoch: u32,
}

/// An entry of another epoch than the table's is from an earlier frame and means nothing. So a frame starts without
/// clearing the table, which has an entry for every block of the program.
#[derive(Clone, Copy, Default)]
struct Successor {
    block: u32,
    epoch: u32,
}

impl Successors {
    /// Forgets everything, and makes room for a program of `blocks` blocks.
    pub(super) fn begin_frame(&mut self, blocks: usize) {
        self.make_room(blocks);
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.entries.fill(Successor::default());
            self.epoch = 1;
        }
    }

    fn make_room(&mut self, blocks: usize) {
        if self.entries.len() < blocks {
            self.entries.resize(blocks, Successor::default());
        }
    }

    /// The block expected after `last`, 0 if none is.
    fn predict(&self, last: u32) -> u32 {
        let entry = self.entries[last as usize];
        if entry.epoch == self.epoch { entry.block } else { 0 }
    }

    fn learn(&mut self, last: u32, block: u32) {
        self.entries[last as usize] = Successor { block, epoch: self.epoch };
    }
}

/// What a control stream says in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlTotals {
    /// Executed blocks.
    pub(super) blocks: u64,
    /// Executed instructions, without those that an interruption kept from executing.
    pub(super) instructions: u64,
    /// Slot values that belong to the blocks.
    pub(super) slots: u64,
}

/// Reads one control stream; `steps` receives the block ids, with 0 for each event.
pub(super) struct ControlDecoder<'a> {
    /// The blocks of the program, by id.
    pub(super) shapes: &'a [Shape],
    /// The events that the stream's zeros stand for.
    pub(super) events: &'a [Event],
    /// More blocks than this cannot be right. It bounds the memory that a few bytes of input can claim.
    pub(super) blocks_max: u64,
}

impl ControlDecoder<'_> {
    /// Reads the stream that ends at `end` of `bytes`.
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
        successors: &mut Successors,
        steps: &mut Vec<u32>,
    ) -> Result<ControlTotals, Problem> {
        const CUT_SHORT: Problem = Problem::Malformed("its control stream ends within a number");
        successors.begin_frame(self.shapes.len());
        let mut totals = ControlTotals::default();
        let mut events = self.events.iter();
        let (mut position, mut last, mut is_interruptible) = (start, 0, false);
        while position < end {
            let Some(run) = decode(bytes, &mut position) else { return Err(CUT_SHORT) };
            if run > 0 {
                last = self.follow(run, last, successors, steps, &mut totals)?;
                is_interruptible = true;
            }
            if position >= end {
                break;
            }
            let Some(block) = decode(bytes, &mut position) else { return Err(CUT_SHORT) };
            if block == 0 {
                let event = events.next().ok_or(Problem::Malformed("it has fewer events than its blocks name"))?;
                steps.push(0);
                if let Event::Interrupted { instructions } = event {
                    self.interrupt(*instructions, last, is_interruptible, &mut totals)?;
                    is_interruptible = false;
                }
                continue;
            }
            let blocks = self.shapes.len() as u64 - 1;
            let Some(shape) = usize::try_from(block).ok().and_then(|index| self.shapes.get(index)) else {
                return Err(Problem::UnknownBlock { block, blocks });
            };
            steps.push(block as u32);
            totals.blocks += 1;
            totals.instructions += u64::from(shape.instructions);
            totals.slots += u64::from(shape.slots);
            Problem::check_limit("the number of executed blocks", totals.blocks, self.blocks_max)?;
            successors.learn(last, block as u32);
            (last, is_interruptible) = (block as u32, true);
        }
        if position != end {
            return Err(CUT_SHORT);
        }
        if events.next().is_some() {
            return Err(Problem::Malformed("it has more events than its blocks name"));
        }
        Ok(totals)
    }

    /// Takes the predicted way `run` times; the block that it ends with.
    fn follow(
        &self,
        run: u64,
        mut last: u32,
        successors: &Successors,
        steps: &mut Vec<u32>,
        totals: &mut ControlTotals,
    ) -> Result<u32, Problem> {
        let blocks = totals.blocks.saturating_add(run);
        Problem::check_limit("the number of executed blocks", blocks, self.blocks_max)?;
        totals.blocks = blocks;
        let (mut instructions, mut slots, mut is_predicted) = (0, 0, last != 0);
        steps.extend((0..run as usize).map(|_| {
            let entry = successors.entries[last as usize];
            is_predicted &= entry.epoch == successors.epoch;
            // What a missing prediction leads to is an arbitrary block of another frame, and is thrown away below.
            let shape = self.shapes.get(entry.block as usize).copied().unwrap_or_default();
            instructions += u64::from(shape.instructions);
            slots += u64::from(shape.slots);
            last = entry.block;
            last
        }));
        if !is_predicted {
            return Err(Problem::Malformed("its control stream follows a prediction that there is not"));
        }
        totals.instructions += instructions;
        totals.slots += slots;
        Ok(last)
    }

    /// Takes back what the last block did not execute.
    fn interrupt(
        &self,
        executed: u64,
        last: u32,
        is_interruptible: bool,
        totals: &mut ControlTotals,
    ) -> Result<(), Problem> {
        let whole = u64::from(self.shapes[last as usize].instructions);
        if !is_interruptible || executed > whole {
            return Err(Problem::Malformed("an interruption does not fit the block before it"));
        }
        totals.instructions -= whole - executed;
        Ok(())
    }
}

/// Writes the control stream of one frame after the other.
#[derive(Default)]
pub(super) struct ControlEncoder {
    successors: Successors,
    stream: Vec<u8>,
    run: u64,
    last: u32,
}

impl ControlEncoder {
    pub(super) fn begin_frame(&mut self) {
        self.successors.begin_frame(1);
        (self.run, self.last) = (0, 0);
    }

    /// A block ran.
    pub(super) fn block(&mut self, block: u32) {
        self.successors.make_room(block as usize + 1);
        if self.last != 0 && self.successors.predict(self.last) == block {
            self.run += 1;
        } else {
            self.end_run(block);
            self.successors.learn(self.last, block);
        }
        self.last = block;
    }

    /// The next event happened.
    pub(super) fn event(&mut self) {
        self.end_run(0);
    }

    fn end_run(&mut self, block: u32) {
        encode(&mut self.stream, self.run);
        encode(&mut self.stream, block.into());
        self.run = 0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.stream.len()
    }

    /// The stream of the frame that ends here.
    pub(super) fn end_frame(&mut self) -> Vec<u8> {
        if self.run > 0 {
            encode(&mut self.stream, self.run);
        }
        std::mem::take(&mut self.stream)
    }
}
