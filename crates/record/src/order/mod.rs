//! The order of a record that was made one thread at a time: which of its orders a replay keeps.
//!
//! Threads took turns, so that the whole record is one sequence. What a thread read in it was stored by somebody
//! before, and most of that order is an accident of the recording. One walk through it, and what it logs, find what is
//! not:
//!
//! ```text
//! words     which words a thread has stored to and another touches: what happens to these is logged
//! rounds    rounds of loops that only waited for another thread's store: they are left out
//! edges     of what is logged, what reads of the words that were waited for have to come behind, and locks
//! ```
//!
//! The rules are those of `docs/waiting.md`.

mod calls;
mod changes;
mod covered;
mod edges;
mod flow;
mod found;
mod handed_out;
mod history;
mod lines;
mod log;
mod loops;
mod of_thread;
mod outlines;
mod polling;
mod queue_locks;
mod rounds;
mod unplaced;
mod updates;
mod walk;
mod words;

pub(super) use changes::{Changes, FrameChanges};

use super::error::RecordError;
use super::info::ISA_X86_64;
use super::reader::Record;
use edges::Edges;
use outlines::Outlines;
use rounds::Rounds;
use walk::Turns;

/// What has to be changed in the frames of a record of several threads. Where they did not take turns, nobody knows
/// what came before what: all is kept, and what polls is counted, by thread.
pub(super) fn changes_of(record: &Record) -> Result<Option<Changes>, RecordError> {
    // What threads saw of each other stands in records with values; nothing of them is left out.
    if record.threads() < 2 || record.info().options.values {
        return Ok(None);
    }
    let turns = Turns::of(record)?;
    // Recorders of x86-64 programs have turns.
    if !turns.are_known() && record.info().isa == ISA_X86_64 {
        return Ok(None);
    }
    let outlines = Outlines::of(record.program(), &record.info().isa);
    let mut rounds = Rounds::new(record, &outlines, turns.are_known());
    if !turns.are_known() {
        // What a thread reads, others may store to that come behind it.
        turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what))?;
        let mut rounds = rounds.again(record);
        let frames = turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what))?;
        return Ok(Some(Changes::that_keep(&rounds.finish().1.polled, frames)));
    }
    let frames = turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what))?;
    let (mut words, found) = rounds.finish();
    let mut uncovered = covered::uncovered(&words, &found, record.threads());
    uncovered.unplaced.extend(words.unplaced(|word| found.words.contains(&word)));
    if !uncovered.unplaced.is_empty() {
        unplaced::place(record, &outlines, &mut words, &frames, uncovered.unplaced)?;
        uncovered = covered::uncovered(&words, &found, record.threads());
        // Where these came earlier, others may put less behind themselves.
        if !uncovered.unplaced.is_empty() {
            let unplaced = words.unplaced(|_| true);
            unplaced::place(record, &outlines, &mut words, &frames, unplaced)?;
            uncovered = covered::uncovered(&words, &found, record.threads());
        }
    }
    let mut changes = Edges::of(record, &words, found, uncovered).finish(frames);
    changes.undecided = words.undecided.iter().map(|of_thread| of_thread.count).sum();
    Ok(Some(changes))
}

#[cfg(test)]
mod tests;
