//! The hierarchy between cores that do what a test says and a memory that answers when a test says so.
//!
//! Each test is one sentence of the specification; chapters are files.

mod coherence;
mod evictions;
mod exclusive;
mod latency;
mod levels;
mod order;
mod prefetching;
mod random;
mod several_sockets;

use std::collections::HashMap;

use super::array::{Line, State};
use super::config::{CacheConfig, PointOfCoherence, PrefetcherKind, SnoopFilterConfig};
use super::hierarchy::{Acknowledged, Hierarchy, HierarchyConfig, Outcome, Request, Requester, Served, Side, Want};
use fencepost_isa::micro_op::{Flush, FlushOrder, Reach};
use fencepost_kernel::address_map::PM_BASE_LINE;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::message::{Cause, Message, Opcode};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};

/// Latency of the first shared level.
const L2: u64 = 10;
/// Its response latency.
const BACK: u64 = 1;
/// What a snoop takes.
const SNOOP: u64 = 3;

/// The `number`th line of PM.
fn pm(number: u64) -> LineAddress {
    LineAddress(PM_BASE_LINE.0 + number)
}

fn cache(size_kib: u32, ways: u16, latency_cycles: u16, shared: bool, inclusive: bool) -> CacheConfig {
    CacheConfig {
        size_kib,
        ways,
        latency_cycles,
        response_cycles: BACK as u16,
        mshrs: 4,
        write_buffers: 4,
        snoop_cycles: SNOOP as u16,
        shared,
        inclusive,
        snoop_filter: None,
        prefetcher: PrefetcherKind::None,
        prefetch_entries: 1,
        prefetch_degree: 1,
        prefetch_distance: 1,
        prefetch_mshrs: 1024,
        prefetch_next_page: false,
    }
}

/// First levels of 8 sets of 2 lines and those levels below.
fn hierarchy(cores: usize, levels: &[CacheConfig]) -> HierarchyConfig {
    let first = CacheConfig { response_cycles: 0, ..cache(1, 2, 1, false, true) };
    HierarchyConfig {
        cores,
        own_cores: 0..cores,
        period: Duration::from_ps(250),
        l1i: first.clone(),
        l1d: first,
        levels: levels.iter().enumerate().map(|(index, level)| (format!("l{}", index + 2), level.clone())).collect(),
        bus_round_trip: 0,
        flushes_end_at_bus: false,
        point_of_coherence: PointOfCoherence::Volatile,
        is_one_of_several: false,
        cleaned: Some(State::Exclusive),
    }
}

/// A shared level of 16 sets of 2 lines.
fn small_l2() -> CacheConfig {
    cache(2, 2, L2 as u16, true, true)
}

/// A copy of a line, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub line: LineAddress,
    pub content: Line,
    /// The core whose private level has it; none for a shared level.
    pub core: Option<usize>,
    pub is_first_level_data: bool,
    pub is_code: bool,
    pub is_last_level: bool,
}

/// A message on its way to memory, or its answer on the way back.
#[derive(Clone, Debug)]
struct Pending {
    cycle: u64,
    message: Message,
}

/// Caches and their memory.
struct Bench {
    caches: Hierarchy,
    memory: HashMap<LineAddress, Version>,
    /// Requests that memory has not served yet, by the cycle at which they left.
    pending: Vec<Pending>,
    next_id: u32,
}

impl Bench {
    fn new(config: &HierarchyConfig) -> Bench {
        Bench { caches: Hierarchy::new(config), memory: HashMap::new(), pending: Vec::new(), next_id: 0 }
    }

    /// `cores` cores above one small shared level.
    fn small(cores: usize) -> Bench {
        Bench::new(&hierarchy(cores, &[small_l2()]))
    }

    fn request(&mut self, core: usize, line: LineAddress, want: Want, side: Side, now: u64) -> Outcome {
        let outcome =
            self.caches.request(Request { core, line, want, side, cause: Cause::DemandRead, issued: now }, now);
        self.collect_departures();
        outcome
    }

    /// A core brings a line into its data cache and, if memory has to be asked, gets it at once; gives when it has it,
    /// without memory's time.
    fn get(&mut self, core: usize, line: LineAddress, want: Want, now: u64) -> u64 {
        match self.request(core, line, want, Side::Data, now) {
            Outcome::Ready(ready, _) => ready,
            Outcome::Pending => {
                let served = self.answer(line, now);
                served.iter().find(|served| served.request.core == core).expect("it is served").ready
            }
        }
    }

    fn read(&mut self, core: usize, line: LineAddress, now: u64) -> u64 {
        self.get(core, line, Want::Read, now)
    }

    /// A core owns a line and stores to it.
    fn write(&mut self, core: usize, line: LineAddress, now: u64) -> u64 {
        let is_owned = self.caches.l1d[core].get(line).is_some_and(|line| line.state != State::Shared);
        let ready = if is_owned { now } else { self.get(core, line, Want::Own, now) };
        self.store(core, line);
        ready
    }

    /// A core that owns a line stores to it.
    fn store(&mut self, core: usize, line: LineAddress) {
        let copy = self.caches.l1d[core].get_mut(line).expect("the core has the line");
        assert_ne!(copy.state, State::Shared, "the core owns it");
        copy.state = State::Modified;
        copy.version.0 += 1;
    }

    /// A core that owns a line has computed that it stores to it at `cycle`.
    fn store_at(&mut self, core: usize, line: LineAddress, cycle: u64) {
        self.store(core, line);
        self.caches.l1d[core].get_mut(line).expect("the core has the line").stored = cycle;
    }

    fn flush(&mut self, core: usize, line: LineAddress, keep: bool, now: u64) -> Option<u64> {
        self.flush_by(if keep { Flush::CLWB } else { Flush::CLFLUSHOPT }, core, line, now)
    }

    fn flush_by(&mut self, flush: Flush, core: usize, line: LineAddress, now: u64) -> Option<u64> {
        self.next_id += 1;
        let complete = self.caches.flush(Requester { core, id: self.next_id, issued: now }, line, flush, now);
        self.collect_departures();
        complete
    }

    fn write_around(&mut self, core: usize, line: LineAddress, mask: ByteMask, now: u64) {
        self.next_id += 1;
        self.caches.write_around(Requester { core, id: self.next_id, issued: now }, line, mask, now);
        self.collect_departures();
    }

    fn collect_departures(&mut self) {
        let mut departures = Vec::new();
        self.caches.take_departures(&mut departures);
        for departure in departures {
            self.pending.push(Pending { cycle: departure.cycle, message: departure.message });
        }
        self.pending.sort_by_key(|pending| pending.cycle);
    }

    /// What waits at memory, oldest first.
    fn sent(&self) -> Vec<(u64, Opcode, Cause, LineAddress, u64)> {
        let each = |Pending { cycle, message }: &Pending| {
            (*cycle, message.opcode, message.cause, message.line, message.version.0)
        };
        self.pending.iter().map(each).collect()
    }

    /// The versions and causes of the writes that wait at memory, oldest first.
    fn writes(&self) -> Vec<(Cause, LineAddress, u64)> {
        let writes = self.sent().into_iter().filter(|(_, opcode, ..)| *opcode != Opcode::MemRd);
        writes.map(|(_, _, cause, line, version)| (cause, line, version)).collect()
    }

    /// Memory serves the oldest request for `line`, which must be a read.
    fn answer(&mut self, line: LineAddress, now: u64) -> Vec<Served> {
        let (acknowledged, served) = self.serve(line, now);
        assert!(acknowledged.is_empty());
        served
    }

    /// Memory serves the oldest request for `line`, and the answer arrives at `now`.
    fn serve(&mut self, line: LineAddress, now: u64) -> (Vec<Acknowledged>, Vec<Served>) {
        let index = self.pending.iter().position(|pending| pending.message.line == line);
        let Pending { message, .. } = self.pending.remove(index.expect("something is asked of that line"));
        let held = self.memory.entry(line).or_default();
        let served = if message.is_write() {
            assert!(message.version >= *held, "{message:?} comes after {held:?}");
            *held = message.version;
            let (mut acknowledged, mut served) = (Vec::new(), Vec::new());
            self.caches.write_completed(&message.completion(), now, &mut acknowledged, &mut served);
            (acknowledged, served)
        } else {
            let mut served = Vec::new();
            self.caches.data_arrived(&message.answer(*held), now, &mut served);
            (Vec::new(), served)
        };
        self.collect_departures();
        served
    }

    fn state(&self, core: usize, line: LineAddress) -> Option<State> {
        self.caches.l1d[core].get(line).map(|line| line.state)
    }

    fn copy(&self, core: usize, line: LineAddress) -> Line {
        *self.caches.l1d[core].get(line).expect("the core has the line")
    }

    fn version_in_memory(&self, line: LineAddress) -> u64 {
        self.memory.get(&line).copied().unwrap_or_default().0
    }
}
