//! What a replay gives to people: one entry of `runs` of a result document (docs/results.md). All ratios are computed
//! here and nowhere else.

mod sample;

use serde_json::{Map, Value, json};

use crate::replay::sampling::{Measured, RATES};
use crate::replay::simulation::{Interval, Outcome, Simulation};
use crate::switch::Scheme;
use crate::system::LinkEnd;
use fencepost_kernel::message::Stage;
use fencepost_kernel::stats::{Histogram, Series, StatsNode};
use fencepost_kernel::time::Duration;

/// The entry of `runs` for a replay that took `host_seconds`.
pub fn run_entry(outcome: &Outcome, machine: &str, scheme: Scheme, host_seconds: f64) -> Value {
    let whole = Counted::over(&outcome.intervals, &outcome.stats);
    let persists = sample::exact_count(&whole, "persists");
    let flushes_without_promise = whole.flushes_without_promise();
    let total = match &outcome.sample {
        Some(sample) => Counted::measured(&sample.measured(), whole.time),
        None => whole,
    };
    let persists_timed = total.histogram("memory_border.persists.latency").count();
    let mips = (host_seconds > 0.0).then(|| outcome.instructions as f64 / host_seconds / 1e6);
    let mut entry = Map::new();
    entry.insert("scheme".into(), json!(scheme.to_string()));
    entry.insert("machine".into(), json!(machine));
    entry.insert("ended".into(), json!(outcome.ended));
    entry.insert("reliable".into(), json!(outcome.unreliable_because.is_empty()));
    entry.insert("unreliable_because".into(), json!(outcome.unreliable_because));
    entry.insert("forced_waits".into(), json!(outcome.forced_waits));
    let share = |of: u64| (outcome.instructions > 0).then(|| of as f64 / outcome.instructions as f64);
    entry.insert("polling_share".into(), json!(share(outcome.polling_instructions)));
    let share_of_loads = (outcome.loads > 0).then(|| outcome.early_loads as f64 / outcome.loads as f64);
    entry.insert("early_load_share".into(), json!(share_of_loads));
    entry.insert("dropped_edges".into(), json!(outcome.dropped_edges));
    entry.insert("assigned_share".into(), json!(share(outcome.handed_out_instructions)));
    entry.insert("host_seconds".into(), json!(host_seconds));
    entry.insert("mips".into(), json!(mips));
    entry.insert("simulated_ns".into(), json!(total.time.as_ns()));
    entry.extend(total.figures());
    entry.insert("flushes_without_promise".into(), json!(flushes_without_promise));
    entry.insert("hosts".into(), hosts(outcome, &total.stats));
    entry.insert("placement".into(), placement(outcome, &total.stats));
    entry.insert("explanation".into(), total.explanation());
    entry.insert("links".into(), links(&outcome.links, &total.stats, total.counted));
    entry.insert("latency_stacks".into(), total.latency_stacks());
    entry.insert("regions".into(), regions(outcome));
    entry.insert("sampling".into(), Value::Null);
    entry.insert("power".into(), Value::Null);
    entry.insert("warnings".into(), json!(warnings(outcome, persists, persists_timed, flushes_without_promise)));
    entry.insert("statistics".into(), total.stats.to_json());
    if let Some(sample) = &outcome.sample {
        sample::estimate(&mut entry, outcome, sample);
    }
    Value::Object(entry)
}

/// The classes of requests whose latency is a measure of its own: name in the results, and name among a host's
/// counters.
const CLASSES: [(&str, &str); 8] = [
    ("persist", "persists"),
    ("writeback", "pm_writebacks"),
    ("llc_read", "pm_reads"),
    ("dram_read", "dram_reads"),
    ("prefetch_read", "prefetch_reads"),
    ("page_walk", "page_walks"),
    ("instruction_fetch", "instruction_fetches"),
    ("dram_write", "dram_writes"),
];

/// Every class of requests: name in the results, and where its sums are among a component's counters.
const STACKS: [(&str, &str); 9] = [
    ("persist", "memory_border.persists"),
    ("writeback", "memory_border.pm_writebacks"),
    ("llc_read", "memory_border.pm_reads"),
    ("dram_read", "memory_border.dram_reads"),
    ("prefetch_read", "memory_border.prefetch_reads"),
    ("page_walk", "memory_border.page_walks"),
    ("instruction_fetch", "memory_border.instruction_fetches"),
    ("dram_write", "memory_border.dram_writes"),
    ("drain", "persist_buffer.drain"),
];

/// What was counted over some time.
struct Counted {
    /// From the beginnings to the ends.
    time: Duration,
    /// Until what was under way had come to rest: what times counted are parts of.
    counted: Duration,
    stats: StatsNode,
}

impl Counted {
    /// What was counted in `intervals`, in a tree like `shape`.
    fn over(intervals: &[Interval], shape: &StatsNode) -> Counted {
        let sum = intervals.iter().map(|interval| interval.stats.clone()).reduce(|sum, stats| sum.plus(&stats));
        Counted {
            time: Simulation::total(intervals),
            counted: intervals.iter().map(|interval| interval.counted).sum(),
            stats: sum.unwrap_or_else(|| shape.since(shape)),
        }
    }

    /// What was counted in the intervals of a sample of something that took `time`.
    fn measured(measured: &Measured, time: Duration) -> Counted {
        Counted { time, counted: measured.counted, stats: measured.stats.clone() }
    }

    /// `ps` as a part of the time over which `count` things were watched.
    fn time_share(&self, ps: u64, count: u64) -> Option<f64> {
        ratio(ps, self.counted.as_ps() * count)
    }

    /// Components whose counters have `path`.
    fn having<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a StatsNode> {
        self.stats.children().iter().filter_map(move |(_, component)| component.get(path))
    }

    /// The sum over all components of the counters at `path`, or below it.
    fn sum(&self, path: &str) -> u64 {
        self.having(path).map(StatsNode::total).sum()
    }

    fn histogram(&self, path: &str) -> Histogram {
        let mut sum = Histogram::default();
        for node in self.having(path) {
            if let StatsNode::Histogram(histogram) = node {
                sum.add(histogram);
            }
        }
        sum
    }

    fn cores(&self) -> impl Iterator<Item = &StatsNode> {
        let children = self.stats.children().iter().flat_map(|(_, component)| component.children());
        children.filter(|(name, _)| name.starts_with("core")).map(|(_, core)| core)
    }

    fn instructions(&self) -> u64 {
        self.cores().map(|core| core.counter("instructions")).sum()
    }

    /// The members that runs and regions share.
    fn figures(&self) -> Map<String, Value> {
        let mut figures = Map::new();
        figures.insert("instructions".into(), json!(self.instructions()));
        for (name, counters) in CLASSES {
            figures.insert(name.into(), measure(&self.histogram(&format!("memory_border.{counters}.latency"))));
        }
        let mut stall = Histogram::default();
        for core in self.cores() {
            if let Some(StatsNode::Histogram(histogram)) = core.get("fence_stall") {
                stall.add(histogram);
            }
        }
        let mut fence_stall = measure(&stall);
        fence_stall["total_ns"] = json!(stall.sum().as_ns());
        figures.insert("fence_stall".into(), fence_stall);
        figures.insert("persist_buffer".into(), self.persist_buffer());
        figures
    }

    /// Flushes of PM lines that made nothing durable, timed or not.
    fn flushes_without_promise(&self) -> u64 {
        let counts = ["memory_border.flushes_without_promise", "memory_border.functional.flushes_without_promise"];
        counts.map(|path| self.sum(path)).iter().sum()
    }

    fn persist_buffers(&self) -> usize {
        self.having("persist_buffer").count()
    }

    fn persist_buffer(&self) -> Value {
        if self.persist_buffers() == 0 {
            return Value::Null;
        }
        let count = |name: &str| self.sum(&format!("persist_buffer.{name}"));
        let max: u64 = self.having("persist_buffer.occupancy.level_ps").map(highest_level).sum();
        let levels = self.having("persist_buffer.occupancy.level_ps").map(|levels| levels.children().len() as u64 - 1);
        let [(hits, answered, reads), (coalescing, merged, writes)] = RATES;
        json!({
            hits: ratio(count(answered), count(reads)),
            coalescing: ratio(count(merged), count(writes)),
            "reads": count("reads"),
            "read_hits": count("read_hits"),
            "writes": count("writes"),
            "writes_coalesced": count("writes_coalesced"),
            "writes_flush": count("writes_flush"),
            "writes_eviction": count("writes_eviction"),
            "writes_non_temporal": count("writes_non_temporal"),
            "writes_drain": count("writes_drain"),
            "stall_ns": ns(count("stall_ps")),
            "stalls": count("stalls"),
            "drains": count("drains"),
            "occupancy": {
                "mean": self.time_share(count("occupancy.entry_ps"), 1),
                "max": max,
                "entries": levels.sum::<u64>(),
                "over_time": self.occupancy_over_time(),
            },
        })
    }

    fn occupancy_over_time(&self) -> Value {
        let series = self.having("persist_buffer.occupancy.over_time").filter_map(|node| match node {
            StatsNode::Series(series) => Some((**series).clone()),
            _ => None,
        });
        series.reduce(|sum, series| sum.beside(&series)).map_or(Value::Null, |sum: Series| sum.means())
    }

    fn explanation(&self) -> Value {
        let buffers = self.persist_buffers() as u64;
        let with_buffer = |value: Value| if buffers == 0 { Value::Null } else { value };
        let buffer = |name: &str| self.sum(&format!("persist_buffer.{name}"));
        let banks: u64 = self.having("pm.banks").map(level_of).sum();
        let rows = ["row_hits", "row_misses", "row_conflicts"].map(|name| self.sum(&format!("dram.{name}")));
        let ports = |name: &str| self.port_sum(name);
        json!({
            "link_credit_stall_ns": ns(ports("credit_stall_ps")),
            "switch_arbitration_wait_ns": ns(self.sum("arbitration_wait_ps")),
            "switch_head_of_line_ns": ns(self.sum("head_of_line_ps")),
            "pb_full_stall_ns": with_buffer(json!(ns(buffer("stall_ps")))),
            "pi_full_stall_ns": with_buffer(json!(ns(buffer("input_full_stall_ps")))),
            "pi_full_stalls": with_buffer(json!(buffer("input_full_stalls"))),
            "pb_controller_busy_rate": with_buffer(json!(self.time_share(buffer("controller_busy_ps"), buffers))),
            "pb_drains": with_buffer(json!(buffer("drains"))),
            "pm_reads": self.pm_device_sum("reads"),
            "pm_writes": self.pm_device_sum("writes"),
            "pm_write_queue_full_ns": ns(self.pm_device_sum("write_queue_full_ps")),
            "pm_read_wait_ns": ns(self.sum("pm.read_wait_ps")),
            "pm_write_amplification": ratio(self.sum("pm.media_write_bytes"), self.pm_device_sum("write_bytes")),
            "pm_bank_busy_rate": self.time_share(self.sum("pm.bank_busy_ps"), banks),
            "dram_row_hit_rate": ratio(rows[0], rows.iter().sum()),
            "llc_misses": self.having("memory_border").map(|border| border.counter("llc_misses")).sum::<u64>(),
            "llc_writebacks": self.sum("requests.mem_wr.writeback"),
        })
    }

    /// The sum over all senders of links of the counters `name`.
    fn port_sum(&self, name: &str) -> u64 {
        let ports = self.stats.children().iter().flat_map(|(_, component)| component.children());
        ports
            .filter(|(port, _)| port.starts_with("port"))
            .filter_map(|(_, port)| port.get(name))
            .map(StatsNode::total)
            .sum()
    }

    /// The sum over PM devices.
    fn pm_device_sum(&self, name: &str) -> u64 {
        let is_pm = |device: &StatsNode| ["pm", "dram.battery_backed"].iter().any(|path| device.get(path).is_some());
        let devices = self.stats.children().iter().filter(|(_, component)| is_pm(component));
        devices.map(|(_, device)| device.counter(name)).sum()
    }

    fn latency_stacks(&self) -> Value {
        let stacks = STACKS.iter().map(|(name, counters)| {
            let latency = self.histogram(&format!("{counters}.latency"));
            let parts = Stage::NAMES.map(|stage| (stage, self.sum(&format!("{counters}.parts_ps.{stage}"))));
            let stack = json!({
                "count": latency.count(),
                "total_ns": ns(parts.iter().map(|(_, part)| part).sum()),
                "latency_ns": latency.sum().as_ns(),
                "parts": parts.iter().map(|(stage, part)| ((*stage).to_owned(), json!(ns(*part)))).collect::<Map<_, _>>(),
            });
            ((*name).to_owned(), stack)
        });
        Value::Object(stacks.collect())
    }
}

/// What each sender of a link did in `interval`, of which everything counted is `stats`.
pub fn links(links: &[LinkEnd], stats: &StatsNode, interval: Duration) -> Value {
    let links = links.iter().map(|link| {
        let count = |name: &str| stats.get(&format!("{}.{name}", link.stats_path)).map_or(0, StatsNode::total);
        let stall = stats.get(link.stats_path.trim_end_matches(".link")).and_then(|port| port.get("credit_stall_ps"));
        json!({
            "name": link.name,
            "messages": count("messages"),
            "flits": count("flits"),
            "bytes": count("flits") * u64::from(link.flit_bytes),
            "utilisation_rate": ratio(count("busy_ps"), interval.as_ps()),
            "credit_stall_ns": ns(stall.map_or(0, StatsNode::total)),
            "control_flits": count("control_flits"),
            "crc_errors": count("crc_errors"),
            "replayed_flits": count("replayed_flits"),
            "retry_ns": ns(count("retry_ps")),
        })
    });
    links.collect()
}

/// What is of one host alone: whether hosts that share a fabric get equal parts of it.
fn hosts(outcome: &Outcome, stats: &StatsNode) -> Value {
    let entries = outcome.hosts.iter().enumerate().map(|(index, name)| {
        let host = stats.get(name);
        let measure_of = |class: &str| {
            let latency = host.and_then(|host| host.get(&format!("memory_border.{class}.latency")));
            match latency {
                Some(StatsNode::Histogram(latency)) => measure(latency),
                _ => measure(&Histogram::default()),
            }
        };
        let own_time = |interval: &Interval| interval.host_ends[index].since(interval.start);
        let cores = host.map_or(&[][..], StatsNode::children).iter().filter(|(name, _)| name.starts_with("core"));
        json!({
            "name": name,
            "instructions": cores.map(|(_, core)| core.counter("instructions")).sum::<u64>(),
            "finished_ns": outcome.intervals.iter().map(own_time).sum::<Duration>().as_ns(),
            "persist": measure_of("persists"),
            "llc_read": measure_of("pm_reads"),
        })
    });
    entries.collect()
}

/// How many pages each memory node has, and what of the last-level caches' requests went there: of all hosts together.
fn placement(outcome: &Outcome, stats: &StatsNode) -> Value {
    let mut nodes: Vec<(&str, u64, [u64; 3])> = Vec::new();
    for host in &outcome.hosts {
        let counted = stats.get(&format!("{host}_bridge.nodes")).map_or(&[][..], StatsNode::children);
        for (name, node) in counted {
            let pages = stats.counter(&format!("{host}.pages.by_node.{name}"));
            let counts = ["reads", "writes", "read_ps"].map(|count| node.counter(count));
            match nodes.iter_mut().find(|(other, ..)| other == name) {
                Some((_, all_pages, all)) => {
                    *all_pages += pages;
                    all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
                }
                None => nodes.push((name, pages, counts)),
            }
        }
    }
    let entry = |(name, pages, [reads, writes, read_ps]): &(&str, u64, [u64; 3])| {
        let read_latency = (*reads > 0).then(|| Duration::from_ps(read_ps / reads).as_ns());
        json!({
            "node": name, "pages": pages, "accesses": reads + writes, "reads": reads, "writes": writes,
            "read_latency_ns": read_latency,
        })
    };
    nodes.iter().map(entry).collect()
}

fn regions(outcome: &Outcome) -> Value {
    if !outcome.has_regions {
        return json!([]);
    }
    let entries = outcome.intervals.iter().enumerate().map(|(index, interval)| {
        let counted = Counted::over(std::slice::from_ref(interval), &interval.stats);
        let mut entry = counted.figures();
        let l1d_misses: u64 = counted.cores().filter_map(|core| core.get("l1d.misses")).map(StatsNode::total).sum();
        entry.insert("l1d_misses".into(), json!(l1d_misses));
        entry.insert("pool".into(), pool(outcome, &interval.stats));
        entry.insert("index".into(), json!(index));
        entry.insert("start_ns".into(), json!(interval.start.as_ns()));
        entry.insert("end_ns".into(), json!(interval.end.as_ns()));
        entry.insert("simulated_ns".into(), json!(counted.time.as_ns()));
        entry.insert("host_seconds".into(), json!(interval.host_seconds));
        Value::Object(entry)
    });
    entries.collect()
}

/// What each core read of each node behind a fabric that is no PM, if it read any.
fn pool(outcome: &Outcome, stats: &StatsNode) -> Value {
    let mut found = Vec::new();
    for host in &outcome.hosts {
        let nodes = stats.get(&format!("{host}_bridge.nodes")).map_or(&[][..], StatsNode::children);
        for (node, counts) in nodes {
            let cores = counts.children().iter().filter_map(|(name, core)| Some((name.strip_prefix("core")?, core)));
            for (number, core) in cores.filter(|(_, core)| core.counter("lines") > 0) {
                let Some(StatsNode::Histogram(latency)) = core.get("latency") else { continue };
                found.push(json!({
                    "host": host, "core": number.parse::<u32>().ok(), "node": node, "lines": core.counter("lines"),
                    "read": measure(latency),
                }));
            }
        }
    }
    found.into()
}

/// What a reader has to know; of all `persists`, so many were timed.
fn warnings(outcome: &Outcome, persists: u64, timed: u64, flushes_without_promise: u64) -> Vec<String> {
    let mut warnings = outcome.warnings.clone();
    warnings.extend(outcome.sample.as_ref().and_then(sample::warning));
    if flushes_without_promise > 0 {
        warnings.push(format!(
            "{flushes_without_promise} of the flushes of PM lines made nothing durable: dc cvac and dc civac reach the point of coherence, which is \
             volatile on this machine (core.point_of_coherence); their lines count as write-backs, not as persists"
        ));
    }
    if persists == 0 && flushes_without_promise == 0 && outcome.wants_persists {
        warnings.push("the run has no persist: it flushes no line of PM (--pm, --persist)".into());
    } else if persists > 0 && timed == 0 {
        warnings.push(format!(
            "no interval met a persist, and the program makes about {persists}: what they cost is not known; take a shorter period (see --sample)"
        ));
    }
    warnings
}

/// `{count, latency_ns: {mean, p50, p90, p99, max}, cdf}`.
pub fn measure(histogram: &Histogram) -> Value {
    let json = histogram.to_json();
    json!({
        "count": json["count"],
        "latency_ns": {
            "mean": json["mean"], "p50": json["p50"], "p90": json["p90"], "p99": json["p99"], "max": json["max"],
        },
        "cdf": json["cdf"],
    })
}

/// The highest of numbered levels at which any time was spent. That of an interval is its own: times are subtracted,
/// maxima cannot be.
fn highest_level(times: &StatsNode) -> u64 {
    times.children().iter().rposition(|(_, time)| time.total() > 0).unwrap_or(0) as u64
}

fn level_of(node: &StatsNode) -> u64 {
    match node {
        StatsNode::Counter(value) | StatsNode::Level(value) => *value,
        _ => 0,
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn ns(ps: u64) -> f64 {
    ps as f64 / 1000.0
}
