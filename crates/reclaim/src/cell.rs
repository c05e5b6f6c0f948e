//! A cell of a study: one backend under one load and limit, as data in and out.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::linux::memory::{Counts, Limit, Memory};
use crate::linux::preset::preset;
use crate::linux::watermarks::memory_for;
use crate::page::{CLASSES, Class, Codec, Facts};
use crate::recorded::Service;
use crate::service::caches::{Caches, Size};
use crate::service::costs::Costs;
use crate::service::scheduler::Nanoseconds;
use crate::service::simulation::{CAUSES, Setting, Simulation};

/// What is asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// `6.2` or `6.8`.
    pub linux: String,
    /// zswap's compressor.
    pub compressor: Codec,
    /// Anonymous pages that have room, beside the high mark; none: all that there are.
    pub resident_pages: Option<u32>,
    /// Whether zswap's pool takes some of that room, or has memory of its own.
    pub pool_in_limit: bool,
    /// Whether zswap is on; without it pages go to the swap device.
    pub zswap: bool,
    /// Whether an expander, which takes pages as they are, stands in its place.
    pub keeps_whole: bool,
    /// Whether ksm is on.
    pub ksm: bool,
    /// The backend.
    pub costs: Costs,
    /// The core's second level.
    pub second_level: Size,
    /// The last level, or what of it is the service's.
    pub last_level: Size,
    /// ns of an instruction whose accesses hit.
    pub instruction_ns: f64,
    /// ns that a miss adds.
    pub miss_ns: f64,
    /// Open loop; none: closed.
    pub arrivals_per_second: Option<f64>,
    /// Which recorded operations each one does; begun anew at its end.
    pub sequence: Vec<Vec<u32>>,
    /// Before those that are measured.
    pub warm_up: u64,
    /// Measured.
    pub operations: u64,
    /// Whether kswapd and ksmd share the server's core.
    pub shares_core: bool,
    /// Whether their work passes caches.
    pub pollutes: bool,
    /// Of the arrivals.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it, units last")]
pub struct Measured {
    pub p50_ns: Nanoseconds,
    pub p99_ns: Nanoseconds,
    pub p999_ns: Nanoseconds,
    pub mean_ns: f64,
    pub operations: u64,
    pub operations_per_second: f64,
    /// Of a core, by task.
    pub server_share: f64,
    pub kswapd_share: f64,
    pub ksmd_share: f64,
    pub last_level_accesses: u64,
    pub last_level_miss_rate: f64,
    pub misses_per_operation: f64,
    pub link_bytes: u64,
    pub link_gb_per_s: f64,
    /// By cause, in ns: what the operations at p99 and above went into.
    pub slow: FxHashMap<&'static str, Slow>,
    pub frames: u32,
    pub pool_pages: u32,
    pub limit_pages: u32,
    pub shared_pages: u32,
    pub frames_saved: u32,
    pub ksm_scans: u64,
    pub counts: Counts,
}

/// Of the slow operations, how much of one cause each has, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it, units last")]
pub struct Slow {
    pub mean_ns: f64,
    pub p50_ns: Nanoseconds,
    pub p90_ns: Nanoseconds,
    pub p99_ns: Nanoseconds,
    pub max_ns: Nanoseconds,
}

impl Slow {
    fn of(mut times: Vec<Nanoseconds>) -> Self {
        times.sort_unstable();
        let at = |part: f64| times[((times.len() as f64 * part) as usize).min(times.len() - 1)];
        Self {
            mean_ns: times.iter().map(|&time| time as f64).sum::<f64>() / times.len() as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            max_ns: at(1.0),
        }
    }
}

impl Cell {
    /// Simulates it.
    ///
    /// # Errors
    /// If there is no such kernel or operation.
    pub fn run(&self, service: &Service, facts: &[Option<Facts>]) -> Result<Measured, String> {
        let preset = preset(&self.linux).ok_or_else(|| format!("there is no preset of Linux {}", self.linux))?;
        let is_known = |&number: &u32| (number as usize) < service.operations.len();
        if self.sequence.is_empty() || !self.sequence.iter().flatten().all(is_known) {
            return Err("the sequence names operations that are not recorded, or none".into());
        }
        let limit = Limit {
            pages: self.resident_pages.map_or(u32::MAX / 2, memory_for),
            has_zswap: self.zswap,
            keeps_whole: self.keeps_whole,
            pool_in_limit: self.pool_in_limit,
        };
        let addresses = service.pages.iter().map(|page| page.address).collect();
        let is_loaded = |page: u32| service.pages[page as usize].is_loaded;
        let memory = Memory::new(preset, limit, addresses, facts.to_vec(), is_loaded);
        let is_anonymous: Vec<bool> = service.pages.iter().map(|page| page.is_anonymous).collect();
        let contents: Vec<_> = service.pages.iter().map(|page| page.contents.as_deref()).collect();
        let setting = Setting {
            preset,
            costs: &self.costs,
            operations: &service.operations,
            sequence: &self.sequence,
            is_anonymous: &is_anonymous,
            contents: &contents,
            instruction_ns: self.instruction_ns,
            miss_ns: self.miss_ns,
            arrivals_per_second: self.arrivals_per_second,
            operations_counted: (self.warm_up, self.warm_up + self.operations),
            has_ksm: self.ksm,
            shares_core: self.shares_core,
            pollutes: self.pollutes,
            seed: self.seed,
        };
        let caches = |cores| Caches::new(cores, self.second_level, self.last_level);
        let (outcome, memory) = Simulation::new(setting, memory, caches).run();
        let mut latencies = outcome.latencies;
        latencies.sort_unstable_by_key(|&(latency, _)| latency);
        let at = |part: f64| ((latencies.len() as f64 * part) as usize).min(latencies.len() - 1);
        let slow = &latencies[at(0.99)..];
        let of_cause = |cause: usize| Slow::of(slow.iter().map(|(_, stack)| stack[cause]).collect());
        let elapsed = outcome.elapsed as f64;
        let shared = memory.shared();
        let (accesses, misses) = outcome.last_level;
        let count = latencies.len() as f64;
        Ok(Measured {
            p50_ns: latencies[at(0.5)].0,
            p99_ns: latencies[at(0.99)].0,
            p999_ns: latencies[at(0.999)].0,
            mean_ns: latencies.iter().map(|(latency, _)| *latency as f64).sum::<f64>() / count,
            operations: latencies.len() as u64,
            operations_per_second: count / elapsed * 1e9,
            server_share: outcome.busy[0] as f64 / elapsed,
            kswapd_share: outcome.busy[1] as f64 / elapsed,
            ksmd_share: outcome.busy[2] as f64 / elapsed,
            last_level_accesses: accesses,
            last_level_miss_rate: misses as f64 / accesses.max(1) as f64,
            misses_per_operation: misses as f64 / count,
            link_bytes: outcome.link_bytes,
            link_gb_per_s: outcome.link_bytes as f64 / elapsed,
            slow: CAUSES.iter().enumerate().map(|(number, &(_, name))| (name, of_cause(number))).collect(),
            frames: memory.frames(),
            pool_pages: memory.pool_pages(),
            limit_pages: self.resident_pages.map_or(0, memory_for),
            shared_pages: shared.0,
            frames_saved: shared.1,
            ksm_scans: outcome.scans,
            counts: memory.counts,
        })
    }
}

/// The anonymous pages that a service has when these operations have been done: those of the load, and those that an
/// operation touches for the first time.
#[must_use]
pub fn pages_after(service: &Service, facts: &[Option<Facts>], operations: &[u32]) -> Vec<Facts> {
    let mut is_there: Vec<bool> = service.pages.iter().map(|page| page.is_loaded).collect();
    touches(service, operations).for_each(|page| is_there[page] = true);
    is_there.iter().zip(facts).filter_map(|(is_there, facts)| facts.filter(|_| *is_there)).collect()
}

fn touches(service: &Service, operations: &[u32]) -> impl Iterator<Item = usize> {
    let of = |&number: &u32| service.operations[number as usize].touches.iter().map(|touch| touch.page() as usize);
    operations.iter().flat_map(of)
}

/// What memory a service wants that does these operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// Anonymous pages when all have been done.
    pub anonymous_pages: u32,
    /// Of these, the ones that operations touch.
    pub touched_pages: u32,
}

/// What memory a service wants that does these operations, which are recorded ones.
#[must_use]
pub fn wanted(service: &Service, facts: &[Option<Facts>], operations: &[u32]) -> Wanted {
    let mut touched: Vec<usize> = touches(service, operations).filter(|&page| facts[page].is_some()).collect();
    touched.sort_unstable();
    touched.dedup();
    Wanted {
        anonymous_pages: pages_after(service, facts, operations).len() as u32,
        touched_pages: touched.len() as u32,
    }
}

/// What is known of each anonymous page of a service that holds something at some time.
#[must_use]
pub fn facts(service: &Service, codec: Codec) -> Vec<Option<Facts>> {
    let of = |page: &crate::recorded::ServicePage| {
        let contents = page.contents.as_ref().filter(|_| page.is_anonymous);
        contents.map(|bytes| Facts::of(bytes, codec))
    };
    service.pages.iter().map(of).collect()
}

/// How many of these pages are of each class.
#[must_use]
pub fn classes(pages: &[Facts]) -> FxHashMap<Class, usize> {
    let of = |class: Class| pages.iter().filter(|facts| facts.class == class).count();
    CLASSES.iter().map(|&class| (class, of(class))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PAGE;
    use crate::recorded::{Operation, ServicePage, Touch};

    /// Two thousand loaded pages, of which the first operation reads one, and a thousand that the second one writes for
    /// the first time.
    fn service() -> Service {
        let page = |address| ServicePage {
            address,
            is_anonymous: true,
            is_loaded: address < 2000,
            contents: Some(Box::new([0; PAGE])),
        };
        let operation = |pages: std::ops::Range<u32>, writes| Operation {
            touches: pages.map(|page| Touch::new(page * 64, writes)).collect(),
            ..Operation::default()
        };
        let operations = vec![operation(0..1, false), operation(2000..3000, true)];
        Service { pages: (0..3000).map(page).collect(), operations, instructions: (0, 0) }
    }

    #[test]
    fn slow_operations_have_quantiles_of_each_cause() {
        let slow = Slow::of((0..1000).rev().collect());
        let expected = Slow { mean_ns: 499.5, p50_ns: 500, p90_ns: 900, p99_ns: 990, max_ns: 999 };
        assert_eq!(slow, expected);
    }

    #[test]
    fn what_is_inserted_is_wanted_too() {
        let service = service();
        let poor = Facts { same_filled: None, compressed: 4096, class: Class::Poor, checksum: 0 };
        let facts = vec![Some(poor); service.pages.len()];
        let of = |operations: &[u32]| wanted(&service, &facts, operations);
        let (reads, inserts) = (of(&[0]), of(&[0, 1]));
        assert_eq!((reads.anonymous_pages, reads.touched_pages), (2000, 1));
        assert_eq!((inserts.anonymous_pages, inserts.touched_pages), (3000, 1001));
    }
}
