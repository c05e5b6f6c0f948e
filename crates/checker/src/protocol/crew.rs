//! Threads that expand blocks of states. What they find comes back in the order in which the blocks were given, so that the number of threads changes
//! no number of a state. A block that nobody would look anything up beside is not worth handing over.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use super::expand::{Block, Expanded, Expander, Scratch};

/// Blocks that a thread has before it: one at work and the next, so that it need not wait for who looks up what it found.
const BLOCKS_PER_THREAD: usize = 2;

/// The threads; with none, blocks are expanded by who takes them.
pub struct Crew<'scope, 'env, const B: usize, const S: usize, const I: usize, const K: usize> {
    expander: &'env Expander<'env, B, S, I>,
    workers: Vec<Worker<'scope, K>>,
    /// Blocks that were given to the threads so far, each to the next in turn; and how many were taken back.
    given: usize,
    taken: usize,
    /// The block to be expanded when it is taken, by who takes it.
    own: Option<Block<K>>,
    /// What that needs.
    scratch: Scratch<B, S, I>,
}

struct Worker<'scope, const K: usize> {
    blocks: SyncSender<Block<K>>,
    expanded: Receiver<Expanded<K>>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope, 'env, const B: usize, const S: usize, const I: usize, const K: usize> Crew<'scope, 'env, B, S, I, K> {
    /// So many threads, which end when the crew is dropped.
    pub fn new(scope: &'scope Scope<'scope, 'env>, expander: &'env Expander<'env, B, S, I>, threads: usize) -> Self {
        let start = |_| {
            let (blocks, to_expand) = sync_channel::<Block<K>>(BLOCKS_PER_THREAD);
            let (sender, expanded) = sync_channel(BLOCKS_PER_THREAD);
            let work = move || {
                let mut scratch = Scratch::default();
                // Whoever is no longer listened to has nothing more to do.
                let _ = to_expand.into_iter().try_for_each(|block| sender.send(expander.expand(&block, &mut scratch)));
            };
            Worker { blocks, expanded, thread: scope.spawn(work) }
        };
        Crew {
            expander,
            workers: (0..threads).map(start).collect(),
            given: 0,
            taken: 0,
            own: None,
            scratch: Scratch::default(),
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.given == self.taken && self.own.is_none()
    }

    /// Whether one more block would not wait behind others.
    pub fn has_room(&self) -> bool {
        let under_way = self.given - self.taken;
        self.own.is_none() && (under_way == 0 || under_way < self.workers.len() * BLOCKS_PER_THREAD)
    }

    /// Gives a block to the thread whose turn it is. There must be room. If it is `alone`, no other is given before it is taken: then it is kept for who
    /// takes it, who would only wait for it.
    pub fn give(&mut self, block: Block<K>, alone: bool) {
        debug_assert!(self.has_room());
        if self.workers.is_empty() || alone {
            self.own = Some(block);
            return;
        }
        let turn = self.given % self.workers.len();
        self.given += 1;
        if self.workers[turn].blocks.send(block).is_err() {
            self.fail(turn);
        }
    }

    /// What the block that was given first leads to; nothing if none is under way.
    ///
    /// # Panics
    /// As the thread did, if it did.
    pub fn take(&mut self) -> Option<Expanded<K>> {
        if let Some(block) = self.own.take() {
            return Some(self.expander.expand(&block, &mut self.scratch));
        }
        if self.is_idle() {
            return None;
        }
        let turn = self.taken % self.workers.len();
        self.taken += 1;
        match self.workers[turn].expanded.recv() {
            Ok(expanded) => Some(expanded),
            Err(_) => self.fail(turn),
        }
    }

    /// A thread has ended before its time.
    fn fail(&mut self, turn: usize) -> ! {
        match self.workers.swap_remove(turn).thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("a thread ends when nobody gives it blocks any more"),
        }
    }
}
