//! What the controller makes of its queues: latencies, order, turns of reads and writes, refreshes, bandwidth.

use super::*;

fn lines(bench: &Bench) -> Vec<u64> {
    bench.reads().iter().map(|(line, _)| *line).collect()
}

#[test]
fn a_read_of_a_closed_bank_takes_trcd_tcl_and_the_burst() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(10), read(0));
    let bench = bench.finish();
    assert_eq!(bench.reads(), [(0, 10 + 17 + 17 + 4)]);
    assert_eq!(bench.dram.counters().row_misses, 1);
}

#[test]
fn a_row_hit_takes_tcl_and_the_burst() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(100), read(1));
    let bench = bench.finish();
    assert_eq!(bench.reads()[1], (1, 100 + 17 + 4));
    assert_eq!(bench.dram.counters().row_hits, 1);
}

#[test]
fn a_row_conflict_adds_trp() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(100), read(NEXT_ROW));
    let bench = bench.finish();
    assert_eq!(bench.reads()[1], (NEXT_ROW, 100 + 17 + 17 + 17 + 4));
    assert_eq!(bench.dram.counters().row_conflicts, 1);
}

#[test]
fn a_conflict_right_behind_an_activate_waits_for_tras() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(0), read(NEXT_ROW));
    assert_eq!(bench.finish().reads()[1], (NEXT_ROW, 39 + 17 + 17 + 17 + 4));
}

#[test]
fn a_late_hit_overtakes_a_conflict_unless_requests_are_chosen_whole() {
    for (scheduling, order) in
        [(Scheduling::EachCommand, [0, 1, NEXT_ROW]), (Scheduling::EachRequest, [0, NEXT_ROW, 1])]
    {
        let mut bench = Bench::new(DramConfig { scheduling, ..ddr4_2400() });
        bench.offer(cycles(0), read(0));
        bench.offer(cycles(10), read(NEXT_ROW));
        // The row is open and may not be precharged before cycle 39 (tRAS).
        bench.offer(cycles(30), read(1));
        assert_eq!(lines(&bench.finish()), order, "{scheduling:?}");
    }
}

fn choosing_requests(ranks: u16) -> Bench {
    Bench::new(DramConfig { scheduling: Scheduling::EachRequest, ranks, ..ddr4_2400() })
}

#[test]
fn a_request_is_chosen_when_the_one_before_is_nearly_through() {
    // Two are chosen at once: the RD of the second is due in cycle 73, so the next choice is in 73 + 4 - 34. The other
    // bank goes first if its read is there by then.
    for (other, last) in [(43, NEXT_ROW * 2), (44, ROW)] {
        let mut bench = choosing_requests(1);
        bench.offer(cycles(0), read(0));
        bench.offer(cycles(0), read(NEXT_ROW));
        bench.offer(cycles(42), read(NEXT_ROW * 2));
        bench.offer(cycles(other), read(ROW));
        let bench = bench.finish();
        assert_eq!(bench.reads()[1], (NEXT_ROW, 73 + 21));
        assert_eq!(bench.reads()[3].0, last, "offered in cycle {other}: {:?}", bench.reads());
    }
}

#[test]
fn of_requests_that_can_follow_at_once_a_row_hit_is_chosen() {
    let mut bench = choosing_requests(1);
    bench.offer(cycles(0), read(0));
    for line in [NEXT_ROW, ROW * 2, 1] {
        bench.offer(cycles(200), read(line));
    }
    assert_eq!(lines(&bench.finish()), [0, 1, ROW * 2, NEXT_ROW]);
}

#[test]
fn no_request_is_chosen_for_a_rank_that_is_refreshed() {
    let mut bench = choosing_requests(2);
    let due = cycles(9364 / 2);
    let of_the_other = NEXT_ROW;
    bench.offer(due + CK * 10, read(0));
    bench.offer(due + CK * 20, read(of_the_other));
    let bench = bench.finish();
    assert_eq!(lines(&bench), [of_the_other, 0]);
    let ends = [0, 1].map(|index| bench.completions[index].at);
    assert_eq!(ends, [due + CK * (20 + 38), due + CK * (421 + 38)], "tRFC is 421 cycles");
}

#[test]
fn a_power_cut_ends_the_wait_for_the_next_choice_and_for_a_refresh() {
    for start in [0, 9364] {
        let mut bench = choosing_requests(1);
        bench.offer(cycles(start), read(0));
        bench.offer(cycles(start), read(NEXT_ROW));
        bench.run_before(cycles(start + 1));
        bench.dram.power_fail();
        bench.completions.clear();
        bench.offer(cycles(start + 2), read(0));
        assert_eq!(bench.finish().reads(), [(0, start + 2 + 38)]);
    }
}

#[test]
fn activates_of_other_banks_do_not_wait_for_a_read_under_way() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(0), read(ROW));
    assert_eq!(bench.finish().reads(), [(0, 38), (ROW, 4 + 38)], "tRRD_S between the activates, nothing else");
}

#[test]
fn the_stack_has_the_queue_until_the_first_command_and_the_medium_after() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(0), read(NEXT_ROW));
    let bench = bench.finish();
    let parts = bench.completions[1].answer.stack.parts_ps().map(u64::from);
    assert_eq!(parts[Stage::DeviceQueue as usize], (CK * 39).as_ps());
    assert_eq!(parts[Stage::Media as usize], (CK * (17 + 17 + 17 + 4)).as_ps());
}

#[test]
fn row_hits_go_before_older_conflicts() {
    let mut bench = Bench::new(ddr4_2400());
    for line in [0, NEXT_ROW, 1, 2] {
        bench.offer(cycles(0), read(line));
    }
    assert_eq!(lines(&bench.finish()), [0, 1, 2, NEXT_ROW]);
}

#[test]
fn among_ready_reads_the_oldest_goes_first() {
    let mut bench = Bench::new(ddr4_2400());
    for line in [0, ROW, 3 * ROW] {
        bench.offer(cycles(0), read(line));
    }
    for line in [3 * ROW + 1, ROW + 1, 1] {
        bench.offer(cycles(200), read(line));
    }
    assert_eq!(lines(&bench.finish())[3..], [3 * ROW + 1, ROW + 1, 1]);
}

#[test]
fn hits_pass_an_older_conflict_no_more_often_than_the_cap_says() {
    let mut bench = Bench::new(DramConfig { row_hit_cap: 3, ..ddr4_2400() });
    for line in [0, NEXT_ROW, 1, 2, 3, 4, 5] {
        bench.offer(cycles(0), read(line));
    }
    assert_eq!(lines(&bench.finish()), [0, 1, 2, 3, NEXT_ROW, 4, 5]);
}

#[test]
fn an_endless_stream_of_hits_does_not_starve_a_conflict() {
    let cap = 16;
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(0), read(NEXT_ROW));
    for turn in 1..100 {
        bench.offer(cycles(turn * 6), read(turn % 127 + 1));
    }
    let bench = bench.finish();
    let place = lines(&bench).iter().position(|line| *line == NEXT_ROW).unwrap();
    assert_eq!(place, 1 + cap);
}

#[test]
fn a_closed_row_policy_closes_rows_nobody_waits_for() {
    let mut bench = Bench::new(DramConfig { page_policy: PagePolicy::Closed, ..ddr4_2400() });
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(0), read(1));
    bench.offer(cycles(200), read(2));
    let bench = bench.finish();
    assert_eq!(bench.reads(), [(0, 38), (1, 44), (2, 200 + 38)]);
    let counters = bench.dram.counters();
    assert_eq!((counters.row_hits, counters.row_misses, counters.precharges), (1, 2, 2));
}

#[test]
fn an_open_adaptive_row_policy_closes_a_row_only_if_others_of_its_bank_are_wanted() {
    for (page_policy, requests, closes) in [
        (PagePolicy::OpenAdaptive, [0, NEXT_ROW].as_slice(), true),
        (PagePolicy::OpenAdaptive, &[0, 1, NEXT_ROW], true),
        (PagePolicy::OpenAdaptive, &[0, ROW], false),
        (PagePolicy::Open, &[0, NEXT_ROW], false),
    ] {
        let mut bench = Bench::new(DramConfig { page_policy, ..ddr4_2400() });
        requests.iter().for_each(|line| bench.offer(cycles(0), read(*line)));
        let closing = |(_, command): &(u64, Command)| matches!(command, Command::Read { auto_precharge: true, .. });
        let closings: Vec<_> = bench.finish().commands().iter().map(closing).collect();
        let of_first_row = closings.iter().filter(|closes| **closes).count();
        assert_eq!(of_first_row, usize::from(closes), "{page_policy:?} {requests:?}");
    }
}

#[test]
fn a_row_is_closed_after_as_many_accesses_as_it_takes() {
    for (row_accesses, misses) in [(0, 1), (2, 3), (5, 1)] {
        let mut bench = Bench::new(DramConfig { row_accesses, ..ddr4_2400() });
        (0..5).for_each(|line| bench.offer(cycles(line * 200), read(line)));
        assert_eq!(bench.finish().dram.counters().row_misses, misses, "{row_accesses} accesses");
    }
}

#[test]
fn a_read_waits_for_the_end_of_a_turn_of_writes_or_goes_before_the_next_write() {
    for (write_turns, written_before) in [(WriteTurns::Batches, 4), (WriteTurns::ReadsFirst, 1)] {
        let watermarks = DramConfig { write_low_watermark: 2, write_idle_watermark: 8, ..ddr4_2400() };
        let config = DramConfig { write_turns, requests_per_turn: 4, ..watermarks };
        let mut bench = Bench::new(config);
        (0..9).for_each(|line| bench.offer(cycles(0), write(line, 1)));
        bench.offer(cycles(19), read(100));
        let bench = bench.finish();
        let is_read = |(_, command): &(u64, Command)| matches!(command, Command::Read { .. });
        let is_write = |(_, command): &&(u64, Command)| matches!(command, Command::Write { .. });
        let commands = bench.commands();
        let read = commands.iter().position(is_read).unwrap();
        assert_eq!(commands[..read].iter().filter(is_write).count(), written_before, "{write_turns:?}");
    }
}

#[test]
fn a_write_is_complete_when_queued_and_a_read_of_it_is_answered_from_the_queue() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(NEXT_ROW));
    bench.offer(cycles(5), write(0, 3));
    bench.offer(cycles(6), read(0));
    let answers: Vec<_> =
        bench.completions.iter().map(|completion| (completion.at, completion.answer.version.0)).collect();
    assert_eq!(answers, [(cycles(5), 3), (cycles(6), 3)]);
    assert_eq!(bench.finish().dram.counters().reads_from_write_queue, 1);
}

#[test]
fn a_read_of_a_partly_queued_line_goes_to_the_chips_and_brings_the_queued_bytes() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(NEXT_ROW));
    let mut partial = write(0, 3);
    partial.mask = ByteMask(0xff);
    bench.offer(cycles(1), partial);
    bench.offer(cycles(1), read(0));
    let bench = bench.finish();
    assert_eq!(bench.dram.counters().reads, 2);
    assert_eq!(bench.completions.last().unwrap().answer.version, Version(3));
}

#[test]
fn writes_to_a_queued_line_merge() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(NEXT_ROW));
    bench.offer(cycles(0), write(0, 1));
    bench.offer(cycles(1), write(0, 2));
    let bench = bench.finish();
    let counters = bench.dram.counters();
    assert_eq!((counters.writes, counters.writes_merged), (1, 1));
}

#[test]
fn reads_go_before_queued_writes_below_the_high_watermark() {
    let mut bench = Bench::new(ddr4_2400());
    for line in 0..47 {
        bench.offer(cycles(0), write(4 * ROW + line, 1));
    }
    bench.offer(cycles(0), read(0));
    let bench = bench.finish();
    let first_column = bench.commands().into_iter().find(|(_, command)| !matches!(command, Command::Activate { .. }));
    assert_eq!(first_column, Some((17, Command::Read { bank: BankId(0), auto_precharge: false })));
}

#[test]
fn at_the_high_watermark_writes_go_first_down_to_the_low_one() {
    let mut bench = Bench::new(ddr4_2400());
    for line in 0..48 {
        bench.offer(cycles(0), write(line, 1));
    }
    bench.offer(cycles(0), read(4 * ROW));
    let bench = bench.finish();
    let commands = bench.commands();
    let read = commands.iter().position(|(_, command)| matches!(command, Command::Read { .. })).unwrap();
    let is_write = |(_, command): &&(u64, Command)| matches!(command, Command::Write { .. });
    assert_eq!(commands[..read].iter().filter(is_write).count(), 48 - 16);
    assert_eq!(bench.dram.counters().bus_turnarounds, 3, "writes, the read, the remaining writes");
}

#[test]
fn a_read_is_not_starved_by_an_endless_stream_of_writes() {
    let mut bench = Bench::new(ddr4_2400());
    let mut at = 0;
    for line in 0..48 {
        bench.offer(cycles(0), write(line, 1));
    }
    bench.offer(cycles(0), read(4 * ROW));
    for line in 48..400 {
        let message = write(line, 1);
        while !bench.dram.has_room(&message) {
            at += 1;
            bench.run_before(cycles(at));
        }
        bench.offer(cycles(at), message);
    }
    let bench = bench.finish();
    // A batch of 32 writes, tCCD_L apart, and the way of the read behind them.
    let (_, end) = bench.reads()[0];
    assert!(end < 17 + 32 * 6 + (12 + 4 + 9) + 17 + 17 + 4, "{end}");
}

#[test]
fn a_due_refresh_delays_a_read_by_trfc() {
    let due = 9364;
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(due + 5), read(0));
    let bench = bench.finish();
    assert_eq!(bench.commands()[0], (due, Command::Refresh { rank: 0 }));
    assert_eq!(bench.reads(), [(0, due + 421 + 17 + 17 + 4)]);
}

#[test]
fn a_refresh_closes_the_open_rows_first() {
    let due = 9364;
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(due - 100), read(0));
    bench.offer(cycles(due), read(1));
    let bench = bench.finish();
    assert_eq!(
        bench.commands()[2..4],
        [(due, Command::PrechargeAll { rank: 0 }), (due + 17, Command::Refresh { rank: 0 })]
    );
    assert_eq!(bench.reads()[1], (1, due + 17 + 421 + 17 + 17 + 4));
}

#[test]
fn refreshes_of_an_idle_time_are_made_up_for_and_cost_nothing() {
    let interval = 9364;
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), read(0));
    bench.offer(cycles(10 * interval + 1000), read(1));
    let bench = bench.finish();
    assert_eq!(bench.reads()[1], (1, 10 * interval + 1000 + 17 + 17 + 4), "the row was closed long ago");
    assert_eq!(bench.dram.counters().refreshes, 10);
}

/// What two reads get, `idle` refresh intervals apart, and how many refreshes there were; with each command recorded,
/// every single refresh is made.
fn around_idle_time(config: &DramConfig, idle: f64, is_recorded: bool) -> (Vec<(u64, u64)>, u64) {
    let mut bench = Bench::new(config.clone());
    if !is_recorded {
        bench.dram.commands = None;
    }
    bench.offer(cycles(5), read(0));
    bench.offer(cycles(5 + (idle * 9364.0) as u64), read(1));
    bench.offer(cycles(9 + (idle * 9364.0) as u64), read(NEXT_ROW));
    let bench = bench.finish();
    (bench.reads(), bench.dram.counters().refreshes)
}

#[test]
fn rounds_that_are_made_up_for_at_once_leave_what_single_ones_leave() {
    for ranks in [1, 2, 4] {
        let config = DramConfig { ranks, ..ddr4_2400() };
        for step in 0..400 {
            let idle = f64::from(step) * 0.037;
            let single = around_idle_time(&config, idle, true);
            assert_eq!(around_idle_time(&config, idle, false), single, "{ranks} ranks, {idle} intervals");
        }
    }
}

#[test]
fn hours_without_a_request_are_made_up_for_at_once() {
    let idle = 1e9;
    let (reads, refreshes) = around_idle_time(&ddr4_2400(), idle, false);
    assert_eq!((reads.len(), refreshes), (3, 1_000_000_000));
}

/// The clock cycles and the refreshes that sequential reads of `count` lines take when the queue is never empty.
fn sequential_reads(config: DramConfig, count: u64) -> (u64, u64) {
    let mut bench = Bench::new(config);
    let mut at = 0;
    for line in 0..count {
        while !bench.dram.has_room(&read(line)) {
            at += 1;
            bench.run_before(cycles(at));
        }
        bench.offer(cycles(at), read(line));
    }
    let bench = bench.finish();
    let (_, end) = *bench.reads().last().unwrap();
    (end, bench.dram.counters().refreshes)
}

#[test]
fn sequential_reads_come_close_to_the_channels_limit_but_not_above() {
    let config = DramConfig { address_mapping: AddressMapping::RoRaBaCoBg, ..ddr4_2400() };
    let (end, refreshes) = sequential_reads(config, 20_000);
    let limit = 20_000 * 4 + refreshes * 421;
    assert!(end > limit);
    assert!(end < limit + limit / 50, "{end} cycles where {limit} are the least");
}

#[test]
fn sequential_reads_of_one_bank_group_pay_tccd_l() {
    let config = DramConfig { bank_groups: 1, banks_per_group: 16, ..ddr4_2400() };
    let (end, refreshes) = sequential_reads(config, 20_000);
    let limit = 20_000 * 6 + refreshes * 421;
    assert!(end > limit);
    assert!(end < limit + limit / 50, "{end} cycles where {limit} are the least");
}

#[test]
fn a_power_cut_loses_queue_and_content() {
    let mut bench = Bench::new(ddr4_2400());
    bench.offer(cycles(0), write(0, 5));
    bench.offer(cycles(0), read(NEXT_ROW));
    bench.run_before(cycles(10));
    bench.dram.power_fail();
    assert!(bench.dram.is_idle());
    bench.completions.clear();
    bench.offer(cycles(1000), read(0));
    let bench = bench.finish();
    assert_eq!(bench.completions[0].answer.version, Version(0));
}
