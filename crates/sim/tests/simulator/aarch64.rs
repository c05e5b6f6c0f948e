//! AArch64 programs on the whole simulator: words of A64 in records written by hand, with power cuts at every event.

use std::collections::BTreeSet;
use std::sync::Arc;

use fencepost_isa::noted;
use fencepost_record::{
    BlockBuilder, Bytes, CutPolicy, ISA_AARCH64, Info, Record, SlotKind, Summary, ThreadId, Writer, WriterOptions,
};
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::replay::simulation::{Options, Program, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use serde_json::Value as Json;

use super::power_cut::{A, B, State, cut_everywhere, replay, small};
use super::program::{LittleProgram, VOLATILE, options};

/// An instruction word with its slot.
type Instruction = (u32, Option<(SlotKind, u16)>);

/// `str x0, [x1]`
const STORE: Instruction = (0xf900_0020, Some((SlotKind::Store, 8)));
/// `ldp x2, x3, [x1], #16`
const LOAD_PAIR: Instruction = (0xa8c1_0c22, Some((SlotKind::Load, 16)));
/// `ldaddal x0, x2, [x1]`
const ADD: Instruction = (0xf8e0_0022, Some((SlotKind::Update, 8)));
const DC_CVAP: Instruction = (0xd50b_7c21, Some((SlotKind::Flush, 64)));
const DC_CVAC: Instruction = (0xd50b_7a21, Some((SlotKind::Flush, 64)));
const DC_CIVAC: Instruction = (0xd50b_7e21, Some((SlotKind::Flush, 64)));
/// `dsb sy`
const DSB: Instruction = (0xd503_3f9f, None);
/// `dmb ish`
const DMB: Instruction = (0xd503_3bbf, None);
/// `movz xzr, #0x5001, lsl #48` and `#0x5002`
const REGION: [Instruction; 2] = [(0xd2ea_003f, None), (0xd2ea_005f, None)];

/// A program of one thread: instructions with the addresses that they access.
fn program(instructions: &[(Instruction, u64)]) -> LittleProgram {
    let info = Info { isa: ISA_AARCH64.into(), ..Info::default() };
    let mut writer = Writer::new(Vec::new(), &info, WriterOptions::default()).expect("memory takes everything");
    for (number, ((word, slot), address)) in instructions.iter().enumerate() {
        let slots: Vec<_> = slot.iter().copied().collect();
        let block = BlockBuilder::at(0x40_0000 + 4 * number as u64).instruction(&word.to_le_bytes(), &slots).build();
        let block = writer.add_block(block).expect("it is a block");
        let values = if slots.is_empty() { &[][..] } else { &[*address] };
        writer.execute(ThreadId(0), block, values).expect("memory takes everything");
    }
    let bytes = writer.seal("exit 0").expect("memory takes everything");
    let record = Record::open(Arc::new(Bytes::new("little.fencepost", bytes)), CutPolicy::Refuse);
    LittleProgram { program: record.and_then(Program::new).expect("it was just written"), writes: Default::default() }
}

/// Writes A and flushes it, then B, so many times over; `fence` comes behind each flush.
fn writes_in_turn(rounds: u32, flush: Instruction, fence: Instruction) -> LittleProgram {
    let round = [A, B].into_iter().flat_map(|line| [(STORE, line), (flush, line), (fence, 0)]);
    let all: Vec<_> = (0..rounds).flat_map(|_| round.clone()).collect();
    program(&all)
}

/// The run of a result document.
fn run(little: &LittleProgram, sets: &[&str], options: Options) -> Json {
    let machine = small("pcs-table1", sets);
    let simulation = Simulation::new(&machine, Scheme::Pb, &[little.on_host()], options);
    let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
    run_entry(&outcome.unwrap_or_else(|error| panic!("{error}")), "pcs-table1", Scheme::Pb, 0.5)
}

#[test]
fn what_dc_cvap_and_dsb_persist_comes_back_in_the_order_of_the_program_whatever_the_cut() {
    let little = writes_in_turn(2, DC_CVAP, DSB);
    for scheme in Scheme::ALL {
        let cuts = cut_everywhere(replay(&small("pcs-table1", &[]), scheme, &little));
        let mut states: Vec<State> = cuts.iter().map(|(.., durable)| *durable).collect();
        states.dedup();
        assert_eq!(states, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)], "{scheme}");
        for (time, promised, durable) in &cuts {
            let is_kept = promised.0 <= durable.0 && promised.1 <= durable.1;
            assert!(is_kept, "{scheme}: at {time} {promised:?} was acknowledged and {durable:?} came back");
        }
        assert_eq!(cuts.last().expect("there is an end").1, (2, 2), "{scheme}: all was acknowledged");
    }
}

/// Two devices, the one with A far away.
const FAR_AND_NEAR: [&str; 4] = [
    "fabric.devices=[\"pm0\", \"pm1\"]",
    "fabric.edges=[\"host0 -> switch0\", \"switch0 -> pm0\", \"switch0 -> pm1\"]",
    "fabric.interleave.both={devices=[\"pm0\", \"pm1\"], granularity_bytes=256}",
    "fabric.link.\"switch0 -> pm0\"={latency_ns=2000.0}",
];

fn states_after(flush: Instruction, fence: Instruction, sets: &[&str]) -> BTreeSet<State> {
    let little = writes_in_turn(1, flush, fence);
    let cuts = cut_everywhere(replay(&small("pcs-table1", &[&FAR_AND_NEAR, sets].concat()), Scheme::Nopb, &little));
    cuts.into_iter().map(|(.., durable)| durable).collect()
}

#[test]
fn a_barrier_that_is_no_dsb_lets_the_second_line_be_durable_first() {
    assert_eq!(states_after(DC_CVAP, DSB, &[]), BTreeSet::from([(0, 0), (1, 0), (1, 1)]));
    assert_eq!(states_after(DC_CVAP, DMB, &[]), BTreeSet::from([(0, 0), (0, 1), (1, 1)]));
}

#[test]
fn an_atomic_that_acquires_and_releases_completes_no_flush() {
    let little = program(&[(STORE, A), (DC_CVAP, A), (ADD, VOLATILE), (STORE, B), (DC_CVAP, B)]);
    let cuts = cut_everywhere(replay(&small("pcs-table1", &FAR_AND_NEAR), Scheme::Nopb, &little));
    assert!(cuts.iter().any(|(.., durable)| *durable == (0, 1)));
}

/// How many lines the program was promised to be durable by the end of its run.
fn promised(mut simulation: Simulation) -> usize {
    while simulation.step() {}
    let host = simulation.system().hosts().next().expect("there is one");
    let promises = host.caches().persist_log().expect("it is kept").promises();
    promises.iter().filter(|promise| promise.kept.is_some()).count()
}

#[test]
fn cleaning_to_the_point_of_coherence_persists_where_that_is_persistent() {
    let persistent = ["core.point_of_coherence=\"persistent\""];
    for flush in [DC_CVAC, DC_CIVAC] {
        assert!(states_after(flush, DSB, &[]).contains(&(0, 1)), "the barrier has not waited for memory");
        assert_eq!(states_after(flush, DSB, &persistent), BTreeSet::from([(0, 0), (1, 0), (1, 1)]));
        let little = writes_in_turn(1, flush, DSB);
        for (sets, lines) in [(&[][..], 0), (&persistent[..], 2)] {
            assert_eq!(promised(replay(&small("pcs-table1", sets), Scheme::Pb, &little)), lines);
        }
    }
}

#[test]
fn a_flush_is_a_persist_only_where_its_completion_is_a_promise() {
    for flush in [DC_CVAC, DC_CIVAC] {
        // The last flush finds nothing to write back, and promises as little.
        let little = program(&[(STORE, A), (flush, A), (DSB, 0), (flush, A), (flush, VOLATILE)]);
        for (point, persists, writebacks, without_promise) in [("volatile", 0, 1, 2), ("persistent", 1, 0, 0)] {
            let entry = run(&little, &[&format!("core.point_of_coherence=\"{point}\"")], options());
            assert_eq!(entry["persist"]["count"], persists, "{point}");
            assert_eq!(entry["writeback"]["count"], writebacks, "{point}");
            assert_eq!(entry["flushes_without_promise"], without_promise, "{point}");
            assert_eq!(entry["persist_buffer"]["writes_flush"], 1, "{point}");
            let warnings = entry["warnings"].as_array().expect("it is a list");
            let expected =
                if without_promise > 0 { vec!["2 of the flushes of PM lines made nothing durable"] } else { vec![] };
            assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
            let says =
                |(warning, begins): (&Json, &&str)| warning.as_str().is_some_and(|text| text.starts_with(begins));
            assert!(warnings.iter().zip(&expected).all(says), "{warnings:?}");
        }
    }
}

#[test]
fn a_run_counts_what_the_program_did_in_its_region() {
    let persist = [(STORE, A), (DC_CVAP, A), (DSB, 0), (LOAD_PAIR, VOLATILE), (ADD, VOLATILE)];
    let little = program(&[&[(STORE, B), (REGION[0], 0)], &persist[..], &[(REGION[1], 0)]].concat());
    let entry = run(&little, &[], options());
    assert_eq!((&entry["persist"]["count"], &entry["regions"].as_array().map(Vec::len)), (&1.into(), &Some(1)));
    assert_eq!(entry["fence_stall"]["count"], 1, "the atomic waits for no flush");
    let summary = Summary::of(little.program.record(), noted);
    let persists: Vec<_> = summary.persist_instructions.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(persists, [("dc_cvap", 1), ("dsb", 1)]);
}

#[test]
fn inserted_persists_are_those_of_the_instruction_set() {
    let little = program(&[(STORE, A), (ADD, VOLATILE), (STORE, B)]);
    for (flush, lines) in [("dc_cvap", 2), ("dc_cvac", 0), ("dc_civac", 0)] {
        let machine = small("pcs-table1", &[&format!("persist.aarch64_flush=\"{flush}\"")]);
        let options = || Options { persist: PersistMode::Sync, ..options() };
        let simulation = Simulation::new(&machine, Scheme::Pb, &[little.on_host()], options());
        let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
        simulation.log_persists();
        assert_eq!(promised(simulation), lines, "{flush}");
        let entry = run(&little, &[&format!("persist.aarch64_flush=\"{flush}\"")], options());
        let warnings = entry["warnings"].as_array().expect("it is a list");
        assert_eq!(warnings.len(), usize::from(lines == 0), "{warnings:?}");
        assert_eq!(entry["statistics"]["host0"]["core0"]["inserted_flushes"], 2, "{entry:#}");
        assert_eq!(entry["statistics"]["host0"]["core0"]["fences"], 2);
    }
}
