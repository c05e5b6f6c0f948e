//! Which thread has stored to which words last: line by line as long as only one thread has stored to a line, else word
//! by word. Nearly all lines are one thread's, and there are so many that looking one up is mostly a cache miss.

use std::cell::Cell;

use rustc_hash::FxHashMap;

const LINE_WORDS: u64 = 16;
const PAGE_LINES: usize = 4096;

/// Where pages of lines begin, in pages.
struct Pages {
    starts: FxHashMap<u64, u32>,
    /// The last ones that were looked up, also those that are not there.
    recent: Box<[Cell<(u64, u32)>; RECENT]>,
}

const RECENT: usize = 512;
/// One that nobody has stored to.
const EMPTY: u32 = 0;

impl Pages {
    fn new() -> Self {
        Self { starts: FxHashMap::default(), recent: Box::new([const { Cell::new((u64::MAX, EMPTY)) }; RECENT]) }
    }

    #[inline(always)]
    fn start(&self, page: u64) -> u32 {
        let recent = &self.recent[page as usize % RECENT];
        let (known, start) = recent.get();
        if known == page {
            return start;
        }
        self.look_up(page)
    }

    #[cold]
    fn look_up(&self, page: u64) -> u32 {
        let start = self.starts.get(&page).copied().unwrap_or(EMPTY);
        self.recent[page as usize % RECENT].set((page, start));
        start
    }

    fn add(&mut self, page: u64, start: u32) {
        self.starts.insert(page, start);
        self.recent[page as usize % RECENT].set((page, start));
    }
}

/// What is known of a word: 0 where no thread has stored to it, else who did last, from 1, and at which step; or that
/// it is shared, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u64);

const STEP_BITS: u32 = 48;
/// Threads beyond count as one.
const THREADS_MAX: u64 = 0x7fff;
const SHARED: u64 = 1 << 63;

impl State {
    const NONE: Self = Self(0);

    #[inline(always)]
    pub(super) fn is_untouched(self) -> bool {
        self.0 == 0
    }

    /// Whether only this thread has stored to it, and no other has read what it stored.
    #[inline(always)]
    pub(super) fn is_own(self, thread: usize) -> bool {
        self.0 >> STEP_BITS == (thread as u64 + 1).min(THREADS_MAX)
    }

    #[inline(always)]
    pub(super) fn shared(self) -> Option<usize> {
        (self.0 & SHARED != 0).then_some((self.0 & !SHARED) as usize)
    }

    /// Who has stored to it last, and at which step, where it is not shared.
    pub(super) fn store(self) -> Option<(usize, u64)> {
        let is_stored = !self.is_untouched() && self.shared().is_none();
        is_stored.then(|| ((self.0 >> STEP_BITS) as usize - 1, self.0 & ((1 << STEP_BITS) - 1)))
    }

    fn of_store(thread: usize, step: u64) -> Self {
        Self((thread as u64 + 1).min(THREADS_MAX) << STEP_BITS | step & ((1 << STEP_BITS) - 1))
    }

    pub(super) fn of_shared(number: usize) -> Self {
        Self(SHARED | number as u64)
    }
}

/// Nothing; or the only thread that has stored to it, from 1, to which words, and at which step it did last; or where
/// its words stand.
#[derive(Clone, Copy)]
struct Line(u64);

const LINE_STEP_BITS: u32 = 36;
const LINE_THREAD_AT: u32 = LINE_STEP_BITS + LINE_WORDS as u32;
const DIVIDED: u64 = 1 << 63;

impl Line {
    const NONE: Self = Self(0);

    #[inline(always)]
    fn divided(self) -> Option<usize> {
        (self.0 & DIVIDED != 0).then_some((self.0 & !DIVIDED) as usize)
    }

    /// Of a line that is not divided.
    #[inline(always)]
    fn word(self, word: u64) -> State {
        if self.0 >> LINE_STEP_BITS >> word & 1 == 0 {
            return State::NONE;
        }
        State::of_store((self.0 >> LINE_THREAD_AT) as usize - 1, self.0 & ((1 << LINE_STEP_BITS) - 1))
    }

    /// With a thread's store to a word, if that can be said of the whole line.
    #[inline(always)]
    fn with_store(self, thread: usize, step: u64, word: u64) -> Option<Self> {
        let of_thread = (thread as u64 + 1) << LINE_THREAD_AT;
        let is_one = self.0 == 0 || self.0 >> LINE_THREAD_AT == thread as u64 + 1;
        let fits =
            step >> LINE_STEP_BITS == 0 && of_thread >> LINE_THREAD_AT == thread as u64 + 1 && of_thread < DIVIDED;
        let words = self.0 >> LINE_STEP_BITS & ((1 << LINE_WORDS) - 1) | 1 << word;
        (is_one && fits).then_some(Self(of_thread | words << LINE_STEP_BITS | step))
    }
}

pub(super) struct Lines {
    pages: Pages,
    /// Of all pages, and of an empty one before them.
    lines: Vec<Line>,
    divided: Vec<[State; LINE_WORDS as usize]>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { pages: Pages::new(), lines: vec![Line::NONE; PAGE_LINES], divided: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn state(&self, word: u64) -> State {
        let line = self.lines[self.at(word / LINE_WORDS)];
        match line.divided() {
            None => line.word(word % LINE_WORDS),
            Some(at) => self.divided[at][(word % LINE_WORDS) as usize],
        }
    }

    #[inline(always)]
    fn at(&self, line: u64) -> usize {
        self.pages.start(line / PAGE_LINES as u64) as usize * PAGE_LINES + line as usize % PAGE_LINES
    }

    #[inline(always)]
    fn line_mut(&mut self, line: u64) -> &mut Line {
        let mut at = self.at(line);
        if at < PAGE_LINES {
            self.pages.add(line / PAGE_LINES as u64, (self.lines.len() / PAGE_LINES) as u32);
            at += self.lines.len();
            self.lines.resize(self.lines.len() + PAGE_LINES, Line::NONE);
        }
        &mut self.lines[at]
    }

    /// A word by itself, whose line is divided for that.
    pub(super) fn state_mut(&mut self, word: u64) -> &mut State {
        let next = self.divided.len();
        let line = self.line_mut(word / LINE_WORDS);
        let at = line.divided().unwrap_or(next);
        if at == next {
            let states = std::array::from_fn(|word| line.word(word as u64));
            *line = Line(DIVIDED | at as u64);
            self.divided.push(states);
        }
        &mut self.divided[at][(word % LINE_WORDS) as usize]
    }

    /// A thread stores to a word; false if that is not its business alone.
    #[inline(always)]
    pub(super) fn store(&mut self, thread: usize, step: u64, word: u64) -> bool {
        let line = self.line_mut(word / LINE_WORDS);
        if line.divided().is_none()
            && let Some(stored) = line.with_store(thread, step, word % LINE_WORDS)
        {
            *line = stored;
            return true;
        }
        let state = self.state_mut(word);
        let is_own = state.is_untouched() || state.is_own(thread);
        if is_own {
            *state = State::of_store(thread, step);
        }
        is_own
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_STEP_BITS, LINE_WORDS, Lines, State};

    #[test]
    fn words_of_one_thread_s_line_have_its_last_store() {
        let mut lines = Lines::new();
        assert!(lines.store(3, 10, 32) && lines.store(3, 12, 34));
        assert_eq!((lines.state(32).store(), lines.state(34).store()), (Some((3, 12)), Some((3, 12))));
        assert!(lines.state(33).is_untouched() && lines.state(32 + LINE_WORDS).is_untouched());
        assert_eq!(lines.state(33).store(), None);
        assert!(lines.divided.is_empty());
    }

    #[test]
    fn a_line_that_two_threads_store_to_is_divided() {
        let mut lines = Lines::new();
        assert!(lines.store(0, 10, 32) && lines.store(1, 11, 33));
        assert!(!lines.store(1, 12, 32) && !lines.store(0, 13, 33));
        assert_eq!((lines.state(32).store(), lines.state(33).store()), (Some((0, 10)), Some((1, 11))));
        *lines.state_mut(34) = State::of_shared(7);
        assert_eq!((lines.state(34).shared(), lines.state(34).store()), (Some(7), None));
        assert!(!lines.store(0, 14, 34) && lines.store(0, 15, 35));
        assert_eq!(lines.divided.len(), 1);
    }

    #[test]
    fn what_does_not_fit_a_line_stands_at_its_words() {
        let (mut lines, far) = (Lines::new(), 1 << LINE_STEP_BITS);
        for (thread, step) in [(2046, 1), (2047, 1), (0x7ffd, far), (0, far - 1), (0, far)] {
            let word = 1000 * thread as u64;
            assert!(lines.store(thread, step, word), "{thread} {step}");
            assert_eq!(lines.state(word).store(), Some((thread, step)));
        }
    }
}
