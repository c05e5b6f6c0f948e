//! Threads that expand blocks of states. What they find comes back in the order in which the blocks were given, so that the number of threads changes
//! no number of a state. Who takes it never waits: while the next block is not expanded, it expands one itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use super::expand::{Block, Expanded, Expander, Scratch};

/// Blocks under way for each thread: so many that none runs out of them while the first thread looks up.
const BLOCKS_PER_THREAD: usize = 8;

/// The threads, beside the one that has this.
pub struct Crew<'env, const B: usize, const S: usize, const I: usize, const K: usize> {
    expander: &'env Expander<'env, B, S, I>,
    threads: usize,
    shared: Arc<Shared<K>>,
    /// What expanding a block oneself needs.
    scratch: Scratch<B, S, I>,
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
    /// How many were taken before the first of them.
    taken: usize,
    is_closed: bool,
}

/// A block under way.
enum Job<const K: usize> {
    /// Nobody is at it.
    Given(Arc<Block<K>>),
    /// A thread is at it.
    Begun(Arc<Block<K>>),
    /// What came of it: also a panic.
    Done(std::thread::Result<Expanded<K>>),
}

impl<const K: usize> Shared<K> {
    fn desk(&self) -> MutexGuard<'_, Desk<K>> {
        // Nothing panics that holds it.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const K: usize> Desk<K> {
    /// The first block that nobody is at, begun, with its number.
    fn begin(&mut self) -> Option<(usize, Arc<Block<K>>)> {
        self.jobs.iter_mut().zip(self.taken..).find_map(|(job, number)| {
            let Job::Given(block) = job else { return None };
            let block = Arc::clone(block);
            *job = Job::Begun(Arc::clone(&block));
            Some((number, block))
        })
    }

    /// The block that is to be taken next, where a thread is at it already.
    fn first_begun(&self) -> Option<(usize, Arc<Block<K>>)> {
        match self.jobs.front()? {
            Job::Begun(block) => Some((self.taken, Arc::clone(block))),
            _ => None,
        }
    }

    /// What came of the block that was given first, if it is expanded.
    fn take_done(&mut self) -> Option<std::thread::Result<Expanded<K>>> {
        match self.jobs.pop_front()? {
            Job::Done(done) => {
                self.taken += 1;
                Some(done)
            }
            under_way => {
                self.jobs.push_front(under_way);
                None
            }
        }
    }

    /// What came of block `number`, which another may have done meanwhile.
    fn finish(&mut self, number: usize, done: std::thread::Result<Expanded<K>>) {
        if let Some(job) = number.checked_sub(self.taken).and_then(|place| self.jobs.get_mut(place)) {
            *job = Job::Done(done);
        }
    }
}

impl<'env, const B: usize, const S: usize, const I: usize, const K: usize> Crew<'env, B, S, I, K> {
    /// So many threads, which end when the crew is dropped.
    pub fn new<'scope>(
        scope: &'scope Scope<'scope, 'env>,
        expander: &'env Expander<'env, B, S, I>,
        threads: usize,
    ) -> Self {
        let desk = Desk { jobs: VecDeque::new(), taken: 0, is_closed: false };
        let shared = Arc::new(Shared { desk: Mutex::new(desk), called: Condvar::new() });
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            scope.spawn(move || work(expander, &shared));
        }
        Crew { expander, threads, shared, scratch: Scratch::default() }
    }

    /// Whether one more block may be given.
    pub fn has_room(&self) -> bool {
        self.shared.desk().jobs.len() <= self.threads * BLOCKS_PER_THREAD
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.shared.desk().jobs.is_empty()
    }

    /// One more block to be expanded, by whoever comes to it first.
    pub fn give(&mut self, block: Block<K>) {
        let mut desk = self.shared.desk();
        desk.jobs.push_back(Job::Given(Arc::new(block)));
        // The first is for who takes it.
        if desk.jobs.len() > 1 {
            self.shared.called.notify_one();
        }
    }

    /// What the block that was given first leads to; nothing if none is under way.
    ///
    /// # Panics
    /// As the thread did that expanded it, if it did.
    pub fn take(&mut self) -> Option<Expanded<K>> {
        loop {
            let mut desk = self.shared.desk();
            if let Some(done) = desk.take_done() {
                return Some(done.unwrap_or_else(|panic| resume_unwind(panic)));
            }
            // Who is at the first may have no processor: another is expanded meanwhile, and if there is none, the same.
            let (number, block) = desk.begin().or_else(|| desk.first_begun())?;
            drop(desk);
            let expanded = self.expander.expand(&block, &mut self.scratch);
            self.shared.desk().finish(number, Ok(expanded));
        }
    }
}

impl<const B: usize, const S: usize, const I: usize, const K: usize> Drop for Crew<'_, B, S, I, K> {
    fn drop(&mut self) {
        let mut desk = self.shared.desk();
        desk.is_closed = true;
        desk.jobs.clear();
        self.shared.called.notify_all();
    }
}

/// Expands blocks until no more come.
fn work<const B: usize, const S: usize, const I: usize, const K: usize>(
    expander: &Expander<'_, B, S, I>,
    shared: &Shared<K>,
) {
    let mut scratch = Scratch::default();
    let mut desk = shared.desk();
    while !desk.is_closed {
        let Some((number, block)) = desk.begin() else {
            desk = shared.called.wait(desk).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(desk);
        let done = catch_unwind(AssertUnwindSafe(|| expander.expand(&block, &mut scratch)));
        desk = shared.desk();
        desk.finish(number, done);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds::{Bounds, INPUTS, SLOTS};
    use super::super::prove::sound;
    use super::*;

    type Alone<'a> = Crew<'a, 1, SLOTS, INPUTS, 4>;

    /// Lets `check` have a crew without threads, and a block of the first state.
    fn with_crew(check: impl FnOnce(&mut Alone<'_>, Block<4>)) {
        let model = sound(Bounds::default()).unwrap();
        let expander = Expander::new(&model);
        let block = Block { first: 0, states: vec![expander.first()] };
        std::thread::scope(|scope| check(&mut Crew::new(scope, &expander, 0), block));
    }

    #[test]
    fn nobody_waits_for_a_thread_without_a_processor() {
        with_crew(|crew, block| {
            crew.give(block.clone());
            crew.give(Block { first: 1, ..block });
            let (held_up, held) = crew.shared.desk().begin().unwrap();
            assert_eq!(crew.take().unwrap().end, 1, "the block that was begun, expanded again");
            // The thread goes on when its block is long taken: what it found is not taken for the next one's.
            let late = crew.expander.expand(&held, &mut Scratch::default());
            crew.shared.desk().finish(held_up, Ok(late));
            assert_eq!(crew.take().unwrap().end, 2);
            assert!(crew.take().is_none());
        });
    }

    #[test]
    #[should_panic(expected = "as the thread did")]
    fn who_takes_a_block_panics_as_the_thread_did() {
        with_crew(|crew, block| {
            crew.give(block);
            let (number, _) = crew.shared.desk().begin().unwrap();
            let panic = std::panic::catch_unwind(|| panic!("as the thread did"));
            crew.shared.desk().finish(number, panic.map(|()| unreachable!()));
            crew.take();
        });
    }
}
