//! The `[dram]` table of a machine file: one channel of DDR SDRAM and its controller.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::write_drain::WriteTurns;
use fencepost_kernel::line::LINE_BYTES;

/// DDR SDRAM and its controller: one channel, or several alike.
///
/// Timing parameters carry the names of the JEDEC standards (JESD79-4 for DDR4). They are given in ns and used in whole
/// clock cycles, rounded up by the rounding rule of JESD79-4 (chapter 13.5), which forgives 2.6 % of a cycle for
/// periods such as 0.833 ns that are rounded themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct DramConfig {
    /// Size of the memory behind the controller, in MiB; CXL's address decoders want whole multiples of 256.
    #[garde(range(min = 256, max = 16_777_216))]
    #[schemars(range(min = 256, max = 16_777_216))]
    pub capacity_mib: u64,
    /// Channels, each with queues, banks and a data bus of its own: 1, 2, 4, 8 or 16. Consecutive blocks of 256 bytes
    /// lie in consecutive channels.
    #[garde(custom(power_of_two_up_to_16))]
    #[schemars(range(min = 1, max = 16))]
    #[serde(default = "one")]
    pub channels: u16,
    /// Time in the controller's pipeline, once on the way in and once on the way out, in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub controller_latency_ns: f64,
    /// Time in the controller's pipeline on the way out of answers that a queue gives: of a write that is complete
    /// there, of a read that finds its line there; in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub queue_answer_ns: f64,
    /// Reads that a channel's controller chooses from.
    #[garde(range(min = 1, max = 1024))]
    #[schemars(range(min = 1, max = 1024))]
    pub read_queue_entries: u16,
    /// Lines that wait to be written in a channel. A write is complete when it has a place here.
    #[garde(range(min = 2, max = 1024))]
    #[schemars(range(min = 2, max = 1024))]
    pub write_queue_entries: u16,
    /// With this many queued writes, writes go before waiting reads.
    #[garde(range(min = 1, max = self.write_queue_entries))]
    #[schemars(range(min = 1, max = 1024))]
    pub write_high_watermark: u16,
    /// A batch of writes ends when this many are left; less than the high watermark.
    #[garde(range(min = 0, max = self.write_high_watermark.saturating_sub(1)))]
    #[schemars(range(min = 0, max = 1023))]
    pub write_low_watermark: u16,
    /// Writes that stay in the queue while no read waits, so that later accesses find them there. More are written down
    /// to it, or to the low watermark if that is less. 0: each is written as soon as possible.
    #[garde(range(min = 0, max = self.write_high_watermark.saturating_sub(1)))]
    #[schemars(range(min = 0, max = 1023))]
    pub write_idle_watermark: u16,
    /// How reads and writes take turns.
    #[garde(skip)]
    pub write_turns: WriteTurns,
    /// Requests of a turn with `write_turns = "batches"`: after this many reads or writes, the other kind has its turn
    /// if it waits.
    #[garde(range(min = 1, max = 4096))]
    #[schemars(range(min = 1, max = 4096))]
    pub requests_per_turn: u16,
    /// What the controller chooses at a time.
    #[garde(skip)]
    #[serde(default)]
    pub scheduling: Scheduling,
    /// How many accesses to an open row may pass an older request for another row of that bank (FR-FCFS with a cap).
    /// Without effect with `scheduling = "each_request"`, where `row_accesses` limits them.
    #[garde(range(min = 1, max = 65_535))]
    #[schemars(range(min = 1, max = 65_535))]
    pub row_hit_cap: u16,
    /// Accesses after which an open row is closed, whatever the page policy says. 0: it takes any number.
    #[garde(range(min = 0, max = 65_535))]
    #[schemars(range(min = 0, max = 65_535))]
    pub row_accesses: u16,
    /// What becomes of a row after an access.
    #[garde(skip)]
    pub page_policy: PagePolicy,
    /// Which address bits choose row, rank, bank and column.
    #[garde(skip)]
    pub address_mapping: AddressMapping,
    /// Whether the bits of bank group and bank are XORed with those of the row, folded to their number, so that rows a
    /// multiple of all banks apart lie in different banks. Needs powers of two of both.
    #[garde(custom(hashes_powers_of_two(self.bank_groups, self.banks_per_group)))]
    #[serde(default)]
    pub bank_hash: bool,

    /// Width of the data bus, in bits. Together with `burst_length` one burst must be one line of 64 bytes.
    #[garde(custom(one_burst_is_one_line(self.burst_length)))]
    #[schemars(range(min = 8, max = 512))]
    pub channel_bits: u16,
    /// Transfers of a burst, two in each clock cycle.
    #[garde(range(min = 2, max = 64))]
    #[schemars(range(min = 2, max = 64))]
    pub burst_length: u16,
    /// Ranks of a channel.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub ranks: u16,
    /// Bank groups of a rank.
    #[garde(range(min = 1, max = 8))]
    #[schemars(range(min = 1, max = 8))]
    pub bank_groups: u16,
    /// Banks of a bank group.
    #[garde(range(min = 1, max = 16))]
    #[schemars(range(min = 1, max = 16))]
    pub banks_per_group: u16,
    /// Bytes of a row, over all chips of a rank; a multiple of 64.
    #[garde(custom(whole_lines))]
    #[schemars(range(min = 64, max = 65_536))]
    pub row_bytes: u32,

    /// tCK: period of the clock, in ns.
    #[garde(range(min = 0.1, max = 10.0))]
    #[schemars(range(min = 0.1, max = 10.0))]
    pub t_ck_ns: f64,
    /// tRCD: ACT to RD or WR of the same bank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rcd_ns: f64,
    /// tCL: RD to its first data, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_cl_ns: f64,
    /// tCWL: WR to its first data, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_cwl_ns: f64,
    /// tRP: PRE to ACT of the same bank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rp_ns: f64,
    /// tRAS: ACT to PRE of the same bank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_ras_ns: f64,
    /// tCCD_S: between two RD or two WR in different bank groups, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_ccd_s_ns: f64,
    /// tCCD_L: between two RD or two WR in one bank group, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_ccd_l_ns: f64,
    /// tCCD_L_WR: between two WR in one bank group, in ns; tCCD_L where that is longer, as in memories without it. DDR5
    /// has it, because a chip that writes less than a word of its own error code reads the word first.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    #[serde(default)]
    pub t_ccd_l_wr_ns: f64,
    /// tRRD_S: between two ACT in different bank groups of a rank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rrd_s_ns: f64,
    /// tRRD_L: between two ACT in one bank group, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rrd_l_ns: f64,
    /// tFAW: the window in which a rank takes four ACT at most, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_faw_ns: f64,
    /// tWR: end of the written data to PRE of the same bank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_wr_ns: f64,
    /// tWTR_S: end of the written data to RD in another bank group of the rank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_wtr_s_ns: f64,
    /// tWTR_L: end of the written data to RD in the same bank group, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_wtr_l_ns: f64,
    /// tRTP: RD to PRE of the same bank, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rtp_ns: f64,
    /// tRTW: how long the data bus rests between read data and the written data that follow, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_rtw_ns: f64,
    /// tCS: how long the data bus rests between data of different ranks, in ns.
    #[garde(range(min = 0.0, max = 1000.0))]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub t_cs_ns: f64,
    /// tRFC: how long a refresh blocks its rank, in ns.
    #[garde(range(min = 0.0, max = 10_000.0))]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub t_rfc_ns: f64,
    /// tREFI: between two refreshes of a rank, in ns. At least twice the sum of the other timing parameters, so that
    /// accesses get their turn.
    #[garde(range(min = self.refresh_interval_ns_min(), max = 1_000_000.0))]
    #[schemars(range(min = 1.0, max = 1_000_000.0))]
    pub t_refi_ns: f64,
}

impl DramConfig {
    /// Bytes a second of all data buses together.
    pub fn bytes_per_second(&self) -> f64 {
        let line_ns = f64::from(self.burst_length) / 2.0 * self.t_ck_ns;
        f64::from(self.channels) * LINE_BYTES as f64 / line_ns * 1e9
    }

    /// The shortest time between refreshes that lets requests through: a refresh, with the precharges before it and a
    /// whole access after it, takes at most the sum of all timing parameters, and as much again is left for others.
    pub fn refresh_interval_ns_min(&self) -> f64 {
        let clock = self.t_ck_ns * f64::from(self.burst_length);
        let row = self.t_rcd_ns + self.t_rp_ns + self.t_ras_ns + self.t_faw_ns + self.t_rrd_s_ns + self.t_rrd_l_ns;
        let ccd = self.t_ccd_s_ns + self.t_ccd_l_ns.max(self.t_ccd_l_wr_ns);
        let column = self.t_cl_ns + self.t_cwl_ns + ccd + self.t_rtp_ns + self.t_wr_ns;
        let turnaround = self.t_wtr_s_ns + self.t_wtr_l_ns + self.t_rtw_ns + self.t_cs_ns;
        2.0 * (clock + row + column + turnaround + self.t_rfc_ns)
    }
}

/// What the controller chooses at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// A command. Accesses to the open row may overtake a request for another row until the row is precharged.
    #[default]
    EachCommand,
    /// A request with all of its commands: the one whose data can come first. No later request overtakes it. The next
    /// one is chosen tRP + tRCD before its RD or WR could follow without a gap; commands of different requests do not
    /// compete for the command bus. As in gem5's memory controller, where in addition a read keeps its place in the
    /// queue until its data are back, the rate of commands is limited, and a request whose row can be opened meanwhile
    /// goes before hits if no hit can follow without a gap.
    EachRequest,
}

/// What becomes of a row after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PagePolicy {
    /// It stays open until another row of the bank is wanted.
    Open,
    /// An access precharges the bank if others of its kind, read or write, are queued for other rows of it and none for
    /// this one.
    OpenAdaptive,
    /// The last queued access to it precharges the bank (RD or WR with auto-precharge).
    Closed,
}

/// Which bits of a line's number choose rank, bank group, bank and column, from the most significant to the least. The
/// row is what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AddressMapping {
    /// Row, rank, bank, bank group, column: consecutive lines fill a row of one bank, and pay tCCD_L each.
    RoRaBaBgCo,
    /// Row, column, rank, bank, bank group: consecutive lines go to different banks, in all bank groups and ranks in
    /// turn.
    RoCoRaBaBg,
    /// Row, rank, bank, column, bank group: consecutive lines fill one row in each bank group side by side, and pay
    /// tCCD_S each.
    RoRaBaCoBg,
}

fn one_burst_is_one_line(burst_length: u16) -> impl FnOnce(&u16, &()) -> garde::Result {
    move |channel_bits, ()| {
        let bits = u64::from(*channel_bits) * u64::from(burst_length);
        if bits == LINE_BYTES * 8 {
            return Ok(());
        }
        let message =
            format!("{channel_bits} bits in bursts of {burst_length} are {} bytes, not {LINE_BYTES}", bits / 8);
        Err(garde::Error::new(message))
    }
}

fn one() -> u16 {
    1
}

fn power_of_two_up_to_16(channels: &u16, (): &()) -> garde::Result {
    if channels.is_power_of_two() && *channels <= 16 {
        Ok(())
    } else {
        Err(garde::Error::new(format!("{channels} channels cannot be: 1, 2, 4, 8 or 16 can")))
    }
}

fn hashes_powers_of_two(bank_groups: u16, banks_per_group: u16) -> impl FnOnce(&bool, &()) -> garde::Result {
    move |bank_hash, ()| {
        if !bank_hash || (bank_groups.is_power_of_two() && banks_per_group.is_power_of_two()) {
            return Ok(());
        }
        Err(garde::Error::new(format!("{bank_groups} bank groups of {banks_per_group} banks are no powers of two")))
    }
}

/// Whether a row has whole lines.
pub(in crate::device) fn whole_lines(row_bytes: &u32, (): &()) -> garde::Result {
    if (64..=65_536).contains(row_bytes) && u64::from(*row_bytes) % LINE_BYTES == 0 {
        Ok(())
    } else {
        Err(garde::Error::new("not a multiple of 64 from 64 to 65536"))
    }
}
