//! Rounds of loops that only waited: a run of quiet rounds is waiting if what made the thread leave their path was
//! another thread's store, newer than what the run had read of that word.
//!
//! A round is quiet if it leaves shared memory as it found it, gives back the locks that it takes, and makes only calls
//! that yield, sleep or look at a clock.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::flow::Flow;
use super::queue_locks::{Queues, Tenure};
use super::sharing::{Sharing, word_of};
use super::updates::{compares, update_of};
use super::walk::What;
use crate::code::{Program, SlotKind};
use crate::event::Event;
use crate::reader::Record;

/// Blocks and events of a thread that are kept to look back at.
const HISTORY: usize = 1 << 14;
/// Of a run, so many rounds' paths are compared with.
const PATHS: usize = 8;
/// A round with more of them is no waiting.
const ROUND_STEPS_MAX: u64 = 4096;
const LONG_ROUND: u64 = 100;
/// Other words that a place of a waiting round reads, in other instances of what it waits at.
const PLACE_WORDS_MAX: usize = 4096;

/// An instruction's access: its block and the slot in it.
pub(super) type Place = (u32, u16);

/// The last store to a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// Place in the one sequence, from 1; 0 for none.
    pub number: u64,
    pub thread: usize,
    pub step: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Reads,
    Stores,
    /// An atomic update that leaves the word as it was, or changes it by so much.
    Updates(i64),
}

/// An access to a shared word.
#[derive(Clone, Copy, Debug)]
struct Look {
    step: u64,
    place: Place,
    word: u64,
    act: Act,
    seen: Version,
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    step: u64,
    token: u32,
    depth: u32,
    instructions: u32,
    /// Whether what it does is more than waiting may do.
    is_loud: bool,
    takes_lock: i8,
}

/// A round that is over.
#[derive(Clone, Debug)]
struct Round {
    from: u64,
    to: u64,
    /// The blocks and events in the order in which they first came.
    path: Vec<(u32, u64)>,
    /// The last read of each word before the round's own store to it.
    reads: Vec<Look>,
    is_quiet: bool,
    instructions: u64,
    has_fresh: bool,
}

struct Loop {
    depth: u32,
    head: u64,
    /// The furthest end of its code that was seen.
    end: u64,
    begun: u64,
    run: Vec<Round>,
    run_from: u64,
    run_length: u64,
    fresh: u64,
    /// Of what the round does so far, and of the round before it.
    digest: u64,
    last_digest: Option<u64>,
    /// Whether a wait has ended in the round: it got on.
    has_waited: bool,
}

#[derive(Default)]
struct OfThread {
    passed: VecDeque<Passed>,
    looks: VecDeque<Look>,
    depth: u32,
    in_call: bool,
    loops: Vec<Loop>,
    last_block: u32,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    /// By thread: from where to where it waited.
    pub runs: Vec<Vec<(u64, u64)>>,
    /// Words that were waited for.
    pub words: FxHashSet<u64>,
    /// Where they were read.
    pub places: FxHashSet<Place>,
    /// Locks that are handed on, by the words that threads update, with who had them.
    pub queue_locks: Vec<(u64, Vec<Tenure>)>,
}

pub(super) struct Rounds<'a> {
    program: &'a Program,
    flows: &'a [Flow],
    sharing: &'a Sharing<'a>,
    threads: Vec<OfThread>,
    versions: FxHashMap<u64, Version>,
    sequence: u64,
    found: Found,
    /// Shared words that each place has read.
    place_words: FxHashMap<Place, FxHashSet<u64>>,
    queues: Queues,
}

/// A system call that a waiting thread may make: by its number on x86-64.
fn is_quiet_call(number: u64) -> bool {
    const SCHED_YIELD: u64 = 24;
    const NANOSLEEP: u64 = 35;
    const GETTIMEOFDAY: u64 = 96;
    const FUTEX: u64 = 202;
    const CLOCK_GETTIME: u64 = 228;
    const CLOCK_NANOSLEEP: u64 = 230;
    matches!(number, SCHED_YIELD | NANOSLEEP | GETTIMEOFDAY | FUTEX | CLOCK_GETTIME | CLOCK_NANOSLEEP)
}

impl<'a> Rounds<'a> {
    pub(super) fn new(record: &'a Record, flows: &'a [Flow], sharing: &'a Sharing<'a>) -> Self {
        let found = Found { runs: vec![Vec::new(); record.threads()], ..Found::default() };
        Self {
            program: record.program(),
            flows,
            sharing,
            threads: (0..record.threads()).map(|_| OfThread::default()).collect(),
            versions: FxHashMap::default(),
            sequence: 0,
            found,
            place_words: FxHashMap::default(),
            queues: Queues::default(),
        }
    }

    pub(super) fn take_in(&mut self, thread: usize, step: u64, what: What<'_>) {
        match what {
            What::Event(event) => self.event(thread, step, event),
            What::Block { id, slots } => self.block(thread, step, id, slots),
        }
    }

    fn event(&mut self, thread: usize, step: u64, event: &Event) {
        let state = &mut self.threads[thread];
        let (mut is_loud, mut takes_lock) = (false, 0);
        match event {
            Event::CallBegin => {
                state.in_call = true;
                return;
            }
            Event::CallEnd => {
                state.in_call = false;
                return;
            }
            Event::Turn { .. } | Event::Polling { .. } => return,
            Event::MutexLock { .. } | Event::SpinLock { .. } | Event::ReadLock { .. } | Event::WriteLock { .. } => {
                takes_lock = 1;
            }
            Event::MutexUnlock { .. } | Event::SpinUnlock { .. } | Event::RwUnlock { .. } => takes_lock = -1,
            Event::AttemptFailed { .. } | Event::ConditionWait { .. } | Event::FutexWait { .. } => {}
            Event::SystemCall { number, .. } => is_loud = !is_quiet_call(*number),
            Event::FutexWake { .. } => is_loud = true,
            Event::Signal { .. } => {
                state.loops.clear();
                return;
            }
            _ => is_loud = true,
        }
        let token = 1 << 31 | u32::from(event.name().as_bytes()[0]) << 8 | event.name().len() as u32;
        state.passed.push_back(Passed { step, token, depth: state.depth, instructions: 0, is_loud, takes_lock });
        state.digest(u64::from(token));
        state.forget();
    }

    fn block(&mut self, thread: usize, step: u64, id: u32, slots: &[u64]) {
        if self.threads[thread].in_call {
            return;
        }
        let block = self.program.block(id);
        self.enter(thread, step, id);
        let depth = self.threads[thread].depth;
        let passed = Passed {
            step,
            token: id,
            depth,
            instructions: block.instruction_count() as u32,
            is_loud: false,
            takes_lock: 0,
        };
        self.threads[thread].passed.push_back(passed);
        self.threads[thread].digest(u64::from(id));
        for (at, (slot, &address)) in block.slots.iter().zip(slots).enumerate() {
            if !matches!(slot.kind, SlotKind::Load | SlotKind::Store | SlotKind::Update) || slot.size > 8 {
                continue;
            }
            let word = word_of(address);
            if self.sharing.is_shared(word) {
                let update = if slot.kind == SlotKind::Update { update_of(block, at, slots) } else { None };
                self.touch(thread, step, (id, at as u16), word, slot.kind, update);
            }
        }
        let state = &mut self.threads[thread];
        match self.flows[id as usize] {
            Flow::Calls => state.depth += 1,
            Flow::Returns => {
                state.depth = state.depth.saturating_sub(1);
            }
            _ => {}
        }
        state.last_block = id;
        state.forget();
    }

    fn touch(&mut self, thread: usize, step: u64, place: Place, word: u64, kind: SlotKind, update: Option<(u64, u64)>) {
        let seen = self.versions.get(&word).copied().unwrap_or_default();
        let act = match (kind, update) {
            (SlotKind::Load, _) => Act::Reads,
            (_, Some((old, new))) => Act::Updates(new.wrapping_sub(old) as i64),
            _ => Act::Stores,
        };
        let state = &mut self.threads[thread];
        state.looks.push_back(Look { step, place, word, act, seen });
        state.digest(word << 20 ^ seen.number ^ u64::from(act == Act::Reads) << 60);
        if act == Act::Reads || matches!(act, Act::Updates(_)) {
            let words = self.place_words.entry(place).or_default();
            if words.len() < PLACE_WORDS_MAX {
                words.insert(word);
            }
        }
        let changes = act == Act::Stores || matches!(act, Act::Updates(change) if change != 0);
        let hands_out = changes && update.is_some() && !compares(self.program.block(place.0), place.1);
        if hands_out {
            self.queues.updated(thread, step, word, self.sequence + 1, seen);
        } else if act != Act::Stores {
            self.queues.read(thread, step, word, seen);
        }
        if changes && !hands_out {
            self.queues.give_up(thread);
        }
        if changes {
            self.sequence += 1;
            self.versions.insert(word, Version { number: self.sequence, thread, step });
        }
    }

    /// The thread comes to a block: rounds and loops may end.
    fn enter(&mut self, thread: usize, step: u64, id: u32) {
        let state = &mut self.threads[thread];
        let last = self.program.block(state.last_block);
        let address = self.program.block(id).address;
        let last_end = last.address + last.bytes.len() as u64;
        let depth = state.depth;
        // What has returned further than where the loop is has left it.
        while let Some(of) = self.threads[thread].loops.last() {
            let is_outside = of.depth == depth && (address < of.head || address >= of.end);
            if of.depth <= depth && !is_outside {
                break;
            }
            self.leave(thread, step);
        }
        let flow = self.flows[self.threads[thread].last_block as usize];
        let jumps = matches!(flow, Flow::Jumps | Flow::Branches);
        if !jumps || address >= last_end || last.address == 0 {
            return;
        }
        self.enter_again(thread, step, address, last_end, depth);
    }

    fn enter_again(&mut self, thread: usize, step: u64, head: u64, end: u64, depth: u32) {
        let at = self.threads[thread].loops.iter().rposition(|of| of.depth == depth && of.head == head);
        let Some(at) = at else {
            let begun = self.threads[thread].began(head, end, depth, self.program).unwrap_or(step);
            let state = &mut self.threads[thread];
            state.loops.push(Loop {
                depth,
                head,
                end,
                begun,
                run: Vec::new(),
                run_from: begun,
                run_length: 0,
                fresh: 0,
                digest: 0,
                last_digest: None,
                has_waited: false,
            });
            let at = state.loops.len() - 1;
            if begun < step {
                self.end_round(thread, at, step);
            }
            return;
        };
        while self.threads[thread].loops.len() > at + 1 {
            self.leave(thread, step);
        }
        let of = &mut self.threads[thread].loops[at];
        of.end = of.end.max(end);
        self.end_round(thread, at, step);
    }

    /// A round is over and the next begins at `step`.
    fn end_round(&mut self, thread: usize, at: usize, step: u64) {
        let of = &mut self.threads[thread].loops[at];
        let (from, digest) = (of.begun, std::mem::take(&mut of.digest));
        if of.last_digest.replace(digest) == Some(digest)
            && !of.has_waited
            && let Some(last) = of.run.last_mut()
        {
            (last.to, of.begun) = (step, step);
            of.run_length += 1;
            return;
        }
        let round = self.round(thread, from, step);
        let of = &mut self.threads[thread].loops[at];
        of.begun = step;
        let has_waited = std::mem::take(&mut of.has_waited);
        let round = round.map(|round| Round { is_quiet: round.is_quiet && !has_waited, ..round });
        match round {
            Some(mut round) if round.is_quiet => {
                if of.run_length == 0 {
                    of.run_from = round.from;
                }
                if let Some(before) = of.run.last() {
                    round.has_fresh = round.reads.iter().any(|look| is_newer(look, &before.reads, thread));
                }
                of.fresh += u64::from(round.has_fresh);
                of.run_length += 1;
                if of.run.len() == PATHS {
                    of.run.remove(0);
                }
                of.run.push(round);
            }
            Some(round) => self.judge(thread, at, &round),
            None => self.forget_run(thread, at),
        }
    }

    fn forget_run(&mut self, thread: usize, at: usize) {
        let of = &mut self.threads[thread].loops[at];
        of.run.clear();
        (of.run_length, of.fresh) = (0, 0);
    }

    /// The innermost loop is over.
    fn leave(&mut self, thread: usize, step: u64) {
        let at = self.threads[thread].loops.len() - 1;
        let of = &self.threads[thread].loops[at];
        if of.run_length > 0
            && let Some(last) = self.round(thread, of.begun, step + 1)
        {
            self.judge(thread, at, &last);
        }
        self.threads[thread].loops.pop();
    }

    /// Whether the run before `last` was waiting.
    fn judge(&mut self, thread: usize, at: usize, last: &Round) {
        let of = &self.threads[thread].loops[at];
        if of.run_length == 0 {
            return;
        }
        let mut has_waited = false;
        if let Some(word) = self.exit_word(thread, of, last) {
            let end = of.run.last().expect("a run has a round").to;
            self.found.runs[thread].push((of.run_from, end));
            has_waited = true;
            let mut reads: Vec<Look> = of.run.iter().flat_map(|round| round.reads.iter().copied()).collect();
            reads.extend(last.reads.iter().filter(|look| look.word == word));
            for look in reads {
                self.found.words.insert(look.word);
                self.found.places.insert(look.place);
            }
        }
        self.forget_run(thread, at);
        for outer in &mut self.threads[thread].loops[..at] {
            outer.has_waited |= has_waited;
        }
    }

    /// The word whose new value ended the run.
    fn exit_word(&self, thread: usize, of: &Loop, last: &Round) -> Option<u64> {
        let common =
            |round: &Round| round.path.iter().zip(&last.path).take_while(|(own, other)| own.0 == other.0).count();
        let best = of.run.iter().map(common).max()?;
        if best == 0 {
            return None;
        }
        if of.fresh * 2 > of.run_length && of.run_length >= 3 {
            let instructions = of.run.iter().map(|round| round.instructions).sum::<u64>() / of.run.len() as u64;
            if instructions > LONG_ROUND {
                return None;
            }
        }
        // The reads that feed the branch with which it leaves.
        for (count, &(token, _)) in last.path[..best].iter().rev().enumerate() {
            let is_event = token >> 31 == 1;
            if count > 0 && !is_event && self.flows[token as usize] == Flow::Branches {
                break;
            }
            for look in last.reads.iter().filter(|look| look.place.0 == token) {
                if is_newer_than_run(look, &of.run, thread) {
                    return Some(look.word);
                }
            }
        }
        None
    }

    /// What the thread did in [from, to).
    fn round(&self, thread: usize, from: u64, to: u64) -> Option<Round> {
        let state = &self.threads[thread];
        if to - from > ROUND_STEPS_MAX || state.passed.front().is_none_or(|first| first.step > from) {
            return None;
        }
        let first = state.passed.partition_point(|passed| passed.step < from);
        let mut round =
            Round { from, to, path: Vec::new(), reads: Vec::new(), is_quiet: true, instructions: 0, has_fresh: false };
        let mut locks = 0i32;
        let mut known = FxHashSet::default();
        for passed in state.passed.range(first..).take_while(|passed| passed.step < to) {
            round.instructions += u64::from(passed.instructions);
            round.is_quiet &= !passed.is_loud;
            locks += i32::from(passed.takes_lock);
            if known.insert(passed.token) {
                round.path.push((passed.token, passed.step));
            }
        }
        round.is_quiet &= locks == 0;
        let mut changes: FxHashMap<u64, Option<i64>> = FxHashMap::default();
        let first = state.looks.partition_point(|look| look.step < from);
        for look in state.looks.range(first..).take_while(|look| look.step < to) {
            match look.act {
                Act::Reads => {}
                Act::Updates(by) => {
                    if let Some(change) = changes.entry(look.word).or_insert(Some(0)) {
                        *change += by;
                    }
                }
                Act::Stores => {
                    // A word that it has updated before is a lock that it gives back.
                    let given_back = changes.get(&look.word).is_some_and(|change| *change != Some(0));
                    changes.insert(look.word, if given_back { Some(0) } else { None });
                }
            }
            if look.act != Act::Stores {
                round.reads.retain(|other| other.word != look.word || other.place != look.place);
                round.reads.push(*look);
            }
        }
        round.is_quiet &= changes.values().all(|change| *change == Some(0));
        Some(round)
    }

    pub(super) fn finish(mut self) -> Found {
        for thread in 0..self.threads.len() {
            while !self.threads[thread].loops.is_empty() {
                self.leave(thread, u64::MAX - 1);
            }
        }
        for place in &self.found.places {
            self.found.words.extend(self.place_words.get(place).into_iter().flatten());
        }
        for runs in &mut self.found.runs {
            runs.sort_unstable();
        }
        self.found.queue_locks = self.queues.locks();
        self.found
    }
}

fn is_newer(look: &Look, before: &[Look], thread: usize) -> bool {
    look.seen.thread != thread
        && look.seen.number > 0
        && before.iter().filter(|other| other.word == look.word).all(|other| other.seen.number < look.seen.number)
        && before.iter().any(|other| other.word == look.word)
}

/// Whether it saw a store of another thread that is newer than the last one which the run saw of this word.
fn is_newer_than_run(look: &Look, run: &[Round], thread: usize) -> bool {
    if look.seen.number == 0 || look.seen.thread == thread {
        return false;
    }
    let last = run.iter().rev().find_map(|round| round.reads.iter().rev().find(|other| other.word == look.word));
    last.is_some_and(|other| other.seen.number < look.seen.number)
}

impl OfThread {
    /// Of the round of the innermost loop; of those around it nobody knows what comes of that.
    fn digest(&mut self, what: u64) {
        if let Some(of) = self.loops.last_mut() {
            of.digest = (of.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn forget(&mut self) {
        if self.passed.len() > HISTORY {
            self.passed.pop_front();
            let first = self.passed.front().map_or(0, |passed| passed.step);
            while self.looks.front().is_some_and(|look| look.step < first) {
                self.looks.pop_front();
            }
        }
    }

    /// Where the first round of the loop at [head, end) began: where the thread came to its head, perhaps in the middle
    /// of a block, and has not left it since.
    fn began(&self, head: u64, end: u64, depth: u32, program: &Program) -> Option<u64> {
        for passed in self.passed.iter().rev().take(ROUND_STEPS_MAX as usize) {
            if passed.depth < depth {
                return None;
            }
            if passed.depth > depth || passed.token >> 31 == 1 {
                continue;
            }
            let block = program.block(passed.token);
            if (block.address..block.address + block.bytes.len() as u64).contains(&head) {
                return Some(passed.step);
            }
            if !(head..end).contains(&block.address) {
                return None;
            }
        }
        None
    }
}
