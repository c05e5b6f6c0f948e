//! A sample of a program, replayed in detail, against the whole of it.

use fencepost_record::{Event, ThreadId};
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::error::SimulationError;
use fencepost_sim::replay::simulation::{Options, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use serde_json::Value as Json;

use super::machine::machine;
use super::program::{Instruction, LittleProgram, PERSISTENT, ProgramBuilder, VOLATILE, options, persistent_line};

/// A thread computes, misses, persists and branches, in rounds of 14 instructions that are all alike but for their
/// addresses.
fn work(builder: &mut ProgramBuilder, thread: u32, rounds: u64) {
    let place = 4096 * u64::from(thread);
    for round in 0..rounds {
        let line = persistent_line(place + round % 700);
        builder.execute(
            thread,
            &[
                (Instruction::Load, vec![VOLATILE + 64 * (round * 37 % 9000)]),
                (Instruction::Add, vec![]),
                (Instruction::Update, vec![line]),
                (Instruction::Store, vec![line + 8]),
                (Instruction::Multiply, vec![]),
                (Instruction::Branch, vec![]),
            ],
        );
        builder.execute(
            thread,
            &[
                (Instruction::Clwb, vec![line]),
                (Instruction::Sfence, vec![]),
                (Instruction::Load, vec![persistent_line(place + 1000 + round * 13 % 900)]),
                (Instruction::NonTemporal, vec![persistent_line(place + 2000 + round / 8 % 50) + 8 * (round % 8)]),
                (Instruction::Add, vec![]),
                (Instruction::LockedAdd, vec![VOLATILE + 64 * (round % 3)]),
                (Instruction::Add, vec![]),
                (Instruction::Branch, vec![]),
            ],
        );
    }
}

fn program(rounds: u64) -> LittleProgram {
    let mut builder = ProgramBuilder::new();
    work(&mut builder, 0, rounds);
    builder.finish()
}

fn sampled(plan: &str) -> Options {
    Options { sample: Some(plan.parse().unwrap()), ..options() }
}

fn replay(program: &LittleProgram, scheme: Scheme, options: Options) -> Result<Json, SimulationError> {
    let machine = machine("pcs-table1", &["core.count=2"]);
    let outcome = Simulation::new(&machine, scheme, &[program.on_host()], options)?.run(&Progress::default())?;
    Ok(run_entry(&outcome, "pcs-table1", scheme, 1.0))
}

/// What an entry of the whole says of what a sampled one counts of all instructions.
fn counts_of_whole(entry: &Json) -> Vec<(String, u64)> {
    let cores = ["core0", "core1"].map(|core| &entry["statistics"]["host0"][core]);
    let names = ["stores", "non_temporal_stores", "flushes", "fences", "atomics", "branches", "mispredictions"];
    let sum = |name: &str| cores.iter().map(|core| core[name].as_u64().unwrap()).sum();
    names.iter().map(|name| ((*name).to_owned(), sum(name))).collect()
}

fn classes(entry: &Json) -> Vec<(&'static str, u64)> {
    let names = ["persist", "writeback", "llc_read", "dram_read", "dram_write"];
    names.iter().map(|name| (*name, entry[*name]["count"].as_u64().unwrap())).collect()
}

#[test]
fn counts_are_those_of_full_detail_and_time_lies_in_its_confidence_interval() {
    let program = program(6000);
    for scheme in Scheme::ALL {
        let whole = replay(&program, scheme, options()).unwrap();
        let sample = replay(&program, scheme, sampled("2k:300:500")).unwrap();
        assert_eq!(sample["instructions"], whole["instructions"]);
        for (name, count) in counts_of_whole(&whole) {
            assert_eq!(sample["sampling"]["counts"][&name], count, "{name}");
        }
        let pairs = classes(&sample).into_iter().zip(classes(&whole));
        for ((name, ours), (_, theirs)) in pairs {
            // What leaves the caches hangs a little on the order in which loads issue.
            let near = 0.01 * theirs as f64 + 2.0;
            assert!(ours.abs_diff(theirs) as f64 <= near, "{scheme} {name}: {ours} of {theirs}");
        }
        let (time, truth) = (sample["simulated_ns"].as_f64().unwrap(), whole["simulated_ns"].as_f64().unwrap());
        let half = sample["sampling"]["estimates"]["simulated_ns"]["half_width"].as_f64().unwrap();
        assert!((time / truth - 1.0).abs() < 0.03, "{scheme}: {time} of {truth}");
        assert!((time - truth).abs() <= half.max(0.01 * truth), "{scheme}: {time} ± {half}, in truth {truth}");
        let intervals = sample["sampling"]["intervals"].as_array().unwrap();
        assert!((40..=42).contains(&intervals.len()), "{} intervals", intervals.len());
    }
}

/// Writes a line past the caches, now and then twice, and reads one that was written up to 40 lines before.
fn program_that_reads_what_it_wrote(rounds: u64) -> LittleProgram {
    const LINES: u64 = 3000;
    let mut builder = ProgramBuilder::new();
    for round in 0..rounds {
        // Fibonacci hashing.
        let random = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let line = persistent_line(round % LINES);
        for _ in 0..1 + u64::from(random.is_multiple_of(3)) {
            builder.execute(0, &[(Instruction::NonTemporalLine, vec![line]), (Instruction::Sfence, vec![])]);
        }
        let read = persistent_line((round + LINES - 1 - random % 40) % LINES);
        builder
            .execute(0, &[(Instruction::Load, vec![read]), (Instruction::Add, vec![]), (Instruction::Branch, vec![])]);
    }
    builder.finish()
}

#[test]
fn rates_of_persist_buffers_lie_in_their_confidence_intervals() {
    let program = program_that_reads_what_it_wrote(6000);
    let estimate = |entry: &Json, rate: &str| entry["sampling"]["estimates"][format!("persist_buffer.{rate}")].clone();
    let rates = ["read_hit_rate", "write_coalescing_rate"];
    for scheme in [Scheme::PbRf, Scheme::PbAdaptive] {
        let whole = replay(&program, scheme, options()).unwrap();
        let sample = replay(&program, scheme, sampled("1k:100:200")).unwrap();
        for rate in rates {
            let of_sample = estimate(&sample, rate);
            assert_eq!(of_sample["value"], sample["persist_buffer"][rate], "{scheme} {rate}");
            let [value, half] = ["value", "half_width"].map(|member| of_sample[member].as_f64().unwrap());
            let truth = whole["persist_buffer"][rate].as_f64().unwrap();
            assert!(0.1 < truth && truth < 0.9 && half < 0.1, "{scheme} {rate}: {value} ± {half}, in truth {truth}");
            assert!((value - truth).abs() <= half, "{scheme} {rate}: {value} ± {half}, in truth {truth}");
        }
    }
    let without = replay(&program, Scheme::Nopb, sampled("1k:100:200")).unwrap();
    assert!(rates.iter().all(|rate| estimate(&without, rate).is_null()), "there is no buffer");
}

#[test]
fn persists_that_no_interval_met_are_counted_and_their_cost_is_not_known() {
    let mut builder = ProgramBuilder::new();
    work(&mut builder, 0, 12);
    for round in 0..40_000 {
        builder
            .execute(0, &[(Instruction::Load, vec![VOLATILE + 64 * (round * 37 % 9000)]), (Instruction::Add, vec![])]);
    }
    let program = builder.finish();
    let sample = replay(&program, Scheme::Pb, sampled("4k:100:100")).unwrap();
    let whole = replay(&program, Scheme::Pb, options()).unwrap();
    assert!(sample["persist"]["count"].as_u64().unwrap() > 12, "flushes and non-temporal stores");
    assert_eq!(sample["persist"]["count"], whole["persist"]["count"]);
    let warnings = sample["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let said = format!("no interval met a persist, and the program makes about {}", whole["persist"]["count"]);
    assert!(warnings[0].as_str().unwrap().starts_with(&said), "{warnings:?}");
    assert_eq!(sample["persist"]["latency_ns"]["mean"], Json::Null);
    assert_eq!(sample["fence_stall"]["total_ns"], Json::Null, "no fence was met either");
    assert!(whole["fence_stall"]["total_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(whole["warnings"], serde_json::json!([]));
}

#[test]
fn the_same_sample_comes_out_bit_for_bit() {
    let program = program(1500);
    let without_clock = |mut entry: Json| {
        entry.as_object_mut().unwrap().remove("mips");
        entry
    };
    let one = without_clock(replay(&program, Scheme::PbRf, sampled("1k:100:200")).unwrap());
    let other = without_clock(replay(&program, Scheme::PbRf, sampled("1k:100:200")).unwrap());
    assert_eq!(one, other);
}

#[test]
fn a_sample_of_everything_is_full_detail() {
    let program = program(3000);
    let whole = replay(&program, Scheme::Pb, options()).unwrap();
    let sample = replay(&program, Scheme::Pb, sampled("700:700:0")).unwrap();
    let (time, truth) = (sample["simulated_ns"].as_f64().unwrap(), whole["simulated_ns"].as_f64().unwrap());
    assert!((time / truth - 1.0).abs() < 0.005, "{time} of {truth}");
    assert_eq!(sample["persist"]["count"], whole["persist"]["count"]);
}

#[test]
fn inserted_persists_are_inserted_between_intervals_too() {
    for persist in [PersistMode::Every(5), PersistMode::Sync] {
        let mut builder = ProgramBuilder::new();
        for round in 0..40 {
            work(&mut builder, 0, 30);
            let clock = builder.tick();
            builder.event(0, &Event::SemaphorePost { clock, object: VOLATILE + 4096 + 64 * (round % 2) });
            work(&mut builder, 0, 3);
            builder.one(0, Instruction::LockedAdd, VOLATILE + 8192);
            work(&mut builder, 0, 3);
            // The inside of a call inserts nothing, whatever it stores to.
            let clock = builder.tick();
            builder.event(0, &Event::CallBegin);
            builder.event(0, &Event::MutexLock { clock, object: PERSISTENT + 8192 });
            builder.one(0, Instruction::Store, PERSISTENT + 8192 + 64);
            builder.one(0, Instruction::LockedAdd, PERSISTENT + 8192);
            builder.event(0, &Event::CallEnd);
        }
        let program = builder.finish();
        let whole = replay(&program, Scheme::Nopb, Options { persist, ..options() }).unwrap();
        let sample = replay(&program, Scheme::Nopb, Options { persist, ..sampled("1k:200:200") }).unwrap();
        for (name, count) in counts_of_whole(&whole) {
            assert_eq!(sample["sampling"]["counts"][&name], count, "{persist:?} {name}");
        }
        assert_eq!(sample["persist"]["count"], whole["persist"]["count"], "{persist:?}");
    }
}

#[test]
fn only_regions_are_sampled_and_their_counts_stay_exact() {
    let mut builder = ProgramBuilder::new();
    work(&mut builder, 0, 900);
    for rounds in [700, 400] {
        builder.one(0, Instruction::RoiBegin, 0);
        work(&mut builder, 0, rounds);
        builder.one(0, Instruction::RoiEnd, 0);
        work(&mut builder, 0, 100);
    }
    let program = builder.finish();
    let whole = replay(&program, Scheme::Pb, options()).unwrap();
    let sample = replay(&program, Scheme::Pb, sampled("500:100:100")).unwrap();
    assert_eq!(sample["instructions"], whole["instructions"]);
    for region in 0..2 {
        let (ours, theirs) = (&sample["regions"][region], &whole["regions"][region]);
        assert_eq!(ours["instructions"], theirs["instructions"]);
        // What a region leaves under way is in no region's count in full detail.
        let counts = [ours, theirs].map(|entry| entry["persist"]["count"].as_u64().unwrap());
        assert!(counts[0].abs_diff(counts[1]) <= 2, "{counts:?}");
        let times = [ours, theirs].map(|entry| entry["simulated_ns"].as_f64().unwrap());
        assert!((times[0] / times[1] - 1.0).abs() < 0.1, "{times:?}");
    }
    let regions =
        sample["sampling"]["intervals"].as_array().unwrap().iter().map(|interval| interval[0].as_u64().unwrap());
    assert_eq!(
        regions.clone().filter(|region| *region == 0).count(),
        19,
        "9802 instructions in 20 periods, one cut off"
    );
    assert!(regions.max() == Some(1));
}

#[test]
fn threads_meet_between_intervals() {
    let mut builder = ProgramBuilder::new();
    work(&mut builder, 0, 50);
    let created = builder.tick();
    builder.event(0, &Event::ThreadCreate { clock: created, thread: ThreadId(1) });
    for _ in 0..30 {
        for thread in 0..2 {
            let clock = builder.tick();
            builder.event(thread, &Event::MutexLock { clock, object: VOLATILE + 8192 });
            work(&mut builder, thread, 20);
            let clock = builder.tick();
            builder.event(thread, &Event::MutexUnlock { clock, object: VOLATILE + 8192 });
            work(&mut builder, thread, 20);
        }
    }
    let program = builder.finish();
    let whole = replay(&program, Scheme::Nopb, options()).unwrap();
    let sample = replay(&program, Scheme::Nopb, sampled("1500:300:300")).unwrap();
    assert_eq!(sample["instructions"], whole["instructions"]);
    let persists = [&sample, &whole].map(|entry| entry["persist"]["count"].as_u64().unwrap());
    // Lines of other threads take each other's combining stores' places.
    assert!(persists[0].abs_diff(persists[1]) <= persists[1] / 50, "{persists:?}");
    let times = [&sample, &whole].map(|entry| entry["simulated_ns"].as_f64().unwrap());
    assert!((times[0] / times[1] - 1.0).abs() < 0.15, "{times:?}");
}

/// A program whose first thread creates others.
fn program_of_threads(threads: u32) -> ProgramBuilder {
    let mut builder = ProgramBuilder::new();
    for thread in 1..threads {
        let clock = builder.tick();
        builder.event(0, &Event::ThreadCreate { clock, thread: ThreadId(thread) });
    }
    builder
}

/// So many threads, each of which has a lock while it does `locked` of 20 rounds.
fn program_with_lock(threads: u32, locked: u64) -> LittleProgram {
    let mut builder = program_of_threads(threads);
    for _ in 0..60 {
        for thread in 0..threads {
            let clock = builder.tick();
            builder.event(thread, &Event::MutexLock { clock, object: VOLATILE + 8192 });
            work(&mut builder, thread, locked);
            let clock = builder.tick();
            builder.event(thread, &Event::MutexUnlock { clock, object: VOLATILE + 8192 });
            work(&mut builder, thread, 20 - locked);
        }
    }
    builder.finish()
}

/// Two threads, the first of which only waits for the end of the other.
fn program_with_join() -> LittleProgram {
    let mut builder = program_of_threads(2);
    work(&mut builder, 1, 1200);
    let clock = builder.tick();
    builder.event(0, &Event::ThreadJoin { clock, thread: ThreadId(1) });
    builder.finish()
}

#[test]
fn threads_that_mostly_wait_for_each_other_are_told_of() {
    let replay = |program: &LittleProgram| {
        let machine = machine("pcs-table1", &["core.count=4"]);
        let simulation = Simulation::new(&machine, Scheme::Nopb, &[program.on_host()], sampled("3k:500:500")).unwrap();
        run_entry(&simulation.run(&Progress::default()).unwrap(), "pcs-table1", Scheme::Nopb, 1.0)
    };
    let programs = [
        ("a lock that all always want", program_with_lock(4, 19), 0.6..0.78, true),
        ("a lock that is seldom taken", program_with_lock(4, 1), 0.0..0.2, false),
        ("nobody else", program_with_lock(1, 19), 0.0..0.01, false),
        ("a join", program_with_join(), 0.0..0.01, false),
    ];
    for (what, program, expected, is_told) in programs {
        let entry = replay(&program);
        let share = entry["sampling"]["wait_share"].as_f64().unwrap();
        assert!(expected.contains(&share), "{what}: {share}");
        let says = |warning: &Json| warning.as_str().unwrap().starts_with("threads waited for each other");
        assert_eq!(entry["warnings"].as_array().unwrap().iter().any(says), is_told, "{}", entry["warnings"]);
    }
}

#[test]
fn what_cannot_be_sampled_is_refused_with_the_reason() {
    let program = program(100);
    let refused = |options: Options| match replay(&program, Scheme::Nopb, options) {
        Err(SimulationError::Impossible(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused(sampled("1k:10:10")).contains("has 1400 instructions, and at least 2 periods are needed"));
    assert!(refused(Options { pm_writes_limit: Some(5), ..sampled("100:10:10") }).contains("--limit-pm-writes"));
    let cut = Options { instructions_limit: Some(140), ..sampled("100:50:50") };
    assert!(refused(cut).contains("measured 1 whole interval"), "a limit leaves too few");
}
