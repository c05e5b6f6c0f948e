//! Rows of threads that are gone: killed, or ended without a word.

use std::time::Duration;

use crate::segment::place::{Holder, Phase, Place};
use crate::segment::{Row, Segment};
use crate::system;

/// How often each row is looked at. A thread that is gone has cost others nothing since it fell silent.
const PERIOD: Duration = Duration::from_millis(100);

/// Frees what the dead of this host left.
pub struct Reaper<'a> {
    segment: Segment<'a>,
    last: Duration,
}

impl<'a> Reaper<'a> {
    /// For a segment.
    pub fn new(segment: Segment<'a>) -> Reaper<'a> {
        Reaper { segment, last: Duration::ZERO }
    }

    /// Looks at all rows and candidates of this host, if it is time again. Returns whether it did.
    pub fn look(&mut self, now: Duration) -> bool {
        if now < self.last + PERIOD {
            return false;
        }
        self.last = now;
        for index in self.segment.own_rows() {
            self.look_at_row(index);
        }
        for index in self.segment.own_candidates() {
            let place = self.segment.candidate(index).place();
            free_if_gone(place, place.holder());
        }
        true
    }

    fn look_at_row(&self, index: usize) {
        let words = self.segment.row(index);
        let place = Row::place(words);
        let holder = place.holder();
        match holder.phase {
            Phase::Free => {}
            Phase::Closed => self.segment.reap_row(index, holder, system::thread()),
            Phase::Live if is_gone(holder, Row::read(words)) => {
                self.segment.reap_row(index, holder, system::thread());
            }
            Phase::Live => {}
            // Whoever kept its totals was killed over it.
            Phase::Reaped => free_if_gone(place, holder),
        }
    }
}

fn free_if_gone(place: Place<'_>, holder: Holder) {
    if holder.phase != Phase::Free && !system::exists(holder.thread) {
        place.free(holder);
    }
}

/// Whether the thread is gone; if another has its number by now, it was started at another time.
fn is_gone(holder: Holder, row: Option<Row>) -> bool {
    if !system::exists(holder.thread) {
        return true;
    }
    let Some(row) = row.filter(|row| row.started_ticks != 0) else { return false };
    system::started_ticks(row.process, holder.thread) != row.started_ticks
}
