//! Which instructions persist, what that costs, and which fences wait for them, so that the cost can be
//! attributed to lines of the program.
//!
//! Allocated only when enabled. A site is a flush, a non-temporal store or a fence of the program's code,
//! told apart by where the function that it stands in was called; a persist that the program does not make itself
//! belongs to the call or store that it was inserted at. Cores say which site sent what, and which fence waited; the
//! caches say what became of it, and so each persist is counted where the run counts it. There is one distribution for
//! each site, however long the run is.

use std::collections::{BTreeMap, HashMap, VecDeque};

#[cfg(doc)]
use crate::core::callers::Callers;
use fencepost_isa::micro_op::Operation;
use fencepost_kernel::address_map::is_pm;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::{LatencyStack, Stage};
use fencepost_kernel::stats::{Histogram, LatencySum};
use fencepost_kernel::time::Duration;

/// Number of a site among those of one host, in the order in which they came up.
pub type SiteId = u32;

/// Which instruction, and on behalf of which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SiteKey {
    /// Its block; 0 if unknown.
    pub block: u32,
    /// Its micro-operation there.
    pub micro_op: u32,
    /// The block whose last instruction made the call that led to it, as [`Callers`] finds it; 0 if that is not known.
    pub caller: u32,
    /// What it does.
    pub operation: Operation,
    /// Whether the program does not have it: it was inserted at that instruction.
    pub is_inserted: bool,
}

/// What was counted at one site while time counted.
#[derive(Clone, Debug)]
pub struct PersistSite {
    /// Which.
    pub key: SiteKey,
    /// PM lines that it flushed, or wrote around the caches.
    pub lines: u64,
    /// Of these, lines of which no cache had anything newer than memory was given: nothing was written. Where other
    /// sockets had to be asked, that is known once they have answered.
    pub clean: u64,
    /// Of the clean ones, those that waited for an earlier write of their line.
    pub behind_writes: u64,
    /// Lines that it flushed, or wrote, that are no PM.
    pub outside_pm: u64,
    /// The persists, as far as they came back.
    pub persists: LatencySum,
    /// For how long it held the store queue: itself, or waiting until it could be sent.
    pub held_ps: u64,
    /// For how long fences waited because of it; no instant of a core is counted twice.
    pub fence_wait_ps: u64,
    /// A fence's executions.
    pub executions: u64,
    /// A fence's stalls, as the run counts them.
    pub stall: Histogram,
    /// For how long a fence waited, instants that an earlier fence of its core waited too left out.
    pub waited_ps: u64,
    /// Of that, the part that belongs to no flush: it waited for stores.
    pub stores_ps: u64,
    /// The rest, by the site that it waited for.
    pub waited_for: BTreeMap<SiteId, u64>,
}

/// A fence's wait, in cycles of its core.
#[derive(Clone, Copy, Debug)]
pub struct FenceWait {
    /// From when on it was all that kept its core's program order waiting.
    pub alone: u64,
    /// When it was its turn in the store queue.
    pub turn: u64,
    /// When it went on.
    pub ends: u64,
}

/// What one core has under way.
#[derive(Clone, Debug, Default)]
struct CoreSites {
    /// Flushes and non-temporal stores that are not acknowledged, by the core's name for them.
    sent: Vec<(u32, SiteId)>,
    /// Lines that non-temporal stores are being combined for, with the site of the youngest.
    combining: Vec<(LineAddress, SiteId)>,
    /// The acknowledgement that came last: its cycle and whose it is.
    last: Option<(u64, SiteId)>,
    /// By whom the store queue was held lately: from, until.
    holds: VecDeque<(u64, u64, SiteId)>,
    /// Up to which cycle fences have been charged.
    charged_until: u64,
}

/// A write under way, or what asks other sockets for one.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    site: SiteId,
    /// Whether its line was counted when it left.
    is_counted: bool,
}

/// All sites of the cores of one socket.
#[derive(Clone, Debug)]
pub struct PersistSites {
    period: Duration,
    /// How many holds a fence may still have to look at: as many as the store queue has entries.
    holds_max: usize,
    is_counting: bool,
    sites: Vec<PersistSite>,
    numbers: HashMap<SiteKey, SiteId, rustc_hash::FxBuildHasher>,
    cores: Vec<CoreSites>,
    /// Writes under way, by their tag.
    writes: Vec<Option<UnderWay>>,
}

impl PersistSite {
    fn new(key: SiteKey) -> PersistSite {
        PersistSite {
            key,
            lines: 0,
            clean: 0,
            behind_writes: 0,
            outside_pm: 0,
            persists: LatencySum::default(),
            held_ps: 0,
            fence_wait_ps: 0,
            executions: 0,
            stall: Histogram::default(),
            waited_ps: 0,
            stores_ps: 0,
            waited_for: BTreeMap::new(),
        }
    }
}

impl PersistSites {
    /// No site yet, of so many cores with that clock and store queue.
    pub fn new(cores: usize, period: Duration, store_queue_entries: usize) -> PersistSites {
        PersistSites {
            period,
            holds_max: store_queue_entries,
            is_counting: false,
            sites: Vec::new(),
            numbers: HashMap::default(),
            cores: vec![CoreSites::default(); cores],
            writes: Vec::new(),
        }
    }

    /// All of them, by number.
    pub fn sites(&self) -> &[PersistSite] {
        &self.sites
    }

    /// From now on time counts, or does not.
    pub fn count(&mut self, counts: bool) {
        self.is_counting = counts;
    }

    /// The number of the site `key`.
    pub fn number(&mut self, key: SiteKey) -> SiteId {
        let sites = &mut self.sites;
        *self.numbers.entry(key).or_insert_with(|| {
            sites.push(PersistSite::new(key));
            sites.len() as SiteId - 1
        })
    }

    /// A flush or a closed combining buffer leaves `core` under the number `id`.
    pub fn sent(&mut self, core: usize, id: u32, site: SiteId) {
        self.cores[core].sent.push((id, site));
    }

    /// A non-temporal store goes into the combining buffer of `line`.
    pub fn combined(&mut self, core: usize, line: LineAddress, site: SiteId) {
        let combining = &mut self.cores[core].combining;
        match combining.iter_mut().find(|(open, _)| *open == line) {
            Some(open) => open.1 = site,
            None => combining.push((line, site)),
        }
    }

    /// The combining buffer of `line` leaves `core` under the number `id`.
    pub fn sent_combined(&mut self, core: usize, id: u32, line: LineAddress) {
        let combining = &mut self.cores[core].combining;
        if let Some(index) = combining.iter().position(|(open, _)| *open == line) {
            let (_, site) = combining.swap_remove(index);
            self.sent(core, id, site);
        }
    }

    /// A site had the store queue of `core` wait for it.
    pub fn held(&mut self, core: usize, site: SiteId, from: u64, until: u64) {
        let holds = &mut self.cores[core].holds;
        if holds.len() == self.holds_max {
            holds.pop_front();
        }
        holds.push_back((from, until, site));
        if self.is_counting {
            self.sites[site as usize].held_ps += (self.period * (until - from)).as_ps();
        }
    }

    /// A flush or non-temporal store of `core` is acknowledged at `cycle`.
    pub fn acknowledged(&mut self, core: usize, id: u32, cycle: u64) {
        let own = &mut self.cores[core];
        if let Some(index) = own.sent.iter().position(|(sent, _)| *sent == id) {
            let (_, site) = own.sent.swap_remove(index);
            if own.last.is_none_or(|(last, _)| cycle >= last) {
                own.last = Some((cycle, site));
            }
        }
    }

    /// The caches serve a flush or non-temporal store of `line`: something leaves for it, or there was nothing to send
    /// and it may have to wait for a write that was sent earlier.
    pub fn served(&mut self, core: usize, id: u32, line: LineAddress, write: Served) {
        let Some(&(_, number)) = self.cores[core].sent.iter().find(|(sent, _)| *sent == id) else { return };
        let counted = u64::from(self.is_counting);
        let site = &mut self.sites[number as usize];
        if !is_pm(line) {
            site.outside_pm += counted;
            return;
        }
        site.lines += counted;
        match write {
            Served::Sent(tag) => {
                if self.writes.len() <= tag {
                    self.writes.resize(tag + 1, None);
                }
                self.writes[tag] = Some(UnderWay { site: number, is_counted: self.is_counting });
            }
            Served::WithoutPromise => {}
            Served::Clean { waits } => {
                site.clean += counted;
                site.behind_writes += counted * u64::from(waits);
            }
        }
    }

    /// What left under that tag is complete; without a stack nothing was written, because no socket had anything newer
    /// than memory was given.
    pub fn completed(&mut self, tag: usize, stack: Option<&LatencyStack>) {
        let under_way = self.writes.get_mut(tag).and_then(Option::take);
        let Some(UnderWay { site, is_counted }) = under_way.filter(|_| self.is_counting) else { return };
        let site = &mut self.sites[site as usize];
        match stack {
            Some(stack) => site.persists.add(stack, &[Stage::Core, Stage::Cache]),
            None => site.clean += u64::from(is_counted),
        }
    }

    /// A fence of `core` goes on. What it waited for held the store queue before its turn; after that it is the flush
    /// or non-temporal store whose acknowledgement came last; what is left is for stores.
    pub fn fence(&mut self, core: usize, fence: SiteId, wait: FenceWait) {
        let FenceWait { alone, turn, ends } = wait;
        let own = &mut self.cores[core];
        let from = alone.max(own.charged_until);
        own.charged_until = own.charged_until.max(ends);
        if !self.is_counting {
            return;
        }
        self.sites[fence as usize].executions += 1;
        if ends > alone {
            self.sites[fence as usize].stall.record(self.period * (ends - alone));
        }
        if ends <= from {
            return;
        }
        let overlap = |start: u64, end: u64| end.min(ends).saturating_sub(start.max(from));
        let held = own.holds.iter().map(|&(start, until, site)| (site, overlap(start, until.min(turn))));
        let last = own.last.map(|(cycle, site)| (site, overlap(turn, cycle)));
        let charges: Vec<(SiteId, u64)> = held.chain(last).filter(|(_, cycles)| *cycles > 0).collect();
        let mut left = ends - from;
        for (site, cycles) in charges {
            left -= cycles;
            let ps = (self.period * cycles).as_ps();
            self.sites[site as usize].fence_wait_ps += ps;
            *self.sites[fence as usize].waited_for.entry(site).or_default() += ps;
        }
        let fence = &mut self.sites[fence as usize];
        fence.waited_ps += (self.period * (ends - from)).as_ps();
        fence.stores_ps += (self.period * left).as_ps();
    }
}

/// What the caches did with a flush or non-temporal store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Under that tag the line leaves as a write, or what asks other sockets to write theirs: a persist, if anything is
    /// written.
    Sent(usize),
    /// The line leaves, and the flush is complete before it is durable: no persist.
    WithoutPromise,
    /// No cache has anything newer than memory was given.
    Clean {
        /// Whether an earlier write of the line has still to be acknowledged.
        waits: bool,
    },
}
