//! Memory that does not suffice: which pages are there, what a touch of one that is not brings about, and who makes
//! room.
//!
//! Nothing here takes time. What is to be done comes back as [`Job`]s, in order, and is taken to be done: whoever asked
//! gives it its time.

use rustc_hash::FxHashMap;

use super::lru::Lru;
use super::preset::Preset;
use super::watermarks::Watermarks;
use super::zswap::{Entry, Stored, Zswap};
use crate::page::{Class, Facts};

/// Rounds of reclaim before it gives up (`DEF_PRIORITY`).
const ROUNDS: u32 = 12;

/// Work on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Job {
    /// Takes it off its list, finds what maps it, unmaps and frees it: the kernel's own part of reclaim.
    Unmap { page: u32 },
    /// Compresses it, in vain if it is too large then; a page of one word is only looked through.
    Compress { page: u32, class: Class, bytes: u32 },
    /// Fills it from the pool.
    Decompress { page: u32, class: Class, bytes: u32 },
    /// Reads it from the swap device.
    SwapRead { page: u32 },
    /// Writes it there.
    SwapWrite { page: u32 },
    /// Copies it, where a shared page is written.
    Copy { page: u32 },
    /// ksm's checksum.
    Hash { page: u32 },
    /// ksm compares so many lines of two pages.
    Compare { page: u32, with: u32, lines: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not touched yet; or it is no anonymous page.
    Absent,
    Resident,
    /// Read ahead: there, and in no page table.
    ReadAhead,
    Zswap,
    Swap,
    /// One of several that are one page of memory, by the number of that.
    Shared(u32),
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// The page.
    Present,
    /// The page, which nobody had mapped, or a page to be filled with zeros.
    Minor,
    /// None: the jobs say what it took.
    Major,
}

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub minor_faults: u64,
    pub zswap_loads: u64,
    pub swap_loads: u64,
    pub read_ahead: u64,
    pub read_ahead_hits: u64,
    pub direct_reclaims: u64,
    pub reclaimed_by_kswapd: u64,
    pub reclaimed_clean: u64,
    pub same_filled: u64,
    pub compressed: u64,
    pub rejected_poor: u64,
    pub rejected_full: u64,
    pub written_back: u64,
    pub merged: u64,
    pub unshared: u64,
}

/// How much there is, and where pools lie.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Pages of memory for anonymous pages and the pool.
    pub pages: u32,
    /// Whether zswap is on.
    pub has_zswap: bool,
    /// Whether that keeps pages as they are: an expander in its place.
    pub keeps_whole: bool,
    /// Whether its pool is within the limit, and takes memory that pages want; or beside it.
    pub pool_in_limit: bool,
}

/// All anonymous memory.
#[derive(Clone, Debug)]
pub struct Memory {
    preset: &'static Preset,
    limit: Limit,
    marks: Watermarks,
    states: Vec<State>,
    facts: Vec<Option<Facts>>,
    addresses: Vec<u64>,
    by_address: FxHashMap<u64, u32>,
    /// Writes that reached a page since it was last known by its contents.
    versions: Vec<u32>,
    /// Whether the swap device has what a page that is there holds.
    in_swap: Vec<bool>,
    lru: Lru,
    zswap: Option<Zswap>,
    frames: u32,
    /// By number of a shared page: who shares it.
    sharers: Vec<u32>,
    window: Window,
    /// See [`Counts`].
    pub counts: Counts,
}

/// Readahead by virtual addresses (`swap_ra_info`).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    address: u64,
    pages: u32,
    hits: u32,
}

impl Window {
    /// The pages to read around a fault: how many before it, and how many in all.
    fn next(&mut self, fault: u64, pages_max: u32) -> (u64, u64) {
        let (previous, hits) = (self.address, self.hits);
        let is_next = fault == previous + 1 || fault + 1 == previous;
        let wanted = match hits + 2 {
            2 if !is_next => 1,
            2 => 2,
            more => more.next_power_of_two().max(4),
        };
        let pages = wanted.min(pages_max).max(self.pages / 2).max(1);
        *self = Self { address: fault, pages, hits: 0 };
        let before = match () {
            () if fault == previous + 1 => 0,
            () if fault + 1 == previous => pages - 1,
            () => (pages - 1) / 2,
        };
        (u64::from(before), u64::from(pages))
    }
}

impl Memory {
    /// Of pages at these addresses (over the size of a page). `facts` are those of anonymous pages; of them `is_loaded`
    /// says which are there from the start, as long as there is room.
    #[must_use]
    pub fn new(
        preset: &'static Preset,
        limit: Limit,
        addresses: Vec<u64>,
        facts: Vec<Option<Facts>>,
        is_loaded: impl Fn(u32) -> bool,
    ) -> Self {
        let pages = addresses.len() as u32;
        let mut memory = Self {
            preset,
            limit,
            marks: Watermarks::of(limit.pages),
            states: vec![State::Absent; addresses.len()],
            by_address: addresses.iter().copied().zip(0..).collect(),
            versions: vec![0; addresses.len()],
            in_swap: vec![false; addresses.len()],
            lru: Lru::new(pages),
            zswap: limit.has_zswap.then(|| {
                let zswap = Zswap::new(preset, limit.pages, pages);
                if limit.keeps_whole { zswap.expander() } else { zswap }
            }),
            frames: 0,
            sharers: Vec::new(),
            window: Window::default(),
            counts: Counts::default(),
            addresses,
            facts,
        };
        for page in 0..pages {
            if memory.facts[page as usize].is_some() && is_loaded(page) {
                memory.states[page as usize] = State::Resident;
                memory.lru.add(page);
                memory.frames += 1;
            }
        }
        memory
    }

    /// Free pages; fewer than none before the first reclaim.
    #[must_use]
    pub fn free(&self) -> i64 {
        i64::from(self.limit.pages) - i64::from(self.frames) - i64::from(self.pool_pages_in_limit())
    }

    /// Pages of anonymous memory that are there.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Pages of the pool, wherever it lies.
    #[must_use]
    pub fn pool_pages(&self) -> u32 {
        self.zswap.as_ref().map_or(0, Zswap::pages)
    }

    fn pool_pages_in_limit(&self) -> u32 {
        if self.limit.pool_in_limit { self.pool_pages() } else { 0 }
    }

    /// Whether kswapd is to be woken.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.free() < i64::from(self.marks.low)
    }

    /// Whether kswapd has more to do.
    #[must_use]
    pub fn is_below_high(&self) -> bool {
        self.free() < i64::from(self.marks.high)
    }

    /// Whether ksm may look at a page: it has a page of memory of its own.
    #[must_use]
    pub fn is_private(&self, page: u32) -> bool {
        self.states[page as usize] == State::Resident
    }

    /// Whether the program has it mapped.
    #[must_use]
    pub fn is_mapped(&self, page: u32) -> bool {
        self.is_private(page) || self.is_shared(page)
    }

    /// Whether it is one that is shared.
    #[must_use]
    pub fn is_shared(&self, page: u32) -> bool {
        matches!(self.states[page as usize], State::Shared(_))
    }

    /// Of a page, over the size of one.
    #[must_use]
    pub fn address(&self, page: u32) -> u64 {
        self.addresses[page as usize]
    }

    /// How often a page has been written.
    #[must_use]
    pub fn version(&self, page: u32) -> u32 {
        self.versions[page as usize]
    }

    /// The program touches an anonymous page.
    pub fn touch(&mut self, page: u32, writes: bool, jobs: &mut Vec<Job>) -> Touched {
        let found = match self.states[page as usize] {
            State::Resident => Touched::Present,
            State::Shared(_) if !writes => return Touched::Present,
            State::Shared(number) => {
                self.take_frame(jobs);
                jobs.push(Job::Copy { page });
                self.counts.unshared += 1;
                self.leave(number);
                self.map(page);
                Touched::Minor
            }
            State::ReadAhead => {
                self.counts.read_ahead_hits += 1;
                self.window.hits += 1;
                self.states[page as usize] = State::Resident;
                Touched::Minor
            }
            State::Absent => {
                self.take_frame(jobs);
                self.map(page);
                Touched::Minor
            }
            State::Zswap | State::Swap => {
                self.load(page, jobs);
                self.states[page as usize] = State::Resident;
                self.read_around(page, jobs);
                Touched::Major
            }
        };
        self.counts.minor_faults += u64::from(found == Touched::Minor);
        self.lru.touch(page);
        if writes {
            self.versions[page as usize] += 1;
            self.forget_backing(page);
        }
        found
    }

    fn map(&mut self, page: u32) {
        self.states[page as usize] = State::Resident;
        self.lru.add(page);
    }

    /// What was kept of a page that is there is no longer what it holds.
    fn forget_backing(&mut self, page: u32) {
        self.in_swap[page as usize] = false;
        if let Some(zswap) = &mut self.zswap {
            zswap.invalidate(page);
        }
    }

    fn facts(&self, page: u32) -> Facts {
        self.facts[page as usize].expect("a page that is touched is known")
    }

    /// Brings a page back, mapped by nobody.
    fn load(&mut self, page: u32, jobs: &mut Vec<Job>) {
        self.take_frame(jobs);
        if self.states[page as usize] == State::Zswap {
            self.counts.zswap_loads += 1;
            let Facts { class, compressed: bytes, .. } = self.facts(page);
            jobs.push(Job::Decompress { page, class, bytes });
            if !self.preset.keeps_loaded {
                self.forget_backing(page);
            }
        } else {
            self.counts.swap_loads += 1;
            jobs.push(Job::SwapRead { page });
            self.in_swap[page as usize] = true;
        }
        self.states[page as usize] = State::ReadAhead;
        self.lru.add(page);
    }

    fn read_around(&mut self, page: u32, jobs: &mut Vec<Job>) {
        let fault = self.addresses[page as usize];
        let (before, pages) = self.window.next(fault, self.preset.readahead_pages);
        for address in (fault - before.min(fault)..).take(pages as usize) {
            if let Some(&page) = self.by_address.get(&address)
                && matches!(self.states[page as usize], State::Zswap | State::Swap)
            {
                self.counts.read_ahead += 1;
                self.load(page, jobs);
            }
        }
    }

    /// A page of memory, for which whoever wants it may have to reclaim (`__alloc_pages_slowpath`).
    fn take_frame(&mut self, jobs: &mut Vec<Job>) {
        if self.free() <= i64::from(self.marks.min) {
            self.counts.direct_reclaims += 1;
            for _ in 0..self.preset.reclaim_batch {
                if !self.reclaim(jobs) {
                    break;
                }
            }
        }
        self.frames += 1;
    }

    /// kswapd frees a page; false if it finds none.
    pub fn kswapd(&mut self, jobs: &mut Vec<Job>) -> bool {
        let has = self.reclaim(jobs);
        self.counts.reclaimed_by_kswapd += u64::from(has);
        has
    }

    fn reclaim(&mut self, jobs: &mut Vec<Job>) -> bool {
        let mut scanned = 0;
        let batch = self.preset.reclaim_batch;
        let Some(page) = (0..ROUNDS).find_map(|_| self.lru.take_unused(batch, &mut scanned)) else { return false };
        self.frames -= 1;
        jobs.push(Job::Unmap { page });
        let is_in_pool = self.zswap.as_ref().is_some_and(|zswap| zswap.entry(page).is_some());
        self.states[page as usize] = if is_in_pool {
            self.counts.reclaimed_clean += 1;
            State::Zswap
        } else if self.in_swap[page as usize] {
            self.counts.reclaimed_clean += 1;
            State::Swap
        } else {
            self.write_out(page, jobs)
        };
        true
    }

    fn write_out(&mut self, page: u32, jobs: &mut Vec<Job>) -> State {
        let facts = self.facts(page);
        let compress = Job::Compress { page, class: facts.class, bytes: facts.compressed };
        let stored = self.zswap.as_mut().map(|zswap| zswap.store(page, &facts));
        let state = match stored {
            Some(Stored::SameFilled) => {
                self.counts.same_filled += 1;
                jobs.push(compress);
                State::Zswap
            }
            Some(Stored::Compressed) => {
                self.counts.compressed += 1;
                jobs.push(compress);
                State::Zswap
            }
            Some(Stored::Poor) => {
                self.counts.rejected_poor += 1;
                jobs.extend([compress, Job::SwapWrite { page }]);
                State::Swap
            }
            Some(Stored::Full) | None => {
                self.counts.rejected_full += u64::from(stored.is_some());
                jobs.push(Job::SwapWrite { page });
                State::Swap
            }
        };
        self.write_back(jobs);
        state
    }

    /// What the pool's worker does once it is kicked.
    fn write_back(&mut self, jobs: &mut Vec<Job>) {
        while let Some(page) = self.zswap.as_mut().and_then(Zswap::written_back) {
            self.counts.written_back += 1;
            let Facts { class, compressed: bytes, .. } = self.facts(page);
            jobs.extend([Job::Decompress { page, class, bytes }, Job::SwapWrite { page }]);
            if self.states[page as usize] == State::Zswap {
                self.states[page as usize] = State::Swap;
            } else {
                self.in_swap[page as usize] = true;
            }
        }
    }

    /// ksm makes a page of two that are the same: both share `number`, which is new.
    pub fn share(&mut self, page: u32, number: u32) {
        assert_eq!(number as usize, self.sharers.len(), "shared pages are numbered in turn");
        self.sharers.push(0);
        self.join(page, number);
        self.frames += 1; // Its page of memory is the shared one now.
    }

    /// A page becomes one with a shared one.
    pub fn join(&mut self, page: u32, number: u32) {
        assert!(self.is_private(page), "page {page} has no memory of its own");
        self.lru.remove(page);
        self.forget_backing(page);
        self.states[page as usize] = State::Shared(number);
        self.sharers[number as usize] += 1;
        self.frames -= 1;
        self.counts.merged += 1;
    }

    /// Pages that are shared, and by how many pages of memory they have fewer than pages.
    #[must_use]
    pub fn shared(&self) -> (u32, u32) {
        let pages: u32 = self.sharers.iter().sum();
        let frames = self.sharers.iter().filter(|&&sharers| sharers > 0).count() as u32;
        (pages, pages - frames)
    }

    /// How many share a page.
    #[must_use]
    pub fn sharers(&self, number: u32) -> u32 {
        self.sharers[number as usize]
    }

    fn leave(&mut self, number: u32) {
        self.sharers[number as usize] -= 1;
        if self.sharers[number as usize] == 0 {
            self.frames -= 1;
        }
    }

    /// Whether what is known of pages is consistent: for tests.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let is_there = |state: &State| matches!(state, State::Resident | State::ReadAhead);
        let private = self.states.iter().filter(|state| is_there(state)).count() as u32;
        let shared = self.sharers.iter().filter(|&&sharers| sharers > 0).count() as u32;
        let (active, inactive) = self.lru.counts();
        let in_pool = |page: usize| {
            let entry = self.zswap.as_ref().and_then(|zswap| zswap.entry(page as u32));
            matches!(entry, Some(Entry::SameFilled | Entry::Whole | Entry::At(..)))
        };
        let kept = self.states.iter().enumerate().all(|(page, &state)| state != State::Zswap || in_pool(page));
        self.frames == private + shared && active + inactive == private && kept
    }
}

#[cfg(test)]
mod tests;
