//! Rounds of loops that only waited: a run of quiet rounds is waiting if what made the thread leave their path was
//! another thread's store, newer than what the run had read of that word.
//!
//! A round is quiet if it leaves shared memory as it found it, gives back the locks that it takes, and makes only calls
//! that yield, sleep or look at a clock.

use rustc_hash::FxHashSet;

use super::calls;
use super::flow::Flow;
use super::found::Found;
pub(super) use super::history::Place;
use super::history::{Act, History, Look, Mark, ROUND_STEPS_MAX, Summary, Token, Version};
use super::looks::Looks;
use super::outlines::{Access, Outlines};
use super::polling::{self, Polled};
use super::queue_locks::Queues;
use super::sharing::{SharedWords, word_of};
use super::updates::{compares, update_of};
use super::walk::What;
use crate::code::{Program, SlotKind};
use crate::event::Event;
use crate::reader::Record;

/// Of a run, so many rounds' paths are compared with.
const PATHS: usize = 8;
const LONG_ROUND: u64 = 100;
/// The step behind all: what is not over there ends with the record.
const END: u64 = u64::MAX - 1;
/// Other words that a place of a waiting round reads, in other instances of what it waits at.
const PLACE_WORDS_MAX: usize = 4096;

/// A quiet round that is over.
#[derive(Clone, Debug)]
struct Round {
    from: Mark,
    end: Mark,
    /// The end of the last one that did the same.
    to: u64,
    /// When another thread's store can first have come after a read of it.
    sequence: u64,
    /// Nearly no round's is asked for.
    summary: Option<Summary>,
}

struct Loop {
    depth: usize,
    head: u64,
    /// The furthest end of its code that was seen.
    end: u64,
    begun: Mark,
    /// Of the turn in which it has begun, the store before.
    sequence: u64,
    run: Vec<Round>,
    run_from: u64,
    run_length: u64,
    fresh: u64,
    /// Instructions of the run's rounds that read again what the one before did.
    polled: u64,
    /// Of what the round does so far, and of the round before it.
    digest: u64,
    last_digest: Option<u64>,
    /// Whether a wait has ended in the round: it got on.
    has_waited: bool,
}

#[derive(Default)]
struct OfThread {
    history: History,
    looks: Looks,
    in_call: bool,
    loops: Vec<Loop>,
    last_block: u32,
    turn: Turn,
    /// Room for the runs of loops to come.
    spare: Vec<Vec<Round>>,
}

/// Where a turn has begun, with how many stores before it. No other thread stores while it lasts.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    step: u64,
    sequence: u64,
}

/// Shared words that a place has read.
#[derive(Clone, Debug, Default)]
struct WordsOfPlace {
    last: u64,
    words: FxHashSet<u64>,
}

pub(super) struct Rounds<'a> {
    program: &'a Program,
    outlines: &'a Outlines,
    sharing: &'a SharedWords,
    threads: Vec<OfThread>,
    /// Of each shared word.
    versions: Vec<Version>,
    sequence: u64,
    found: Found,
    /// Of each slot of each block.
    place_words: Vec<WordsOfPlace>,
    queues: Queues,
    /// Whether it is known what came before what.
    is_ordered: bool,
    is_quiet_call: fn(u64) -> bool,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(record: &'a Record, outlines: &'a Outlines, sharing: &'a SharedWords, is_ordered: bool) -> Self {
        let program = record.program();
        let found = Found {
            runs: vec![Vec::new(); record.threads()],
            polled: vec![Vec::new(); record.threads()],
            has_looked: vec![false; program.blocks.len()],
            ..Found::default()
        };
        Self {
            program,
            outlines,
            sharing,
            threads: (0..record.threads()).map(|_| OfThread::default()).collect(),
            versions: vec![Version::default(); sharing.count()],
            sequence: 0,
            found,
            place_words: vec![WordsOfPlace::default(); program.slot_count()],
            queues: Queues::new(record.threads()),
            is_ordered,
            is_quiet_call: calls::quiet_ones_of(&record.info().isa),
        }
    }

    #[inline]
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
                state.looks.forget();
                return;
            }
            Event::CallEnd => {
                state.in_call = false;
                return;
            }
            Event::Turn { .. } => {
                state.turn = Turn { step, sequence: self.sequence };
                return;
            }
            Event::Polling { .. } => return,
            Event::MutexLock { .. } | Event::SpinLock { .. } | Event::ReadLock { .. } | Event::WriteLock { .. } => {
                takes_lock = 1;
            }
            Event::MutexUnlock { .. } | Event::SpinUnlock { .. } | Event::RwUnlock { .. } => takes_lock = -1,
            Event::AttemptFailed { .. } | Event::ConditionWait { .. } | Event::FutexWait { .. } => {}
            Event::SystemCall { number, .. } => is_loud = !(self.is_quiet_call)(*number),
            Event::FutexWake { .. } => is_loud = true,
            Event::Signal { .. } => {
                (0..state.loops.len()).rev().for_each(|at| self.keep_unjudged(thread, at, false));
                self.threads[thread].loops.clear();
                self.threads[thread].looks.forget();
                return;
            }
            _ => is_loud = true,
        }
        if is_loud || !matches!(event, Event::SystemCall { .. }) {
            state.looks.forget();
        }
        let token = Token::of_event(event.name());
        if state.history.pass_event(step, token, is_loud, takes_lock) {
            state.sum_up_what_is_forgotten();
        }
        state.digest(token.digest());
    }

    #[inline]
    fn block(&mut self, thread: usize, step: u64, id: u32, slots: &[u64]) {
        if self.threads[thread].in_call {
            return;
        }
        let outlines = self.outlines;
        let block = outlines.block(id);
        self.enter(thread, step, block.address);
        let state = &mut self.threads[thread];
        state.looks.pass(block.instructions);
        if state.history.pass_block(step, id, block.instructions) {
            state.sum_up_what_is_forgotten();
        }
        state.digest(u64::from(id));
        for access in outlines.accesses(block) {
            let word = word_of(slots[usize::from(access.slot)]);
            if let Some(number) = self.sharing.number(word) {
                let act = self.act_of(id, *access, slots);
                self.touch(thread, step, (id, access.slot), word, number, act);
            }
        }
        let state = &mut self.threads[thread];
        match block.flow {
            Flow::Calls => state.history.call(),
            Flow::Returns => state.history.give_back(),
            _ => {}
        }
        state.last_block = id;
    }

    fn act_of(&self, id: u32, access: Access, slots: &[u64]) -> Act {
        let update = || update_of(self.program.block(id), access.slot.into(), slots);
        match access.kind {
            SlotKind::Load => Act::Reads,
            // What it left is known by the code of x86-64 alone.
            SlotKind::Update if self.is_ordered => {
                update().map_or(Act::Stores, |(old, new)| Act::Updates(new.wrapping_sub(old) as i64))
            }
            _ => Act::Stores,
        }
    }

    fn touch(&mut self, thread: usize, step: u64, place: Place, word: u64, number: usize, act: Act) {
        let seen = self.versions[number];
        self.found.has_looked[place.0 as usize] = true;
        let state = &mut self.threads[thread];
        state.history.look(Look { step, place, word, act, seen });
        if act == Act::Reads {
            if let Some(from) = state.looks.at(word, seen, step, thread).filter(|from| *from < step) {
                self.found.runs[thread].push((from, step));
                self.found.words.insert(word);
                self.found.places.insert(place);
            }
        } else if act.changes() {
            state.looks.forget();
        }
        state.digest(word << 20 ^ seen.number ^ u64::from(act == Act::Reads) << 60);
        if act != Act::Stores {
            let slot = self.outlines.block(place.0).first_slot as usize + usize::from(place.1);
            let known = &mut self.place_words[slot];
            if known.last != word {
                known.last = word;
                if known.words.len() < PLACE_WORDS_MAX {
                    known.words.insert(word);
                }
            }
        }
        let changes = act.changes();
        let hands_out = changes && act != Act::Stores && !compares(self.program.block(place.0), place.1);
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
            self.versions[number] = Version { number: self.sequence, thread, step };
        }
    }

    /// The thread comes to a block: rounds and loops may end.
    #[inline]
    fn enter(&mut self, thread: usize, step: u64, address: u64) {
        let state = &self.threads[thread];
        let last = self.outlines.block(state.last_block);
        let depth = state.history.depth();
        // What has returned further than where the loop is has left it.
        while let Some(of) = self.threads[thread].loops.last() {
            let is_outside = of.depth == depth && (address < of.head || address >= of.end);
            if of.depth <= depth && !is_outside {
                break;
            }
            self.leave(thread, step);
        }
        let jumps = matches!(last.flow, Flow::Jumps | Flow::Branches);
        if !jumps || address >= last.end || last.address == 0 {
            return;
        }
        self.enter_again(thread, step, address, last.end, depth);
    }

    fn enter_again(&mut self, thread: usize, step: u64, head: u64, end: u64, depth: usize) {
        let state = &mut self.threads[thread];
        let at = state.loops.iter().rposition(|of| of.depth == depth && of.head == head);
        let Some(at) = at else {
            let begun = state.history.began(head, end, self.outlines).unwrap_or_else(|| state.history.mark(step));
            state.loops.push(Loop {
                depth,
                head,
                end,
                begun,
                sequence: state.turn.sequence_at(begun.step),
                run: state.spare.pop().unwrap_or_default(),
                run_from: begun.step,
                run_length: 0,
                fresh: 0,
                polled: 0,
                digest: 0,
                last_digest: None,
                has_waited: false,
            });
            let at = state.loops.len() - 1;
            if begun.step < step {
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
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        let end = history.mark(step);
        let (from, sequence) = (of.begun, std::mem::replace(&mut of.sequence, state.turn.sequence));
        of.begun = end;
        let digest = std::mem::take(&mut of.digest);
        if of.last_digest.replace(digest) == Some(digest)
            && !of.has_waited
            && let Some(last) = of.run.last_mut()
        {
            last.to = step;
            of.run_length += 1;
            if polls(history, &from, step, self.is_ordered.then_some(thread)) {
                of.polled += end.counts.instructions - from.counts.instructions;
            }
            return;
        }
        let has_waited = std::mem::take(&mut of.has_waited);
        if is_no_round(history, &from, step) {
            self.keep_unjudged(thread, at, false);
            return;
        }
        if has_waited || !history.is_quiet_since(&from.counts) {
            self.judge(thread, at, &from);
            return;
        }
        if of.run_length == 0 {
            of.run_from = from.step;
        }
        let mut round = Round { from, end, to: step, sequence, summary: None };
        if let Some(before) = of.run.last_mut()
            && may_be_newer(history, &from, thread, before, &state.turn)
        {
            let reads = &round.sum_up(history).reads;
            let reads_before = &before.sum_up(history).reads;
            of.fresh += u64::from(reads.iter().any(|look| is_newer(look, reads_before, thread)));
        }
        of.run_length += 1;
        if of.run.len() == PATHS {
            of.run.remove(0);
        }
        of.run.push(round);
    }

    fn forget_run(&mut self, thread: usize, at: usize) {
        let of = &mut self.threads[thread].loops[at];
        of.run.clear();
        (of.run_length, of.fresh, of.polled) = (0, 0, 0);
    }

    /// The run is over, with what is no round. It may have waited if others have stored since to what it read, or if
    /// the record ends with it.
    fn keep_unjudged(&mut self, thread: usize, at: usize, is_at_end: bool) {
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        if of.polled > 0
            && let Some(last) = of.run.last_mut()
        {
            let is_old = |look: &Look| {
                let number = self.sharing.number(look.word);
                let now = number.map_or(look.seen, |number| self.versions[number]);
                now.number > look.seen.number && now.thread != thread
            };
            let is_known = self.is_ordered && !is_at_end && !last.sum_up(history).reads.iter().any(is_old);
            polling::add(&mut self.found.polled[thread], of.polled(is_known));
        }
        self.forget_run(thread, at);
    }

    /// The innermost loop is over.
    fn leave(&mut self, thread: usize, step: u64) {
        let state = &self.threads[thread];
        let at = state.loops.len() - 1;
        let of = &state.loops[at];
        if of.run_length > 0 {
            if is_no_round(&state.history, &of.begun, step + 1) {
                self.keep_unjudged(thread, at, step == END);
            } else {
                let from = of.begun;
                self.judge(thread, at, &from);
            }
        }
        let state = &mut self.threads[thread];
        if let Some(mut of) = state.loops.pop() {
            of.run.clear();
            state.spare.push(of.run);
        }
    }

    /// Whether the run before the last round, which has begun at `from` and is over, was waiting.
    fn judge(&mut self, thread: usize, at: usize, from: &Mark) {
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        let Some(first) = of.run.first() else { return };
        let (mut has_waited, mut sees_newer) = (false, !self.is_ordered);
        if self.is_ordered && may_be_newer(history, from, thread, first, &state.turn) {
            let last = history.summary(&from.counts, history.counts());
            for round in &mut of.run {
                round.sum_up(history);
            }
            sees_newer = last.reads.iter().any(|look| is_newer_than_run(look, &of.run, thread));
            if let Some(word) = exit_word(self.outlines, thread, of, &last) {
                let end = of.run.last().expect("a run has a round").to;
                self.found.runs[thread].push((of.run_from, end));
                has_waited = true;
                let run = of.run.iter().flat_map(Round::reads);
                for look in run.chain(last.reads.iter().filter(|look| look.word == word)) {
                    self.found.words.insert(look.word);
                    self.found.places.insert(look.place);
                }
            }
        }
        if of.polled > 0 && !has_waited {
            polling::add(&mut self.found.polled[thread], of.polled(!sees_newer));
        }
        self.forget_run(thread, at);
        for outer in &mut self.threads[thread].loops[..at] {
            outer.has_waited |= has_waited;
        }
    }

    pub(super) fn finish(mut self) -> Found {
        for thread in 0..self.threads.len() {
            while !self.threads[thread].loops.is_empty() {
                self.leave(thread, END);
            }
        }
        for &(block, slot) in &self.found.places {
            let place = self.outlines.block(block).first_slot as usize + usize::from(slot);
            self.found.words.extend(&self.place_words[place].words);
        }
        for runs in &mut self.found.runs {
            runs.sort_unstable();
        }
        self.found.queue_locks = self.queues.locks();
        self.found
    }
}

/// Whether it is too long for one.
fn is_no_round(history: &History, from: &Mark, to: u64) -> bool {
    to - from.step > ROUND_STEPS_MAX || history.has_forgotten(&from.counts)
}

/// Whether a round that did the same as the one before waits, as far as it shows: it reads what others store to, and
/// changes nothing. Without a thread of its own whatever threads share may be such.
#[inline]
fn polls(history: &History, from: &Mark, to: u64, thread: Option<usize>) -> bool {
    let is_others = |look: &Look| {
        look.act != Act::Stores && (look.seen.number == 0 || thread.is_none_or(|thread| look.seen.thread != thread))
    };
    !is_no_round(history, from, to)
        && history.looks_between(&from.counts, history.counts()).any(is_others)
        && history.is_quiet_since(&from.counts)
}

/// Whether what a thread has read since `from` can be newer than what it read in a round before: that is seldom so,
/// and found faster than which word it is.
fn may_be_newer(history: &History, from: &Mark, thread: usize, before: &Round, turn: &Turn) -> bool {
    let is_newer =
        |look: &Look| look.act != Act::Stores && look.seen.thread != thread && look.seen.number > before.sequence;
    before.from.step < turn.step && history.looks_between(&from.counts, history.counts()).any(is_newer)
}

/// The word whose new value ended the run.
fn exit_word(outlines: &Outlines, thread: usize, of: &Loop, last: &Summary) -> Option<u64> {
    let common = |round: &Round| round.path().iter().zip(&last.path).take_while(|(own, other)| own == other).count();
    let best = of.run.iter().map(common).max()?;
    if best == 0 {
        return None;
    }
    let is_long = of.run.iter().map(Round::instructions).sum::<u64>() > LONG_ROUND * of.run.len() as u64;
    if is_long && of.fresh * 2 > of.run_length && of.run_length >= 3 {
        return None;
    }
    // A lock that long rounds took and gave back is one under which they worked.
    let is_of_work =
        |word: u64| is_long && of.run.iter().flat_map(Round::reads).any(|look| look.word == word && look.act.changes());
    // The reads that feed the branch with which it leaves.
    for (count, token) in last.path[..best].iter().rev().enumerate() {
        let block = token.block();
        if count > 0 && block.is_some_and(|block| outlines.block(block).flow == Flow::Branches) {
            break;
        }
        for look in last.reads.iter().filter(|look| Some(look.place.0) == block) {
            if is_newer_than_run(look, &of.run, thread) && !is_of_work(look.word) {
                return Some(look.word);
            }
        }
    }
    None
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
    let last = run.iter().rev().find_map(|round| round.reads().rev().find(|other| other.word == look.word));
    last.is_some_and(|other| other.seen.number < look.seen.number)
}

impl Loop {
    /// Of the run that is over.
    fn polled(&self, is_ended_by_count: bool) -> Polled {
        let to = self.run.last().map_or(self.run_from, |round| round.to);
        let (instructions, by_count) = if is_ended_by_count { (0, self.polled) } else { (self.polled, 0) };
        Polled { from: self.run_from, to, instructions, by_count }
    }
}

impl Round {
    fn sum_up(&mut self, history: &History) -> &Summary {
        self.summary.get_or_insert_with(|| history.summary(&self.from.counts, &self.end.counts))
    }

    fn path(&self) -> &[Token] {
        self.summary.as_ref().map_or(&[], |summary| &summary.path)
    }

    fn reads(&self) -> impl DoubleEndedIterator<Item = &Look> {
        self.summary.iter().flat_map(|summary| &summary.reads)
    }

    fn instructions(&self) -> u64 {
        self.end.counts.instructions - self.from.counts.instructions
    }
}

impl Turn {
    /// How many stores came surely before this step of the turn or one before.
    fn sequence_at(&self, step: u64) -> u64 {
        if step >= self.step { self.sequence } else { 0 }
    }
}

impl OfThread {
    /// Of the round of the innermost loop; of those around it nobody knows what comes of that.
    #[inline]
    fn digest(&mut self, what: u64) {
        if let Some(of) = self.loops.last_mut() {
            of.digest = (of.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    #[cold]
    fn sum_up_what_is_forgotten(&mut self) {
        for round in self.loops.iter_mut().flat_map(|of| &mut of.run) {
            if round.summary.is_none() && self.history.will_forget(&round.from.counts) {
                round.sum_up(&self.history);
            }
        }
        self.history.forget();
    }
}
