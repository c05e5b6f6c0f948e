//! The order of a record that was made one thread at a time: which of its orders a replay keeps.
//!
//! Threads took turns, so that the whole record is one sequence. What a thread read in it was stored by somebody
//! before, and most of that order is an accident of the recording. Three walks through it find what is not:
//!
//! ```text
//! sharing   which words more than one thread touches, and one of them stores to
//! rounds    rounds of loops that only waited for another thread's store: they are left out
//! edges     what reads of the words that were waited for have to come behind, and locks
//! ```
//!
//! The rules are those of `docs/waiting.md`.

mod calls;
mod changes;
mod edges;
mod flow;
mod found;
mod history;
mod looks;
mod outlines;
mod polling;
mod queue_locks;
mod rounds;
mod sharing;
mod updates;
mod walk;

pub(super) use changes::{Changes, FrameChanges};

use super::error::RecordError;
use super::info::ISA_X86_64;
use super::reader::Record;
use edges::Edges;
use outlines::Outlines;
use rounds::Rounds;
use sharing::Sharing;
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
    let mut sharing = Sharing::new(record.program(), record.threads(), !turns.are_known());
    turns.walk(record, |thread, _, what| sharing.take_in(thread, what))?;
    let shared = sharing.finish();
    let mut rounds = Rounds::new(record, &outlines, &shared, turns.are_known());
    let frames = turns.walk(record, |thread, number, what| rounds.take_in(thread, number, what))?;
    let found = rounds.finish();
    if !turns.are_known() {
        return Ok(Some(Changes::that_keep(&found.polled, frames)));
    }
    let mut edges = Edges::new(record, &outlines, &shared, &found);
    let frames = turns.walk(record, |thread, number, what| edges.take_in(thread, number, what))?;
    Ok(Some(edges.finish(&frames)))
}

#[cfg(test)]
mod tests;
