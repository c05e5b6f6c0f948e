//! A persistent medium alone: what it answers, when, and what a power cut leaves.

use proptest::prelude::*;

use super::*;
use crate::device::write_drain::WriteTurns;
use fencepost_kernel::line::ByteMask;
use fencepost_kernel::message::{Cause, Tag};

/// 100 and 200 ns, four banks, a queue of eight, no bus.
pub(crate) fn nvm(ack_at: AckAt) -> PmConfig {
    PmConfig {
        capacity_mib: 1024,
        controller_latency_ns: 10.0,
        queue_answer_ns: 10.0,
        read_ns: 100.0,
        write_ns: 200.0,
        send_ns: 0.0,
        banks: 4,
        row_bytes: 64,
        row_buffer: false,
        burst_ns: 0.0,
        read_queue_entries: 8,
        write_queue_entries: 8,
        write_high_watermark: 6,
        write_low_watermark: 2,
        write_idle_watermark: 0,
        write_turns: WriteTurns::ReadsFirst,
        requests_per_turn: 16,
        read_bypass_cap: 4,
        handed_over_writes: 0,
        write_merging: false,
        ack_at,
        medium: PmMedium::Cells,
        block: None,
    }
}

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1000)
}

fn read(line: u64) -> Message {
    Message::read(LineAddress(line), Tag(line as u32), Cause::DemandRead, Time::ZERO)
}

fn write(line: u64, version: u64) -> Message {
    Message::write(LineAddress(line), Tag(line as u32), Cause::Flush, Version(version), ByteMask::FULL, Time::ZERO)
}

struct Bench {
    pm: Pm,
    next: Time,
    completions: Vec<Completion>,
}

impl Bench {
    fn new(config: PmConfig) -> Bench {
        let pm = Pm::new(&config, Interleave::none(0).unwrap());
        Bench { pm, next: Time::NEVER, completions: Vec::new() }
    }

    fn offer(&mut self, at: u64, message: Message) {
        self.run_before(ns(at));
        assert!(self.pm.has_room(&message));
        self.pm.accept(message, ns(at), &mut self.completions);
        self.next = self.next.min(ns(at));
    }

    fn run_before(&mut self, end: Time) {
        while self.next < end {
            let now = self.next;
            self.next = self.pm.advance(now, &mut self.completions);
            assert!(self.next > now, "the medium asks for the time it was asked at");
        }
    }

    fn run(&mut self) {
        self.run_before(Time::NEVER);
    }

    /// Class, line, version and time in ns of each answer, in the order of their times.
    fn answers(&self) -> Vec<(MessageClass, u64, u64, u64)> {
        let mut answers: Vec<_> = self
            .completions
            .iter()
            .map(|Completion { answer, at, .. }| (answer.class(), answer.line.0, answer.version.0, at.as_ps() / 1000))
            .collect();
        answers.sort_by_key(|(.., at)| *at);
        answers
    }
}

const DATA: MessageClass = MessageClass::S2mDrs;
const DONE: MessageClass = MessageClass::S2mNdr;

#[test]
fn reads_of_different_banks_go_side_by_side_and_those_of_one_bank_in_turn() {
    let mut bench = Bench::new(nvm(AckAt::Queue));
    for line in [0, 1, 4, 8] {
        bench.offer(10, read(line));
    }
    bench.run();
    assert_eq!(bench.answers(), [(DATA, 0, 0, 110), (DATA, 1, 0, 110), (DATA, 4, 0, 210), (DATA, 8, 0, 310)]);
    assert_eq!(bench.pm.counters().read_wait_ps, 300_000);
    assert_eq!(bench.pm.counters().bank_busy_ps, 400_000);
}

#[test]
fn a_write_is_complete_in_the_queue_or_on_the_medium_as_configured() {
    for (ack_at, complete) in [(AckAt::Queue, 10), (AckAt::Media, 210)] {
        let mut bench = Bench::new(nvm(ack_at));
        bench.offer(10, write(0, 1));
        bench.run();
        assert_eq!(bench.answers(), [(DONE, 0, 1, complete)]);
        assert_eq!(bench.pm.contents.get(0), Version(1));
        assert!(bench.pm.is_idle());
    }
}

#[test]
fn the_stack_has_the_wait_in_the_queue_and_the_work_in_the_medium() {
    let mut bench = Bench::new(nvm(AckAt::Media));
    bench.offer(0, write(0, 1));
    bench.offer(50, write(4, 1));
    bench.offer(60, read(8));
    bench.run();
    let stages = |index: usize| {
        let parts = bench.completions[index].answer.stack.parts_ps();
        [parts[Stage::DeviceQueue as usize], parts[Stage::Media as usize]]
    };
    assert_eq!(stages(0), [0, 200_000]);
    assert_eq!(stages(1), [200_000, 100_000], "the read went before the second write");
    assert_eq!(stages(2), [300_000, 200_000]);
}

#[test]
fn a_read_of_a_queued_line_is_answered_from_the_youngest_write() {
    let mut bench = Bench::new(nvm(AckAt::Queue));
    bench.offer(0, write(0, 1));
    bench.offer(20, write(0, 2));
    bench.offer(30, read(0));
    bench.run();
    assert!(bench.answers().contains(&(DATA, 0, 2, 30)));
    assert_eq!((bench.pm.counters().reads, bench.pm.counters().reads_from_write_queue), (0, 1));
    bench.offer(1000, read(0));
    bench.run();
    assert_eq!(bench.answers().last(), Some(&(DATA, 0, 2, 1100)));
}

#[test]
fn an_idle_medium_keeps_writes_up_to_its_watermark_in_the_queue() {
    let mut bench = Bench::new(PmConfig { write_idle_watermark: 2, ..nvm(AckAt::Queue) });
    bench.offer(0, write(0, 1));
    bench.offer(10, write(1, 1));
    bench.run();
    assert_eq!(bench.pm.counters().writes, 0);
    assert!(bench.pm.is_idle());
    bench.offer(10_000, write(2, 1));
    bench.run();
    assert_eq!(bench.pm.counters().writes, 1, "down to what may stay, which is the low watermark too");
}

#[test]
fn a_read_of_a_partly_queued_line_reads_the_medium_and_brings_the_queued_bytes() {
    let mut bench = Bench::new(nvm(AckAt::Queue));
    bench.offer(0, read(4));
    let mut partial = write(0, 7);
    partial.mask = ByteMask(0xf);
    bench.offer(10, partial);
    bench.offer(20, read(0));
    bench.run();
    assert_eq!(bench.answers().last(), Some(&(DATA, 0, 7, 200)));
}

#[test]
fn waiting_writes_of_a_line_merge_only_if_configured() {
    for (write_merging, merged, written) in [(false, 0, 3), (true, 1, 2)] {
        let mut bench = Bench::new(PmConfig { write_merging, ..nvm(AckAt::Media) });
        for version in 1..=3 {
            bench.offer(version, write(0, version));
        }
        bench.run();
        assert_eq!((bench.pm.counters().writes_merged, bench.pm.counters().writes), (merged, written));
        assert_eq!(bench.pm.contents.get(0), Version(3));
        let acknowledged: Vec<_> = bench.answers().iter().map(|(_, _, version, at)| (*version, *at)).collect();
        let third = if write_merging { 401 } else { 601 };
        assert_eq!(acknowledged, [(1, 201), (2, 401), (3, third)]);
    }
}

#[test]
fn a_bank_writes_only_when_no_read_waits_for_it() {
    let mut bench = Bench::new(nvm(AckAt::Media));
    bench.offer(0, read(0));
    bench.offer(0, write(4, 1));
    bench.offer(0, write(1, 1));
    bench.offer(0, read(8));
    bench.run();
    let times: Vec<_> = bench.answers().iter().map(|(_, line, _, at)| (*line, *at)).collect();
    assert_eq!(times, [(0, 100), (8, 200), (1, 200), (4, 400)]);
}

#[test]
fn a_write_is_passed_by_no_more_reads_than_the_cap_says() {
    let mut bench = Bench::new(nvm(AckAt::Media));
    bench.offer(0, read(0));
    bench.offer(0, write(4, 1));
    for turn in 1..=6 {
        bench.offer(turn, read(turn * 4 + 4));
    }
    bench.run();
    let written = bench.answers().iter().position(|(class, ..)| *class == DONE).unwrap();
    assert_eq!(written, 4, "with a cap of 4, counting the read that had begun");
}

#[test]
fn at_the_high_watermark_writes_go_before_reads() {
    let mut bench = Bench::new(PmConfig { banks: 1, ..nvm(AckAt::Queue) });
    bench.offer(0, read(100));
    for line in 0..6 {
        bench.offer(1, write(line, 1));
    }
    bench.offer(2, read(101));
    bench.run();
    // Writes from 100 ns on, until two are left: those wait for the second read.
    assert_eq!(bench.answers().last(), Some(&(DATA, 101, 0, 100 + 4 * 200 + 100)));
    assert_eq!(bench.pm.counters().writes, 6);
}

#[test]
fn the_queue_is_full_when_every_place_is_taken_and_has_room_when_a_line_is_written() {
    let mut bench = Bench::new(PmConfig { banks: 1, ..nvm(AckAt::Queue) });
    for line in 0..8 {
        bench.offer(0, write(line, 1));
    }
    bench.run_before(ns(200));
    assert!(!bench.pm.has_room(&write(9, 1)), "the line under way keeps its place");
    assert!(bench.pm.has_room(&read(9)));
    bench.run_before(ns(201));
    assert!(bench.pm.has_room(&write(9, 1)));
}

#[test]
fn a_bus_limits_the_bandwidth_of_all_banks_together() {
    let mut bench = Bench::new(PmConfig { burst_ns: 40.0, ..nvm(AckAt::Queue) });
    for line in 0..4 {
        bench.offer(0, read(line));
    }
    bench.run();
    let times: Vec<_> = bench.answers().iter().map(|(.., at)| *at).collect();
    assert_eq!(times, [140, 180, 220, 260]);
}

#[test]
fn a_written_line_crosses_the_bus_before_the_bank_writes_it() {
    let mut bench = Bench::new(PmConfig { burst_ns: 40.0, ..nvm(AckAt::Media) });
    bench.offer(0, write(0, 1));
    bench.offer(0, write(1, 1));
    bench.run();
    let times: Vec<_> = bench.answers().iter().map(|(.., at)| *at).collect();
    assert_eq!(times, [240, 280]);
}

#[test]
fn consecutive_rows_lie_in_consecutive_banks() {
    let mut bench = Bench::new(PmConfig { row_bytes: 128, ..nvm(AckAt::Queue) });
    [0, 1, 2, 8].iter().for_each(|line| bench.offer(0, read(*line)));
    bench.run();
    let times: Vec<_> = bench.answers().iter().map(|(_, line, _, at)| (*line, *at)).collect();
    assert_eq!(times, [(0, 100), (2, 100), (1, 200), (8, 300)]);
}

#[test]
fn a_row_that_is_buffered_is_read_without_the_medium_whether_it_was_read_or_written() {
    for (row_buffer, second, third) in [(true, 10, 110), (false, 110, 110)] {
        let mut bench = Bench::new(PmConfig { row_bytes: 128, row_buffer, send_ns: 10.0, ..nvm(AckAt::Queue) });
        for (at, line) in [(0, 0), (1000, 1), (2000, 8)] {
            bench.offer(at, read(line));
        }
        bench.offer(3000, write(0, 1));
        bench.offer(4000, read(1));
        bench.run();
        let reads: Vec<_> = bench.answers().iter().filter(|answer| answer.0 == DATA).map(|answer| answer.3).collect();
        assert_eq!(reads, [110, 1000 + second, 2000 + third, 4000 + second]);
    }
}

#[test]
fn a_read_waits_for_writes_that_were_handed_over_and_passes_those_that_were_not() {
    for (handed_over_writes, answered) in [(8, 2 * 200 + 100), (0, 200 + 100)] {
        let mut bench = Bench::new(PmConfig { handed_over_writes, ..nvm(AckAt::Queue) });
        bench.offer(0, write(0, 1));
        bench.offer(0, write(4, 1));
        bench.offer(1, read(8));
        bench.run();
        assert_eq!(bench.answers().last(), Some(&(DATA, 8, 0, answered)));
        assert!(bench.pm.is_idle());
    }
}

#[test]
fn writes_that_were_handed_over_leave_their_queue_but_no_more_than_may_be() {
    let mut bench = Bench::new(PmConfig { handed_over_writes: 4, banks: 1, ..nvm(AckAt::Queue) });
    (0..8).for_each(|line| bench.offer(0, write(line, 1)));
    bench.run_before(ns(199));
    assert_eq!((bench.pm.writes.occupied(), bench.pm.writes.writing()), (4, 4));
    bench.run_before(ns(201));
    assert_eq!((bench.pm.writes.occupied(), bench.pm.writes.writing()), (3, 4));
    bench.run();
    assert_eq!(bench.pm.counters().writes, 8);
    assert_eq!((0..8).map(|line| bench.pm.contents.get(line).0).collect::<Vec<_>>(), [1; 8]);
}

#[test]
fn a_bank_is_not_busy_while_what_it_was_handed_is_under_way_to_it() {
    let config = PmConfig { handed_over_writes: 4, banks: 1, burst_ns: 50.0, ..nvm(AckAt::Queue) };
    let mut bench = Bench::new(config);
    let busy_ns_at = |bench: &mut Bench, at| {
        bench.run_before(ns(at + 1));
        bench.pm.stats(ns(at)).to_json()["bank_busy_ps"].as_u64().expect("it is a counter") / 1000
    };
    // The write is at the bank at 50 ns.
    bench.offer(0, write(0, 1));
    assert_eq!([20, 100].map(|at| busy_ns_at(&mut bench, at)), [0, 50]);
    bench.offer(110, read(4));
    assert_eq!([200, 300, 400].map(|at| busy_ns_at(&mut bench, at)), [150, 250, 300]);
    bench.offer(410, write(0, 2));
    assert_eq!([420, 470, 700].map(|at| busy_ns_at(&mut bench, at)), [300, 310, 500]);
}

#[test]
fn a_line_that_was_handed_over_is_read_in_its_newest_version() {
    let mut bench = Bench::new(PmConfig { handed_over_writes: 4, row_buffer: true, ..nvm(AckAt::Queue) });
    bench.offer(0, write(0, 1));
    bench.offer(1, read(0));
    bench.run();
    assert_eq!(bench.answers().last(), Some(&(DATA, 0, 1, 200)), "behind its write, and from the buffer");
    assert_eq!(bench.pm.counters().reads_from_write_queue, 0);
}

#[test]
fn a_power_cut_keeps_a_queue_inside_the_persistent_domain() {
    let mut bench = Bench::new(PmConfig { banks: 1, ..nvm(AckAt::Queue) });
    for (line, version) in [(0, 1), (1, 1), (0, 2)] {
        bench.offer(0, write(line, version));
    }
    bench.run_before(ns(150));
    assert_eq!(bench.pm.contents.get(0), Version(0), "the first line is under way");
    bench.pm.power_fail();
    let durable = |pm: &Pm, line| pm.durable_version(LineAddress(line)).0;
    assert_eq!([0, 1].map(|line| durable(&bench.pm, line)), [2, 1]);
    assert!(!bench.pm.is_idle());
    bench.completions.clear();
    bench.next = ns(5000);
    bench.run();
    assert_eq!([0, 1].map(|line| bench.pm.contents.get(line).0), [2, 1]);
    assert!(bench.pm.is_idle() && bench.completions.is_empty(), "nobody waits any more");
}

#[test]
fn a_power_cut_loses_a_volatile_queue_and_tears_no_line() {
    let mut bench = Bench::new(PmConfig { banks: 1, ..nvm(AckAt::Media) });
    bench.offer(0, write(0, 1));
    bench.offer(0, write(0, 2));
    bench.run_before(ns(399));
    assert_eq!(bench.answers(), [(DONE, 0, 1, 200)]);
    bench.pm.power_fail();
    assert_eq!(bench.pm.durable_version(LineAddress(0)), Version(1));
    assert!(bench.pm.is_idle());
}

#[test]
fn the_durable_version_is_never_ahead_of_the_medium_when_the_queue_is_volatile() {
    let mut bench = Bench::new(nvm(AckAt::Media));
    bench.offer(0, write(0, 1));
    bench.run_before(ns(200));
    assert_eq!(bench.pm.durable_version(LineAddress(0)), Version(0));
    bench.run();
    assert_eq!(bench.pm.durable_version(LineAddress(0)), Version(1));
}

proptest! {
    /// Random traffic, a power cut at any time: what was acknowledged is there, what was never written is not, and what
    /// is left is written when power is back.
    #[test]
    fn every_acknowledged_write_survives_a_power_cut(
        requests in prop::collection::vec((0u64..80, 0u64..12, any::<bool>()), 1..80),
        is_queue in any::<bool>(), write_merging in any::<bool>(), burst in 0u32..30, cut in 0u64..4000,
        handed_over_writes in 0u16..4, row_buffer in any::<bool>(), takes_turns in any::<bool>(),
    ) {
        let write_turns = if takes_turns { WriteTurns::Batches } else { WriteTurns::ReadsFirst };
        let ack_at = if is_queue { AckAt::Queue } else { AckAt::Media };
        let burst_ns = burst.into();
        let media = PmConfig { handed_over_writes, row_buffer, row_bytes: 128, write_turns, ..nvm(ack_at) };
        let mut bench = Bench::new(PmConfig { write_merging, burst_ns, requests_per_turn: 2, ..media });
        let mut issued = [0u64; 12];
        let mut at = 0;
        for (gap, line, is_write) in requests {
            at += gap;
            let message = if is_write { write(line, issued[line as usize] + 1) } else { read(line) };
            bench.run_before(ns(at));
            if at >= cut || !bench.pm.has_room(&message) {
                continue;
            }
            issued[line as usize] += u64::from(is_write);
            bench.offer(at, message);
        }
        bench.run_before(ns(cut));
        let mut acknowledged = [0u64; 12];
        for (class, line, version, at) in bench.answers() {
            if class == DONE && at < cut {
                acknowledged[line as usize] = acknowledged[line as usize].max(version);
            }
        }
        bench.pm.power_fail();
        let durable: Vec<_> = (0..12).map(|line| bench.pm.durable_version(LineAddress(line)).0).collect();
        for line in 0..12 {
            prop_assert!((acknowledged[line]..=issued[line]).contains(&durable[line]));
        }
        bench.next = ns(cut);
        bench.run();
        prop_assert!(bench.pm.is_idle());
        let written: Vec<_> = (0..12).map(|line| bench.pm.contents.get(line).0).collect();
        prop_assert_eq!(written, durable);
    }
}
