//! The words that threads touch, from when there is a second thread: who stored to each last.
//!
//! A word is shared from when a thread finds another's store there. What has happened to it before is its last store.
//! What happens from then on is logged ([`Log`]), and what happens from an atomic update on, although only one thread
//! may have touched the word: it may turn out to be a counter or a lock.

use rustc_hash::FxHashSet;

use super::history::{Place, Version};
use super::lines::{Lines, State};
use super::log::{Kind, Log, Logged};
use crate::event::Clock;

/// Bytes of a word.
pub(super) const WORD_BYTES: u64 = 4;

/// The word that an address lies in.
pub(super) fn word_of(address: u64) -> u64 {
    address / WORD_BYTES
}

/// A word that threads share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub version: Version,
    /// A bit for each thread that has read it, or stored it.
    readers: u64,
    /// Whether it has been updated atomically.
    pub is_updated: bool,
    /// The only thread that has touched it, and when it last handed out a number there, or took its place in a queue.
    alone: Option<(usize, Option<u64>)>,
    /// The last store in the log.
    last: u32,
}

/// So many changes of a word that only one thread has touched are kept at least.
const ALONE_KEPT: usize = 64;
/// Longer logs are looked through for what can be forgotten.
const LOG_LENGTH: usize = 1 << 18;
/// Those that are longer after that, for stores that nobody saw.
const LOG_LENGTH_SEEN: usize = 1 << 22;

/// Threads of which each has a bit of [`Shared::readers`].
const READERS: usize = u64::BITS as usize;

/// Where the process clock stands, and since which step of each thread.
#[derive(Default)]
struct Moments {
    clocks: Vec<Clock>,
    of_threads: Vec<Vec<(u64, u32)>>,
}

pub(super) struct Words {
    lines: Lines,
    shared: Vec<Shared>,
    moments: Moments,
    pub log: Log,
    log_length_max: usize,
}

impl Words {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            lines: Lines::new(),
            shared: Vec::new(),
            moments: Moments { clocks: vec![Clock(0)], of_threads: vec![Vec::new(); threads] },
            log: Log::new(threads),
            log_length_max: LOG_LENGTH,
        }
    }

    #[inline(always)]
    pub(super) fn state(&self, word: u64) -> State {
        self.lines.state(word)
    }

    /// A thread stores to a word; false if that is not its business alone.
    #[inline(always)]
    pub(super) fn store(&mut self, thread: usize, step: u64, word: u64) -> bool {
        self.lines.store(thread, step, word)
    }

    pub(super) fn is_shared(&self, word: u64) -> bool {
        self.state(word).shared().is_some_and(|shared| self.shared[shared].alone.is_none())
    }

    /// Whether another thread has stored to a word since what this one saw there.
    pub(super) fn is_newer(&self, thread: usize, word: u64, seen: Version) -> bool {
        let state = self.state(word);
        match state.shared().map(|shared| self.shared[shared].version) {
            Some(now) => now.number > seen.number && now.thread != thread,
            None => !state.is_untouched() && !state.is_own(thread),
        }
    }

    /// A thread touches a word that is logged: whether only it has ever done so. If that was so of another thread, it
    /// is no longer: that thread, and when it last handed out a number there.
    #[inline]
    pub(super) fn meet(&mut self, thread: usize, shared: usize) -> (bool, Option<(usize, u64)>) {
        let alone = &mut self.shared[shared].alone;
        match *alone {
            None => (false, None),
            Some((only, _)) if only == thread => (true, None),
            Some((other, step)) => {
                *alone = None;
                (false, step.map(|step| (other, step)))
            }
        }
    }

    /// From now on it is known of the word alone who stores to it.
    pub(super) fn keep_apart(&mut self, word: u64) {
        self.lines.state_mut(word);
    }

    pub(super) fn word(&self, shared: usize) -> &Shared {
        &self.shared[shared]
    }

    /// The number of a word that is shared, or updated, from now on, if it was not before. `exact` is where its last
    /// store was, if that is known.
    pub(super) fn share(&mut self, thread: usize, word: u64, exact: Option<(u64, Place, u64)>) -> usize {
        let state = self.state(word);
        if let Some(shared) = state.shared() {
            return shared;
        }
        let number = self.shared.len();
        let mut shared = Shared { version: Version::default(), readers: 0, is_updated: false, alone: None, last: 0 };
        if state.is_untouched() || state.is_own(thread) {
            shared.alone = Some((thread, None));
        }
        if let Some((thread, step)) = state.store() {
            let (step, place, address) = exact.unwrap_or((step, (0, 0), word * WORD_BYTES));
            let store = Logged { address, ..self.logged(thread, step, place, Kind::Store) };
            shared.version = Version { number: store.number, thread, step };
            shared.readers = 1 << (thread % READERS);
            shared.last = self.log.store(store);
        }
        self.shared.push(shared);
        *self.lines.state_mut(word) = State::of_shared(number);
        number
    }

    /// A thread reads a shared word: whether it is the first time that it sees this store, by another thread.
    #[inline]
    pub(super) fn is_news(&mut self, thread: usize, shared: usize) -> bool {
        let word = &mut self.shared[shared];
        let bit = 1 << (thread % READERS);
        let is_known = word.readers & bit != 0 && thread < READERS - 1;
        word.readers |= bit;
        !is_known && word.version.thread != thread && word.version.number > 0
    }

    /// A thread changes a shared word.
    pub(super) fn change(&mut self, shared: usize, mut store: Logged) {
        let word = &mut self.shared[shared];
        word.version = Version { number: store.number, thread: store.thread as usize, step: store.step };
        word.readers = 1 << (store.thread as usize % READERS);
        store.earlier = word.last;
        word.last = self.log.store(store);
        if self.log.len() > self.log_length_max {
            self.forget(ALONE_KEPT, LOG_LENGTH_SEEN);
            self.log_length_max = LOG_LENGTH.max(2 * self.log.len());
        }
    }

    /// Forgets what threads have done to words that only they touch, but for these last changes, or up to twice as
    /// many: what is left begins, like the whole, with an update of the value that the first one found. Of a log that
    /// is longer than `length`, stores that nobody saw go, too.
    #[cold]
    fn forget(&mut self, kept: usize, length: usize) {
        let numbers: Vec<Option<usize>> =
            self.log.iter().map(|access| self.state(word_of(access.address)).shared()).collect();
        let mut is_gone = vec![false; self.log.len()];
        let mut alone = Vec::new();
        let mut accesses = vec![0; self.shared.len()];
        for number in numbers.iter().copied().flatten().filter(|&number| self.shared[number].alone.is_some()) {
            accesses[number] += 1;
            if accesses[number] == 2 * kept + 1 {
                alone.push((number, Vec::new()));
            }
        }
        // Where those with more than are kept stand.
        let mut places = vec![None; self.shared.len()];
        alone.iter().enumerate().for_each(|(at, (number, _))| places[*number] = Some(at));
        for (at, number) in numbers.iter().enumerate() {
            if let Some(place) = number.and_then(|number| places[number]) {
                alone[place].1.push(at);
            }
        }
        let found = |at: usize| self.log.found(at);
        for (_, of_word) in &alone {
            let from = of_word.len() - 2 * kept;
            let first = of_word.iter().find_map(|at| found(*at));
            let like_first = of_word[from..].iter().take(kept).position(|at| found(*at) == first);
            for at in &of_word[..like_first.map_or(from + kept, |further| from + further)] {
                is_gone[*at] = true;
            }
        }
        let gone = is_gone.iter().filter(|gone| **gone).count();
        if self.log.len() - gone > length {
            self.find_unseen(&numbers, &mut is_gone);
        }
        let new = self.log.forget(|at| is_gone[at]);
        self.shared.iter_mut().for_each(|shared| shared.last = new[shared.last as usize]);
    }

    /// Of plain stores of one thread to a word, one behind the other, that no other thread read in between, the first
    /// two and the last say all: what that word is, who stored to it, and what others saw.
    fn find_unseen(&self, numbers: &[Option<usize>], is_gone: &mut [bool]) {
        #[derive(Clone, Copy, Default)]
        struct Stores {
            thread: u32,
            count: u32,
            last: u32,
        }
        let mut of_words = vec![Stores::default(); self.shared.len()];
        let awaited: FxHashSet<usize> =
            self.log.reads_to_come().filter_map(|access| self.state(word_of(access.address)).shared()).collect();
        for (at, (access, number)) in self.log.iter().zip(numbers).enumerate() {
            let Some(number) = number.filter(|number| !is_gone[at] && !awaited.contains(number)) else { continue };
            let stores = &mut of_words[number];
            if access.kind != Kind::Store {
                stores.count = 0;
                continue;
            }
            if stores.count > 0 && stores.thread != access.thread {
                stores.count = 0;
            }
            if stores.count > 2 {
                is_gone[stores.last as usize] = true;
            }
            *stores = Stores { thread: access.thread, count: stores.count + 1, last: at as u32 };
        }
    }

    /// Nothing more comes: puts the log into the order of the one sequence.
    pub(super) fn finish(&mut self) {
        self.forget(0, LOG_LENGTH_SEEN);
        self.log.sort();
    }

    /// The only thread that has touched a word hands out a number there.
    pub(super) fn hand_out(&mut self, thread: usize, shared: usize, step: u64) {
        self.shared[shared].alone = Some((thread, Some(step)));
    }

    pub(super) fn mark_updated(&mut self, shared: usize) {
        self.shared[shared].is_updated = true;
    }

    /// The process clock goes on, while this thread has its turn, or a turn begins. What a thread waits for in the
    /// kernel has the clock of when it is over, which turns of others come before.
    pub(super) fn tick(&mut self, thread: usize, step: u64, clock: Clock, begins_turn: bool) {
        if begins_turn || self.moments.clocks.last().is_none_or(|last| clock > *last) {
            self.moments.of_threads[thread].push((step, self.moments.clocks.len() as u32));
            self.moments.clocks.push(clock);
        }
    }

    /// The place of a thread's step in the one sequence.
    pub(super) fn number(&self, thread: usize, step: u64) -> u64 {
        let moments = &self.moments.of_threads[thread];
        let now = moments.last().filter(|(from, _)| *from <= step);
        let at = || moments.partition_point(|(from, _)| *from <= step).checked_sub(1).map(|at| &moments[at]);
        let &(from, moment) = now.or_else(at).unwrap_or(&(0, 0));
        u64::from(moment) << 32 | (step - from).min(u32::MAX.into())
    }

    /// When a place in the one sequence was.
    pub(super) fn clock(&self, number: u64) -> Clock {
        self.moments.clocks[(number >> 32) as usize]
    }

    pub(super) fn logged(&self, thread: usize, step: u64, place: Place, kind: Kind) -> Logged {
        Logged { number: self.number(thread, step), step, place, thread: thread as u32, kind, ..Logged::default() }
    }

    /// The store that a thread saw at a step, which is not before `since` in the one sequence.
    pub(super) fn seen(&self, thread: usize, step: u64, word: u64, since: u64) -> Version {
        let Some(shared) = self.state(word).shared() else { return Version::default() };
        let Shared { version, last, .. } = self.shared[shared];
        if version.number < since { version } else { self.log.last_before(last, self.number(thread, step)) }
    }
}
