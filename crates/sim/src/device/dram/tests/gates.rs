//! Every timing gate, command by command: the second command of each pair may be issued exactly when the standard says,
//! not a cycle sooner or later.
//!
//! The numbers are clock cycles of DDR4-2400: tRCD = tCL = tRP = 17, tCWL = 12, tRAS = 39, tCCD_S/L = 4/6, tRRD_S/L =
//! 4/6, tFAW = 26, tWR = 18, tWTR_S/L = 3/9, tRTP = 9, tRTW = tCS = 2, tRFC = 421, burst = 4.

use super::super::channel::{BankId, Channel, Command};
use super::*;

/// Bank 0 is in the same group as bank 1, in another one than bank 4, in another rank than bank 16.
const SAME_GROUP: u16 = 1;
const OTHER_GROUP: u16 = 4;
const OTHER_RANK: u16 = 16;

fn act(bank: u16) -> Command {
    Command::Activate { bank: BankId(bank), row: 7 }
}

fn pre(bank: u16) -> Command {
    Command::Precharge { bank: BankId(bank) }
}

fn rd(bank: u16) -> Command {
    Command::Read { bank: BankId(bank), auto_precharge: false }
}

fn wr(bank: u16) -> Command {
    Command::Write { bank: BankId(bank), auto_precharge: false }
}

/// Two ranks whose banks 0, 1, 4 and 16 were opened so long ago that only what follows matters.
fn open_banks() -> (Channel, u64) {
    let mut channel = Channel::new(&DramConfig { ranks: 2, ..ddr4_2400() });
    for (turn, bank) in [0, SAME_GROUP, OTHER_GROUP, OTHER_RANK].into_iter().enumerate() {
        channel.issue(act(bank), cycles(turn as u64 * 100));
    }
    (channel, 1000)
}

/// Cycles from `first`, issued when nothing else matters any more, to the earliest `second`.
fn distance(first: Command, second: Command) -> u64 {
    let (mut channel, start) = open_banks();
    channel.issue(first, cycles(start));
    channel.earliest(second).since(cycles(start)).as_ps() / CK.as_ps()
}

/// Cycles between the commands when all banks are closed.
fn distance_closed(commands: &[Command], second: Command) -> u64 {
    let mut channel = Channel::new(&DramConfig { ranks: 2, ..ddr4_2400() });
    let mut last = Time::ZERO;
    for command in commands {
        last = channel.earliest(*command).max(cycles(1000));
        channel.issue(*command, last);
    }
    channel.earliest(second).since(last).as_ps() / CK.as_ps()
}

#[test]
fn act_to_rd_and_wr_is_trcd() {
    assert_eq!(distance_closed(&[act(0)], rd(0)), 17);
    assert_eq!(distance_closed(&[act(0)], wr(0)), 17);
}

#[test]
fn act_to_pre_is_tras() {
    assert_eq!(distance_closed(&[act(0)], pre(0)), 39);
}

#[test]
fn pre_to_act_is_trp() {
    assert_eq!(distance(pre(0), act(0)), 17);
    assert_eq!(distance_closed(&[act(0), pre(0)], act(0)), 17);
}

#[test]
fn act_to_act_is_trrd_by_bank_group() {
    assert_eq!(distance_closed(&[act(0)], act(SAME_GROUP)), 6);
    assert_eq!(distance_closed(&[act(0)], act(OTHER_GROUP)), 4);
    assert_eq!(distance_closed(&[act(0)], act(OTHER_RANK)), 1, "ranks share the command bus only");
}

#[test]
fn a_fifth_act_waits_for_the_window_of_four() {
    let four = [act(0), act(4), act(8), act(12)];
    assert_eq!(distance_closed(&four[..3], act(12)), 4);
    assert_eq!(distance_closed(&four, act(5)), 26 - 3 * 4);
    let mut five = four.to_vec();
    five.push(act(5));
    assert_eq!(distance_closed(&five, act(9)), 4, "the sixth waits for the second, which the fifth has passed already");
    assert_eq!(distance_closed(&four, act(OTHER_RANK)), 1, "each rank has a window of its own");
}

#[test]
fn rd_to_rd_and_wr_to_wr_is_tccd_by_bank_group() {
    assert_eq!([distance(rd(0), rd(0)), distance(rd(0), rd(SAME_GROUP)), distance(rd(0), rd(OTHER_GROUP))], [6, 6, 4]);
    assert_eq!([distance(wr(0), wr(0)), distance(wr(0), wr(SAME_GROUP)), distance(wr(0), wr(OTHER_GROUP))], [6, 6, 4]);
}

#[test]
fn another_rank_waits_for_the_data_bus_and_its_rest() {
    assert_eq!(distance(rd(0), rd(OTHER_RANK)), 4 + 2);
    assert_eq!(distance(wr(0), wr(OTHER_RANK)), 4 + 2);
    assert_eq!(distance(rd(0), wr(OTHER_RANK)), 17 + 4 + 2 - 12);
    assert_eq!(distance(wr(0), rd(OTHER_RANK)), 12 + 4 + 2 - 17);
}

#[test]
fn wr_to_rd_is_the_data_and_twtr_by_bank_group() {
    assert_eq!(distance(wr(0), rd(0)), 12 + 4 + 9);
    assert_eq!(distance(wr(0), rd(SAME_GROUP)), 12 + 4 + 9);
    assert_eq!(distance(wr(0), rd(OTHER_GROUP)), 12 + 4 + 3);
}

#[test]
fn rd_to_wr_leaves_the_data_bus_its_rest() {
    assert_eq!(distance(rd(0), wr(0)), 17 + 4 + 2 - 12);
    assert_eq!(distance(rd(0), wr(OTHER_GROUP)), 17 + 4 + 2 - 12);
}

#[test]
fn rd_to_pre_is_trtp_and_wr_to_pre_is_the_data_and_twr() {
    assert_eq!(distance(rd(0), pre(0)), 9);
    assert_eq!(distance(wr(0), pre(0)), 12 + 4 + 18);
}

#[test]
fn auto_precharge_begins_when_pre_could() {
    let read = Command::Read { bank: BankId(0), auto_precharge: true };
    let write = Command::Write { bank: BankId(0), auto_precharge: true };
    assert_eq!(distance(read, act(0)), 9 + 17);
    assert_eq!(distance(write, act(0)), 12 + 4 + 18 + 17);
    assert_eq!(distance_closed(&[act(0), read], act(0)), (39 - 17) + 17, "tRAS is longer than tRCD + tRTP");
}

#[test]
fn a_refresh_waits_for_trp_and_blocks_its_rank_for_trfc() {
    let (mut channel, start) = open_banks();
    let close = Command::PrechargeAll { rank: 0 };
    channel.issue(rd(0), cycles(start));
    assert_eq!(channel.earliest(close), cycles(start + 9), "the last row that may be closed decides");
    channel.issue(close, cycles(start + 9));
    assert!(!channel.has_open_row(0) && channel.has_open_row(1));
    let refresh = Command::Refresh { rank: 0 };
    assert_eq!(channel.earliest(refresh), cycles(start + 9 + 17));
    channel.issue(refresh, cycles(start + 26));
    for bank in 0..16 {
        assert_eq!(channel.earliest(act(bank)), cycles(start + 26 + 421));
    }
    assert_eq!(channel.earliest(refresh), cycles(start + 26 + 421));
    assert_eq!(channel.earliest(rd(OTHER_RANK)), cycles(start + 27), "the other rank goes on");
}

#[test]
fn commands_are_a_cycle_apart() {
    for second in [act(2), pre(SAME_GROUP), rd(OTHER_RANK), wr(OTHER_RANK)] {
        assert_eq!(distance(pre(0), second), 1, "{second:?}");
    }
}

#[test]
#[should_panic(expected = "breaks a timing gate")]
#[cfg(debug_assertions)]
fn a_command_before_its_time_is_a_fault() {
    let (mut channel, start) = open_banks();
    channel.issue(rd(0), cycles(start));
    channel.issue(rd(0), cycles(start + 5));
}
