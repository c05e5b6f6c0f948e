//! The words that threads touch, from when there is a second thread: who stored to each last.
//!
//! A word is shared from when a thread finds another's store there. What has happened to it before is its last store.
//! What happens from then on is logged ([`Log`]), and what happens from an atomic update on, although only one thread
//! may have touched the word: it may turn out to be a counter or a lock.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

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
/// Words for which a log may be longer by an access.
const WORDS_PER_ACCESS: usize = 8;
/// Those that are longer after that, for what is seen once more, or by nobody.
const LOG_LENGTH_SEEN: usize = 1 << 22;
/// No log is longer: where half of that is left after all, the oldest accesses go. An access takes 56 bytes here, and
/// about twice as many where edges are found.
const LOG_LENGTH_MAX: usize = 1 << 24;
/// Of reads, so many are known.
const SAID_MAX: usize = 1 << 20;

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
    /// Reads and updates that were forgotten before it was found what they have to come behind.
    pub undecided: Vec<Undecided>,
}

/// So many accesses of a thread, up to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    pub thread: usize,
    pub step: u64,
    pub count: u64,
}

impl Words {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            lines: Lines::new(),
            shared: Vec::new(),
            moments: Moments { clocks: vec![Clock(0)], of_threads: vec![Vec::new(); threads] },
            log: Log::new(threads),
            log_length_max: LOG_LENGTH,
            undecided: Vec::new(),
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

    /// Whether no other thread has stored to any of these words, as far as that is known at a glance.
    #[inline(always)]
    pub(super) fn are_private(&self, thread: usize, words: Range<u64>) -> bool {
        self.lines.are_private(thread, words)
    }

    /// A thread stores to several words, whoever did before, up to the first one that is shared. Those from there on
    /// are left.
    #[inline(always)]
    pub(super) fn store_over(&mut self, thread: usize, step: u64, words: Range<u64>) -> Range<u64> {
        self.lines.store_over(thread, step, words)
    }

    /// The first of these words that is shared, and its number.
    pub(super) fn first_shared(&self, words: Range<u64>) -> Option<(u64, usize)> {
        self.lines.first_shared(words)
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
            self.keep_short();
        }
    }

    #[cold]
    fn keep_short(&mut self) {
        self.forget(ALONE_KEPT, LOG_LENGTH_SEEN);
        self.forget_oldest(LOG_LENGTH_MAX);
        // What is looked through are words, too.
        let length = LOG_LENGTH.max(2 * self.log.len()).max(self.shared.len() / WORDS_PER_ACCESS);
        self.log_length_max = length.min(LOG_LENGTH_MAX);
    }

    /// Forgets the oldest accesses of a log of which more than half of the greatest length is left, but for the last
    /// store to each word: a quarter is left then. What the others had to come behind, nobody finds any more.
    fn forget_oldest(&mut self, length_max: usize) {
        if self.log.len() <= length_max / 2 {
            return;
        }
        let mut is_gone = vec![true; self.log.len() - length_max / 4];
        for last in self.shared.iter().filter_map(|shared| shared.last.checked_sub(1)) {
            if let Some(is_gone) = is_gone.get_mut(last as usize) {
                *is_gone = false;
            }
        }
        let mut of_threads: FxHashMap<usize, Undecided> = FxHashMap::default();
        let gone = self.log.iter().zip(&is_gone).filter(|(access, is_gone)| **is_gone && access.kind != Kind::Store);
        for (access, _) in gone {
            let thread = access.thread as usize;
            let of_thread = of_threads.entry(thread).or_insert(Undecided { thread, step: 0, count: 0 });
            (of_thread.step, of_thread.count) = (of_thread.step.max(access.step), of_thread.count + 1);
        }
        self.undecided.extend(of_threads.into_values());
        let new = self.log.forget(|at| is_gone.get(at).is_some_and(|gone| *gone));
        self.shared.iter_mut().for_each(|shared| shared.last = new[shared.last as usize]);
    }

    /// Forgets what threads have done to words that only they touch, but for these last changes, or up to twice as
    /// many: what is left begins, like the whole, with an update of the value that the first one found. Of a log that
    /// is longer than `length`, stores that nobody saw go, too, and reads that say nothing new.
    #[cold]
    fn forget(&mut self, kept: usize, length: usize) {
        // A word that is logged is shared, or updated.
        let number_of =
            |access: &Logged| self.state(word_of(access.address)).shared().expect("a logged word has a number") as u32;
        let numbers: Vec<u32> = self.log.iter().map(number_of).collect();
        let mut is_gone = vec![false; self.log.len()];
        let mut accesses = vec![0u32; self.shared.len()];
        numbers.iter().for_each(|number| accesses[*number as usize] += 1);
        // Those of words that have more than are kept.
        let mut alone: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, &number) in numbers.iter().enumerate() {
            if accesses[number as usize] as usize > 2 * kept && self.shared[number as usize].alone.is_some() {
                alone.entry(number).or_default().push(at);
            }
        }
        let found = |at: usize| self.log.found(at);
        for of_word in alone.values() {
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
    /// two and the last say all: what that word is, who stored to it, and what others saw. What the thread itself reads
    /// of them comes behind them anyway. Of reads at one place that see the same store and lead to the same block one
    /// is enough.
    fn find_unseen(&self, numbers: &[u32], is_gone: &mut [bool]) {
        #[derive(Clone, Copy, Default)]
        struct Stores {
            thread: u32,
            count: u32,
            last: u32,
            /// The last store or update, by its number from 1.
            version: u32,
        }
        let mut said: FxHashSet<(usize, u32, u32, Place, u32)> = FxHashSet::default();
        let mut of_words = vec![Stores::default(); self.shared.len()];
        let awaited: FxHashSet<usize> =
            self.log.reads_to_come().filter_map(|access| self.state(word_of(access.address)).shared()).collect();
        for (at, (access, number)) in self.log.iter().zip(numbers).enumerate() {
            let number = *number as usize;
            if is_gone[at] || awaited.contains(&number) {
                continue;
            }
            let stores = &mut of_words[number];
            if access.kind == Kind::Read {
                let is_own = stores.count > 0 && stores.thread == access.thread;
                is_gone[at] =
                    is_own || !said.insert((number, stores.version, access.thread, access.place, access.outcome));
                if !is_own {
                    stores.count = 0;
                }
                if said.len() == SAID_MAX {
                    said.clear();
                }
                continue;
            }
            stores.version = at as u32 + 1;
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
            *stores = Stores { thread: access.thread, count: stores.count + 1, last: at as u32, ..*stores };
        }
    }

    /// Nothing more comes: puts the log into the order of the one sequence.
    pub(super) fn finish(&mut self) {
        self.forget(0, LOG_LENGTH_SEEN);
        self.forget_oldest(LOG_LENGTH_MAX);
        self.log.sort();
    }

    /// Of the stores to some words, those of which it is not known where they were, by their numbers from 0 in the log.
    pub(super) fn unplaced(&self, is_wanted: impl Fn(u64) -> bool) -> FxHashSet<usize> {
        let is_unplaced =
            |access: &Logged| !access.is_exact() && access.kind == Kind::Store && is_wanted(word_of(access.address));
        self.log.iter().enumerate().filter(|(_, access)| is_unplaced(access)).map(|(at, _)| at).collect()
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
        // Reads alone may make it long.
        if self.log.len() > LOG_LENGTH_MAX {
            self.keep_short();
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

#[cfg(test)]
mod tests {
    use super::{ALONE_KEPT, Kind, Undecided, Words};
    use crate::event::Clock;

    const WORD: u64 = 0x1000;
    const PLACE: (u32, u16) = (1, 0);

    /// Two threads and a word that both have stored to; each access is a turn, and a step.
    struct Turns {
        words: Words,
        number: usize,
        step: u64,
    }

    impl Turns {
        fn new() -> Self {
            let mut words = Words::new(2);
            words.store(0, 0, WORD);
            let number = words.share(1, WORD, None);
            words.meet(1, number);
            Self { words, number, step: 0 }
        }

        fn turn(&mut self, thread: usize) -> u64 {
            self.step += 1;
            self.words.tick(thread, self.step, Clock(self.step), true);
            self.step
        }

        fn store(&mut self, thread: usize) {
            let step = self.turn(thread);
            let mut store = self.words.logged(thread, step, PLACE, Kind::Store);
            store.address = WORD * super::WORD_BYTES;
            self.words.change(self.number, store);
        }

        fn read(&mut self, thread: usize, is_over: bool) {
            let step = self.turn(thread);
            assert!(self.words.is_news(thread, self.number));
            self.look(thread, step, is_over);
        }

        /// Whether it is news to the thread or not.
        fn look(&mut self, thread: usize, step: u64, is_over: bool) {
            let mut read = self.words.logged(thread, step, PLACE, Kind::Read);
            read.address = WORD * super::WORD_BYTES;
            let seen = self.words.word(self.number).version;
            self.words.log.read(read, seen, 0);
            if is_over {
                self.words.log.go_on(thread, step + 1, 2);
            }
        }

        /// The steps of what is left.
        fn left(&mut self) -> Vec<u64> {
            self.words.forget(ALONE_KEPT, 0);
            self.words.log.iter().map(|access| access.step).collect()
        }
    }

    #[test]
    fn of_stores_that_nobody_saw_the_first_two_and_the_last_are_left() {
        let mut turns = Turns::new();
        (0..5).for_each(|_| turns.store(0));
        turns.read(1, true);
        (0..6).for_each(|_| turns.store(0));
        assert_eq!(turns.left(), [0, 1, 5, 6, 7, 8, 12], "with the one before it was shared");
        let Turns { words, .. } = &turns;
        let seen = |step| words.seen(0, step, WORD, 0).step;
        assert_eq!((seen(13), seen(12), seen(8), seen(1)), (12, 8, 7, 0));
    }

    #[test]
    fn what_a_thread_reads_of_its_own_stores_goes_and_others_reads_stay_once() {
        let mut turns = Turns::new();
        (0..3).for_each(|_| turns.store(0));
        for thread in [0, 0, 1, 1] {
            let step = turns.turn(thread);
            turns.look(thread, step, true);
            // Another read lets the next one be logged.
            turns.words.log.forget_known();
        }
        turns.store(0);
        assert_eq!(turns.left(), [0, 1, 3, 6, 8], "the second's first read, but no other");
    }

    #[test]
    fn of_a_log_that_is_too_long_the_oldest_goes_but_for_the_last_store_to_each_word() {
        let mut turns = Turns::new();
        turns.store(0);
        turns.read(1, true);
        let other = turns.words.share(0, WORD + 1, None);
        for _ in 0..6 {
            let step = turns.turn(1);
            let mut store = turns.words.logged(1, step, PLACE, Kind::Store);
            store.address = (WORD + 1) * super::WORD_BYTES;
            turns.words.change(other, store);
        }
        turns.words.forget_oldest(100);
        assert_eq!((turns.words.log.len(), turns.words.undecided.len()), (9, 0), "it is short enough");
        turns.words.forget_oldest(8);
        assert_eq!(turns.words.log.iter().map(|access| access.step).collect::<Vec<_>>(), [1, 7, 8]);
        assert_eq!(turns.words.undecided, [Undecided { thread: 1, step: 2, count: 1 }]);
        assert_eq!((turns.words.seen(1, 9, WORD, 0).step, turns.words.seen(1, 9, WORD + 1, 0).step), (1, 8));
    }

    #[test]
    fn a_store_of_another_thread_is_seen_between_others() {
        let mut turns = Turns::new();
        (0..6).for_each(|at| turns.store(at % 2));
        assert_eq!(turns.left(), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_a_read_saw_whose_outcome_is_to_come_is_left() {
        let mut turns = Turns::new();
        (0..5).for_each(|_| turns.store(0));
        turns.read(1, false);
        turns.store(0);
        assert_eq!(turns.left(), [0, 1, 2, 3, 4, 5, 7]);
    }
}
