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

mod changes;
mod edges;
mod flow;
mod found;
mod history;
mod log;
mod loops;
mod outlines;
mod queue_locks;
mod rounds;
mod updates;
mod walk;
mod words;

pub(super) use changes::{Changes, FrameChanges};

use super::error::RecordError;
use super::reader::Record;
use edges::Edges;
use outlines::Outlines;
use rounds::Rounds;
use walk::Turns;

/// What has to be changed in the frames of a record, `None` for one whose threads did not take turns.
pub(super) fn changes_of(record: &Record) -> Result<Option<Changes>, RecordError> {
    // What threads saw of each other stands in records with values; nothing of them is left out.
    if record.threads() < 2 || record.info().options.values {
        return Ok(None);
    }
    let turns = Turns::of(record)?;
    if turns.are_none() {
        return Ok(None);
    }
    let outlines = Outlines::of(record.program());
    let mut rounds = Rounds::new(record, &outlines);
    let frames = turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what))?;
    let (words, found) = rounds.finish();
    Ok(Some(Edges::of(record, &words, found).finish(frames)))
}

#[cfg(test)]
mod tests;
