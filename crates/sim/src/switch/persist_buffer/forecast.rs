//! How much room the next writes will need, and whether holding back pays, from what came: what `pb_adaptive` may hold
//! back follows from it.
//!
//! A drain that begins now gives its room back one drain time later. Whatever comes until then has to find room
//! already, so so many entries must be neither Dirty nor on their way: the most new entries that lately came within one
//! drain time. All the others may stay Dirty, to be merged with. The drain time is the shortest that was seen lately,
//! and not the average: when the memory device is the bottleneck, drains take longer because they queue there, and more
//! of them under way would only lengthen that queue, before reads too.
//!
//! Where the memory device takes writes more slowly than they come, drains come back late, and one that is sent ahead
//! of demand gives no room earlier: it waits in the device's queue, which holds the same lines as the buffer then,
//! instead of other ones that answer reads and can be merged with. So only as many drains are under way as the device
//! takes in time, and the others are held back: each that comes back in time lets in a little more, up to one more for
//! a round of them, and each that is late halves how many may be (additive increase, multiplicative decrease; Chiu and
//! Jain 1989). Late is what has waited longer than it travelled: more than twice the shortest drain time.
//!
//! Holding back pays in two ways: what is held back is merged with, and reads find the device's banks free. So nothing
//! is held back while both are missing: no write was lately of a line that the buffer had, no read is under way to the
//! device and none came within two drain times (eager writeback; Lee, Tyson and Farrens 2000). A read that came counts
//! whether the buffer or the device answers it, so that holding back does not end where what is held back answers all
//! reads.
//!
//! Some registers, and for each slot when it was sent ([`Cost`](super::cost::Cost) has the bits). The forecast decides
//! when an entry is drained and nothing else: that nothing is lost and every write is served does not depend on it,
//! which the checker proves by letting it say anything at any time.

use super::packet::Action;
use fencepost_kernel::time::{Duration, Time};

/// The drain time that is taken for granted before the first drain ends: about one round trip on a link and through the
/// device's controller.
const FIRST_DRAIN: Duration = Duration::from_ps(100_000);
/// A longer drain time is believed in by this part of the difference (as a power of two) for each drain.
pub(super) const DRAIN_TIME_RISES: u32 = 8;
/// The most that came is forgotten by this part (as a power of two) in each drain time in which something came.
const MOST_FALLS: u32 = 6;
/// After so many writes for each entry without one of a line that the buffer had, no merging is expected.
pub(super) const REFILLS: u32 = 64;
/// Where a read came, more are expected for so many drain times.
const READ_DRAIN_TIMES: u64 = 2;
/// The most that came has so many binary places, so that it can fall slowly.
pub(super) const MOST_PLACES: u32 = 8;

/// The forecast of one persist buffer.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    entries: u16,
    /// The shortest drain time seen lately.
    drain_time: Duration,
    /// When the drain time ends in which new entries are being counted.
    counted_until: Time,
    /// New entries in it so far.
    count: u32,
    /// The most in one lately, times 2^[`MOST_PLACES`].
    most: u32,
    /// Writes taken since the last one of a line that the buffer had, up to [`refilled`]; full at the start: nothing
    /// was merged yet.
    new_lines: u32,
    /// When a read last came.
    last_read: Option<Time>,
    /// Reads that went on to the device and have no answer yet.
    reads_under_way: u32,
    /// Drains that may be under way, 1 at least, as far as only the forecast wants them.
    window: u16,
    /// Drains that came back in time since the window changed.
    in_time: u16,
}

impl Forecast {
    /// That of a buffer with `entries` entries that has seen nothing yet.
    pub fn new(entries: u16) -> Forecast {
        Forecast {
            entries,
            drain_time: FIRST_DRAIN,
            counted_until: Time::ZERO,
            count: 0,
            most: 0,
            new_lines: refilled(entries),
            last_read: None,
            reads_under_way: 0,
            window: entries,
            in_time: 0,
        }
    }

    /// The controller took something up `now`; of interest are writes.
    pub fn taken_up(&mut self, action: Action, now: Time) {
        match action {
            Action::Coalescing => self.new_lines = 0,
            Action::Renewing => {
                self.new_lines = 0;
                self.allocated(now);
            }
            Action::Allocating => {
                self.new_lines = (self.new_lines + 1).min(refilled(self.entries));
                self.allocated(now);
            }
            _ => {}
        }
    }

    /// A write gets an entry of its own.
    fn allocated(&mut self, now: Time) {
        if now >= self.counted_until {
            // Time in which nothing came says nothing of the next burst.
            self.most = self.most_so_far() - (self.most_so_far() >> MOST_FALLS);
            self.count = 0;
            self.counted_until = now + self.drain_time;
        }
        self.count += 1;
    }

    /// A read came; the buffer or the device is to answer it.
    pub fn read_came(&mut self, now: Time) {
        self.last_read = Some(now);
    }

    /// A read goes on to the device.
    pub fn read_left(&mut self) {
        self.reads_under_way += 1;
    }

    /// The answer to a read that had gone on comes back.
    pub fn read_answered(&mut self) {
        self.reads_under_way -= 1;
    }

    /// Whether an answer is still to come.
    pub fn has_reads_under_way(&self) -> bool {
        self.reads_under_way > 0
    }

    /// A drain was acknowledged after `taken`.
    pub fn drained(&mut self, taken: Duration) {
        self.open_or_close(taken > self.drain_time * 2);
        self.drain_time = match taken.as_ps().checked_sub(self.drain_time.as_ps()) {
            Some(longer) => self.drain_time + Duration::from_ps(longer >> DRAIN_TIME_RISES),
            None => taken,
        };
    }

    fn open_or_close(&mut self, is_late: bool) {
        self.in_time += 1;
        if is_late {
            self.window = (self.window / 2).max(1);
            self.in_time = 0;
        } else if self.in_time >= self.window {
            self.window = (self.window + 1).min(self.entries);
            self.in_time = 0;
        }
    }

    /// Dirty entries that may be held back `now`, while so many drains are `under_way`. If a write or read is parked or
    /// holding back does not pay, none is, unless the device is late. It is asked when the controller looks for
    /// something to do, so time alone drains nothing.
    pub fn hold(&self, under_way: usize, is_request_parked: bool, now: Time) -> u16 {
        if under_way >= usize::from(self.window) {
            return self.entries;
        }
        if is_request_parked || !self.holding_pays(now) {
            return 0;
        }
        let room = self.most_so_far().div_ceil(1 << MOST_PLACES);
        self.entries.saturating_sub(room.min(u32::from(u16::MAX)) as u16)
    }

    fn holding_pays(&self, now: Time) -> bool {
        let reads_come = self.last_read.is_some_and(|at| now.since(at) <= self.drain_time * READ_DRAIN_TIMES);
        reads_come || self.has_reads_under_way() || self.new_lines < refilled(self.entries)
    }

    fn most_so_far(&self) -> u32 {
        self.most.max(self.count << MOST_PLACES)
    }
}

/// How many writes of lines that a buffer did not have say that nothing is merged.
fn refilled(entries: u16) -> u32 {
    u32::from(entries) * REFILLS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ps(ns * 1000)
    }

    /// That of a buffer of so many entries in which a write was merged.
    fn merging(entries: u16) -> Forecast {
        let mut forecast = Forecast::new(entries);
        forecast.taken_up(Action::Coalescing, at(0));
        forecast
    }

    #[test]
    fn as_many_as_came_within_a_drain_time_find_room() {
        let mut forecast = merging(16);
        assert_eq!(forecast.hold(0, false, at(0)), 16, "nothing has come");
        (0..5).for_each(|write| forecast.allocated(at(1000 + write)));
        assert_eq!(forecast.hold(0, false, at(3_000)), 11);
        forecast.allocated(at(2000));
        assert_eq!(forecast.hold(0, false, at(3_000)), 11, "one alone is no reason to expect less at once");
    }

    #[test]
    fn idle_time_forgets_nothing_and_slow_writes_forget_a_burst() {
        let mut forecast = merging(16);
        (0..8).for_each(|write| forecast.allocated(at(write)));
        forecast.allocated(at(1_000_000_000));
        assert_eq!(forecast.hold(0, false, at(3_000)), 8);
        (0..400).for_each(|write| forecast.allocated(at(1_000_001_000 + 1000 * write)));
        assert_eq!(forecast.hold(0, false, at(3_000)), 15);
    }

    #[test]
    fn a_buffer_that_is_smaller_than_a_burst_holds_nothing_back() {
        let mut forecast = merging(4);
        (0..9).for_each(|write| forecast.allocated(at(write)));
        assert_eq!(forecast.hold(0, false, at(3_000)), 0);
    }

    #[test]
    fn nothing_is_held_back_while_nothing_is_merged_and_nothing_is_read() {
        let mut forecast = Forecast::new(16);
        assert_eq!(forecast.hold(0, false, at(1_000)), 0, "nothing was merged or read yet");
        assert_eq!(forecast.hold(16, false, at(1_000)), 16, "the device is late");
        for (merges, start) in [(Action::Coalescing, 0), (Action::Renewing, 2_000_000)] {
            forecast.taken_up(merges, at(start));
            (1..=1023).for_each(|write| forecast.taken_up(Action::Allocating, at(start + 1_000 * write)));
            assert_eq!(forecast.hold(0, false, at(start + 1_024_000)), 15, "something may be merged with yet");
            forecast.taken_up(Action::Allocating, at(start + 1_024_000));
            assert_eq!(forecast.hold(0, false, at(start + 1_024_000)), 0);
        }
        forecast.read_came(at(4_000_000));
        assert_eq!([4_000_200, 4_000_201].map(|ns| forecast.hold(0, false, at(ns))), [15, 0], "two drain times");
    }

    #[test]
    fn something_is_held_back_while_a_read_is_under_way() {
        let mut forecast = Forecast::new(16);
        (0..2).for_each(|_| forecast.read_left());
        forecast.read_answered();
        assert_eq!(forecast.hold(0, false, at(1_000)), 16, "one of two is");
        forecast.read_answered();
        assert_eq!(forecast.hold(0, false, at(1_000)), 0);
    }

    #[test]
    fn room_is_kept_for_what_gets_an_entry() {
        for (action, held) in [(Action::Coalescing, 16), (Action::Renewing, 15), (Action::Allocating, 15)] {
            let mut forecast = merging(16);
            forecast.taken_up(action, at(1_000));
            assert_eq!(forecast.hold(0, false, at(1_000)), held, "{action:?}");
        }
    }

    #[test]
    fn the_drain_time_falls_at_once_and_rises_slowly() {
        let mut forecast = merging(4);
        forecast.drained(Duration::from_ns(80.0));
        assert_eq!(forecast.drain_time, Duration::from_ns(80.0));
        forecast.drained(Duration::from_ns(336.0));
        assert_eq!(forecast.drain_time, Duration::from_ns(81.0));
    }

    #[test]
    fn drains_that_come_back_late_close_the_window_and_those_in_time_open_it() {
        let mut forecast = merging(4);
        (0..4).for_each(|write| forecast.allocated(at(write)));
        forecast.drained(Duration::from_ns(80.0));
        assert_eq!(
            [3, 4].map(|under_way| forecast.hold(under_way, false, at(3_000))),
            [0, 4],
            "all entries may be under way"
        );
        forecast.drained(Duration::from_ns(161.0));
        assert_eq!([1, 2].map(|under_way| forecast.hold(under_way, true, at(3_000))), [0, 4], "even if a write waits");
        (0..3).for_each(|_| forecast.drained(Duration::from_ns(1000.0)));
        assert_eq!([0, 1].map(|under_way| forecast.hold(under_way, true, at(3_000))), [0, 4], "one may always be");
        forecast.drained(Duration::from_ns(80.0));
        assert_eq!(
            [1, 2].map(|under_way| forecast.hold(under_way, false, at(3_000))),
            [0, 4],
            "one came back, one more may go"
        );
        (0..2).for_each(|_| forecast.drained(Duration::from_ns(80.0)));
        assert_eq!([2, 3].map(|under_way| forecast.hold(under_way, false, at(3_000))), [0, 4], "a round of two");
    }
}
