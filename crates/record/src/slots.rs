//! The slot stream of a trace frame: each value as its difference from what its slot's stride predicts.

use super::code::Shape;
use super::error::Problem;
use super::varint::{decode, encode, load, unzigzag, zigzag};

/// Largest number of slot values in one frame: where a recorder ends one, and a block that it had begun.
pub const FRAME_SLOTS_MAX: u64 = (1 << 21) + (1 << 16);

/// For each slot its last value and its stride, within the frame.
#[derive(Default)]
pub(super) struct Strides {
    slots: Vec<Stride>,
    /// For each block the epoch in which its slots were last used: those of earlier epochs are from an earlier frame.
    blocks: Vec<u32>,
    epoch: u32,
}

#[derive(Clone, Copy, Default)]
struct Stride {
    last: u64,
    stride: u64,
}

impl Stride {
    #[inline(always)]
    fn predict(self) -> u64 {
        self.last.wrapping_add(self.stride)
    }

    #[inline(always)]
    fn learn(&mut self, value: u64) {
        self.stride = value.wrapping_sub(self.last);
        self.last = value;
    }
}

impl Strides {
    /// Forgets everything, and makes room for a program of `blocks` blocks with `slots` slots in all.
    pub(super) fn begin_frame(&mut self, blocks: usize, slots: usize) {
        self.make_room(blocks, slots);
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.blocks.fill(0);
            self.epoch = 1;
        }
    }

    fn make_room(&mut self, blocks: usize, slots: usize) {
        if self.blocks.len() < blocks {
            self.blocks.resize(blocks, 0);
        }
        if self.slots.len() < slots {
            self.slots.resize(slots, Stride::default());
        }
    }

    /// The slots of a block, and whether they were used in this frame before. If not, their contents mean nothing.
    #[inline(always)]
    fn of_block(&mut self, block: u32, shape: Shape) -> (&mut [Stride], bool) {
        let used = &mut self.blocks[block as usize];
        let is_used = *used == self.epoch;
        *used = self.epoch;
        let first = shape.first_slot as usize;
        (&mut self.slots[first..first + shape.slots as usize], is_used)
    }
}

const CUT_SHORT: Problem = Problem::Malformed("its slot stream ends before its blocks do");

/// Reads the slot stream that ends at `end` of `bytes`: the values of all blocks in `steps`, `total` of them.
pub(super) fn decode_slots(
    bytes: &[u8],
    start: usize,
    end: usize,
    steps: &[u32],
    shapes: &[Shape],
    strides: &mut Strides,
    values: &mut [u64],
) -> Result<(), Problem> {
    let mut position = start;
    let mut values = values;
    for &block in steps {
        let shape = shapes[block as usize];
        if shape.slots == 0 {
            continue;
        }
        let (of_block, others) = values.split_at_mut(shape.slots as usize);
        values = others;
        let (strides, is_used) = strides.of_block(block, shape);
        let whole = if is_used {
            decode_block(bytes, &mut position, strides, of_block)
        } else {
            decode_first(bytes, &mut position, strides, of_block)
        };
        if whole.is_none() {
            return Err(CUT_SHORT);
        }
    }
    if position != end {
        return Err(if position > end { CUT_SHORT } else { Problem::Malformed("bytes follow its last slot value") });
    }
    Ok(())
}

/// The first execution of a block in a frame: values as they are.
fn decode_first(bytes: &[u8], position: &mut usize, strides: &mut [Stride], values: &mut [u64]) -> Option<()> {
    for (stride, value) in strides.iter_mut().zip(values) {
        *value = unzigzag(decode(bytes, position)?) as u64;
        *stride = Stride { last: *value, stride: 0 };
    }
    Some(())
}

#[inline(always)]
fn decode_block(bytes: &[u8], position: &mut usize, strides: &mut [Stride], values: &mut [u64]) -> Option<()> {
    let count = strides.len();
    let values = &mut values[..count];
    // In a loop over an array every prediction holds, and the differences are bytes of zero: look at eight of them at
    // once.
    if count <= 8 {
        let zeros = u64::MAX >> (64 - 8 * count);
        if load(bytes, *position)? & zeros == 0 {
            for at in 0..count {
                let value = strides[at].predict();
                (values[at], strides[at].last) = (value, value);
            }
            *position += count;
            return Some(());
        }
    }
    for at in 0..count {
        let difference = unzigzag(decode(bytes, position)?) as u64;
        values[at] = strides[at].predict().wrapping_add(difference);
        strides[at].learn(values[at]);
    }
    Some(())
}

/// Writes the slot stream of one frame after the other.
#[derive(Default)]
pub(super) struct SlotEncoder {
    strides: Strides,
    stream: Vec<u8>,
}

impl SlotEncoder {
    pub(super) fn begin_frame(&mut self) {
        self.strides.begin_frame(1, 0);
    }

    /// The values of one execution.
    pub(super) fn block(&mut self, block: u32, shape: Shape, values: &[u64]) {
        self.strides.make_room(block as usize + 1, (shape.first_slot + shape.slots) as usize);
        let (strides, is_used) = self.strides.of_block(block, shape);
        for (stride, &value) in strides.iter_mut().zip(values) {
            let prediction = if is_used { stride.predict() } else { 0 };
            encode(&mut self.stream, zigzag(value.wrapping_sub(prediction) as i64));
            if is_used {
                stride.learn(value);
            } else {
                *stride = Stride { last: value, stride: 0 };
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.stream.len()
    }

    /// The stream of the frame that ends here.
    pub(super) fn end_frame(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.stream)
    }
}
