//! The schemes against each other, and against fabrics of other lengths: each difference where its cause is.

use fencepost_record::{Event, ThreadId};
use fencepost_sim::config::Machine;
use fencepost_sim::error::SimulationError;
use fencepost_sim::replay::simulation::{Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use serde_json::Value as Json;

use super::machine::machine;
use super::program::{Instruction, LittleProgram, ProgramBuilder, options, persistent_line};

/// The entry of a result for this replay.
fn run(machine: &Machine, scheme: Scheme, little: &LittleProgram) -> Json {
    let simulation = Simulation::new(machine, scheme, &[little.on_host()], options());
    let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
    run_entry(&outcome.unwrap_or_else(|error| panic!("{scheme}: {error}")), "machine", scheme, 1.0)
}

/// The number at that place of an entry.
fn number(entry: &Json, pointer: &str) -> f64 {
    entry.pointer(pointer).and_then(Json::as_f64).unwrap_or_else(|| panic!("no number at {pointer}"))
}

/// Persists so many lines, one after the other.
fn persists_one_by_one(lines: u64) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for line in 0..lines {
        builder.one(0, Instruction::Store, persistent_line(line));
        builder.one(0, Instruction::Clflush, persistent_line(line));
        builder.one(0, Instruction::Mfence, 0);
    }
    builder.finish()
}

/// Persists so many lines as fast as the core can: whole lines, around the caches, with nothing that waits for any of
/// them.
fn persists_at_once(lines: u64) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    for line in 0..lines {
        builder.one(0, Instruction::NonTemporalLine, persistent_line(line));
    }
    builder.one(0, Instruction::Sfence, 0);
    builder.finish()
}

#[test]
fn a_persist_buffer_makes_persists_cheaper_by_the_way_to_the_memory_and_back() {
    let little = persists_one_by_one(50);
    let [nopb, pb, pb_rf, _] = Scheme::ALL.map(|scheme| run(&machine("pcs-table1", &[]), scheme, &little));
    for (buffered, scheme) in [(&pb, "pb"), (&pb_rf, "pb_rf")] {
        assert_eq!(number(buffered, "/persist/count"), 50.0);
        let ratio = number(buffered, "/persist/latency_ns/mean") / number(&nopb, "/persist/latency_ns/mean");
        assert!((0.4..0.65).contains(&ratio), "{scheme}: {ratio} of nopb");
        assert!(number(buffered, "/simulated_ns") < number(&nopb, "/simulated_ns"), "{scheme}");
        let part = |name: &str| number(buffered, &format!("/latency_stacks/persist/parts/{name}"));
        assert_eq!(part("device_queue") + part("media"), 0.0, "{scheme}: no persist waits for the memory");
        assert!(part("pb_access") > 0.0, "{scheme}");
    }
    assert!(number(&nopb, "/latency_stacks/persist/parts/device_queue") > 0.0);
    assert_eq!(nopb["persist_buffer"], Json::Null);
}

#[test]
fn a_buffer_of_one_entry_stalls_the_writes_that_find_it_full() {
    let little = persists_at_once(60);
    let with_entries = |entries: u32| {
        let set = format!("switch.persist_buffer.entries={entries}");
        run(&machine("pcs-table1", &[&set]), Scheme::Pb, &little)
    };
    let (one, many) = (with_entries(1), with_entries(64));
    assert!(number(&one, "/persist_buffer/stalls") > 30.0);
    assert!(number(&one, "/persist_buffer/stall_ns") > 0.0);
    assert_eq!(one["explanation"]["pb_full_stall_ns"], one["persist_buffer"]["stall_ns"]);
    assert_eq!((number(&many, "/persist_buffer/stalls"), number(&many, "/persist_buffer/stall_ns")), (0.0, 0.0));
    assert!(number(&one, "/persist/latency_ns/mean") > 3.0 * number(&many, "/persist/latency_ns/mean"));
    assert_eq!(number(&one, "/persist_buffer/occupancy/max"), 1.0);
}

#[test]
fn a_volatile_switch_stalls_on_credits_when_it_is_saturated() {
    let little = persists_at_once(60);
    let with_credits = |credits: u32| {
        let set = format!("link.request_with_data_credits={credits}");
        run(
            &machine("pcs-table1", &["core.flushes_in_flight=64", "link.no_data_response_credits=64", &set]),
            Scheme::Nopb,
            &little,
        )
    };
    let (few, many) = (with_credits(2), with_credits(64));
    assert_eq!(number(&many, "/explanation/link_credit_stall_ns"), 0.0);
    assert!(number(&few, "/explanation/link_credit_stall_ns") > 1000.0);
    assert!(number(&few, "/simulated_ns") > 1.5 * number(&many, "/simulated_ns"));
    // The stall is that of the senders of writes: the host, and the switch towards the device.
    for link in few["links"].as_array().expect("it is a list") {
        let is_towards_memory = ["host0 -> switch0", "switch0 -> pm0"].contains(&link["name"].as_str().unwrap());
        assert_eq!(number(link, "/credit_stall_ns") > 0.0, is_towards_memory, "{link}");
    }
}

#[test]
fn the_volatile_switch_of_the_study_stalls_on_credits_when_all_cores_persist_at_once() {
    let mut builder = ProgramBuilder::new();
    for thread in 1..8 {
        let clock = builder.tick();
        builder.event(0, &Event::ThreadCreate { clock, thread: ThreadId(thread) });
    }
    for thread in 0..8 {
        for line in 0..60 {
            builder.one(thread, Instruction::NonTemporalLine, persistent_line(60 * u64::from(thread) + line));
        }
        builder.one(thread, Instruction::Sfence, 0);
    }
    let nopb = run(&machine("pcs-table1", &[]), Scheme::Nopb, &builder.finish());
    assert!(number(&nopb, "/explanation/link_credit_stall_ns") > 0.0);
    let sender =
        |name: &str| nopb["links"].as_array().unwrap().iter().find(|link| link["name"] == name).unwrap().clone();
    assert!(number(&sender("host0 -> switch0"), "/credit_stall_ns") > 0.0);
}

#[test]
fn lines_that_are_read_again_come_from_the_buffer_that_kept_them() {
    let mut builder = ProgramBuilder::new();
    for line in 0..8 {
        builder.one(0, Instruction::Store, persistent_line(line));
        builder.one(0, Instruction::Clflush, persistent_line(line));
    }
    builder.one(0, Instruction::Mfence, 0);
    // Long after every drain is over.
    for _ in 0..500 {
        builder.one(0, Instruction::Divide, 0);
    }
    builder.one(0, Instruction::Lfence, 0);
    for line in 0..8 {
        builder.one(0, Instruction::Load, persistent_line(line));
    }
    let little = builder.finish();
    let [nopb, pb, pb_rf, _] = Scheme::ALL.map(|scheme| run(&machine("pcs-table1", &[]), scheme, &little));
    // The stores have fetched their lines, so each line is read twice.
    assert_eq!((number(&pb_rf, "/persist_buffer/reads"), number(&pb_rf, "/persist_buffer/read_hits")), (16.0, 8.0));
    assert_eq!(number(&pb_rf, "/persist_buffer/read_hit_rate"), 0.5);
    assert_eq!((number(&pb, "/persist_buffer/reads"), number(&pb, "/persist_buffer/read_hits")), (16.0, 0.0));
    let mean = |entry: &Json| number(entry, "/llc_read/latency_ns/mean");
    assert!(mean(&pb_rf) < mean(&pb) && mean(&pb_rf) < mean(&nopb));
    assert_eq!(number(&pb_rf, "/explanation/pm_reads"), 8.0);
    assert_eq!(number(&nopb, "/explanation/pm_reads"), 16.0);
}

#[test]
fn writes_to_a_line_that_waits_in_the_buffer_are_merged_into_it() {
    let mut builder = ProgramBuilder::new();
    for _ in 0..10 {
        builder.one(0, Instruction::Store, persistent_line(0));
        builder.one(0, Instruction::Clwb, persistent_line(0));
        builder.one(0, Instruction::Sfence, 0);
    }
    let little = builder.finish();
    let [_, pb, pb_rf, _] = Scheme::ALL.map(|scheme| run(&machine("pcs-table1", &[]), scheme, &little));
    assert_eq!(number(&pb_rf, "/persist_buffer/write_coalescing_rate"), 0.9);
    assert_eq!(number(&pb_rf, "/explanation/pm_writes"), 0.0, "one line passes no threshold");
    assert_eq!(number(&pb, "/persist_buffer/drains") + number(&pb, "/persist_buffer/writes_coalesced"), 10.0);
    assert!(number(&pb, "/persist_buffer/drains") > 1.0);
}

#[test]
fn the_way_of_a_persist_grows_by_the_same_for_every_switch_without_a_buffer_and_not_at_all_with_one() {
    let mut builder = ProgramBuilder::new();
    for line in 0..20 {
        builder.one(0, Instruction::Store, persistent_line(line));
        builder.one(0, Instruction::Clflush, persistent_line(line));
        builder.one(0, Instruction::Mfence, 0);
        // Until the drain of the last one is over.
        for _ in 0..200 {
            builder.one(0, Instruction::Divide, 0);
        }
    }
    let little = builder.finish();
    let latency = |switches: &str, scheme| {
        let entry = run(&machine(&format!("pcs-table1{switches}"), &[]), scheme, &little);
        let [p50, max] = ["p50", "max"].map(|name| number(&entry, &format!("/persist/latency_ns/{name}")));
        assert_eq!(p50, max, "{switches}: one persist at a time has nothing to wait for");
        number(&entry, "/latency_stacks/persist/latency_ns")
    };
    let [one, two, four] = ["", "-2sw", "-4sw"].map(|switches| latency(switches, Scheme::Nopb));
    let by_switch = two - one;
    assert!(by_switch > 0.0);
    // Sums of picoseconds, printed in nanoseconds.
    assert!((four - two - 2.0 * by_switch).abs() < 0.001, "{one}, {two}, {four}");
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let buffered = ["", "-2sw", "-4sw"].map(|switches| latency(switches, scheme));
        assert_eq!(buffered, [buffered[0]; 3], "the first switch is the persist point in all chains");
        assert!(buffered[0] < one);
        // The persist point moves along the chain, and every buffer behind it drains into the next one.
        let at = |points: &str| {
            let sets = [format!("fabric.persist_points={points}")];
            let entry = run(&machine("pcs-table1-4sw", &sets.each_ref().map(String::as_str)), scheme, &little);
            number(&entry, "/latency_stacks/persist/latency_ns")
        };
        for (switch, before) in ["switch0", "switch1", "switch2", "switch3"].into_iter().zip([0.0, 1.0, 2.0, 3.0]) {
            let latency = at(&format!("[\"{switch}\"]"));
            assert!((latency - buffered[0] - before * by_switch).abs() < 0.001, "{scheme}, {switch}: {latency}");
        }
        let all = at("[\"switch3\", \"switch1\", \"switch0\", \"switch2\"]");
        assert_eq!(all, buffered[0], "the first one on the way acknowledges, whatever follows");
    }
}

#[test]
fn without_a_switch_persists_are_cheapest_and_a_buffer_is_refused_with_the_reason() {
    let little = persists_one_by_one(20);
    let local = machine("pcs-table1-0sw", &[]);
    let mean = |machine: &Machine| number(&run(machine, Scheme::Nopb, &little), "/persist/latency_ns/mean");
    assert!(mean(&local) < mean(&machine("pcs-table1", &[])));
    for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
        let refused = Simulation::new(&local, scheme, &[little.on_host()], options());
        let Err(SimulationError::Impossible(reason)) = refused else { panic!("{scheme} runs without a switch") };
        assert!(reason.contains("needs a switch to hold the persist buffer, and this machine has none"), "{reason}");
    }
}
