//! What changes in the results of a run of which only a sample was replayed in detail.
//!
//! Counts that the program and the functional state of the caches decide are of everything, warmed or timed. Times are
//! estimated from the measured intervals; everything else is of the measured intervals alone.

use serde_json::{Map, Value, json};

use super::{CLASSES, Counted};
use crate::replay::sampling::estimate::{Estimate, Pair, ratio, share};
use crate::replay::sampling::regression::Total;
use crate::replay::sampling::{MEASURES, RATES, Sample, known_of};
use crate::replay::simulation::{Interval, Outcome};

/// Counters of cores that do not depend on time.
const COUNTERS: [&str; 7] =
    ["stores", "non_temporal_stores", "flushes", "fences", "atomics", "branches", "mispredictions"];

/// A part of the threads' time: of programs that wait for each other longer, estimates have been seen to be off by more
/// than their intervals say.
const WAITS_MOST: f64 = 0.5;

/// What the confidence intervals of `sample` do not know of, if there is something.
pub(super) fn warning(sample: &Sample) -> Option<String> {
    (sample.wait_share > WAITS_MOST).then(|| {
        format!(
            "threads waited for each other {:.0} % of their time, and a sample gets wrong how they meet: times can be off by more than the confidence \
             intervals say; replay it in full detail",
            sample.wait_share * 100.0
        )
    })
}

/// Makes the entry of a run that of a sampled one.
pub(super) fn estimate(entry: &mut Map<String, Value>, outcome: &Outcome, sample: &Sample) {
    let whole = Counted::over(&outcome.intervals, &outcome.stats);
    let instructions = whole.instructions();
    let time =
        sample.total(None, &known_of(&whole.stats), |interval| interval.time.as_ns()).expect("there are intervals");
    let estimates = estimates(sample, &whole, &time);
    set_exact_counts(entry, &whole);
    entry.insert("simulated_ns".into(), estimates["simulated_ns"]["value"].clone());
    if let Some(stall) = entry.get_mut("fence_stall") {
        stall["total_ns"] = estimates["fence_stall.total_ns"]["value"].clone();
    }
    for host in entry.get_mut("hosts").and_then(Value::as_array_mut).into_iter().flatten() {
        host["instructions"] = json!(instructions);
        host["finished_ns"] = estimates["simulated_ns"]["value"].clone();
        for (name, counters) in [("persist", "persists"), ("llc_read", "pm_reads")] {
            host[name]["count"] = json!(exact_count(&whole, counters));
        }
    }
    entry.insert("regions".into(), regions(outcome, sample));
    entry.insert("sampling".into(), description(sample, &whole, &time, estimates));
}

/// What was sampled, and how sure the estimates are.
fn description(sample: &Sample, whole: &Counted, time: &Total, estimates: Value) -> Value {
    let intervals = sample.intervals.iter().zip(&time.errors).map(|(interval, error)| {
        json!([interval.region, interval.position, interval.instructions, interval.time.as_ns(), error])
    });
    let measured: u64 = sample.intervals.iter().map(|interval| interval.instructions).sum();
    let counts = COUNTERS.map(|name| {
        let sum: u64 = whole.cores().map(|core| core.counter(name)).sum();
        (name.to_owned(), json!(sum))
    });
    let llc_misses: u64 = whole.having("memory_border").map(|border| border.counter("llc_misses")).sum();
    let mut counts: Map<_, _> = counts.into_iter().collect();
    counts.insert("llc_misses".into(), json!(llc_misses));
    json!({
        "plan": sample.plan,
        "period": sample.plan.period,
        "detail": sample.plan.detail,
        "warmup": sample.plan.warmup,
        "measured_instructions": measured,
        "estimates": estimates,
        "counts": counts,
        "coefficients": time.coefficients,
        "wait_share": sample.wait_share,
        "intervals": intervals.collect::<Value>(),
    })
}

/// Estimates of everything that takes time, and of rates that depend on it, each with half the width of its 95 %
/// confidence interval.
fn estimates(sample: &Sample, whole: &Counted, time: &Total) -> Value {
    let mut estimates = Map::new();
    let mut add = |name: String, estimate: Option<Estimate>| {
        let estimate = estimate.map_or_else(
            || json!({"value": null, "half_width": null}),
            |Estimate { value, half_width }| json!({"value": value, "half_width": half_width}),
        );
        estimates.insert(name, estimate);
    };
    add("simulated_ns".into(), Some(time.estimate()));
    for (index, (name, _)) in MEASURES.iter().enumerate() {
        let latencies: Vec<Pair> = sample.intervals.iter().map(|interval| interval.latencies[index]).collect();
        add(format!("{name}.latency_ns.mean"), ratio(&latencies));
        if *name == "fence_stall" {
            // Nothing is known of fences if there are some and no interval met one.
            let has_met = fences(&Counted::measured(&sample.measured(), whole.time)) > 0 || fences(whole) == 0;
            let total = sample.total(None, &known_of(&whole.stats), |interval| interval.latencies[index].numerator);
            add("fence_stall.total_ns".into(), total.filter(|_| has_met).map(|total| total.estimate()));
        }
    }
    if whole.persist_buffers() > 0 {
        for (index, (name, ..)) in RATES.iter().enumerate() {
            let counts: Vec<Pair> = sample.intervals.iter().map(|interval| interval.rates[index]).collect();
            add(format!("persist_buffer.{name}"), share(&counts));
        }
    }
    Value::Object(estimates)
}

/// What may wait for stores and flushes.
fn fences(counted: &Counted) -> u64 {
    counted.cores().map(|core| core.counter("fences") + core.counter("atomics")).sum()
}

/// How many requests of a class there were, timed or not.
pub(super) fn exact_count(whole: &Counted, counters: &str) -> u64 {
    let timed = whole.histogram(&format!("memory_border.{counters}.latency")).count();
    timed + whole.sum(&format!("memory_border.functional.{counters}"))
}

fn set_exact_counts(entry: &mut Map<String, Value>, whole: &Counted) {
    entry.insert("instructions".into(), json!(whole.instructions()));
    for (name, counters) in CLASSES {
        if let Some(class) = entry.get_mut(name) {
            class["count"] = json!(exact_count(whole, counters));
        }
    }
}

/// The regions; one without an interval of its own has counts and no times.
fn regions(outcome: &Outcome, sample: &Sample) -> Value {
    if !outcome.has_regions {
        return json!([]);
    }
    let entry = |(index, interval): (usize, &Interval)| {
        let whole = Counted::over(std::slice::from_ref(interval), &interval.stats);
        let mut entry = match sample.regions.get(&index) {
            Some(measured) => Counted::measured(measured, whole.time).figures(),
            None => {
                let nothing = interval.stats.since(&interval.stats);
                Counted { time: whole.time, counted: whole.counted, stats: nothing }.figures()
            }
        };
        set_exact_counts(&mut entry, &whole);
        let time = sample.value(Some(index), &known_of(&whole.stats), |interval| interval.time.as_ns());
        entry.insert("index".into(), json!(index));
        entry.insert("start_ns".into(), Value::Null);
        entry.insert("end_ns".into(), Value::Null);
        entry.insert("simulated_ns".into(), json!(time));
        entry.insert("host_seconds".into(), json!(interval.host_seconds));
        entry["fence_stall"]["total_ns"] = Value::Null;
        Value::Object(entry)
    };
    outcome.intervals.iter().enumerate().map(entry).collect()
}
