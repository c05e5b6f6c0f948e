//! An instruction set that exists in this file alone runs through cores, caches and host: they know micro-operations,
//! and nothing of who decoded them.
//!
//! Its flushes and fences have the attributes of AArch64's. An instruction is one byte; registers and addresses are as
//! the record's slots say.

use super::*;
use crate::cache::array::State;
use crate::cache::hierarchy::Want;
use crate::host::bench::assembler::Instruction;
use crate::host::bench::{Decoder, WAY_BACK};
use fencepost_isa::micro_op::{
    Awaited, DecodedBlock, Fence, Flush, FlushOrder, MicroOp, Operation, Ordered, Reach, Register, WarmBlock,
};
use fencepost_record::{Block, Marker, Program, SlotKind};

const LOAD: u8 = 1;
const STORE: u8 = 2;
const DC_CVAP: u8 = 3;
const DC_CVAC: u8 = 4;
const DC_CIVAC: u8 = 5;
const DSB_SY: u8 = 6;
const DMB_SY: u8 = 7;
const DMB_ISHST: u8 = 8;
const ROI_BEGIN: u8 = 9;

/// From a flush's turn in the store queue to the memory's acknowledgement.
const FLUSH: u64 = WAY_OUT + WRITE + WAY_BACK;
/// The turn of a store or flush that is the first instruction: it dispatches in 0, issues in 1, is complete in 2 and
/// commits in 3.
const FIRST_TURN: u64 = 4;

fn operation_of(instruction: u8) -> Operation {
    let flush = |reach, invalidates| Operation::Flush(Flush::new(reach, invalidates, FlushOrder::Fences));
    match instruction {
        LOAD => Operation::Load,
        STORE => Operation::Store,
        DC_CVAP => flush(Reach::Persistence, false),
        DC_CVAC => flush(Reach::Coherence, false),
        DC_CIVAC => flush(Reach::Coherence, true),
        DSB_SY => Operation::Fence(Fence::new(Ordered::LoadsAndStores, Awaited::Completion)),
        DMB_SY => Operation::Fence(Fence::new(Ordered::LoadsAndStores, Awaited::Nothing)),
        DMB_ISHST => Operation::Fence(Fence::new(Ordered::Stores, Awaited::Nothing)),
        ROI_BEGIN => Operation::RoiMarker,
        other => panic!("{other} is no instruction"),
    }
}

fn decode_block(block: &Block) -> DecodedBlock {
    let mut slots = block.slots.iter().enumerate().peekable();
    let micro_ops: Box<[MicroOp]> = (0..block.instruction_count())
        .map(|index| {
            let operation = operation_of(block.bytes[index]);
            let mut micro_op = MicroOp { operation, ends_instruction: true, ..MicroOp::default() };
            if let Some((number, slot)) = slots.next_if(|(_, slot)| usize::from(slot.instruction) == index) {
                (micro_op.slot, micro_op.size) = (number as u16, slot.size);
            }
            // `x30` and `v31` lie beyond what x86 has.
            micro_op.sources[0] = Register::general(30);
            match operation {
                Operation::Load => {
                    micro_op.sources[1] = Register::BARRIER;
                    micro_op.destinations[0] = Register::vector(31);
                }
                Operation::RoiMarker => micro_op.slot = Marker::ROI_BEGIN.0,
                operation if operation.holds_back_loads() => micro_op.destinations[0] = Register::BARRIER,
                _ => {}
            }
            micro_op
        })
        .collect();
    DecodedBlock {
        warm: WarmBlock::of(&micro_ops),
        asides: vec![Default::default(); micro_ops.len()].into(),
        micro_ops,
        slots: block.slots.len() as u32,
        instructions: block.instruction_count() as u32,
        address: block.address,
        end: block.address + block.bytes.len() as u64,
        last_instruction: (block.address + block.bytes.len() as u64).saturating_sub(1),
        ..DecodedBlock::default()
    }
}

const DECODER: Decoder = |program: &Program| program.blocks.iter().map(decode_block).collect();

fn at(byte: u8, kind: SlotKind, address: u64) -> Instruction {
    Instruction {
        bytes: vec![byte],
        slots: vec![(kind, if kind == SlotKind::Flush { 64 } else { 8 })],
        values: vec![address],
    }
}

fn load_at(address: u64) -> Instruction {
    at(LOAD, SlotKind::Load, address)
}

fn store_at(address: u64) -> Instruction {
    at(STORE, SlotKind::Store, address)
}

fn flush_at(byte: u8, address: u64) -> Instruction {
    at(byte, SlotKind::Flush, address)
}

fn fence(byte: u8) -> Instruction {
    Instruction { bytes: vec![byte], slots: Vec::new(), values: Vec::new() }
}

/// One core about to execute `instructions`, which owns the first two lines of PM, dirty in version 1.
fn runs(instructions: &[Instruction]) -> Bench {
    let mut bench = Setup::machine(&[]).decoded_by(DECODER).run(Script::of(instructions));
    bench.log_persists();
    bench.warm(0, PM, Want::Own);
    bench.warm(0, PM + 64, Want::Own);
    bench
}

/// Versions that the host was promised to be durable, and was given that promise's acknowledgement for.
fn durable(bench: &Bench) -> Vec<u64> {
    let log = bench.caches().persist_log().expect("it is kept");
    log.promises().iter().filter(|promise| promise.kept.is_some()).map(|promise| promise.version.0).collect()
}

#[test]
fn what_is_cleaned_to_the_point_of_persistence_is_durable_when_the_barrier_completes() {
    let mut bench = runs(&[store_at(PM), flush_at(DC_CVAP, PM), fence(DSB_SY), load_at(DRAM)]);
    let flushed = FIRST_TURN + 1 + FLUSH;
    bench.run_until(flushed - 1);
    assert!(bench.reads().is_empty(), "the load waits for the barrier, the barrier for the flush");
    assert_eq!(bench.end(), flushed + MISS + 1);
    assert_eq!(durable(&bench), [2]);
    assert_eq!(bench.state(0, PM), Some(State::Exclusive), "the line stays, clean");
    assert_eq!((bench.core(0).flushes, bench.core(0).fences, bench.core(0).stores), (1, 1, 1));
}

#[test]
fn what_is_cleaned_to_the_point_of_coherence_is_sent_but_promised_to_nobody() {
    for (flush, state) in [(DC_CVAC, Some(State::Exclusive)), (DC_CIVAC, None)] {
        let mut bench = runs(&[flush_at(flush, PM), fence(DSB_SY)]);
        let persisted = FIRST_TURN + FLUSH;
        bench.run_until(persisted - 1);
        assert_eq!(bench.core(0).fences, 1, "the barrier has not waited for memory");
        bench.end();
        assert_eq!((bench.writes().len(), durable(&bench).len()), (1, 0));
        assert_eq!(bench.state(0, PM), state);
    }
}

#[test]
fn a_barrier_that_only_orders_waits_for_no_flush() {
    for barrier in [DMB_SY, DMB_ISHST] {
        let mut bench = runs(&[flush_at(DC_CVAP, PM), fence(barrier), store_at(PM + 64)]);
        bench.run_until(FIRST_TURN + FLUSH - 1);
        assert_eq!(bench.l1d(0, PM + 64).expect("it is there").version.0, 2, "the store has taken effect");
        bench.end();
        assert_eq!(durable(&bench), [1]);
    }
}

#[test]
fn a_barrier_of_stores_alone_lets_loads_pass() {
    for (barrier, passes) in [(DMB_ISHST, true), (DMB_SY, false)] {
        let mut bench = runs(&[store_at(DRAM), fence(barrier), load_at(DRAM + 64)]);
        bench.end();
        let [_, load] = bench.reads()[..] else { panic!("two lines are read") };
        assert_eq!(load == 1 + WAY_OUT, passes);
    }
}

#[test]
fn its_flushes_and_markers_work_while_only_warming() {
    for (flush, misses) in [(DC_CVAP, 0), (DC_CIVAC, 1)] {
        let mut bench = runs(&[store_at(PM), flush_at(flush, PM), fence(ROI_BEGIN), load_at(PM)]);
        bench.end();
        assert_eq!(bench.boundaries.len(), 1, "the marker has begun a region");
        assert_eq!(bench.reads().len(), misses);
    }
}
