//! What the walks need of each block, side by side: they come to hundreds of millions of them.

use super::flow::{self, Flow};
use crate::code::{Program, SlotKind};
use crate::info::ISA_AARCH64;

/// Larger accesses are no looks at a word.
const ACCESS_BYTES_MAX: u16 = 8;

/// An access of a block to a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Its slot in the block.
    pub slot: u16,
    pub kind: SlotKind,
    /// Whether it is no look at a word.
    pub is_large: bool,
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
                let is_large = slot.size > ACCESS_BYTES_MAX && slot.kind != SlotKind::Update;
                (is_access && !(is_large && slot.kind.writes())).then_some(Access {
                    slot: at,
                    kind: slot.kind,
                    is_large,
                })
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
