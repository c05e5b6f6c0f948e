//! A medium of blocks alone: what it answers, when, how much it writes, and what a power cut leaves.

use proptest::prelude::*;

use super::*;
use crate::device::pm::tests::nvm;
use fencepost_kernel::line::ByteMask;
use fencepost_kernel::message::{Cause, Tag};

/// Blocks of four lines, 100 and 200 ns, four banks, room for eight blocks; 10 ns from a buffer and 30 ns to find a
/// block.
fn xpoint(ack_at: AckAt) -> PmConfig {
    let block = BlockConfig { read_buffer_entries: 4, translation_ns: 30.0 };
    let media = PmConfig { row_bytes: 256, send_ns: 10.0, write_idle_watermark: 4, ..nvm(ack_at) };
    PmConfig { write_merging: true, block: Some(block), ..media }
}

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1000)
}

fn read(line: u64) -> Message {
    Message::read(LineAddress(line), Tag(line as u32), Cause::DemandRead, Time::ZERO)
}

fn write(line: u64, version: u64) -> Message {
    write_bytes(line, version, ByteMask::FULL)
}

fn write_bytes(line: u64, version: u64, mask: ByteMask) -> Message {
    Message::write(LineAddress(line), Tag(line as u32), Cause::Flush, Version(version), mask, Time::ZERO)
}

struct Bench {
    pm: BlockPm,
    next: Time,
    completions: Vec<Completion>,
}

impl Bench {
    fn new(config: PmConfig) -> Bench {
        let block = config.block.clone().expect("it is accessed in blocks");
        let pm = BlockPm::new(&config, &block, Interleave::none(0).unwrap());
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
        answers.sort_by_key(|(_, line, _, at)| (*at, *line));
        answers
    }

    fn durable(&self, line: u64) -> u64 {
        self.pm.durable_version(LineAddress(line)).0
    }
}

const DATA: MessageClass = MessageClass::S2mDrs;
const DONE: MessageClass = MessageClass::S2mNdr;

#[test]
fn a_read_brings_its_block_whose_other_lines_come_from_the_buffer() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    bench.offer(0, read(0));
    bench.offer(50, read(1));
    bench.offer(500, read(3));
    bench.offer(500, read(4));
    bench.run();
    assert_eq!(bench.answers(), [(DATA, 0, 0, 140), (DATA, 1, 0, 140), (DATA, 3, 0, 510), (DATA, 4, 0, 640)]);
    let counters = bench.pm.counters();
    assert_eq!((counters.reads, counters.reads_merged, counters.reads_from_read_buffer), (2, 1, 1));
    assert_eq!(counters.media_read_bytes, 512);
}

#[test]
fn blocks_of_one_bank_go_in_turn_and_their_translations_overlap() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    for line in [0, 16, 4] {
        bench.offer(0, read(line));
    }
    bench.run();
    assert_eq!(bench.answers(), [(DATA, 0, 0, 140), (DATA, 4, 0, 140), (DATA, 16, 0, 240)]);
    assert_eq!(bench.pm.counters().read_wait_ps, 100_000);
}

#[test]
fn the_stack_has_the_wait_for_the_bank_and_the_work_of_the_medium() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    bench.offer(0, read(0));
    bench.offer(0, read(16));
    bench.run();
    let parts = bench.completions[1].answer.stack.parts_ps();
    assert_eq!([parts[Stage::DeviceQueue as usize], parts[Stage::Media as usize]], [130_000, 110_000]);
}

#[test]
fn a_whole_block_is_written_once_and_not_read_before() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    for line in 0..4 {
        bench.offer(10 * line, write(line, 1));
    }
    bench.run_before(ns(229));
    assert_eq!((0..4).map(|line| bench.pm.contents.get(line).0).collect::<Vec<_>>(), [0; 4]);
    bench.run();
    assert_eq!(
        (0..4).map(|line| bench.pm.contents.get(line).0).collect::<Vec<_>>(),
        [1; 4],
        "written from 30 to 230 ns"
    );
    let counters = bench.pm.counters();
    assert_eq!((counters.writes, counters.writes_merged, counters.reads), (1, 3, 0));
    assert_eq!(counters.media_write_bytes, 256);
    assert_eq!(counters.bank_busy_ps, 200_000);
    assert!(bench.pm.is_idle());
}

#[test]
fn parts_of_blocks_stay_to_be_merged_with_until_there_are_too_many() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    for block in 0..4 {
        bench.offer(0, write(4 * block, 1));
        bench.offer(0, write(4 * block, 2));
    }
    bench.run();
    assert_eq!((bench.pm.counters().writes, bench.pm.is_idle()), (0, true));
    bench.offer(1000, write(16, 1));
    bench.run();
    let counters = bench.pm.counters();
    assert_eq!((counters.writes, counters.read_modify_writes, counters.reads), (3, 3, 3), "down to the low watermark");
    assert_eq!([0, 4, 8, 12, 16].map(|line| bench.pm.contents.get(line).0), [2, 2, 2, 0, 0], "oldest first");
}

#[test]
fn a_part_of_a_line_makes_no_whole_block() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    for line in 0..3 {
        bench.offer(0, write(line, 1));
    }
    bench.offer(0, write_bytes(3, 1, ByteMask(0xff)));
    bench.run();
    assert_eq!(bench.pm.counters().writes, 0);
    bench.offer(1000, read(3));
    bench.run();
    assert_eq!(bench.answers().last(), Some(&(DATA, 3, 1, 1140)), "the rest of the line is on the medium");
    bench.offer(2000, write_bytes(3, 2, ByteMask(!0xff)));
    bench.run();
    assert_eq!((bench.pm.counters().writes, bench.pm.contents.get(3)), (1, Version(2)));
}

#[test]
fn a_block_in_the_read_buffer_need_not_be_read_before_it_is_written_in_part() {
    for (is_read_before, busy, modified) in [(false, 300_000, 1), (true, 100_000 + 200_000, 0)] {
        let mut bench = Bench::new(PmConfig { write_idle_watermark: 0, ..xpoint(AckAt::Queue) });
        if is_read_before {
            bench.offer(0, read(0));
        }
        bench.offer(1000, write(1, 1));
        bench.run();
        let counters = bench.pm.counters();
        assert_eq!((counters.bank_busy_ps, counters.reads, counters.read_modify_writes), (busy, 1, modified));
    }
}

#[test]
fn without_merging_each_line_is_a_block_written_in_part() {
    let mut bench = Bench::new(PmConfig { write_merging: false, ..xpoint(AckAt::Queue) });
    for line in 0..8 {
        bench.offer(10_000 * line, write(line, 1));
    }
    bench.run();
    let counters = bench.pm.counters();
    assert_eq!((counters.writes_merged, counters.writes, counters.read_modify_writes), (0, 6, 6));
    assert_eq!(counters.media_write_bytes, 6 * 256);
}

#[test]
fn reads_go_first_until_writes_press() {
    let mut bench = Bench::new(PmConfig { banks: 1, ..xpoint(AckAt::Queue) });
    for line in 0..4 {
        bench.offer(0, write(line, 1));
    }
    for block in 1..4 {
        bench.offer(1, read(4 * block));
    }
    bench.run();
    assert_eq!(bench.answers()[4..].iter().map(|(.., at)| *at).collect::<Vec<_>>(), [310, 410, 510]);

    let mut bench = Bench::new(PmConfig { banks: 1, ..xpoint(AckAt::Queue) });
    bench.offer(0, read(100));
    for block in 0..6 {
        bench.offer(40, write(4 * block, 1));
    }
    bench.offer(41, read(200));
    bench.run();
    let last = bench.answers().last().copied();
    assert_eq!(last, Some((DATA, 200, 0, 130 + 4 * 300 + 100 + 10)), "four blocks lie between the watermarks");
}

#[test]
fn a_write_is_complete_in_the_buffer_or_on_the_medium_as_configured() {
    for (ack_at, complete) in [(AckAt::Queue, 10), (AckAt::Media, 310)] {
        let mut bench = Bench::new(xpoint(ack_at));
        bench.offer(10, write(0, 1));
        bench.run();
        assert_eq!(bench.answers(), [(DONE, 0, 1, complete)]);
    }
}

#[test]
fn a_power_cut_keeps_a_buffer_inside_the_persistent_domain_and_tears_no_block() {
    let mut bench = Bench::new(xpoint(AckAt::Queue));
    for line in 0..4 {
        bench.offer(0, write(line, 1));
    }
    bench.offer(100, write(0, 2));
    bench.run_before(ns(150));
    assert_eq!(bench.pm.contents.get(1), Version(0), "the block is under way");
    bench.pm.power_fail();
    assert_eq!([0, 1, 2, 3].map(|line| bench.durable(line)), [2, 1, 1, 1]);
    assert!(!bench.pm.is_idle(), "a whole block waits");
    bench.completions.clear();
    bench.next = ns(5000);
    bench.run();
    assert_eq!([0, 1, 2, 3].map(|line| bench.pm.contents.get(line).0), [1, 1, 1, 1]);
    assert_eq!(bench.durable(0), 2, "the later part is still in the buffer");
    assert!(bench.pm.is_idle() && bench.completions.is_empty(), "nobody waits any more");
}

#[test]
fn a_power_cut_loses_a_volatile_buffer() {
    let mut bench = Bench::new(xpoint(AckAt::Media));
    for line in 0..4 {
        bench.offer(0, write(line, 1));
    }
    bench.run_before(ns(250));
    bench.offer(250, write(0, 2));
    bench.run_before(ns(260));
    assert_eq!(bench.answers().len(), 4);
    bench.pm.power_fail();
    assert_eq!([0, 3].map(|line| bench.durable(line)), [1, 1]);
    assert!(bench.pm.is_idle());
}

proptest! {
    /// Random traffic, a power cut at any time: reads see what was taken before them, what was acknowledged is there,
    /// what was never written is not, and what is left is still there when power is back.
    #[test]
    fn every_acknowledged_write_survives_a_power_cut(
        requests in prop::collection::vec((0u64..80, 0u64..24, any::<bool>(), any::<bool>()), 1..120),
        is_queue in any::<bool>(), write_merging in any::<bool>(),
        burst in 0u32..30, idle in 0u16..5, cut in 0u64..6000,
    ) {
        let ack_at = if is_queue { AckAt::Queue } else { AckAt::Media };
        let burst_ns = burst.into();
        let config = PmConfig { write_merging, burst_ns, write_idle_watermark: idle, banks: 2, ..xpoint(ack_at) };
        let mut bench = Bench::new(config);
        let mut issued = [0u64; 24];
        let mut expected_reads = Vec::new();
        let mut at = 0;
        for (gap, line, is_write, is_part) in requests {
            at += gap;
            let mask = if is_part { ByteMask(0xff) } else { ByteMask::FULL };
            let version = issued[line as usize] + u64::from(is_write);
            let message = if is_write { write_bytes(line, version, mask) } else { read(line) };
            bench.run_before(ns(at));
            if at >= cut || !bench.pm.has_room(&message) {
                continue;
            }
            issued[line as usize] = version;
            if !is_write {
                expected_reads.push((line, version));
            }
            bench.offer(at, message);
        }
        let mut full = bench.pm.clone();
        bench.run_before(ns(cut));
        let mut acknowledged = [0u64; 24];
        for (class, line, version, at) in bench.answers() {
            if class == DONE && at < cut {
                acknowledged[line as usize] = acknowledged[line as usize].max(version);
            }
        }
        bench.pm.power_fail();
        let durable: Vec<_> = (0..24).map(|line| bench.durable(line)).collect();
        for line in 0..24 {
            prop_assert!((acknowledged[line]..=issued[line]).contains(&durable[line]));
        }
        bench.next = ns(cut);
        bench.run();
        prop_assert!(bench.pm.is_idle());
        prop_assert_eq!((0..24).map(|line| bench.durable(line)).collect::<Vec<_>>(), durable);

        // Without the cut every read is answered, with what had been taken before it or something younger.
        let mut completions = std::mem::take(&mut bench.completions);
        completions.retain(|completion| completion.answer.class() == DATA && completion.at < ns(cut));
        for Completion { answer, .. } in completions {
            let of_line = expected_reads.iter().filter(|(line, _)| *line == answer.line.0);
            let oldest = of_line.map(|(_, version)| *version).min();
            let newest = issued[answer.line.0 as usize];
            prop_assert!(oldest.is_some_and(|oldest| (oldest..=newest).contains(&answer.version.0)));
        }
        let mut rest = Vec::new();
        let mut next = ns(at);
        while next < Time::NEVER {
            next = full.advance(next, &mut rest);
        }
        prop_assert!(full.is_idle());
    }
}
