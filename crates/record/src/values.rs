//! The values stream of a trace frame: the bytes that writes to selected PM left there.

use super::code::{Program, SlotKind};
use super::error::Problem;
use super::varint::{Fields, encode};

/// The bytes that one write left in selected PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenValue {
    /// Index of the write's slot among the frame's slot values; of a string's first.
    pub slot: u32,
    /// Index of the first byte among the frame's values.
    pub start: u32,
    /// Number of bytes.
    pub length: u32,
}

/// The writes of a frame in their order: index of the slot value, and length in bytes.
fn writes<'a>(program: &'a Program, steps: &'a [u32], slots: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
    let mut first = 0;
    steps.iter().flat_map(move |&step| {
        let block = program.block(step);
        let start = first;
        first += block.slots.len();
        writes_of_block(&block.slots, &slots[start..first]).map(move |(index, length)| (start + index, length))
    })
}

fn writes_of_block<'a>(slots: &'a [super::code::Slot], values: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
    let mut is_second = false;
    slots.iter().enumerate().filter_map(move |(index, slot)| {
        let is_first_of_pair = slot.kind.is_string() && !is_second;
        is_second = is_first_of_pair;
        match slot.kind {
            SlotKind::StringDestination if is_first_of_pair => Some((index, values[index].abs_diff(values[index + 1]))),
            SlotKind::Store | SlotKind::Update | SlotKind::Scatter => Some((index, slot.size.into())),
            _ => None,
        }
    })
}

/// Reads a values stream; `values` receives the bytes, `written` the writes that left them.
pub(super) fn decode_values(
    stream: &[u8],
    program: &Program,
    steps: &[u32],
    slots: &[u64],
    values: &mut Vec<u8>,
    written: &mut Vec<WrittenValue>,
) -> Result<(), Problem> {
    let mut fields = Fields::new(stream);
    if fields.is_at_end() {
        return Ok(());
    }
    let mut skip = fields.varint()?;
    for (slot, length) in writes(program, steps, slots) {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let length = u32::try_from(length).map_err(|_| Problem::Malformed("a value is longer than its stream"))?;
        let bytes = fields.take(length as usize)?;
        written.push(WrittenValue { slot: slot as u32, start: values.len() as u32, length });
        values.extend_from_slice(bytes);
        if fields.is_at_end() {
            return Ok(());
        }
        skip = fields.varint()?;
    }
    Err(Problem::Malformed("it has values of more writes than were executed"))
}

/// Writes the values stream of one frame after the other.
#[derive(Default)]
pub(super) struct ValueEncoder {
    stream: Vec<u8>,
    skipped: u64,
}

impl ValueEncoder {
    /// One execution of a block with these slots; `values` are its writes with bytes, by slot index, ascending.
    pub(super) fn block(&mut self, slots: &[super::code::Slot], addresses: &[u64], values: &[(usize, &[u8])]) {
        let mut values = values.iter().peekable();
        for (index, length) in writes_of_block(slots, addresses) {
            match values.next_if(|value| value.0 == index) {
                Some((_, bytes)) => {
                    assert_eq!(bytes.len() as u64, length, "slot {index} writes another number of bytes");
                    encode(&mut self.stream, self.skipped);
                    self.stream.extend_from_slice(bytes);
                    self.skipped = 0;
                }
                None => self.skipped += 1,
            }
        }
        assert!(values.next().is_none(), "values belong to slots that write, in their order");
    }

    pub(super) fn bytes(&self) -> usize {
        self.stream.len()
    }

    /// The stream of the frame that ends here.
    pub(super) fn end_frame(&mut self) -> Vec<u8> {
        self.skipped = 0;
        std::mem::take(&mut self.stream)
    }
}
