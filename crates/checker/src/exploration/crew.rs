//! Threads that expand blocks of states. What they find comes back in the order in which the blocks were given, so that
//! the number of threads changes no number of a state. Who takes it waits for no block: while the next block is not
//! expanded, it expands one itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

use super::expand::{Block, Expand, Expanded};

/// Blocks under way for each thread, and one for the first: so many that none runs out of them while the first thread
/// looks up.
const BLOCKS_PER_THREAD: usize = 4;

/// The threads, beside the one that has this.
pub struct Crew<'env, E: Expand<K>, const K: usize> {
    expander: &'env E,
    threads: usize,
    shared: Arc<Shared<K>>,
    /// Blocks that were given and not taken yet.
    under_way: usize,
    /// What expanding a block oneself needs.
    scratch: E::Scratch,
}

/// What all threads see.
struct Shared<const K: usize> {
    desk: Mutex<Desk<K>>,
    /// There is a block to be expanded, or no more will come.
    called: Condvar,
}

/// The blocks that are under way.
struct Desk<const K: usize> {
    /// In the order in which they were given.
    jobs: VecDeque<Job<K>>,
    /// The number of the first of them: how many were taken before it.
    taken: usize,
    /// The number of the first that nobody has begun.
    begun: usize,
    is_closed: bool,
}

/// A block under way.
enum Job<const K: usize> {
    /// It is not expanded yet. One whose expansion panics stays so.
    Open(Arc<Block<K>>),
    /// It is expanded.
    Done(Expanded<K>),
}

/// What to do next about the first block.
enum Next<const K: usize> {
    /// It is expanded: take it.
    Take(Expanded<K>),
    /// Another is to be begun meanwhile.
    Begin(usize, Arc<Block<K>>),
    /// All are begun. Who is at the first may have no processor, or panicked: do it again.
    DoFirst(Arc<Block<K>>),
}

impl<const K: usize> Shared<K> {
    fn desk(&self) -> MutexGuard<'_, Desk<K>> {
        // Nothing panics that holds it.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a block that nobody has begun, and begins it; nothing if no more will come.
    fn wait_for_block(&self) -> Option<(usize, Arc<Block<K>>)> {
        let mut desk = self.desk();
        while !desk.is_closed {
            if let Some(block) = desk.begin() {
                return Some(block);
            }
            desk = self.called.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl<const K: usize> Desk<K> {
    /// The first block that nobody has begun, with its number.
    fn begin(&mut self) -> Option<(usize, Arc<Block<K>>)> {
        let Some(Job::Open(block)) = self.jobs.get(self.begun - self.taken) else { return None };
        self.begun += 1;
        Some((self.begun - 1, Arc::clone(block)))
    }

    /// What to do next; nothing if there are no blocks.
    fn next(&mut self) -> Option<Next<K>> {
        if let Job::Open(first) = self.jobs.front()? {
            let first = Arc::clone(first);
            return Some(match self.begin() {
                Some((number, block)) => Next::Begin(number, block),
                None => Next::DoFirst(first),
            });
        }
        match self.pop_first()? {
            Job::Done(expanded) => Some(Next::Take(expanded)),
            Job::Open(_) => unreachable!("it is expanded"),
        }
    }

    /// The first is taken, whatever became of it.
    fn pop_first(&mut self) -> Option<Job<K>> {
        self.taken += 1;
        self.jobs.pop_front()
    }

    /// Block `number` is expanded. Gives what is not needed any more, for whoever holds no lock to free: another may
    /// have expanded it as well.
    fn finish(&mut self, number: usize, expanded: Expanded<K>) -> Job<K> {
        let job = number.checked_sub(self.taken).and_then(|place| self.jobs.get_mut(place));
        match job {
            Some(job @ Job::Open(_)) => std::mem::replace(job, Job::Done(expanded)),
            _ => Job::Done(expanded),
        }
    }
}

impl<'env, E: Expand<K>, const K: usize> Crew<'env, E, K> {
    /// So many threads, or as many as can be had, which end when the crew is dropped.
    pub fn new<'scope>(scope: &'scope Scope<'scope, 'env>, expander: &'env E, threads: usize) -> Self {
        let desk = Desk { jobs: VecDeque::new(), taken: 0, begun: 0, is_closed: false };
        let shared = Arc::new(Shared { desk: Mutex::new(desk), called: Condvar::new() });
        let start = || {
            let shared = Arc::clone(&shared);
            Builder::new().spawn_scoped(scope, move || work(expander, &shared))
        };
        let started = (0..threads).take_while(|_| start().is_ok()).count();
        Crew { expander, threads: started, shared, under_way: 0, scratch: E::Scratch::default() }
    }

    /// Whether one more block may be given.
    pub fn has_room(&self) -> bool {
        self.under_way <= self.threads * BLOCKS_PER_THREAD
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// One more block to be expanded, by whoever comes to it first.
    pub fn give(&mut self, block: Block<K>) {
        let job = Job::Open(Arc::new(block));
        self.shared.desk().jobs.push_back(job);
        self.under_way += 1;
        // The only one is for who takes it.
        if self.under_way > 1 {
            self.shared.called.notify_one();
        }
    }

    /// What the block that was given first leads to; nothing if none is under way.
    ///
    /// # Panics
    /// If expanding it does: as it would without threads.
    pub fn take(&mut self) -> Option<Expanded<K>> {
        loop {
            let next = self.shared.desk().next()?;
            let expanded = match next {
                Next::Take(expanded) => expanded,
                Next::Begin(number, block) => {
                    try_block(self.expander, &self.shared, number, &block, &mut self.scratch);
                    continue;
                }
                Next::DoFirst(block) => {
                    let expanded = self.expander.expand(&block, &mut self.scratch);
                    let _unneeded = self.shared.desk().pop_first();
                    expanded
                }
            };
            self.under_way -= 1;
            return Some(expanded);
        }
    }
}

impl<E: Expand<K>, const K: usize> Drop for Crew<'_, E, K> {
    fn drop(&mut self) {
        let mut desk = self.shared.desk();
        desk.is_closed = true;
        desk.jobs.clear();
        self.shared.called.notify_all();
    }
}

/// Expands blocks until no more come.
fn work<E: Expand<K>, const K: usize>(expander: &E, shared: &Shared<K>) {
    let mut scratch = E::Scratch::default();
    while let Some((number, block)) = shared.wait_for_block() {
        try_block(expander, shared, number, &block, &mut scratch);
    }
}

/// Expands a block that was begun. If that panics, it is left to [`Desk::next`], whose turn may never come: what is
/// before may end the exploration.
fn try_block<E: Expand<K>, const K: usize>(
    expander: &E,
    shared: &Shared<K>,
    number: usize,
    block: &Block<K>,
    scratch: &mut E::Scratch,
) {
    if let Ok(expanded) = catch_unwind(AssertUnwindSafe(|| expander.expand(block, scratch))) {
        let _unneeded = shared.desk().finish(number, expanded);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::bounds::{Bounds, INPUTS, SLOTS};
    use crate::protocol::expand::{Expander, Scratch};
    use crate::protocol::prove::sound;

    type TestedCrew<'a> = Crew<'a, Expander<'a, 1, SLOTS, INPUTS>, 4>;

    /// Lets `check` have a crew with so many threads, and blocks of the first state with the numbers 0, 1 and 2.
    fn with_crew(threads: usize, check: impl FnOnce(&mut TestedCrew<'_>, [Block<4>; 3])) {
        let model = sound(Bounds::default()).unwrap();
        let expander = Expander::new(&model);
        let blocks = [0, 1, 2].map(|first| Block { first, states: vec![expander.first()] });
        std::thread::scope(|scope| check(&mut Crew::new(scope, &expander, threads), blocks));
    }

    /// A block whose expansion panics: no state has these words.
    fn of_no_state(first: u32) -> Block<4> {
        Block { first, states: vec![[u64::MAX; 4]] }
    }

    #[test]
    fn nobody_waits_for_a_thread_without_a_processor() {
        with_crew(0, |crew, [first, second, _]| {
            crew.give(first);
            crew.give(second);
            let (held_up, block) = crew.shared.desk().begin().unwrap();
            assert_eq!(crew.take().unwrap().end, 1, "the block that was begun, expanded again");
            // The thread goes on when its block is long taken: what it found is not taken for the next one's.
            try_block(crew.expander, &crew.shared, held_up, &block, &mut Scratch::default());
            assert_eq!(crew.take().unwrap().end, 2);
            assert!(crew.take().is_none() && crew.is_idle());
        });
    }

    #[test]
    fn threads_expand_what_is_given() {
        with_crew(2, |crew, blocks| {
            blocks.into_iter().for_each(|block| crew.give(block));
            let is_open = |job: &Job<4>| matches!(job, Job::Open(_));
            while crew.shared.desk().jobs.iter().any(is_open) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!([1, 2, 3].map(|_| crew.take().unwrap().end), [1, 2, 3]);
        });
    }

    #[test]
    fn a_panic_comes_in_its_turn() {
        for is_held_up in [false, true] {
            with_crew(0, |crew, [first, ..]| {
                crew.give(first);
                crew.give(of_no_state(1));
                if is_held_up {
                    // Who takes the first begins the second meanwhile.
                    crew.shared.desk().begin().unwrap();
                }
                assert_eq!(crew.take().unwrap().end, 1);
                assert!(catch_unwind(AssertUnwindSafe(|| crew.take())).is_err());
            });
        }
    }

    #[test]
    fn a_panic_whose_turn_never_comes_is_none() {
        with_crew(2, |crew, [first, ..]| {
            crew.give(first);
            crew.give(of_no_state(1));
            assert_eq!(crew.take().unwrap().end, 1);
        });
    }
}
