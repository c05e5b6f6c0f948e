//! Rounds of loops that only waited: a run of quiet rounds is waiting if what made the thread leave their path was
//! another thread's store, newer than what the run had read of that word.
//!
//! A round is quiet if it leaves shared memory as it found it, gives back the locks that it takes, and makes only calls
//! that yield, sleep or look at a clock.

mod private;
mod wide;

pub(super) use wide::WideReads;

use std::ops::Range;

use super::calls;
use super::flow::Flow;
use super::found::{Found, Provisional, Run};
use super::history::{Act, History, LOOK_INSTRUCTIONS_MAX, Mark, Memory, Place, ROUND_STEPS_MAX, Token, Version};
use super::log::Kind;
use super::loops::{Round, exit_word, is_newer, is_newer_than_run};
use super::of_thread::OfThread;
use super::outlines::{Access, Outlines};
use super::polling;
use super::queue_locks::Queues;
use super::updates::{compares, update_of, uses_result};
use super::walk::{What, begins_turn};
use super::words::{Words, word_of};
use crate::code::{Program, SlotKind};
use crate::event::Event;
use crate::reader::Record;

/// Of a run, so many rounds' paths are compared with.
const PATHS: usize = 8;
/// After so many rounds that read the same, somebody may soon store there.
const ROUNDS_BEFORE_APART: u64 = 3;
/// Rounds of more accesses pass over memory.
const SLOTS_APART_MAX: u64 = 1024;
/// The step behind all: what is not over there ends with the record.
const END: u64 = u64::MAX - 1;

pub(super) struct Rounds<'a> {
    program: &'a Program,
    outlines: &'a Outlines,
    threads: Vec<OfThread>,
    words: Words,
    found: Found,
    queues: Queues,
    /// Whether there is a second thread.
    has_begun: bool,
    /// Whether it is known what came before what.
    is_ordered: bool,
    /// Whether there is what came before the region of interest.
    is_whole: bool,
    is_quiet_call: fn(u64) -> bool,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(record: &'a Record, outlines: &'a Outlines, is_ordered: bool) -> Self {
        Self {
            program: record.program(),
            outlines,
            threads: (0..record.threads()).map(|_| OfThread::default()).collect(),
            words: Words::new(record.threads()),
            found: Found::new(record.threads()),
            queues: Queues::new(record.threads()),
            has_begun: false,
            is_ordered,
            is_whole: record.info().options.roi.is_none(),
            is_quiet_call: calls::quiet_ones_of(&record.info().isa),
        }
    }

    /// From the beginning, when it is known which words threads store to.
    pub(super) fn again(self, record: &'a Record) -> Self {
        Self { words: self.words, ..Self::new(record, self.outlines, self.is_ordered) }
    }

    #[inline]
    pub(super) fn take_in(&mut self, thread: usize, step: u64, what: What<'_>) {
        match what {
            What::Event(event) => self.event(thread, step, event),
            What::Block { id, slots } => self.block(thread, step, id, slots),
        }
    }

    fn event(&mut self, thread: usize, step: u64, event: &Event) {
        if let Some(clock) = event.clock() {
            self.words.tick(thread, step, clock, begins_turn(event));
        }
        if self.is_ordered {
            self.found.syncs.take_in(thread, event, self.words.clock(self.words.number(thread, step)));
        }
        let is_unnamed = self.is_whole && calls::is_woken_by_nobody(event);
        self.found.unnamed.extend(is_unnamed.then_some((thread, step)));
        let state = &mut self.threads[thread];
        let (mut is_loud, mut takes_lock) = (false, 0);
        match *event {
            Event::CallBegin => {
                state.in_call = true;
                // It has been called, and its return is passed over.
                state.history.give_back();
                state.looks_from = state.history.counts().passed;
                return;
            }
            Event::CallEnd => {
                state.in_call = false;
                return;
            }
            Event::ThreadStart { stack_low, stack_high, .. } => {
                self.has_begun |= thread > 0;
                state.stack = word_of(stack_low)..word_of(stack_high);
                is_loud = true;
            }
            Event::ThreadCreate { .. } => {
                self.has_begun |= !self.is_ordered;
                is_loud = true;
            }
            Event::Turn { .. } | Event::Polling { .. } => return,
            Event::MutexLock { object, .. } | Event::SpinLock { object, .. } | Event::WriteLock { object, .. } => {
                takes_lock = 1;
                self.found.take(thread, object, self.words.number(thread, step));
            }
            Event::ReadLock { .. } => takes_lock = 1,
            Event::MutexUnlock { object, .. } | Event::SpinUnlock { object, .. } | Event::RwUnlock { object, .. } => {
                takes_lock = -1;
                self.found.give_back(thread, object, self.words.number(thread, step));
            }
            Event::AttemptFailed { .. } => {}
            Event::ConditionWait { timed_out: true, .. } => {
                state.gave_up_at = Some(state.history.counts().instructions);
                is_loud = true;
            }
            Event::FutexWait { object, .. } => self.found.sleeps.push((thread, step, word_of(object))),
            Event::SystemCall { number, .. } => is_loud = !(self.is_quiet_call)(number),
            Event::FutexWake { .. } => is_loud = true,
            Event::Signal { .. } => {
                (0..state.loops.len()).rev().for_each(|at| self.keep_unjudged(thread, at, false));
                let state = &mut self.threads[thread];
                state.loops.clear();
                state.looks_from = state.history.counts().passed;
                return;
            }
            _ => is_loud = true,
        }
        if !self.has_begun {
            return;
        }
        let token = Token::of_event(event.name());
        let is_time = state.history.pass_event(step, token, is_loud, takes_lock);
        state.digest(token.digest());
        if is_loud || !matches!(event, Event::SystemCall { .. }) {
            state.looks_from = state.history.counts().passed;
        }
        if is_time && self.is_ordered {
            self.sum_up_what_is_forgotten(thread);
        }
    }

    #[inline]
    fn block(&mut self, thread: usize, step: u64, id: u32, slots: &[u64]) {
        if !self.has_begun || self.threads[thread].in_call {
            return;
        }
        let outlines = self.outlines;
        let block = outlines.block(id);
        let state = &mut self.threads[thread];
        state.go_on(id);
        self.enter(thread, step, id, block.address);
        self.words.log.go_on(thread, step, id);
        let state = &mut self.threads[thread];
        let is_time = state.history.pass_block(step, id, block.instructions, slots);
        state.digest(u64::from(id));
        state.last_block = id;
        for access in outlines.accesses(block) {
            if access.is_wide() {
                self.touch_wide(thread, step, id, *access, slots);
                continue;
            }
            let address = slots[usize::from(access.slot)];
            let word = word_of(address);
            let is_private = match access.kind {
                SlotKind::Load => self.reads_private(thread, word),
                SlotKind::Store => self.words.store(thread, step, word),
                _ => self.updates_privately(thread, step, (id, *access), word, slots),
            };
            if !is_private && !self.is_ordered {
                self.touch_without_order(thread, *access, word);
            } else if !is_private {
                self.touch(thread, step, id, *access, address, slots);
            }
        }
        let history = &mut self.threads[thread].history;
        match block.flow {
            Flow::Calls => history.call(),
            Flow::Returns => history.give_back(),
            _ => {}
        }
        if is_time && self.is_ordered {
            self.sum_up_what_is_forgotten(thread);
        }
    }

    /// The word at this address; `slots` are looked at for an update.
    fn touch(&mut self, thread: usize, step: u64, id: u32, access: Access, address: u64, slots: &[u64]) {
        let (place, word) = ((id, access.slot), word_of(address));
        let number = self.share(thread, word);
        let (is_alone, other) = self.words.meet(thread, number);
        let seen = self.words.word(number).version;
        let (kind, update) = match access.kind {
            SlotKind::Load => (Kind::Read, None),
            SlotKind::Update => match update_of(self.program.block(id), access.slot.into(), slots) {
                None => (Kind::Store, None),
                update => (Kind::Update, update),
            },
            _ => (Kind::Store, None),
        };
        let changes = update.map_or(kind == Kind::Store, |(old, new)| old != new);
        let is_others = kind != Kind::Store && (seen.number == 0 || seen.thread != thread);
        let is_news = kind != Kind::Store && self.words.is_news(thread, number);
        if let Some((other, step)) = other {
            self.queues.updated(other, step, word, Version::default());
        }
        let state = &mut self.threads[thread];
        if !is_alone {
            let seen = if is_news { seen.number } else { 0 };
            state.digest(word << 20 ^ u64::from(kind == Kind::Store) << 60 ^ seen);
            if is_others {
                state.history.look_at_others();
            }
        }
        if is_news {
            state.news = state.history.counts().passed;
            let gave_up = state.gave_up_at.map(|at| state.history.counts().instructions - at);
            if kind == Kind::Read && gave_up.is_some_and(|ago| ago <= LOOK_INSTRUCTIONS_MAX) {
                self.found.wait_at(word, place);
            }
            if kind == Kind::Read {
                self.look(thread, step, place, word);
            }
        }
        if kind == Kind::Update {
            self.words.mark_updated(number);
        }
        if is_news || changes || !is_alone && self.words.word(number).is_updated {
            let mut access = self.words.logged(thread, step, place, kind);
            access.address = address;
            if !changes {
                self.words.log.read(access, seen, update.map_or(0, |(old, _)| old));
            } else {
                if let Some(update) = update {
                    self.words.log.updates(&mut access, update);
                }
                self.words.change(number, access);
            }
        }
        let uses = |_: &(u64, u64)| uses_result(self.program.block(id), access.slot);
        let found = update.filter(uses).map(|(old, _)| old as i64);
        let state = &mut self.threads[thread];
        if changes {
            state.take(step, word, found);
        }
        if kind == Kind::Read || found.is_some() {
            state.look(place);
        }
        let hands_out = changes && update.is_some() && !compares(self.program.block(id), access.slot);
        if is_alone {
            if hands_out {
                self.words.hand_out(thread, number, step);
            }
            return;
        }
        if !changes {
            if self.queues.awaits(thread) {
                self.queues.read(thread, step, word, seen);
            }
            return;
        }
        let state = &mut self.threads[thread];
        state.history.change(if update.is_some() { Act::Updates(1) } else { Act::Stores });
        state.looks_from = state.history.counts().passed;
        if hands_out {
            self.queues.updated(thread, step, word, seen);
        } else {
            if update.is_some() {
                self.queues.read(thread, step, word, seen);
            }
            self.queues.give_up(thread);
        }
    }

    /// The number of a word that is shared from now on, if it was not before.
    fn share(&mut self, thread: usize, word: u64) -> usize {
        let exact = self.exact_store(thread, word);
        if let Some((other, (step, ..))) = exact {
            self.threads[thread].see(other, step);
        }
        self.words.share(thread, word, exact.map(|(_, store)| store))
    }

    /// Which thread has stored to a word that is not shared yet, if another one has, and where.
    fn exact_store(&self, thread: usize, word: u64) -> Option<(usize, (u64, Place, u64))> {
        let store = self.words.state(word).store().filter(|(other, _)| *other != thread && *other < self.threads.len());
        // Of what it knows to be behind it there is nothing to find.
        let (other, step) = store.filter(|&(other, step)| self.threads[thread].is_news(other, step))?;
        Some((other, self.threads[other].history.last_store(self.memory(other), word, step)?))
    }

    /// The thread sees a newer store at the word that it has perhaps waited for.
    fn look(&mut self, thread: usize, step: u64, place: Place, word: u64) {
        let state = &self.threads[thread];
        let number = state.history.counts().passed - 1;
        let memory = self.memory(thread);
        let first = state.history.first_look(memory, word, number, state.looks_from);
        if let Some(first) = first.filter(|first| first.from < step) {
            let run = Run { from: first.from, to: step, block: place.0 };
            let changed = apart_from(&state.stack, first.changed);
            let places = first.places.into_iter().chain([place]);
            let looks = places.map(|place| (word, place)).collect();
            self.found.add(Provisional { thread, run, looks, changed });
            self.threads[thread].looks_from = number;
        }
    }

    fn memory(&self, thread: usize) -> Memory<'_> {
        Memory { thread, program: self.program, outlines: self.outlines, words: &self.words }
    }

    /// The thread comes to a block: rounds and loops may end.
    #[inline]
    fn enter(&mut self, thread: usize, step: u64, id: u32, address: u64) {
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
        self.enter_again(thread, step, id, address, last.end, depth);
    }

    fn enter_again(&mut self, thread: usize, step: u64, id: u32, head: u64, end: u64, depth: usize) {
        let state = &mut self.threads[thread];
        let mut at = state.loops.len();
        let is_here = loop {
            match at.checked_sub(1).map(|at| &state.loops[at]) {
                Some(of) if of.depth == depth => at -= 1,
                _ => break false,
            }
            if state.loops[at].head == head {
                break true;
            }
        };
        if !is_here {
            let begun = state.history.began(head, end, self.outlines).unwrap_or_else(|| state.history.mark(step));
            let (looks_from, quiet) = (state.looks_from, state.quiet);
            let of = state.loops.enter();
            (of.depth, of.head, of.head_block, of.end) = (depth, head, id, end);
            (of.begun, of.looks_from, of.has_waited) = (begun, looks_from, false);
            (of.digest, of.last_digest, of.reads_digest) = (0, None, 0);
            of.quiet = quiet;
            let at = state.loops.len() - 1;
            if begun.step < step {
                self.end_round(thread, at, step);
            }
            return;
        }
        while self.threads[thread].loops.len() > at + 1 {
            self.leave(thread, step);
        }
        let of = &mut self.threads[thread].loops[at];
        (of.end, of.head_block) = (of.end.max(end), id);
        self.end_round(thread, at, step);
    }

    /// A round is over and the next begins at `step`.
    fn end_round(&mut self, thread: usize, at: usize, step: u64) {
        let memory = Memory { thread, program: self.program, outlines: self.outlines, words: &self.words };
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        let end = history.mark(step);
        let from = std::mem::replace(&mut of.begun, end);
        of.quiet = state.quiet;
        let looks_from = std::mem::replace(&mut of.looks_from, state.looks_from);
        let digest = std::mem::take(&mut of.digest);
        let reads_digest = std::mem::take(&mut of.reads_digest);
        let reads_the_same = std::mem::replace(&mut of.last_reads_digest, reads_digest) == reads_digest;
        if of.last_digest.replace(digest) == Some(digest)
            && !of.has_waited
            && let Some(last) = of.run.back_mut()
        {
            last.to = step;
            of.run_length += 1;
            let is_polled = of.run_length == ROUNDS_BEFORE_APART && reads_the_same && reads_digest != 0;
            if is_polled && history.slots_since(&from.counts) <= SLOTS_APART_MAX {
                let polled: Vec<u64> = last.sum_up(history, memory).reads.iter().map(|look| look.word).collect();
                polled.into_iter().for_each(|word| self.words.keep_apart(word));
            }
            state.quiet += end.counts.instructions - from.counts.instructions;
            if reads_the_same && history.is_unseen_since(&from.counts) && !is_no_round(history, &from, step) {
                let instructions = end.counts.instructions - from.counts.instructions;
                of.poll(instructions, history.has_looked_at_others(&from.counts));
            }
            return;
        }
        let has_waited = std::mem::take(&mut of.has_waited);
        if is_no_round(history, &from, step) {
            self.keep_unjudged(thread, at, false);
            return;
        }
        if has_waited || !history.is_quiet_since(memory, &from.counts) {
            self.judge(thread, at, &from);
            return;
        }
        if of.run_length == 0 {
            (of.run_from, of.run_looks_from, of.looked) = (from, looks_from, None);
        }
        if of.run.len() == PATHS {
            // The first one may have done more than the others: it may begin in the middle of a block.
            of.run.remove(1);
        }
        of.run_length += 1;
        state.quiet += end.counts.instructions - from.counts.instructions;
        of.run.push_back(Round { from, end, to: step, summary: None });
        if state.news > from.counts.passed
            && let Some(before) = of.run.len().checked_sub(2)
        {
            of.run.range_mut(before..).for_each(|round| _ = round.sum_up(history, memory));
            let is_fresh = of.run[before + 1].reads().any(|look| is_newer(look, &of.run[before], thread));
            of.fresh += u64::from(is_fresh);
        }
    }

    /// The innermost loop is over.
    fn leave(&mut self, thread: usize, step: u64) {
        let state = &self.threads[thread];
        let at = state.loops.len() - 1;
        let of = &state.loops[at];
        if step != END {
            let instructions = state.history.counts().instructions;
            self.found.handed_out.leave(of.head, &of.taking, thread, step, instructions);
        }
        if of.run_length > 0 {
            if is_no_round(&state.history, &of.begun, step + 1) {
                self.keep_unjudged(thread, at, step == END);
            } else {
                let from = of.begun;
                self.judge(thread, at, &from);
            }
        }
        self.threads[thread].loops.leave();
    }

    /// The run is over, with what is no round. It may have waited if others have stored since to what it read, or if
    /// the record ends with it.
    fn keep_unjudged(&mut self, thread: usize, at: usize, is_at_end: bool) {
        let memory = Memory { thread, program: self.program, outlines: self.outlines, words: &self.words };
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        if self.is_ordered {
            of.settle_polled(history, memory);
        }
        if of.polled > 0
            && let Some(last) = of.run.back_mut()
        {
            let is_known = self.is_ordered
                && !is_at_end
                && !last.sum_up(history, memory).reads.iter().any(|look| memory.is_newer(look));
            polling::add(&mut self.found.polled[thread], of.polled(is_known));
        }
        of.forget_run();
    }

    /// Whether the run before the last round, which has begun at `from` and is over, was waiting.
    fn judge(&mut self, thread: usize, at: usize, from: &Mark) {
        let memory = Memory { thread, program: self.program, outlines: self.outlines, words: &self.words };
        let state = &mut self.threads[thread];
        let (history, of) = (&state.history, &mut state.loops[at]);
        if of.run.is_empty() {
            return;
        }
        let (mut has_waited, mut sees_newer) = (false, !self.is_ordered);
        if state.news > from.counts.passed {
            let last = history.summary(memory, &from.counts, history.counts());
            for round in &mut of.run {
                round.sum_up(history, memory);
            }
            of.settle_polled(history, memory);
            sees_newer = last.reads.iter().any(|look| is_newer_than_run(look, &of.run, thread));
            if let Some(word) = exit_word(self.outlines, thread, of, &last) {
                has_waited = true;
                of.look_back(history, memory);
                let to = of.run.back().expect("a run has a round").to;
                let looks = of.run.iter().flat_map(Round::reads);
                let looks = looks.chain(last.reads.iter().filter(|look| look.word == word));
                let looks = looks.filter(|look| !self.words.state(look.word).is_own(thread));
                let run = Run { from: of.run_from.step, to, block: of.head_block };
                let looks: Vec<_> = looks.map(|look| (look.word, look.place)).collect();
                let changed = |rounds: &mut dyn Iterator<Item = &Round>| -> Vec<u64> {
                    let words = rounds.filter_map(|round| round.summary.as_ref()).flat_map(|round| &round.changed);
                    apart_from(&state.stack, words.copied().collect())
                };
                // Where the first round began with work, the others may have waited.
                let behind_first = of.run.front().map(|round| round.to).filter(|first_to| *first_to < to);
                if let Some(from) = behind_first {
                    let (run, looks, changed) =
                        (Run { from, ..run }, looks.clone(), changed(&mut of.run.iter().skip(1)));
                    self.found.add(Provisional { thread, run, looks, changed });
                }
                let changed = changed(&mut of.run.iter());
                let first = of.looked.take().into_iter().flatten().find(|first| first.word == word);
                if let Some(first) = first {
                    let looks = looks.iter().filter(|(of, _)| *of == word).copied();
                    let looks = looks.chain(first.places.iter().map(|place| (word, *place))).collect();
                    let changed = apart_from(&state.stack, first.changed);
                    let run = Run { from: first.from, to: run.from, ..run };
                    self.found.add(Provisional { thread, run, looks, changed });
                }
                self.found.add(Provisional { thread, run, looks, changed });
            }
        }
        if of.polled > 0 && !has_waited {
            polling::add(&mut self.found.polled[thread], of.polled(!sees_newer));
        }
        of.forget_run();
        if has_waited {
            self.threads[thread].loops[..at].iter_mut().for_each(|outer| outer.has_waited = true);
        }
    }

    #[cold]
    fn sum_up_what_is_forgotten(&mut self, thread: usize) {
        let memory = Memory { thread, program: self.program, outlines: self.outlines, words: &self.words };
        let state = &mut self.threads[thread];
        let history = &state.history;
        for of in state.loops.iter_mut() {
            if of.run_length > 0 && history.will_forget(&of.run_from.counts) {
                of.look_back(history, memory);
            }
            for round in &mut of.run {
                if round.summary.is_none() && history.will_forget(&round.from.counts) {
                    round.sum_up(history, memory);
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> (Words, Found) {
        for thread in 0..self.threads.len() {
            while !self.threads[thread].loops.is_empty() {
                self.leave(thread, END);
            }
        }
        self.words.finish();
        self.found.settle(&self.words);
        self.found.queue_locks = self.queues.locks();
        (self.words, self.found)
    }
}

/// The words that a thread has changed and that are not on its stack. Others may come to them, or have come since.
fn apart_from(stack: &Range<u64>, mut changed: Vec<u64>) -> Vec<u64> {
    changed.retain(|word| !stack.contains(word));
    changed
}

/// Whether it is too long for one.
fn is_no_round(history: &History, from: &Mark, to: u64) -> bool {
    to - from.step > ROUND_STEPS_MAX || history.has_forgotten(&from.counts)
}
