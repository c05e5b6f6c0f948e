//! Arbitration: which of the sources that ask for a destination has the next turn.
//!
//! The source whose last turn is longest ago goes first (a matrix arbiter, W. J. Dally and B. Towles, *Principles and
//! Practices of Interconnection Networks*, 18.5). Among those that can always go this is round-robin. But not every
//! source that asks can go: a class may have no credit, the persist buffer no room. A round-robin's pointer is moved on
//! by those that can go, so that it may stand before the same one of the others each time one of them could go.

/// The arbiter of one destination. Its sources are numbered; each asks or does not ask.
#[derive(Clone, Debug)]
pub struct Arbiter {
    /// One bit for each source that asks.
    asking: Box<[u64]>,
    /// How many ask.
    count: usize,
    /// The turn that each source had last; 0 if none. Of turns that sources had alone only the last one counts.
    last_turns: Box<[u64]>,
    turns: u64,
    /// The source that had the last turn, alone, if that is not in the list yet: where no source waits for another the
    /// list is not touched.
    alone: Option<u32>,
    /// One bit for each source whose turn it was when another had one.
    passed_over: Box<[u64]>,
}

impl Arbiter {
    /// An arbiter among `sources` sources; it begins with source 0.
    pub fn new(sources: usize) -> Arbiter {
        Arbiter {
            asking: vec![0; sources.div_ceil(64)].into(),
            count: 0,
            last_turns: vec![0; sources].into(),
            turns: 0,
            alone: None,
            passed_over: vec![0; sources.div_ceil(64)].into(),
        }
    }

    /// `source` asks from now on.
    pub fn ask(&mut self, source: usize) {
        debug_assert!(source < self.last_turns.len());
        let word = &mut self.asking[source / 64];
        self.count += usize::from(*word >> (source % 64) & 1 == 0);
        *word |= 1 << (source % 64);
        if self.count > 1
            && let Some(alone) = self.alone.take()
        {
            self.note(alone as usize);
        }
    }

    /// `source`, which asks, does so no longer, without having had its turn.
    pub fn withdraw(&mut self, source: usize) {
        let word = &mut self.asking[source / 64];
        debug_assert!(*word >> (source % 64) & 1 == 1);
        self.count -= 1;
        *word &= !(1 << (source % 64));
    }

    /// `source`, which asks, has its turn, and asks no longer.
    pub fn grant(&mut self, source: usize) {
        self.withdraw(source);
        self.passed_over[source / 64] &= !(1 << (source % 64));
        match self.is_empty() {
            true => self.has_turn_alone(source),
            false => self.note(source),
        }
    }

    /// `source` has its turn without having asked; no other source asks.
    pub fn has_turn_alone(&mut self, source: usize) {
        self.alone = Some(source as u32);
    }

    /// Another has the turn that would be that of `source`, which asks.
    pub fn pass_over(&mut self, source: usize) {
        self.passed_over[source / 64] |= 1 << (source % 64);
    }

    /// Whether `source` has been passed over since its last turn.
    pub fn was_passed_over(&self, source: usize) -> bool {
        self.passed_over[source / 64] >> (source % 64) & 1 == 1
    }

    fn note(&mut self, source: usize) {
        self.turns += 1;
        self.last_turns[source] = self.turns;
    }

    /// Whether no source asks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// No source asks any longer.
    pub fn clear(&mut self) {
        self.asking.fill(0);
        self.count = 0;
        self.passed_over.fill(0);
    }

    /// Those that ask, ascending.
    pub fn asking(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.asking.iter().enumerate();
        words.flat_map(|(word, bits)| Bits(*bits).map(move |bit| word * 64 + bit))
    }

    /// Which of two sources that ask goes before the other.
    pub fn earlier(&self, one: usize, other: usize) -> usize {
        if self.turn(other) < self.turn(one) { other } else { one }
    }

    /// What sources are ordered by: by how long ago they had their last turn, and of those that never had one the
    /// first.
    pub fn turn(&self, source: usize) -> (u64, usize) {
        (self.last_turns[source], source)
    }
}

/// The positions of the bits that are set, ascending.
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sources: usize, asking: &[usize]) -> Arbiter {
        let mut arbiter = Arbiter::new(sources);
        asking.iter().for_each(|source| arbiter.ask(*source));
        arbiter
    }

    fn next(arbiter: &Arbiter, can_go: impl Fn(usize) -> bool) -> usize {
        let can_go = arbiter.asking().filter(|source| can_go(*source));
        can_go.reduce(|one, other| arbiter.earlier(one, other)).expect("one can go")
    }

    #[test]
    fn those_that_ask_are_found_wherever_they_are() {
        let arbiter = asked(200, &[3, 64, 70, 130, 199]);
        assert_eq!(arbiter.asking().collect::<Vec<_>>(), [3, 64, 70, 130, 199]);
    }

    #[test]
    fn everyone_who_keeps_asking_is_served_in_turn() {
        let mut arbiter = asked(7, &[0, 2, 3, 6]);
        for round in 0..100 {
            for expected in [0, 2, 3, 6] {
                let source = next(&arbiter, |_| true);
                assert_eq!(source, expected, "round {round}");
                arbiter.grant(source);
                arbiter.ask(source);
            }
        }
    }

    #[test]
    fn who_had_its_turn_while_nobody_else_asked_is_behind_who_asks_now() {
        let mut arbiter = asked(3, &[0]);
        for _ in 0..10 {
            arbiter.grant(0);
            arbiter.ask(2);
            arbiter.ask(0);
            assert_eq!(next(&arbiter, |_| true), 2);
            arbiter.grant(2);
            assert_eq!(next(&arbiter, |_| true), 0);
        }
    }

    #[test]
    fn who_can_always_go_takes_no_turn_from_those_that_can_seldom() {
        // Source 5 always finds a credit; the others share one that comes between its turns.
        let mut arbiter = asked(8, &[0, 1, 2, 5, 7]);
        let mut served = [0; 8];
        for turn in 0..800 {
            let source = if turn % 2 == 0 { 5 } else { next(&arbiter, |source| source != 5) };
            served[source] += 1;
            arbiter.grant(source);
            arbiter.ask(source);
        }
        assert_eq!(served, [100, 100, 100, 0, 0, 400, 0, 100]);
    }

    #[test]
    fn each_that_was_passed_over_is_so_until_its_turn() {
        let mut arbiter = asked(130, &[1, 65, 129]);
        arbiter.pass_over(1);
        arbiter.pass_over(129);
        assert_eq!([1, 65, 129].map(|source| arbiter.was_passed_over(source)), [true, false, true]);
        arbiter.grant(1);
        arbiter.grant(65);
        assert_eq!([1, 65, 129].map(|source| arbiter.was_passed_over(source)), [false, false, true]);
        arbiter.clear();
        assert!(!arbiter.was_passed_over(129));
    }

    #[test]
    fn who_withdraws_is_not_asked_for() {
        let mut arbiter = asked(64, &[63]);
        arbiter.withdraw(63);
        assert!(arbiter.is_empty());
        assert_eq!(arbiter.asking().count(), 0);
    }
}
