//! The CODE frames: each static block of the program once, with its bytes and the slots that every
//! execution of it fills.

use super::error::Problem;
use super::varint::{Fields, encode};

/// Largest number of blocks in a record.
pub const BLOCKS_MAX: u64 = 1 << 23;

/// Largest sum of the decompressed CODE payloads of a record, in bytes.
pub const CODE_BYTES_MAX: u64 = 512 << 20;

/// Largest sum of the decompressed CODE payloads whose stored ones have `stored` bytes in all. Code of programs
/// compresses to about a half; what is read of it takes some thirty times its length in memory, so that a small record
/// must not hold more of it than this.
pub fn code_bytes_max(stored: u64) -> u64 {
    CODE_BYTES_MAX.min((8 << 20) + 16 * stored)
}

/// The static code of a record.
#[derive(Clone, Debug)]
pub struct Program {
    /// The blocks by their id. Id 0 is no block; an empty one stands in its place.
    pub blocks: Vec<Block>,
    /// What decoding a trace needs of each block, packed.
    shapes: Vec<Shape>,
}

/// A run of instructions that is entered at its first and left behind its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Virtual address of its first byte.
    pub address: u64,
    /// Which contents of this address this is, from 0.
    pub code_version: u32,
    /// Length of each instruction, in bytes.
    pub instruction_lengths: Box<[u8]>,
    /// The bytes of all instructions.
    pub bytes: Box<[u8]>,
    /// The values that one execution supplies, ordered by instruction.
    pub slots: Box<[Slot]>,
}

/// One value that each execution of a block supplies, nearly always an effective address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Index of the instruction in its block.
    pub instruction: u16,
    /// What the value is the address of.
    pub kind: SlotKind,
    /// Size of the access, in bytes; of one element for strings, gathers and scatters.
    pub size: u16,
}

/// What the value of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// Address of a read.
    Load = 0,
    /// Address of a write; the bytes tell whether it is a non-temporal one.
    Store = 1,
    /// Address of an operand that is read and written.
    Update = 2,
    /// Address in the line that is flushed; the bytes tell by which instruction.
    Flush = 3,
    /// Address of a software prefetch.
    Prefetch = 4,
    /// The source pointer before a `rep` string instruction and, in the next slot, after it.
    StringSource = 5,
    /// The destination pointer, likewise.
    StringDestination = 6,
    /// Address of one element of a gather, 0 if masked off.
    Gather = 7,
    /// Address of one element of a scatter, 0 if masked off.
    Scatter = 8,
    /// No address: what an atomic update found in memory and, in the next slots, its operands.
    Value = 9,
}

/// A block as a trace sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Number of instructions.
    pub(super) instructions: u32,
    /// Number of slots.
    pub(super) slots: u32,
    /// Slots of all blocks before this one.
    pub(super) first_slot: u32,
}

/// A point that the program itself marks, by an instruction without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Marker(pub u16);

impl Marker {
    /// A region of interest begins.
    pub const ROI_BEGIN: Self = Self(1);
    /// A region of interest ends.
    pub const ROI_END: Self = Self(2);
    /// A region of interest ends, and the next begins there, while everything goes on.
    pub const ROI_NEXT: Self = Self(3);
}

impl SlotKind {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Load,
            1 => Self::Store,
            2 => Self::Update,
            3 => Self::Flush,
            4 => Self::Prefetch,
            5 => Self::StringSource,
            6 => Self::StringDestination,
            7 => Self::Gather,
            8 => Self::Scatter,
            9 => Self::Value,
            _ => return None,
        })
    }

    /// Whether memory is written through this slot.
    #[must_use]
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Self::Store | Self::Update | Self::StringDestination | Self::Scatter)
    }

    /// Whether slots of this kind come in pairs: a pointer before and after.
    #[must_use]
    #[inline]
    pub fn is_string(self) -> bool {
        matches!(self, Self::StringSource | Self::StringDestination)
    }
}

impl Block {
    /// Number of instructions.
    #[must_use]
    #[inline]
    pub fn instruction_count(&self) -> usize {
        self.instruction_lengths.len()
    }

    /// Address and bytes of each instruction.
    pub fn instructions(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0usize;
        self.instruction_lengths.iter().map(move |&length| {
            let bytes = &self.bytes[start..start + usize::from(length)];
            let address = self.address.wrapping_add(start as u64);
            start += usize::from(length);
            (address, bytes)
        })
    }

    /// Checks what the format demands of a block beyond the types of its fields.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.instruction_lengths.is_empty() || self.instruction_lengths.contains(&0) {
            return Err(Problem::Malformed("a block without instructions, or one without bytes"));
        }
        let limit = u64::from(u16::MAX);
        let instructions = self.instruction_lengths.len() as u64;
        Problem::check_limit("the number of instructions of a block", instructions, limit)?;
        let length: usize = self.instruction_lengths.iter().copied().map(usize::from).sum();
        if length != self.bytes.len() {
            return Err(Problem::Malformed("a block has other bytes than its instructions"));
        }
        let mut earlier = 0;
        for slot in &self.slots {
            if slot.instruction < earlier || u64::from(slot.instruction) >= instructions {
                return Err(Problem::Malformed("the slots of a block are not in its order"));
            }
            earlier = slot.instruction;
        }
        self.check_pairs()
    }

    fn check_pairs(&self) -> Result<(), Problem> {
        let mut slots = self.slots.iter();
        while let Some(first) = slots.next() {
            if first.kind.is_string() && slots.next() != Some(first) {
                return Err(Problem::Malformed("a string slot has no second one"));
            }
        }
        Ok(())
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let limit = u64::from(u16::MAX);
        let address = fields.u64()?;
        let code_version = fields.varint_up_to(u32::MAX.into(), "a code version")? as u32;
        let instructions = fields.varint_up_to(limit, "the number of instructions of a block")?;
        let instruction_lengths: Box<[u8]> = fields.take(instructions as usize)?.into();
        let length = instruction_lengths.iter().copied().map(usize::from).sum();
        let bytes = fields.take(length)?.into();
        let slot_count = fields.varint()?;
        // Each slot has at least three bytes, so this refuses before it allocates.
        if slot_count > fields.remaining() as u64 / 3 {
            return Err(Problem::Malformed("a block has more slots than its frame has bytes"));
        }
        let slots = (0..slot_count).map(|_| Slot::decode(fields)).collect::<Result<_, _>>()?;
        let block = Self { address, code_version, instruction_lengths, bytes, slots };
        block.check()?;
        Ok(block)
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.address.to_le_bytes());
        encode(into, self.code_version.into());
        encode(into, self.instruction_lengths.len() as u64);
        into.extend_from_slice(&self.instruction_lengths);
        into.extend_from_slice(&self.bytes);
        encode(into, self.slots.len() as u64);
        for slot in &self.slots {
            encode(into, slot.instruction.into());
            into.push(slot.kind as u8);
            encode(into, slot.size.into());
        }
    }
}

impl Slot {
    fn decode(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let limit = u64::from(u16::MAX);
        let instruction = fields.varint_up_to(limit, "the instruction of a slot")? as u16;
        let kind = SlotKind::from_code(fields.u8()?).ok_or(Problem::Malformed("there is no such kind of slot"))?;
        let size = fields.varint_up_to(limit, "the size of a slot")? as u16;
        Ok(Self { instruction, kind, size })
    }
}

impl Default for Program {
    fn default() -> Self {
        Self { blocks: vec![Block::default()], shapes: vec![Shape::default()] }
    }
}

impl Program {
    /// Adds the blocks of one CODE frame, which says that there are `count`, from id `first` on.
    pub(super) fn decode(&mut self, payload: &[u8], first: u64, count: u64) -> Result<(), Problem> {
        if first != self.blocks.len() as u64 {
            return Err(Problem::Malformed("its first block does not follow the last one before"));
        }
        let mut fields = Fields::new(payload);
        for _ in 0..count {
            let block = Block::decode(&mut fields)?;
            self.push(block)?;
        }
        if !fields.is_at_end() {
            return Err(Problem::Malformed("bytes follow its last block"));
        }
        Ok(())
    }

    /// Adds a block that has been checked, and gives it the next id.
    pub(super) fn push(&mut self, block: Block) -> Result<u32, Problem> {
        Problem::check_limit("the number of blocks", self.blocks.len() as u64, BLOCKS_MAX)?;
        Ok(self.append(block))
    }

    /// Adds a block of a record whose blocks are not too many.
    pub(super) fn append(&mut self, block: Block) -> u32 {
        let id = self.blocks.len() as u32;
        let before = self.shape(id - 1);
        let first_slot = before.first_slot + before.slots;
        self.shapes.push(Shape {
            instructions: block.instruction_lengths.len() as u32,
            slots: block.slots.len() as u32,
            first_slot,
        });
        self.blocks.push(block);
        id
    }

    /// The block with this id.
    ///
    /// # Panics
    /// If the record defines no such block; a frame that a reader returned names none.
    #[must_use]
    #[inline]
    pub fn block(&self, id: u32) -> &Block {
        &self.blocks[id as usize]
    }

    /// By id, whether a block has a slot that writes.
    #[must_use]
    pub fn writing_blocks(&self) -> Vec<bool> {
        self.blocks.iter().map(|block| block.slots.iter().any(|slot| slot.kind.writes())).collect()
    }

    /// The number of slots of all blocks.
    pub(super) fn slot_count(&self) -> usize {
        let last = self.shape(self.blocks.len() as u32 - 1);
        (last.first_slot + last.slots) as usize
    }

    fn shape(&self, id: u32) -> Shape {
        self.shapes[id as usize]
    }

    pub(super) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }
}
