//! Long runs of requests, alone and mixed: what a channel carries, and how long reads take.
//!
//! What is compared with a public DRAM simulator, Ramulator 2, was measured with the same timing parameters: a random
//! mix of two reads to a write saturates at 11.19 GB/s there, and its reads take 108 ns at 8 GB/s.

use super::*;
use crate::device::medium::Medium;
use crate::device::probe::{ProbeRequest, probe};
use crate::traffic::Random;

/// Requests of a run: enough for more than ten refreshes.
const COUNT: u64 = 20_000;

/// The requests of a run, one each `interval_ps`, in order.
fn script(interval_ps: u64, request: impl Fn(u64, &mut Random) -> (bool, u64)) -> Vec<ProbeRequest> {
    let mut random = Random::new(1);
    let requests = (0..COUNT).map(|turn| {
        let (is_write, line) = request(turn, &mut random);
        let at = Time::from_ps(turn * interval_ps);
        ProbeRequest { at, is_write, line: LineAddress(line), mask: ByteMask::FULL }
    });
    requests.collect()
}

fn anywhere(random: &mut Random) -> u64 {
    random.below(1 << 24)
}

/// Two reads to a write, at random lines.
fn random_mix(interval_ps: u64) -> Vec<ProbeRequest> {
    script(interval_ps, |turn, random| (turn % 3 == 2, anywhere(random)))
}

/// What a run showed.
#[derive(Debug)]
struct Run {
    gb_per_s: f64,
    /// From a read's entry into the queue to its data.
    read_ns: f64,
    activates: usize,
    is_complete: bool,
}

fn run(config: &DramConfig, script: &[ProbeRequest]) -> Run {
    let outcome = probe(&mut Medium::Dram(Dram::new(config, Interleave::WHOLE, false).into()), script);
    let is_column = |command: &Command| matches!(command, Command::Read { .. } | Command::Write { .. });
    let columns: Vec<Time> =
        outcome.commands.iter().filter(|(_, command)| is_column(command)).map(|(at, _)| *at).collect();
    let read = |(request, probed): (&ProbeRequest, &crate::device::probe::Probed)| {
        (!request.is_write).then(|| probed.answered.since(probed.entered).as_ps())
    };
    let reads: Vec<u64> = script.iter().zip(&outcome.requests).filter_map(read).collect();
    let duration = columns[columns.len() - 1].since(columns[0]);
    Run {
        gb_per_s: ((columns.len() - 1) * 64 * 1000) as f64 / duration.as_ps() as f64,
        read_ns: reads.iter().sum::<u64>() as f64 / reads.len().max(1) as f64 / 1000.0,
        activates: outcome.commands.iter().filter(|(_, command)| matches!(command, Command::Activate { .. })).count(),
        is_complete: columns.len() == script.len(),
    }
}

/// What a run has to show: GB/s, and ns of a read.
fn assert_near(run: &Run, gb_per_s: f64, read_ns: f64, what: &str) {
    let is_near = |ours: f64, before: f64| (ours - before).abs() <= 0.05 * before;
    assert!(is_near(run.gb_per_s, gb_per_s), "{what}: {run:?}, not {gb_per_s} GB/s");
    assert!(is_near(run.read_ns, read_ns), "{what}: {run:?}, not {read_ns} ns");
}

#[test]
fn a_random_mix_is_carried_at_the_rate_that_tfaw_and_refresh_allow() {
    for interval_ps in [5000, 5700] {
        let run = run(&ddr4_2400(), &random_mix(interval_ps));
        assert!(run.is_complete);
        // 4 lines in the 26 cycles of tFAW, but for 438 of 9364 cycles: a refresh and the precharge before it.
        let limit = 256.0 / (26.0 * 0.833) * (1.0 - 438.0 / 9364.0);
        assert!(run.gb_per_s >= 11.0 && run.gb_per_s <= limit, "one each {interval_ps} ps: {run:?}, at most {limit}");
    }
}

#[test]
fn a_row_opened_for_a_request_stays_open_until_it_is_served() {
    let run = run(&ddr4_2400(), &random_mix(6400));
    assert!(run.activates as u64 - COUNT < COUNT / 200, "{} ACT for {COUNT} requests in other rows", run.activates);
}

#[test]
fn reads_of_a_random_mix_take_about_as_long_as_elsewhere() {
    // The queues of the simulator that it is compared with: 32 entries, writes from 80 % down to 20 %.
    let queues = DramConfig { read_queue_entries: 32, write_queue_entries: 32, ..ddr4_2400() };
    let config = DramConfig { write_high_watermark: 26, write_low_watermark: 6, ..queues };
    let run = run(&config, &random_mix(8000));
    assert!((run.read_ns - 108.0).abs() < 0.1 * 108.0, "{run:?}");
}

/// The figures are those of the scheduler in which a request kept its place in the queue until its RD or WR.
#[test]
fn streams_and_random_reads_stay_as_they_were() {
    let config = ddr4_2400();
    let reads = |interval_ps| script(interval_ps, |_, random| (false, anywhere(random)));
    assert_near(&run(&config, &script(0, |turn, _| (false, turn))), 17.701, 248.48, "sequential reads");
    assert_near(&run(&config, &script(0, |turn, _| (true, turn))), 17.659, 0.0, "sequential writes");
    assert_near(&run(&config, &script(4000, |turn, _| (turn % 3 == 2, turn))), 15.927, 237.83, "one stream, 2:1");
    let two = script(5000, |turn, _| (turn % 2 == 1, turn / 2 + ((turn % 2) << 20)));
    assert_near(&run(&config, &two), 12.720, 303.06, "a stream of reads and one of writes");
    assert_near(&run(&config, &reads(0)), 11.102, 385.77, "random reads");
    assert_near(&run(&config, &reads(6400)), 9.993, 136.88, "random reads, one each 6.4 ns");
    assert_near(&run(&config, &reads(8000)), 7.996, 90.59, "random reads, one each 8 ns");
    assert_near(&run(&config, &reads(16_000)), 3.996, 65.06, "random reads, one each 16 ns");
}
