//! What the walks need of each block, side by side: they come to hundreds of millions of them.

use std::ops::Range;

use super::flow::{self, Flow};
use super::words::{WORD_BYTES, word_of};
use crate::code::{Program, SlotKind};
use crate::info::ISA_AARCH64;

/// Larger accesses are wide: accesses to each of their words.
const NARROW_BYTES_MAX: u16 = 8;
/// So many bytes of them are looked at.
const WIDE_BYTES_MAX: u16 = 64;

/// An access of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Its slot in the block.
    pub slot: u16,
    pub kind: SlotKind,
    /// Of a wide one, or 1: it is to its first word.
    bytes: u8,
}

impl Access {
    #[inline]
    pub(super) fn is_wide(self) -> bool {
        self.bytes > 1
    }

    /// The words that it touches at an address.
    #[inline]
    pub(super) fn words(self, address: u64) -> Range<u64> {
        word_of(address)..word_of(address.saturating_add(u64::from(self.bytes) - 1)) + 1
    }
}

/// Where in a word an access begins that touches it, and perhaps others before it.
#[inline]
pub(super) fn address_in(word: u64, address: u64) -> u64 {
    address.max(word * WORD_BYTES)
}

/// A block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub address: u64,
    pub end: u64,
    pub instructions: u32,
    first_access: u32,
    accesses: u32,
    pub flow: Flow,
}

/// Each block by its id.
pub(super) struct Outlines {
    blocks: Vec<Outline>,
    accesses: Vec<Access>,
}

impl Outlines {
    pub(super) fn of(program: &Program, isa: &str) -> Self {
        let flow_of = if isa == ISA_AARCH64 { flow::of_aarch64 } else { flow::of_block };
        let (mut blocks, mut accesses) = (Vec::with_capacity(program.blocks.len()), Vec::new());
        for block in &program.blocks {
            let first_access = accesses.len() as u32;
            accesses.extend((0..=u16::MAX).zip(&block.slots).filter_map(|(at, slot)| {
                let is_access = matches!(slot.kind, SlotKind::Load | SlotKind::Store | SlotKind::Update);
                // An update of more is one of its first bytes.
                let is_wide = slot.size > NARROW_BYTES_MAX && slot.kind != SlotKind::Update;
                let bytes = if is_wide { slot.size.min(WIDE_BYTES_MAX) as u8 } else { 1 };
                is_access.then_some(Access { slot: at, kind: slot.kind, bytes })
            }));
            blocks.push(Outline {
                address: block.address,
                end: block.address.saturating_add(block.bytes.len() as u64),
                instructions: block.instruction_count() as u32,
                first_access,
                accesses: accesses.len() as u32 - first_access,
                flow: flow_of(block),
            });
        }
        Self { blocks, accesses }
    }

    #[inline]
    pub(super) fn block(&self, id: u32) -> &Outline {
        &self.blocks[id as usize]
    }

    #[inline]
    pub(super) fn accesses(&self, block: &Outline) -> &[Access] {
        let first = block.first_access as usize;
        &self.accesses[first..first + block.accesses as usize]
    }
}
