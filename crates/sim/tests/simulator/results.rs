//! Entries of result documents have exactly the members that docs/results-reference.md and the pages beside it list,
//! and keep its rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fencepost_record::{Clock, Event, ThreadId};
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::replay::simulation::{Options, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use serde_json::{Value as Json, json};

use super::machine::machine;
use super::program::{Instruction, ProgramBuilder, VOLATILE, options, persistent_line};

const MEASURES: [&str; 9] = [
    "persist",
    "writeback",
    "llc_read",
    "dram_read",
    "prefetch_read",
    "page_walk",
    "instruction_fetch",
    "dram_write",
    "fence_stall",
];

type Names = BTreeSet<String>;

/// The pages that list the members of a run.
const PAGES: [&str; 4] = ["results-reference.md", "results-counters.md", "sampling.md", "power.md"];

/// The part of these pages below the heading that begins with those words.
fn section(heading: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let texts = PAGES.map(|name| fs::read_to_string(docs.join(name)).expect("the page is there"));
    let page = texts.concat();
    let mut lines = page.lines().skip_while(|line| !line.trim_start_matches('#').trim().starts_with(heading));
    assert!(lines.next().is_some_and(|line| line.starts_with('#')), "the pages of results have no heading {heading}");
    lines.take_while(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// The words in backticks that look like members.
fn members_in(text: &str) -> Names {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_member = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    quoted.filter(is_member).map(str::to_owned).collect()
}

/// The members that the table of a section lists, in its first column.
fn listed(heading: &str) -> Names {
    let section = section(heading);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| members_in(row.split('|').nth(1).expect("a row has columns"))).collect()
}

fn members(object: &Json) -> Names {
    object.as_object().unwrap_or_else(|| panic!("{object} is no object")).keys().cloned().collect()
}

/// Two regions with persists, evictions, reads and prefetches in them.
fn entry(scheme: Scheme, with_regions: bool) -> Json {
    let mut builder = ProgramBuilder::new();
    for _ in 0..2 {
        if with_regions {
            builder.one(0, Instruction::RoiBegin, 0);
        }
        for line in 0..40 {
            builder.one(0, Instruction::Store, persistent_line(16 * line));
            builder.one(0, Instruction::Load, VOLATILE + 1024 * line);
            if line % 4 == 0 {
                builder.one(0, Instruction::Clwb, persistent_line(16 * line));
                builder.one(0, Instruction::Sfence, 0);
            }
            builder.one(0, Instruction::Prefetch, persistent_line(16 * line + 1));
        }
        if with_regions {
            builder.one(0, Instruction::RoiEnd, 0);
        }
    }
    entry_of(builder, scheme)
}

fn entry_of(builder: ProgramBuilder, scheme: Scheme) -> Json {
    let little = builder.finish();
    let machine = machine("pcs-table1", &["cache.l2.size_kib=4", "cache.l1d.size_kib=2"]);
    let simulation = Simulation::new(&machine, scheme, &[little.on_host()], options());
    let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
    run_entry(&outcome.unwrap_or_else(|error| panic!("{error}")), "pcs-table1", scheme, 0.5)
}

/// Everything that the page says of any entry.
pub fn check_entry(entry: &Json) {
    check_rates("", entry);
    check_figures(entry);
    for region in entry["regions"].as_array().expect("it is a list") {
        check_figures(region);
    }
    for (class, stack) in entry["latency_stacks"].as_object().expect("it is a map") {
        // Picoseconds, printed in nanoseconds.
        let ps = |value: &Json| (value.as_f64().expect("it is a number") * 1000.0).round() as u64;
        let parts: u64 = stack["parts"].as_object().expect("it is a map").values().map(ps).sum();
        assert_eq!(parts, ps(&stack["total_ns"]), "the parts of {class} do not sum to the whole");
        let before = ["core", "cache"].map(|part| ps(&stack["parts"][part]));
        let before = match class.as_str() {
            "drain" => 0,
            "persist" | "writeback" | "dram_write" => before[0] + before[1],
            _ => before[0],
        };
        assert_eq!(parts - before, ps(&stack["latency_ns"]), "{class}");
        if !matches!(class.as_str(), "page_walk" | "instruction_fetch" | "drain") {
            assert_eq!(stack["count"], entry[class]["count"], "{class}");
        }
    }
    let has_buffer = entry["scheme"] != "nopb";
    assert_eq!(entry["explanation"]["pb_full_stall_ns"], entry["persist_buffer"]["stall_ns"]);
    for name in ["pb_full_stall_ns", "pi_full_stall_ns", "pi_full_stalls", "pb_drains"] {
        assert_eq!(entry["explanation"][name].is_number(), has_buffer, "{name}");
    }
    let has_rate = has_buffer && entry["simulated_ns"].as_f64() > Some(0.0);
    assert_eq!(entry["explanation"]["pb_controller_busy_rate"].is_number(), has_rate);
}

/// What a run and a region have in common.
fn check_figures(figures: &Json) {
    MEASURES.iter().for_each(|name| check_measure(name, &figures[name]));
    let buffer = &figures["persist_buffer"];
    if buffer.is_null() {
        return;
    }
    let count = |name: &str| buffer[name].as_u64().unwrap_or_else(|| panic!("{name} is no count"));
    let causes = ["writes_flush", "writes_eviction", "writes_non_temporal", "writes_drain"];
    assert_eq!(count("writes"), causes.into_iter().map(count).sum::<u64>());
    assert!(count("read_hits") <= count("reads") && count("writes_coalesced") <= count("writes"));
    assert!(buffer["occupancy"]["max"].as_u64() <= buffer["occupancy"]["entries"].as_u64(), "{buffer}");
    let series = &buffer["occupancy"]["over_time"];
    assert_eq!(series.is_null(), buffer["occupancy"]["mean"].is_null(), "there is a series if any time was counted");
    let Some(means) = series["mean"].as_array() else { return };
    assert!((1..=256).contains(&means.len()) && series["interval_ns"].as_f64() >= Some(10.0), "{series}");
    let max = buffer["occupancy"]["max"].as_f64();
    assert!(means.iter().all(|mean| mean.is_null() || (0.0..=max.unwrap()).contains(&mean.as_f64().unwrap())));
}

/// What was taken down over time is what was counted, no more and no less.
fn check_series(component: &Json) {
    let occupancy = &component["persist_buffer"]["occupancy"];
    if occupancy.is_null() {
        return;
    }
    let sum = |list: &Json| list.as_array().expect("a list").iter().map(|ps| ps.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&occupancy["over_time"]["level_ps"]), occupancy["entry_ps"]);
    let levels = occupancy["level_ps"].as_object().expect("it is a map").values();
    assert_eq!(sum(&occupancy["over_time"]["time_ps"]), levels.map(|ps| ps.as_u64().unwrap()).sum::<u64>());
}

fn check_measure(name: &str, measure: &Json) {
    let count = measure["count"].as_u64().expect("a count is a number, never null");
    let latencies = measure["latency_ns"].as_object().expect("it is a map");
    let cdf = measure["cdf"].as_array().expect("it is a list");
    if count == 0 {
        assert!(latencies.values().all(Json::is_null) && cdf.is_empty(), "{name} of nothing: {measure}");
        return;
    }
    let [mean, p50, p90, p99, max] =
        ["mean", "p50", "p90", "p99", "max"].map(|name| latencies[name].as_f64().expect("it is a number"));
    assert!(p50 <= p90 && p90 <= p99 && p99 <= max && mean <= max, "{name}: {latencies:?}");
    let steps: Vec<[f64; 2]> = cdf.iter().map(|step| [0, 1].map(|part| step[part].as_f64().unwrap())).collect();
    assert!(steps.is_sorted_by(|one, next| one[0] < next[0] && one[1] < next[1]), "{name}: {cdf:?}");
    assert_eq!(steps.last().map(|step| step[1]), Some(1.0), "{name}");
}

/// Every rate anywhere is null or from 0 to 1.
fn check_rates(name: &str, value: &Json) {
    match value {
        Json::Object(members) => members.iter().for_each(|(name, member)| check_rates(name, member)),
        Json::Array(elements) => elements.iter().for_each(|element| check_rates(name, element)),
        _ if name.ends_with("_rate") => {
            let is_rate = value.is_null() || value.as_f64().is_some_and(|rate| (0.0..=1.0).contains(&rate));
            assert!(is_rate, "{name} is {value}");
        }
        _ => {}
    }
}

#[test]
fn an_entry_has_the_members_of_the_page_and_no_others() {
    for scheme in Scheme::ALL {
        for with_regions in [false, true] {
            let entry = entry(scheme, with_regions);
            let mut expected = listed("`runs[]`");
            // What starts the run adds what it chose.
            assert!(expected.remove("axes") && expected.remove("options"));
            assert_eq!(members(&entry), expected);
            assert_eq!(members(&entry["explanation"]), listed("`explanation`"));
            for name in MEASURES {
                let mut expected = listed("A measure");
                if name == "fence_stall" {
                    expected.insert("total_ns".to_owned());
                }
                assert_eq!(members(&entry[name]), expected, "{name}");
                let latencies = ["mean", "p50", "p90", "p99", "max"].map(str::to_owned);
                assert_eq!(members(&entry[name]["latency_ns"]), Names::from(latencies));
            }
            for host in entry["hosts"].as_array().expect("it is a list") {
                assert_eq!(members(host), listed("`hosts[]`"));
            }
            for link in entry["links"].as_array().expect("it is a list") {
                assert_eq!(members(link), members_in(&section("`links[]`")));
            }
            if scheme != Scheme::Nopb {
                assert_eq!(members(&entry["persist_buffer"]), listed("`persist_buffer`"));
                let occupancy = members(&entry["persist_buffer"]["occupancy"]);
                assert_eq!(occupancy, Names::from(["mean", "max", "entries", "over_time"].map(str::to_owned)));
            }
        }
    }
}

#[test]
fn latency_stacks_have_the_classes_and_parts_of_the_page() {
    let entry = entry(Scheme::PbRf, false);
    let named = members_in(&section("`latency_stacks`"));
    let stacks = entry["latency_stacks"].as_object().expect("it is a map");
    let parts: Names = stacks.values().flat_map(|stack| members(&stack["parts"])).collect();
    let others = ["count", "total_ns", "latency_ns", "parts"].map(str::to_owned);
    let known: Names = stacks.keys().cloned().chain(parts).chain(others).collect();
    assert_eq!(known, named);
}

#[test]
fn regions_have_the_members_of_the_page() {
    let entry = entry(Scheme::Pb, true);
    let regions = entry["regions"].as_array().expect("it is a list");
    assert_eq!(regions.len(), 2);
    for region in regions {
        assert_eq!(members(region), members_in(&section("`regions[]`")));
    }
    let total = |name: &str| regions.iter().map(|region| region[name].as_f64().unwrap()).sum::<f64>();
    assert!((total("simulated_ns") - entry["simulated_ns"].as_f64().unwrap()).abs() < 0.001);
    assert_eq!(total("instructions"), entry["instructions"].as_f64().unwrap());
    let persists: u64 = regions.iter().map(|region| region["persist"]["count"].as_u64().unwrap()).sum();
    assert_eq!(persists, entry["persist"]["count"].as_u64().unwrap());
}

#[test]
fn a_region_has_the_highest_occupancy_of_its_own() {
    let mut builder = ProgramBuilder::new();
    for lines in [12, 1] {
        builder.one(0, Instruction::RoiBegin, 0);
        for line in 0..lines {
            builder.one(0, Instruction::Store, persistent_line(line));
            builder.one(0, Instruction::Clwb, persistent_line(line));
        }
        builder.one(0, Instruction::Mfence, 0);
        builder.one(0, Instruction::RoiEnd, 0);
    }
    let little = builder.finish();
    let simulation = Simulation::new(&machine("pcs-table1", &[]), Scheme::Pb, &[little.on_host()], options());
    let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
    let entry = run_entry(&outcome.unwrap_or_else(|error| panic!("{error}")), "pcs-table1", Scheme::Pb, 0.5);
    let max = |of: &Json| of["persist_buffer"]["occupancy"]["max"].as_u64().expect("it is a number");
    let of_regions: Vec<u64> = entry["regions"].as_array().expect("it is a list").iter().map(max).collect();
    assert!(of_regions[0] > 1, "{of_regions:?}");
    assert_eq!(of_regions[1], 1, "one line was persisted, when the first region's had left");
    assert_eq!(max(&entry), of_regions[0]);
}

#[test]
fn an_entry_keeps_the_rules_of_the_page() {
    for scheme in Scheme::ALL {
        for with_regions in [false, true] {
            let entry = entry(scheme, with_regions);
            check_entry(&entry);
            entry["statistics"].as_object().expect("it is a map").values().for_each(check_series);
            assert!(
                entry["writeback"]["count"].as_u64() > Some(0) && entry["prefetch_read"]["count"].as_u64() > Some(0)
            );
            let fetches = entry["instruction_fetch"]["count"].as_u64();
            assert!(with_regions || fetches > Some(0), "without a region before which it warms, its code is cold");
            assert_eq!(entry["persist_buffer"].is_null(), scheme == Scheme::Nopb);
            assert_eq!(entry["host_seconds"], json!(0.5));
        }
    }
}

#[test]
fn what_did_not_happen_is_null_and_not_zero() {
    let mut builder = ProgramBuilder::new();
    builder.one(0, Instruction::Add, 0);
    let little = builder.finish();
    let simulation = Simulation::new(&machine("pcs-table1", &[]), Scheme::PbRf, &[little.on_host()], options());
    let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
    let entry = run_entry(&outcome.unwrap_or_else(|error| panic!("{error}")), "pcs-table1", Scheme::PbRf, 0.0);
    check_entry(&entry);
    assert_eq!(entry["mips"], Json::Null, "nothing took any time");
    for rate in ["read_hit_rate", "write_coalescing_rate"] {
        assert_eq!(entry["persist_buffer"][rate], Json::Null);
    }
    assert_eq!(entry["persist"]["count"], json!(0));
    assert_eq!(entry["warnings"], json!([]), "no persist was asked for");
}

#[test]
fn a_run_that_asked_for_persists_and_has_none_says_so() {
    let said = |instruction, persist| {
        let mut builder = ProgramBuilder::new();
        builder.one(0, instruction, VOLATILE);
        let (program, options) = (builder.finish().on_host(), Options { persist, ..options() });
        let simulation = Simulation::new(&machine("pcs-table1", &[]), Scheme::Nopb, &[program], options);
        let outcome = simulation.and_then(|simulation| simulation.run(&Progress::default()));
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        run_entry(&outcome, "pcs-table1", Scheme::Nopb, 0.0)["warnings"].to_string()
    };
    assert_eq!(said(Instruction::Store, PersistMode::Program), "[]");
    for (instruction, persist) in [(Instruction::Clwb, PersistMode::Program), (Instruction::Store, PersistMode::Sync)] {
        assert!(said(instruction, persist).contains("the run has no persist: "), "{persist:?}");
    }
}

#[test]
fn a_run_with_a_forced_wait_is_not_reliable_and_says_why() {
    let mut builder = ProgramBuilder::new();
    builder.one(0, Instruction::Store, VOLATILE);
    let (clock, never_posted) = (builder.tick(), Some(Clock(1_000_000)));
    builder.event(0, &Event::SemaphoreWait { clock, object: VOLATILE, wake: never_posted });
    builder.one(0, Instruction::Store, VOLATILE);
    let entry = entry_of(builder, Scheme::Nopb);
    assert_eq!((&entry["reliable"], &entry["forced_waits"]), (&json!(false), &json!(1)));
    let reasons = entry["unreliable_because"].as_array().expect("it is a list");
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].as_str().expect("it is a text").starts_with("1 wait was ended because nothing else"));
}

/// A run of `threads` threads of 20 stores each, of which `polling` polled.
fn polling_run(polling: u64, threads: usize) -> Json {
    let mut builder = ProgramBuilder::new();
    for thread in 0..threads as u32 {
        let clock = builder.tick();
        if thread > 0 {
            builder.event(0, &Event::ThreadCreate { clock, thread: ThreadId(thread) });
        }
        let start = Event::ThreadStart { clock: builder.tick(), kernel_tid: 0, stack_low: 0, stack_high: 0 };
        builder.event(thread, &start);
        for _ in 0..20 {
            builder.one(thread, Instruction::Store, VOLATILE + 4096 * u64::from(thread));
        }
    }
    builder.event(0, &Event::Polling { instructions: polling, by_count: 20 });
    entry_of(builder, Scheme::Nopb)
}

#[test]
fn a_run_is_not_reliable_with_polling_in_more_than_5_percent_of_its_instructions() {
    let few = polling_run(1, 1);
    assert_eq!((&few["reliable"], &few["polling_share"]), (&json!(true), &json!(0.05)));
    let many = polling_run(2, 1);
    assert_eq!((&many["reliable"], &many["polling_share"]), (&json!(false), &json!(0.1)));
    assert!(many["unreliable_because"][0].as_str().expect("it is a text").starts_with("10.0% of the instructions"));
}

#[test]
fn a_run_of_several_threads_that_polled_and_took_no_turns_is_not_reliable() {
    let run = polling_run(1, 2);
    assert_eq!(run["reliable"], json!(false));
    assert!(run["unreliable_because"][0].as_str().expect("it is a text").contains("recorded without turns"));
    assert_eq!(polling_run(0, 2)["reliable"], json!(true));
}

#[test]
fn a_run_without_forced_waits_is_reliable() {
    let entry = entry(Scheme::Nopb, false);
    assert_eq!((&entry["reliable"], &entry["forced_waits"]), (&json!(true), &json!(0)));
    assert_eq!(entry["unreliable_because"], json!([]));
}
