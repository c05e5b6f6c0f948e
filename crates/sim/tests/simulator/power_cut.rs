//! Power cuts at every event of a program that persists one line and then another, under every scheme.

use std::collections::BTreeSet;

use fencepost_kernel::time::Time;
use fencepost_sim::config::Machine;
use fencepost_sim::replay::simulation::Simulation;
use fencepost_sim::switch::Scheme;

use super::machine::machine;
use super::program::{Instruction, LittleProgram, ProgramBuilder, options, persistent_line};

/// The two lines; the second one is 256 bytes behind the first, so that interleaving puts it into another device.
pub const A: u64 = persistent_line(0);
pub const B: u64 = persistent_line(4);

/// What is durable of A and of B, as versions.
pub type State = (u64, u64);

/// Writes A and flushes it, then B, so many times over; `fence` comes behind each flush.
fn writes_in_turn(rounds: u32, flush: Instruction, fence: Option<Instruction>) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for _ in 0..rounds {
        for line in [A, B] {
            builder.one(0, Instruction::Store, line);
            builder.one(0, flush, line);
            if let Some(fence) = fence {
                builder.one(0, fence, 0);
            }
        }
    }
    builder.finish()
}

pub fn replay(machine: &Machine, scheme: Scheme, little: &LittleProgram) -> Simulation {
    let simulation = Simulation::new(machine, scheme, &[little.on_host()], options());
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{scheme}: {error}"));
    simulation.log_persists();
    simulation
}

/// What is durable now; a line that the program has not touched has version 0.
fn durable(simulation: &Simulation) -> State {
    let host = simulation.system().hosts().next().expect("there is one");
    let version = |line| host.line_of(line).map_or(0, |line| simulation.durable_version(line).0);
    (version(A), version(B))
}

/// What the program was told is durable: the newest acknowledged versions.
fn acknowledged(simulation: &Simulation) -> State {
    let host = simulation.system().hosts().next().expect("there is one");
    let log = host.caches().persist_log().expect("it is kept").acknowledged();
    let newest = |line| {
        let of_line = log.iter().filter(|logged| Some(logged.line) == host.line_of(line));
        of_line.map(|logged| logged.version.0).max().unwrap_or(0)
    };
    (newest(A), newest(B))
}

/// Cuts the power before every event and at the end; gives the time, what was acknowledged, and what a recovery brings
/// back.
pub fn cut_everywhere(mut simulation: Simulation) -> Vec<(Time, State, State)> {
    let mut found = Vec::new();
    loop {
        let mut cut = simulation.clone();
        let promised = acknowledged(&cut);
        cut.power_fail();
        cut.recover().unwrap_or_else(|error| panic!("recovery at {}: {error}", simulation.system().now()));
        found.push((simulation.system().now(), promised, durable(&cut)));
        if !simulation.step() {
            return found;
        }
    }
}

/// Two switches in a row: the last one accepts persists; both do, with room for one line in the first buffer, or in the
/// second.
const CHAINS: [&[&str]; 4] = [
    &["fabric.persist_points=[\"switch1\"]"],
    &["fabric.persist_points=[\"switch0\", \"switch1\"]"],
    &["fabric.persist_points=[\"switch0\", \"switch1\"]", "fabric.switch.switch0.persist_buffer.entries=1"],
    &["fabric.persist_points=[\"switch0\", \"switch1\"]", "fabric.switch.switch1.persist_buffer.entries=1"],
];

/// One core is enough, and makes snapshots small.
pub fn small(name: &str, sets: &[&str]) -> Machine {
    machine(name, &[&["core.count=1", "cache.l2.size_kib=16"], sets].concat())
}

#[test]
fn whatever_the_cut_persists_come_back_in_the_order_of_the_program() {
    let little = writes_in_turn(2, Instruction::Clflush, Some(Instruction::Sfence));
    let lines: &[&str] = &[];
    let blocks: &[&str] =
        &["pm.block={read_buffer_entries=2, translation_ns=30.0}", "pm.row_bytes=256", "pm.write_idle_watermark=8"];
    let acknowledged_at = ["pm.ack_at=\"queue\"", "pm.ack_at=\"media\""];
    for (ack_at, medium) in acknowledged_at.into_iter().flat_map(|ack_at| [(ack_at, lines), (ack_at, blocks)]) {
        for scheme in Scheme::ALL {
            let cuts = cut_everywhere(replay(&small("pcs-table1", &[&[ack_at], medium].concat()), scheme, &little));
            let mut states: Vec<State> = cuts.iter().map(|(.., durable)| *durable).collect();
            states.dedup();
            assert_eq!(states, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)], "{scheme}, {ack_at}, {medium:?}");
            for (time, promised, durable) in cuts {
                let is_kept = promised.0 <= durable.0 && promised.1 <= durable.1;
                assert!(
                    is_kept,
                    "{scheme}, {ack_at}, {medium:?}: at {time} {promised:?} was acknowledged and {durable:?} came back"
                );
            }
        }
    }
}

#[test]
fn an_accelerator_with_a_battery_keeps_what_its_host_has_persisted() {
    let little = writes_in_turn(2, Instruction::Clflush, Some(Instruction::Sfence));
    for bias in ["fabric.bias.type2=\"host\"", "fabric.bias.type2=\"device\""] {
        let machine = small("agilex-type2-pm", &[bias, "cache.l3.size_kib=960", "cache.l3.snoop_filter.entries=4096"]);
        let cuts = cut_everywhere(replay(&machine, Scheme::Nopb, &little));
        let mut states: Vec<State> = cuts.iter().map(|(.., durable)| *durable).collect();
        states.dedup();
        assert_eq!(states, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)], "{bias}");
        for (time, promised, durable) in cuts {
            let is_kept = promised.0 <= durable.0 && promised.1 <= durable.1;
            assert!(is_kept, "{bias}: at {time} {promised:?} was acknowledged and {durable:?} came back");
        }
    }
}

#[test]
fn wherever_in_a_chain_persists_are_accepted_they_come_back() {
    let little = writes_in_turn(2, Instruction::Clflush, Some(Instruction::Sfence));
    for (chain, scheme) in CHAINS.into_iter().flat_map(|chain| [(chain, Scheme::Pb), (chain, Scheme::PbRf)]) {
        let cuts = cut_everywhere(replay(&small("pcs-table1-2sw", chain), scheme, &little));
        let mut states: Vec<State> = cuts.iter().map(|(.., durable)| *durable).collect();
        states.dedup();
        assert_eq!(states, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)], "{scheme}, {chain:?}");
        for (time, promised, durable) in cuts {
            let is_kept = promised.0 <= durable.0 && promised.1 <= durable.1;
            assert!(is_kept, "{scheme}, {chain:?}: at {time} {promised:?} was acknowledged and {durable:?} came back");
        }
    }
}

#[test]
fn without_a_fence_the_second_line_may_be_durable_before_the_first() {
    // A lies in a device that is far away, B in one that is near.
    let far_and_near = [
        "fabric.devices=[\"pm0\", \"pm1\"]",
        "fabric.edges=[\"host0 -> switch0\", \"switch0 -> pm0\", \"switch0 -> pm1\"]",
        "fabric.interleave.both={devices=[\"pm0\", \"pm1\"], granularity_bytes=256}",
        "fabric.link.\"switch0 -> pm0\"={latency_ns=2000.0}",
    ];
    let machine = small("pcs-table1", &far_and_near);
    let states = |fence| -> BTreeSet<State> {
        let little = writes_in_turn(1, Instruction::Clwb, fence);
        let cuts = cut_everywhere(replay(&machine, Scheme::Nopb, &little));
        cuts.into_iter().map(|(.., durable)| durable).collect()
    };
    assert_eq!(states(None), BTreeSet::from([(0, 0), (0, 1), (1, 1)]));
    assert_eq!(states(Some(Instruction::Sfence)), BTreeSet::from([(0, 0), (1, 0), (1, 1)]));
}

#[test]
fn a_persist_buffer_makes_a_line_durable_earlier_and_never_after_its_acknowledgement() {
    let little = writes_in_turn(1, Instruction::Clflush, Some(Instruction::Mfence));
    let times = |scheme| {
        let cuts = cut_everywhere(replay(&small("pcs-table1", &[]), scheme, &little));
        let durable = cuts.iter().find(|(.., durable)| durable.0 == 1).expect("A is durable at the end");
        let acknowledged = cuts.iter().find(|(_, promised, _)| promised.0 == 1).expect("and acknowledged");
        (durable.0, acknowledged.0)
    };
    let without = times(Scheme::Nopb);
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let with = times(scheme);
        assert!(with.0 < without.0 && with.1 < without.1, "{scheme}: {with:?}, {without:?} without");
        assert!(with.0 < with.1 && without.0 < without.1);
    }
}

#[test]
fn what_is_not_flushed_is_lost() {
    let mut builder = ProgramBuilder::new();
    builder.one(0, Instruction::Store, A);
    builder.one(0, Instruction::Store, B);
    builder.one(0, Instruction::Clflush, B);
    builder.one(0, Instruction::Mfence, 0);
    let little = builder.finish();
    for scheme in Scheme::ALL {
        let cuts = cut_everywhere(replay(&small("pcs-table1", &[]), scheme, &little));
        let states: BTreeSet<State> = cuts.into_iter().map(|(.., durable)| durable).collect();
        assert_eq!(states, BTreeSet::from([(0, 0), (0, 1)]), "{scheme}");
    }
}

#[test]
fn a_recovery_may_be_cut_at_every_event() {
    let little = writes_in_turn(3, Instruction::Clflush, Some(Instruction::Sfence));
    let one: &[&[&str]] = &[&[]];
    let machines = one.iter().map(|sets| ("pcs-table1", *sets)).chain(CHAINS.map(|sets| ("pcs-table1-2sw", sets)));
    for ((name, sets), scheme) in
        machines.flat_map(|machine| [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive].map(|scheme| (machine, scheme)))
    {
        let mut simulation = replay(&small(name, sets), scheme, &little);
        // With both lines in the buffer and none at the device yet.
        while acknowledged(&simulation) != (3, 3) {
            assert!(simulation.step());
        }
        simulation.power_fail();
        let mut recovering = simulation.clone();
        recovering.start_recovery();
        let mut cuts = 0;
        loop {
            let mut again = recovering.clone();
            again.power_fail();
            assert_eq!(durable(&again), (3, 3), "{scheme}: after {cuts} events of recovery");
            again.recover().unwrap_or_else(|error| panic!("{scheme}: {error}"));
            assert_eq!(durable(&again), (3, 3), "{scheme}: after {cuts} events of recovery, and another one");
            if !recovering.step() {
                break;
            }
            cuts += 1;
        }
        // What the last switch of a row accepts, or a buffer with a single entry, is mostly drained when the host knows
        // of it.
        let least = if sets.is_empty() { 5 } else { 0 };
        assert!(cuts > least, "{scheme}, {sets:?}: the recovery had next to nothing to do, {cuts} events");
    }
}
