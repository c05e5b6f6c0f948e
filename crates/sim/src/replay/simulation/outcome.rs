//! What a replay returns: how it ended, what was counted, and why its figures may not be those of the program.

use serde::{Deserialize, Serialize};

use super::Simulation;
use crate::core::persist::PersistMode;
use crate::error::SimulationError;
use crate::host::Host;
use crate::replay::sampling::Sample;
use crate::system::LinkEnd;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// At the end of the record.
    Complete,
    /// At the limit of PM writes.
    LimitPmWrites,
    /// At the limit of instructions.
    LimitInstructions,
}

/// What was counted between two instants.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its beginning.
    pub start: Time,
    /// Its end: the last of `host_ends`.
    pub end: Time,
    /// When each host came to the end of its region, or of its program; the beginning for a host that was at its end
    /// before.
    pub host_ends: Vec<Time>,
    /// Over how long it was counted: from the event that began it to the event that ended it, and at the end of a
    /// replay until what was under way has come to rest.
    pub counted: Duration,
    /// What was counted in it.
    pub stats: StatsNode,
    /// How long its replay took, in seconds of the machine that replays.
    pub host_seconds: f64,
}

/// What a replay gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// The regions of interest; one interval of everything if the program has none.
    pub intervals: Vec<Interval>,
    /// Whether the intervals are regions that the program marks.
    pub has_regions: bool,
    /// Instructions replayed, warming included.
    pub instructions: u64,
    /// Instructions of each thread at the end, host by host.
    pub positions: Vec<Vec<u64>>,
    /// The names of the hosts.
    pub hosts: Vec<String>,
    /// What was counted in the whole replay.
    pub stats: StatsNode,
    /// The ends of links, in the order of the machine file.
    pub links: Vec<LinkEnd>,
    /// What was measured if only a sample was replayed in detail.
    pub sample: Option<Sample>,
    /// Whether persists were asked for, of hosts that reach persistent memory: some are to be inserted, or the program
    /// flushes lines.
    pub wants_persists: bool,
    /// Waits of all hosts that were ended because nothing else could go on.
    pub forced_waits: u64,
    /// Why the figures are not those of the program that was recorded; empty if they are.
    pub unreliable_because: Vec<String>,
    /// Instructions in rounds that only read the same words again, which other threads store to, without being
    /// recognised as waiting.
    pub polling_instructions: u64,
    /// Loads of words that are updated atomically.
    pub loads: u64,
    /// Those of them that came before the store that they saw.
    pub early_loads: u64,
    /// Reads and calls that should have come behind something of another thread that the record does not name.
    pub dropped_edges: u64,
    /// Instructions in iterations and tasks that threads take from words that they share: each does those that it did
    /// when it was recorded.
    pub handed_out_instructions: u64,
    /// What else a reader of the figures has to know.
    pub warnings: Vec<String>,
}

impl Simulation {
    pub(crate) fn finish(&mut self) -> Result<Outcome, SimulationError> {
        self.check_rest()?;
        self.close_region();
        let wait_share = self.system.hosts().find_map(Host::sampled_wait_share).unwrap_or_default();
        let sample = self.sampling.take().map(|sampling| sampling.finish(wait_share)).transpose()?;
        let stats = self.system.stats();
        let ended = if self.has_reached_shared_pm_writes || self.system.hosts().any(Host::has_reached_pm_writes_limit) {
            Ended::LimitPmWrites
        } else if self.options.instructions_limit.is_some_and(|limit| self.instructions() >= limit) {
            Ended::LimitInstructions
        } else {
            Ended::Complete
        };
        let forced_waits = self.system.hosts().map(Host::forced_waits).sum();
        let polling_instructions = self.system.hosts().map(Host::polling_instructions).sum();
        let handed_out_instructions = self.system.hosts().map(Host::handed_out_instructions).sum();
        let spins = self.system.hosts().any(Host::spins_without_order);
        let loads = self.system.hosts().map(Host::loads);
        let (loads, early_loads) = loads.fold((0, 0), |(all, early), (some, of)| (all + some, early + of));
        let dropped_edges = self.system.hosts().map(Host::dropped_edges).sum();
        let mut unreliable_because = unreliable_because(forced_waits, polling_instructions, self.instructions(), spins);
        unreliable_because.extend(dropped(dropped_edges));
        unreliable_because.extend(early(early_loads, loads));
        let mut warnings = self.warnings();
        warnings.extend(assigned_as_recorded(handed_out_instructions, self.instructions()));
        if ended == Ended::Complete {
            warnings.extend(self.limits_beyond_the_end());
        }
        Ok(Outcome {
            ended,
            intervals: std::mem::take(&mut self.intervals),
            has_regions: self.has_regions,
            instructions: self.instructions(),
            positions: self.system.hosts().map(Host::positions).collect(),
            hosts: self.system.host_names().map(str::to_owned).collect(),
            links: self.system.links().to_vec(),
            sample,
            wants_persists: self.system.hosts().any(Host::reaches_pm)
                && (self.options.persist != PersistMode::Program || flushes(&stats) > 0),
            forced_waits,
            polling_instructions,
            handed_out_instructions,
            loads,
            early_loads,
            dropped_edges,
            unreliable_because,
            warnings,
            stats,
        })
    }

    /// That the records, which came to their end, have too little for the limits.
    fn limits_beyond_the_end(&self) -> Vec<String> {
        let writes: u64 = self.system.hosts().map(Host::pm_writes).sum();
        let [have, make] = match self.system.hosts().count() {
            1 => ["the record has", "the record makes"],
            _ => ["the records have", "the records make"],
        };
        let instructions = self.options.instructions_limit.map(|limit| {
            let (limit, there_are) = (grouped(limit), grouped(self.instructions()));
            format!("--limit-instructions {limit}: {have} only {there_are} instructions")
        });
        let pm_writes = self
            .options
            .pm_writes_limit
            .map(|limit| format!("--limit-pm-writes {}: {make} only {} writes to PM", grouped(limit), grouped(writes)));
        instructions.into_iter().chain(pm_writes).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.has_regions && self.intervals.is_empty() {
            warnings.push("no region of interest was reached (markers of the program, or --roi when it was recorded): nothing was timed".into());
        }
        warnings
    }
}

/// Flushes of all cores, whatever they flush.
fn flushes(stats: &StatsNode) -> u64 {
    let of_hosts = stats.children().iter().flat_map(|(_, component)| component.children());
    of_hosts.filter(|(name, _)| name.starts_with("core")).map(|(_, core)| core.counter("flushes")).sum()
}

/// With more polling among its instructions, a run is not that of the program.
const POLLING_SHARE_MAX: f64 = 0.05;

/// Why a replay is not of the program that was recorded; empty if it is.
fn unreliable_because(forced_waits: u64, polling: u64, instructions: u64, spins_without_order: bool) -> Vec<String> {
    let mut reasons = Vec::new();
    if forced_waits > 0 {
        let waits = if forced_waits == 1 { "1 wait was".to_owned() } else { format!("{forced_waits} waits were") };
        let why =
            "ended because nothing else could go on: wake-ups are missing from the record, or come in another order";
        reasons.push(format!("{waits} {why}"));
    }
    let share = polling as f64 / instructions.max(1) as f64;
    if spins_without_order {
        reasons.push(format!(
            "threads poll in {:.1}% of the instructions, and were recorded without turns: nothing says what they wait \
             for (polling_share)",
            100.0 * share
        ));
    } else if share > POLLING_SHARE_MAX {
        reasons.push(format!(
            "{:.1}% of the instructions are in loops that only read again what other threads store to, and are \
             replayed as work (polling_share)",
            100.0 * share
        ));
    }
    reasons
}

fn dropped(edges: u64) -> Option<String> {
    let reads = if edges == 1 { "1 read or call".to_owned() } else { format!("{} reads or calls", grouped(edges)) };
    (edges > 0).then(|| {
        format!("{reads} should come behind what another thread did, and the record does not say what (dropped_edges)")
    })
}

/// With more loads of words that are updated atomically before the store that they saw, a run is not that of the
/// program.
const EARLY_LOAD_SHARE_MAX: f64 = 0.01;

fn early(early: u64, loads: u64) -> Option<String> {
    let share = early as f64 / loads.max(1) as f64;
    (share > EARLY_LOAD_SHARE_MAX).then(|| {
        format!(
            "{:.1}% of the loads of words that are updated atomically came before the store that they saw \
             (early_load_share)",
            100.0 * share
        )
    })
}

/// With more of it handed out among the threads, a program may do otherwise on another machine.
const ASSIGNED_SHARE_MAX: f64 = 0.2;

fn assigned_as_recorded(handed_out: u64, instructions: u64) -> Option<String> {
    let share = handed_out as f64 / instructions.max(1) as f64;
    (share > ASSIGNED_SHARE_MAX).then(|| {
        format!(
            "{:.1}% of the instructions are in iterations or tasks that threads take from shared memory: each does those \
             that it did when it was recorded, also where it would come to fewer (assigned_share)",
            100.0 * share
        )
    })
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let (first, others) = digits.split_at((digits.len() - 1) % 3 + 1);
    others
        .as_bytes()
        .chunks(3)
        .fold(first.to_owned(), |text, three| format!("{text},{}", String::from_utf8_lossy(three)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_load_of_a_hundred_before_its_store_is_a_reason() {
        assert!(early(1, 100).is_none() && early(0, 0).is_none());
        assert!(early(2, 100).is_some_and(|reason| reason.starts_with("2.0% of the loads")));
    }

    #[test]
    fn each_dropped_edge_is_a_reason() {
        assert!(dropped(0).is_none());
        assert!(dropped(1).is_some_and(|reason| reason.starts_with("1 read or call should")));
        assert!(dropped(1234).is_some_and(|reason| reason.starts_with("1,234 reads or calls should")));
    }
}
