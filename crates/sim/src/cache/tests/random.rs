//! 5xx: random accesses by several cores to few lines, in caches so small that everything is evicted all the time.
//!
//! The reference is a number for each line: how many stores were performed on it. Whatever happens, every copy that may
//! be read has that version, one core at most may write, every level holds what it must, and what a core is told is
//! persistent is in memory.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// All lines share a set of every cache, and two of them a page.
pub(super) const LINES: u64 = 5;
const APART: u64 = 32;

pub(super) fn line(number: u64) -> LineAddress {
    pm(APART * (number % LINES))
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Load {
        core: usize,
        line: u64,
    },
    Store {
        core: usize,
        line: u64,
    },
    Fetch {
        core: usize,
        line: u64,
    },
    Walk {
        core: usize,
        line: u64,
    },
    Flush {
        core: usize,
        line: u64,
        keep: bool,
    },
    WriteAround {
        core: usize,
        line: u64,
        mask: u64,
    },
    /// Memory answers one of the requests whose turn it is.
    Answer {
        which: usize,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let place = (0..4usize, 0..LINES);
    prop_oneof![
        3 => place.clone().prop_map(|(core, line)| Action::Load { core, line }),
        4 => place.clone().prop_map(|(core, line)| Action::Store { core, line }),
        1 => place.clone().prop_map(|(core, line)| Action::Fetch { core, line }),
        1 => place.clone().prop_map(|(core, line)| Action::Walk { core, line }),
        2 => (place.clone(), any::<bool>()).prop_map(|((core, line), keep)| Action::Flush { core, line, keep }),
        1 => (place, prop_oneof![Just(u64::MAX), 1..u64::MAX])
            .prop_map(|((core, line), mask)| Action::WriteAround { core, line, mask }),
        5 => any::<usize>().prop_map(|which| Action::Answer { which }),
    ]
}

/// How many shapes of the levels below the first there are.
pub(super) const SHAPES: usize = 14;

/// The levels below the first, by number.
pub(super) fn levels(shape: usize) -> Vec<CacheConfig> {
    let last = || {
        let mut last = cache(2, 2, 10, true, true);
        (last.mshrs, last.write_buffers) = (2, 3);
        last
    };
    let prefetching =
        |level| CacheConfig { prefetcher: PrefetcherKind::NextLine, prefetch_distance: APART as u8, ..level };
    let exclusive = |ways: u16, filter_ways: u16| {
        let filter = SnoopFilterConfig { entries: 16 * u32::from(filter_ways), ways: filter_ways };
        CacheConfig { inclusive: false, snoop_filter: Some(filter), ..cache(ways.into(), ways, 10, true, false) }
    };
    match shape {
        0 => vec![last()],
        1 => vec![cache(1, 1, 4, false, true), last()],
        2 => vec![cache(1, 1, 4, false, false), last()],
        3 => vec![cache(1, 2, 4, false, true), cache(1, 1, 6, false, true), last()],
        4 => vec![cache(1, 1, 7, true, true), last()],
        5 => vec![cache(1, 1, 4, false, false), cache(1, 1, 7, true, false), last()],
        // Lower levels that keep what leaves the first.
        6 => vec![cache(1, 4, 4, false, true), cache(4, 8, 10, true, true)],
        7 => vec![cache(1, 2, 4, false, false), cache(1, 4, 6, false, false), cache(4, 4, 10, true, true)],
        // Private levels that fetch the next of these lines.
        8 => vec![prefetching(cache(1, 2, 4, false, true)), last()],
        9 => vec![prefetching(cache(1, 1, 4, false, false)), prefetching(cache(1, 2, 6, false, true)), last()],
        // Last levels that are not inclusive, with snoop filters of a set of two and four lines.
        10 => vec![cache(1, 1, 4, false, true), exclusive(1, 2)],
        11 => vec![cache(1, 1, 4, false, false), exclusive(2, 4)],
        12 => vec![prefetching(cache(1, 2, 4, false, false)), exclusive(2, 2)],
        _ => vec![cache(1, 2, 4, false, false), cache(1, 1, 6, false, true), exclusive(2, 2)],
    }
}

struct World {
    bench: Bench,
    now: u64,
    /// How many stores were performed on each line.
    newest: HashMap<LineAddress, u64>,
    /// When each version was stored, by a core that computed ahead.
    stored: HashMap<(LineAddress, u64), u64>,
    /// What each core waits for.
    awaited: Vec<(usize, LineAddress, Side, Want)>,
    /// Flushes and non-temporal stores that are not acknowledged, with what must be in memory when they are.
    promised: HashMap<(usize, u32), (LineAddress, u64)>,
}

impl World {
    fn new(shape: usize) -> World {
        let bench = Bench::new(&hierarchy(4, &levels(shape)));
        World {
            bench,
            now: 0,
            newest: HashMap::new(),
            stored: HashMap::new(),
            awaited: Vec::new(),
            promised: HashMap::new(),
        }
    }

    fn newest(&self, line: LineAddress) -> u64 {
        self.newest.get(&line).copied().unwrap_or_default()
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Load { core, line: number } => self.load(core, line(number)),
            Action::Store { core, line: number } => self.store(core, line(number)),
            Action::Fetch { core, line: number } => self.ask(core, line(number), Want::Read, Side::Instruction),
            Action::Walk { core, line: number } => self.ask(core, line(number), Want::Read, Side::Walker),
            Action::Flush { core, line: number, keep } => self.flush(core, line(number), keep),
            Action::WriteAround { core, line: number, mask } => {
                let version = self.newest(line(number)) + 1;
                self.bench.write_around(core, line(number), ByteMask(mask), self.now);
                self.promised.insert((core, self.bench.next_id), (line(number), version));
                self.note_non_temporal();
            }
            Action::Answer { which } => self.answer(which),
        }
    }

    /// Non-temporal stores perform when they leave, which may be later than they were asked for.
    fn note_non_temporal(&mut self) {
        for index in 0..self.bench.pending.len() {
            let message = self.bench.pending[index].message.clone();
            if message.cause == Cause::NonTemporalStore && message.version.0 > self.newest(message.line) {
                assert_eq!(message.version.0, self.newest(message.line) + 1, "one store is one version");
                self.newest.insert(message.line, message.version.0);
            }
        }
    }

    fn load(&mut self, core: usize, line: LineAddress) {
        match self.bench.caches.l1d[core].find_and_touch(line) {
            Some(_) => {
                assert_eq!(self.bench.copy(core, line).version.0, self.newest(line), "a load sees the last store")
            }
            None => self.ask(core, line, Want::Read, Side::Data),
        }
    }

    fn store(&mut self, core: usize, line: LineAddress) {
        match self.bench.state(core, line) {
            Some(State::Exclusive | State::Modified) => {
                assert_eq!(self.bench.copy(core, line).version.0, self.newest(line));
                self.bench.caches.l1d[core].find_and_touch(line);
                let version = self.newest(line) + 1;
                let ahead = 17 * version % 50;
                let cycle = self.bench.copy(core, line).settled().max(self.now + ahead);
                self.bench.store_at(core, line, cycle);
                self.newest.insert(line, version);
                self.stored.insert((line, version), cycle);
            }
            _ => self.ask(core, line, Want::Own, Side::Data),
        }
    }

    fn ask(&mut self, core: usize, line: LineAddress, want: Want, side: Side) {
        if self.awaited.iter().any(|waits| (waits.0, waits.1, waits.2) == (core, line, side)) {
            return;
        }
        if side == Side::Instruction && self.bench.caches.l1i[core].find_and_touch(line).is_some() {
            return;
        }
        match self.bench.request(core, line, want, side, self.now) {
            Outcome::Pending => self.awaited.push((core, line, side, want)),
            Outcome::Ready(ready, _) => {
                assert!(ready > self.now);
                self.served(core, line, want, side);
            }
        }
    }

    fn served(&mut self, core: usize, line: LineAddress, want: Want, side: Side) {
        if side == Side::Data
            && want == Want::Own
            && self.bench.state(core, line).is_some_and(|state| state != State::Shared)
        {
            self.store(core, line);
        }
    }

    fn flush(&mut self, core: usize, line: LineAddress, keep: bool) {
        let must_be_there = self.newest(line);
        match self.bench.flush(core, line, keep, self.now) {
            Some(_) => {
                assert!(self.bench.version_in_memory(line) >= must_be_there, "a flush is done before its line is safe")
            }
            None => _ = self.promised.insert((core, self.bench.next_id), (line, must_be_there)),
        }
    }

    /// The host bridge lets nothing overtake a write of the same line; otherwise memory answers in any order.
    fn answer(&mut self, which: usize) {
        let mut lines: Vec<LineAddress> = self.bench.pending.iter().map(|pending| pending.message.line).collect();
        lines.sort_unstable();
        lines.dedup();
        if lines.is_empty() {
            return;
        }
        let line = lines[which % lines.len()];
        let (acknowledged, served) = self.bench.serve(line, self.now.max(self.bench.pending[0].cycle));
        self.note_non_temporal();
        for Acknowledged { by, .. } in acknowledged {
            let (line, version) = self.promised.remove(&(by.core, by.id)).expect("each is acknowledged once");
            assert!(self.bench.version_in_memory(line) >= version, "{line:?} is not safe in version {version}");
        }
        for Served { request, ready, .. } in served {
            assert!(ready >= self.now);
            let Request { core, line, want, side, .. } = request;
            self.awaited.retain(|waits| (waits.0, waits.1, waits.2) != (core, line, side));
            self.served(core, line, want, side);
        }
    }

    fn check(&self) {
        for Pending { cycle, message } in self.bench.pending.iter().filter(|pending| pending.message.is_write()) {
            let stored = self.stored.get(&(message.line, message.version.0)).copied().unwrap_or_default();
            assert!(*cycle >= stored, "{message:?} leaves at {cycle} and is stored at {stored}");
        }
        let copies = self.bench.caches.copies();
        for number in 0..LINES {
            let line = line(number);
            let newest = self.newest(line);
            let of_line: Vec<_> = copies.iter().filter(|copy| copy.line == line).collect();
            let at_cores: Vec<_> = of_line.iter().filter(|copy| copy.core.is_some()).collect();
            for copy in at_cores.iter().filter(|copy| !copy.is_code) {
                let is_behind =
                    at_cores.iter().any(|other| other.core == copy.core && other.content.state == State::Modified);
                let may_be_read = copy.is_first_level_data || !is_behind;
                assert!(!may_be_read || copy.content.version.0 == newest, "{copy:?} may be read, and is not {newest}");
            }
            let owners: Vec<_> =
                at_cores.iter().filter(|copy| copy.content.state != State::Shared && !copy.is_code).collect();
            if let Some(owner) = owners.first() {
                let others = at_cores.iter().filter(|copy| copy.core != owner.core).count();
                assert_eq!(others, 0, "{line:?} is owned by core {:?} and elsewhere too", owner.core);
            }
            let kept = of_line.iter().filter(|copy| copy.is_last_level).count();
            assert!(kept <= 1, "{line:?} is in the snoop filter and in the last level");
            if !at_cores.is_empty() {
                let last = of_line.iter().find(|copy| copy.is_last_level).expect("the last level is inclusive");
                for copy in &at_cores {
                    let core = copy.core.expect("it is a core's");
                    assert!(last.content.sharers & (1 << core) != 0, "the directory does not know of core {core}");
                }
                assert!(owners.is_empty() || last.content.is_owned, "the directory does not know of the owner");
            }
            let under_way =
                self.bench.pending.iter().filter(|pending| pending.message.line == line && pending.message.is_write());
            let outside =
                under_way.map(|pending| pending.message.version.0).chain([self.bench.version_in_memory(line)]).max();
            let dirty = of_line
                .iter()
                .filter(|copy| copy.content.state == State::Modified)
                .map(|copy| copy.content.version.0)
                .max();
            assert_eq!(dirty.max(outside), Some(newest), "the last store to {line:?} is lost");
        }
    }

    fn finish(&mut self) {
        while !self.bench.pending.is_empty() {
            self.now += 1;
            self.answer(0);
            self.check();
        }
        assert!(self.bench.caches.is_idle(), "{:?}", self.bench.caches.waiting());
        assert!(self.awaited.is_empty() && self.promised.is_empty(), "{:?} {:?}", self.awaited, self.promised);
        for number in 0..LINES {
            self.flush(0, line(number), number % 2 == 0);
            while !self.bench.pending.is_empty() {
                self.answer(0);
            }
            assert_eq!(self.bench.version_in_memory(line(number)), self.newest(line(number)));
        }
    }
}

proptest! {
    #[test]
    fn c501_no_store_is_lost_none_is_read_late_and_nothing_is_promised_too_early(
        shape in 0..SHAPES,
        actions in vec((0..16u64, action()), 1..300),
    ) {
        let mut world = World::new(shape);
        for (pause, action) in actions {
            world.now += pause;
            world.act(action);
            world.check();
        }
        world.finish();
        prop_assert_eq!(world.bench.caches.counters().stale_reads, 0);
    }
}
