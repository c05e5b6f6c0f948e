//! Which thread has stored to which words last: line by line as long as only one thread has stored to a line, else word
//! by word. Nearly all lines are one thread's, and there are so many that looking one up is mostly a cache miss.

use std::cell::Cell;
use std::ops::Range;

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

    /// Whether no other thread has stored to words of these; of a line that is divided, nobody can say.
    #[inline(always)]
    fn is_private(self, thread: usize, words: u64) -> bool {
        let is_own = self.0 >> LINE_THREAD_AT == thread as u64 + 1;
        self.0 & DIVIDED == 0 && (is_own || self.0 >> LINE_STEP_BITS & words == 0)
    }

    /// With a thread's store to words, a bit for each, if that can be said of the whole line.
    #[inline(always)]
    fn with_store(self, thread: usize, step: u64, words: u64) -> Option<Self> {
        let of_thread = (thread as u64 + 1) << LINE_THREAD_AT;
        let is_one = self.0 == 0 || self.0 >> LINE_THREAD_AT == thread as u64 + 1;
        let fits =
            step >> LINE_STEP_BITS == 0 && of_thread >> LINE_THREAD_AT == thread as u64 + 1 && of_thread < DIVIDED;
        let words = self.0 >> LINE_STEP_BITS & ((1 << LINE_WORDS) - 1) | words;
        (is_one && fits).then_some(Self(of_thread | words << LINE_STEP_BITS | step))
    }
}

/// The part of these words that lies in one line with the first, with a bit for each.
#[inline(always)]
fn in_line(words: &Range<u64>) -> (u64, u64) {
    let end = words.end.min((words.start / LINE_WORDS + 1) * LINE_WORDS);
    (end, ((1 << (end - words.start)) - 1) << (words.start % LINE_WORDS))
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
        let at = self.divide(word / LINE_WORDS);
        &mut self.divided[at][(word % LINE_WORDS) as usize]
    }

    /// Where the words of a line stand from now on, if they did not before.
    fn divide(&mut self, line: u64) -> usize {
        let next = self.divided.len();
        let line = self.line_mut(line);
        let at = line.divided().unwrap_or(next);
        if at == next {
            let states = std::array::from_fn(|word| line.word(word as u64));
            *line = Line(DIVIDED | at as u64);
            self.divided.push(states);
        }
        at
    }

    /// Whether no other thread has stored to any of these words, as far as their lines say.
    #[inline(always)]
    pub(super) fn are_private(&self, thread: usize, mut words: Range<u64>) -> bool {
        while !words.is_empty() {
            let (end, bits) = in_line(&words);
            let line = self.lines[self.at(words.start / LINE_WORDS)];
            let is_private = match line.divided() {
                None => line.is_private(thread, bits),
                Some(at) => self.states(at, words.start..end).all(|state| state.is_untouched() || state.is_own(thread)),
            };
            if !is_private {
                return false;
            }
            words.start = end;
        }
        true
    }

    /// Those of words of one line that is divided.
    fn states(&self, divided: usize, words: Range<u64>) -> impl Iterator<Item = State> {
        let first = (words.start % LINE_WORDS) as usize;
        self.divided[divided][first..][..(words.end - words.start) as usize].iter().copied()
    }

    /// The first of these words that is shared, and its number.
    pub(super) fn first_shared(&self, mut words: Range<u64>) -> Option<(u64, usize)> {
        while !words.is_empty() {
            let (end, _) = in_line(&words);
            if let Some(at) = self.lines[self.at(words.start / LINE_WORDS)].divided() {
                let states = (words.start..).zip(self.states(at, words.start..end));
                let mut shared = states.filter_map(|(word, state)| Some((word, state.shared()?)));
                if let Some(first) = shared.next() {
                    return Some(first);
                }
            }
            words.start = end;
        }
        None
    }

    /// A thread stores to several words, whoever did before, up to the first one that is shared. Those from there on
    /// are left.
    #[inline(always)]
    pub(super) fn store_over(&mut self, thread: usize, step: u64, mut words: Range<u64>) -> Range<u64> {
        while !words.is_empty() {
            let (end, bits) = in_line(&words);
            let line = self.line_mut(words.start / LINE_WORDS);
            match line.with_store(thread, step, bits) {
                Some(stored) => *line = stored,
                None => {
                    words.start = self.store_over_divided(thread, step, words.start..end);
                    if words.start < end {
                        break;
                    }
                }
            }
            words.start = end;
        }
        words
    }

    /// Likewise, of one line; the first word that is shared, or the end.
    fn store_over_divided(&mut self, thread: usize, step: u64, words: Range<u64>) -> u64 {
        let at = self.divide(words.start / LINE_WORDS);
        for word in words.clone() {
            let state = &mut self.divided[at][(word % LINE_WORDS) as usize];
            if state.shared().is_some() {
                return word;
            }
            *state = State::of_store(thread, step);
        }
        words.end
    }

    /// A thread stores to a word; false if that is not its business alone.
    #[inline(always)]
    pub(super) fn store(&mut self, thread: usize, step: u64, word: u64) -> bool {
        let line = self.line_mut(word / LINE_WORDS);
        if line.divided().is_none()
            && let Some(stored) = line.with_store(thread, step, 1 << (word % LINE_WORDS))
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
    fn a_store_over_others_words_ends_at_the_first_that_is_shared() {
        let (mut lines, words) = (Lines::new(), 8..40);
        assert!(lines.store_over(0, 10, words.clone()).is_empty() && lines.divided.is_empty());
        assert!(lines.are_private(0, words.clone()) && !lines.are_private(1, words.clone()));
        assert!(lines.store_over(1, 11, 30..34).is_empty());
        assert_eq!((lines.state(29).store(), lines.state(30).store()), (Some((0, 10)), Some((1, 11))));
        assert!(lines.are_private(0, 8..30) && !lines.are_private(0, 29..31) && lines.are_private(1, 30..34));
        assert_eq!(lines.first_shared(words.clone()), None);
        *lines.state_mut(33) = State::of_shared(7);
        assert_eq!((lines.first_shared(words.clone()), lines.first_shared(34..40)), (Some((33, 7)), None));
        assert_eq!(lines.store_over(0, 12, words), 33..40);
        assert_eq!((lines.state(32).store(), lines.state(34).store()), (Some((0, 12)), Some((0, 10))));
        assert!(!lines.are_private(0, 32..34));
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
