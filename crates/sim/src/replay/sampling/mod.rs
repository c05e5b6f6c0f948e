//! What is measured in the intervals of a sample, taken down while a replay goes on.

use std::collections::BTreeMap;

pub mod estimate;
pub mod regression;

use self::estimate::Pair;
use self::regression::{Observation, Total};
use crate::error::SimulationError;
use crate::host::SampleBoundary;
use crate::host::sample_plan::SamplePlan;
use crate::replay::simulation::{HostProgram, Options};
use crate::system::System;
use fencepost_kernel::stats::{Histogram, StatsNode};
use fencepost_kernel::time::{Duration, Time};

/// One measured interval.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredInterval {
    /// The region of interest that it lies in, counted from 0.
    pub region: usize,
    /// Instructions inside regions before it.
    pub position: u64,
    /// Instructions in it.
    pub instructions: u64,
    /// How long it took.
    pub time: Duration,
    /// What its time is likely to follow from: see [`known_of`].
    pub known: Vec<f64>,
    /// For each of [`MEASURES`], the sum of the latencies in ns, and how many they are.
    pub latencies: Vec<Pair>,
    /// For each of [`RATES`], the counts of which it is the ratio.
    pub rates: Vec<Pair>,
}

/// The distributions of which each interval takes down its own mean: name in the results, and name among the counters
/// of a host or core.
pub const MEASURES: [(&str, &str); 5] = [
    ("persist", "memory_border.persists.latency"),
    ("writeback", "memory_border.pm_writebacks.latency"),
    ("llc_read", "memory_border.pm_reads.latency"),
    ("dram_read", "memory_border.dram_reads.latency"),
    ("fence_stall", "fence_stall"),
];

/// The rates of persist buffers that each interval has its own of: name in the results, and names of the two counters,
/// a part and the whole.
pub const RATES: [(&str, &str, &str); 2] =
    [("read_hit_rate", "read_hits", "reads"), ("write_coalescing_rate", "writes_coalesced", "writes")];

/// What a sample gives.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Where the intervals lay.
    pub plan: SamplePlan,
    /// The intervals, in order.
    pub intervals: Vec<MeasuredInterval>,
    /// What was counted in the intervals of each region that has any.
    pub regions: BTreeMap<usize, Measured>,
    /// The part of the threads' time in the intervals for which they waited for each other.
    pub wait_share: f64,
}

/// What was counted in intervals.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Everything counted.
    pub stats: StatsNode,
    /// Over how long.
    pub counted: Duration,
}

impl Measured {
    fn plus(&self, other: &Measured) -> Measured {
        Measured { stats: self.stats.plus(&other.stats), counted: self.counted + other.counted }
    }
}

impl Sample {
    /// The total over a stretch of the program of which `totals` is known ([`known_of`]) of what `value` gives for each
    /// interval, those of one region or all.
    pub fn total(
        &self,
        region: Option<usize>,
        totals: &[f64],
        value: impl Fn(&MeasuredInterval) -> f64,
    ) -> Option<Total> {
        regression::total(&self.observations(region, value), totals)
    }

    /// The same without its error, which takes much longer.
    pub fn value(
        &self,
        region: Option<usize>,
        totals: &[f64],
        value: impl Fn(&MeasuredInterval) -> f64,
    ) -> Option<f64> {
        regression::value(&self.observations(region, value), totals)
    }

    fn observations(&self, region: Option<usize>, value: impl Fn(&MeasuredInterval) -> f64) -> Vec<Observation> {
        let intervals = self.intervals.iter().filter(|interval| region.is_none_or(|region| region == interval.region));
        let observation =
            |interval: &MeasuredInterval| Observation { value: value(interval), known: interval.known.clone() };
        intervals.map(observation).collect()
    }

    /// What was counted in all intervals.
    ///
    /// # Panics
    /// If there are none, which [`Sampling::finish`] refuses.
    pub fn measured(&self) -> Measured {
        let sum = self.regions.values().cloned().reduce(|sum, region| sum.plus(&region));
        sum.expect("there are intervals")
    }
}

/// What has been measured so far.
#[derive(Clone, Debug)]
pub struct Sampling {
    plan: SamplePlan,
    begun: Option<Begun>,
    intervals: Vec<MeasuredInterval>,
    regions: BTreeMap<usize, Measured>,
}

/// An interval that is under way.
#[derive(Clone, Debug)]
struct Begun {
    time: Time,
    noticed: Time,
    position: u64,
    stats: StatsNode,
}

impl Sampling {
    /// Nothing yet.
    pub fn new(plan: SamplePlan) -> Sampling {
        Sampling { plan, begun: None, intervals: Vec::new(), regions: BTreeMap::new() }
    }

    /// An interval begins.
    pub fn begin(&mut self, boundary: &SampleBoundary, system: &System) {
        let SampleBoundary { time, position, .. } = *boundary;
        self.begun = Some(Begun { time, noticed: system.now(), position, stats: system.stats() });
    }

    /// The interval that has begun ends, in region number `region`; one without instructions, or in which its region
    /// ended, is forgotten.
    pub fn end(&mut self, boundary: &SampleBoundary, system: &System, region: usize) {
        let Some(begun) = self.begun.take() else { return };
        let instructions = boundary.position - begun.position;
        if boundary.abandons || instructions == 0 {
            return;
        }
        let stats = system.stats().since(&begun.stats);
        self.intervals.push(MeasuredInterval {
            region,
            position: begun.position,
            instructions,
            time: boundary.time.since(begun.time),
            known: known_of(&stats),
            latencies: MEASURES.iter().map(|(_, path)| latencies(&stats, path)).collect(),
            rates: RATES.iter().map(|(_, part, whole)| rate(&stats, part, whole)).collect(),
        });
        let measured = Measured { stats, counted: system.now().since(begun.noticed) };
        let sum = self.regions.get(&region).map_or_else(|| measured.clone(), |sum| sum.plus(&measured));
        self.regions.insert(region, sum);
    }

    /// What came of it; threads waited for each other for `wait_share` of their time.
    ///
    /// # Errors
    /// If there are too few intervals to say anything.
    pub fn finish(self, wait_share: f64) -> Result<Sample, SimulationError> {
        let Sampling { plan, intervals, regions, .. } = self;
        if intervals.len() < 2 {
            return Err(SimulationError::Impossible(format!(
                "--sample {plan}: it has measured {} whole intervals, and at least 2 are needed: take a shorter period",
                intervals.len()
            )));
        }
        Ok(Sample { plan, intervals, regions, wait_share })
    }
}

/// What is counted of all instructions, warmed or timed, and what time is likely to follow from: instructions,
/// persists, reads of PM, write-backs to PM, reads of DRAM, mispredicted branches, flushes, fences.
pub fn known_of(stats: &StatsNode) -> Vec<f64> {
    let requests = |name: &str| {
        let border = |component: &StatsNode| {
            let timed = match component.get(&format!("memory_border.{name}.latency")) {
                Some(StatsNode::Histogram(latency)) => latency.count(),
                _ => 0,
            };
            timed + component.counter(&format!("memory_border.functional.{name}"))
        };
        stats.children().iter().map(|(_, component)| border(component)).sum::<u64>()
    };
    let of_cores = |name: &str| cores_of(stats).map(|core| core.counter(name)).sum::<u64>();
    let known = [
        of_cores("instructions"),
        requests("persists"),
        requests("pm_reads"),
        requests("pm_writebacks"),
        requests("dram_reads"),
        of_cores("mispredictions"),
        of_cores("flushes"),
        of_cores("fences"),
    ];
    known.map(|count| count as f64).to_vec()
}

fn cores_of(stats: &StatsNode) -> impl Iterator<Item = &StatsNode> {
    let children = stats.children().iter().flat_map(|(_, component)| component.children());
    children.filter(|(name, _)| name.starts_with("core")).map(|(_, core)| core)
}

/// The sum of the latencies of all distributions at `path` of hosts or of their cores, in ns, and how many they are.
fn latencies(stats: &StatsNode, path: &str) -> Pair {
    let mut sum = Histogram::default();
    for node in stats.children().iter().map(|(_, component)| component).chain(cores_of(stats)) {
        if let Some(StatsNode::Histogram(histogram)) = node.get(path) {
            sum.add(histogram);
        }
    }
    Pair { numerator: sum.sum().as_ns(), denominator: sum.count() as f64 }
}

/// Two counters of all persist buffers.
fn rate(stats: &StatsNode, part: &str, whole: &str) -> Pair {
    let sum = |name: &str| {
        let path = format!("persist_buffer.{name}");
        stats.children().iter().map(|(_, component)| component.counter(&path)).sum::<u64>() as f64
    };
    Pair { numerator: sum(part), denominator: sum(whole) }
}

/// Why what is asked for cannot be sampled, if it cannot.
///
/// # Errors
/// One message that says what would be right.
pub fn refuse_sampling(
    plan: SamplePlan,
    hosts: usize,
    programs: &[HostProgram],
    options: &Options,
) -> Result<(), String> {
    if hosts > 1 {
        return Err(format!(
            "--sample: the intervals of {hosts} hosts would not lie at the same time; only a machine with one host can be sampled"
        ));
    }
    if options.pm_writes_limit.is_some() {
        return Err(
            "--sample and --limit-pm-writes exclude each other: which write to PM is the last depends on time; \
                    --limit-instructions goes with --sample"
                .into(),
        );
    }
    let instructions: u64 = programs.iter().map(|program| program.program.record().instructions()).sum();
    if plan.period.saturating_mul(2) > instructions {
        return Err(format!(
            "--sample {plan}: the record has {instructions} instructions, and at least 2 periods are needed: take a shorter one"
        ));
    }
    Ok(())
}
