//! A DRAM channel alone: what it answers and which commands it issues, and when.

mod gates;
mod mixes;
mod scheduling;
mod standard;

use super::*;
use crate::device::write_drain::WriteTurns;
use fencepost_kernel::message::{Cause, Tag};
use fencepost_kernel::time::Duration;

/// DDR4-2400 with eight x8 chips in one rank; the values of gem5's `DDR4_2400_8x8`, tWTR and tCWL as in JESD79-4.
pub(crate) fn ddr4_2400() -> DramConfig {
    DramConfig {
        capacity_mib: 4096,
        channels: 1,
        controller_latency_ns: 10.0,
        queue_answer_ns: 10.0,
        read_queue_entries: 64,
        write_queue_entries: 64,
        write_high_watermark: 48,
        write_low_watermark: 16,
        write_idle_watermark: 0,
        write_turns: WriteTurns::ReadsFirst,
        requests_per_turn: 16,
        scheduling: Scheduling::EachCommand,
        row_hit_cap: 16,
        row_accesses: 0,
        page_policy: PagePolicy::Open,
        address_mapping: AddressMapping::RoRaBaBgCo,
        bank_hash: false,
        channel_bits: 64,
        burst_length: 8,
        ranks: 1,
        bank_groups: 4,
        banks_per_group: 4,
        row_bytes: 8192,
        t_ck_ns: 0.833,
        t_rcd_ns: 14.16,
        t_cl_ns: 14.16,
        t_cwl_ns: 10.0,
        t_rp_ns: 14.16,
        t_ras_ns: 32.0,
        t_ccd_s_ns: 3.332,
        t_ccd_l_ns: 5.0,
        t_ccd_l_wr_ns: 0.0,
        t_rrd_s_ns: 3.332,
        t_rrd_l_ns: 4.9,
        t_faw_ns: 21.0,
        t_wr_ns: 15.0,
        t_wtr_s_ns: 2.5,
        t_wtr_l_ns: 7.5,
        t_rtp_ns: 7.5,
        t_rtw_ns: 1.666,
        t_cs_ns: 1.666,
        t_rfc_ns: 350.0,
        t_refi_ns: 7800.0,
    }
}

/// The clock of DDR4-2400.
const CK: Duration = Duration::from_ps(833);

/// Lines of a row.
const ROW: u64 = 128;
/// Under [`AddressMapping::RoRaBaBgCo`] with one rank: from a line to the same place in the next row of its bank.
const NEXT_ROW: u64 = ROW * 16;

fn cycles(cycles: u64) -> Time {
    Time::ZERO + CK * cycles
}

fn read(line: u64) -> Message {
    Message::read(LineAddress(line), Tag(line as u32), Cause::DemandRead, Time::ZERO)
}

fn write(line: u64, version: u64) -> Message {
    Message::write(LineAddress(line), Tag(line as u32), Cause::Writeback, Version(version), ByteMask::FULL, Time::ZERO)
}

/// A channel, what is to be offered to it, and what came out.
struct Bench {
    dram: Dram,
    next: Time,
    completions: Vec<Completion>,
    commands: Vec<(Time, Command)>,
}

impl Bench {
    fn new(config: DramConfig) -> Bench {
        let mut dram = Dram::new(&config, Interleave::none(0).unwrap(), false);
        dram.record_commands();
        Bench { dram, next: Time::NEVER, completions: Vec::new(), commands: Vec::new() }
    }

    /// Offers `message` at `at`, for which there must be room by then, after everything that happens before.
    fn offer(&mut self, at: Time, message: Message) {
        self.run_before(at);
        assert!(self.dram.has_room(&message));
        self.dram.accept(message, at, &mut self.completions);
        self.next = self.next.min(at);
    }

    fn run_before(&mut self, end: Time) {
        while self.next < end {
            let now = self.next;
            self.next = self.dram.advance(now, &mut self.completions);
            assert!(self.next > now, "the channel asks for the time it was asked at");
        }
    }

    fn finish(mut self) -> Bench {
        self.run_before(Time::NEVER);
        self.commands = self.dram.take_commands();
        self
    }

    /// Lines of reads in the order answered, with the clock cycle in which the data ended.
    fn reads(&self) -> Vec<(u64, u64)> {
        let is_read = |completion: &&Completion| completion.answer.class() == MessageClass::S2mDrs;
        self.completions
            .iter()
            .filter(is_read)
            .map(|completion| {
                assert_eq!(completion.at.as_ps() % CK.as_ps(), 0, "data end on an edge");
                (completion.answer.line.0, completion.at.as_ps() / CK.as_ps())
            })
            .collect()
    }

    /// The commands in the order of time, with the clock cycle of each.
    fn commands(&self) -> Vec<(u64, Command)> {
        let mut commands = self.commands.clone();
        match self.dram.scheduling {
            Scheduling::EachCommand => assert!(commands.is_sorted_by_key(|(at, _)| *at)),
            Scheduling::EachRequest => commands.sort_by_key(|(at, _)| *at),
        }
        commands.iter().map(|(at, command)| (at.as_ps() / CK.as_ps(), *command)).collect()
    }
}

#[test]
fn a_battery_keeps_what_is_in_the_chips_and_in_the_queue() {
    for is_backed in [false, true] {
        let mut dram = Dram::new(&ddr4_2400(), Interleave::none(0).unwrap(), is_backed);
        let mut completions = Vec::new();
        dram.accept(write(1, 5), Time::ZERO, &mut completions);
        while !dram.is_idle() {
            let now = dram.advance(Time::ZERO, &mut completions);
            dram.advance(now, &mut completions);
        }
        dram.accept(write(2, 7), cycles(1000), &mut completions);
        let [chips, queue, never] = [1, 2, 3].map(|line| dram.durable_version(LineAddress(line)));
        let expected = is_backed.then_some([Version(5), Version(7), Version(0)]);
        assert_eq!([chips, queue, never], expected.map_or([None; 3], |versions| versions.map(Some)));
        dram.power_fail();
        let kept = [1, 2].map(|line| dram.contents.get(line));
        assert_eq!(kept, if is_backed { [Version(5), Version(7)] } else { [Version(0); 2] });
    }
}
