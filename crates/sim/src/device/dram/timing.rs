//! The timing parameters of a DRAM channel, in whole clock cycles.

use super::config::DramConfig;
use fencepost_kernel::Divisor;
use fencepost_kernel::time::{Duration, Time};

/// Thousandths of a cycle that JESD79-4 (chapter 13.5) adds before it cuts off the fraction: 26 of 1000 are forgiven.
const ROUNDING_THOUSANDTHS: u64 = 974;

/// The timing parameters, each a multiple of the clock's period. Names as in [`DramConfig`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the standard's, and DramConfig describes them")]
pub struct DramTiming {
    pub ck: Duration,
    pub rcd: Duration,
    pub cl: Duration,
    pub cwl: Duration,
    pub rp: Duration,
    pub ras: Duration,
    pub ccd_s: Duration,
    pub ccd_l: Duration,
    pub ccd_l_wr: Duration,
    pub rrd_s: Duration,
    pub rrd_l: Duration,
    pub faw: Duration,
    pub wr: Duration,
    pub wtr_s: Duration,
    pub wtr_l: Duration,
    pub rtp: Duration,
    pub rtw: Duration,
    pub cs: Duration,
    pub rfc: Duration,
    pub refi: Duration,
    /// How long a burst occupies the data bus.
    pub burst: Duration,
    /// `ck`, to divide by.
    period: Divisor,
}

impl DramTiming {
    /// The timing of a channel like `config`.
    pub fn new(config: &DramConfig) -> DramTiming {
        let ck = Duration::from_ns(config.t_ck_ns);
        let whole = |ns: f64| ck * cycles(Duration::from_ns(ns), ck);
        DramTiming {
            ck,
            rcd: whole(config.t_rcd_ns),
            cl: whole(config.t_cl_ns),
            cwl: whole(config.t_cwl_ns),
            rp: whole(config.t_rp_ns),
            ras: whole(config.t_ras_ns),
            ccd_s: whole(config.t_ccd_s_ns),
            ccd_l: whole(config.t_ccd_l_ns),
            ccd_l_wr: whole(config.t_ccd_l_ns.max(config.t_ccd_l_wr_ns)),
            rrd_s: whole(config.t_rrd_s_ns),
            rrd_l: whole(config.t_rrd_l_ns),
            faw: whole(config.t_faw_ns),
            wr: whole(config.t_wr_ns),
            wtr_s: whole(config.t_wtr_s_ns),
            wtr_l: whole(config.t_wtr_l_ns),
            rtp: whole(config.t_rtp_ns),
            rtw: whole(config.t_rtw_ns),
            cs: whole(config.t_cs_ns),
            rfc: whole(config.t_rfc_ns),
            refi: whole(config.t_refi_ns),
            burst: ck * u64::from(config.burst_length.div_ceil(2)),
            period: Divisor::new(ck.as_ps()),
        }
    }

    /// The first rising edge of the clock that is not before `time`: commands are issued on edges only.
    #[inline]
    pub fn edge(&self, time: Time) -> Time {
        Time::from_ps(self.period.next_multiple(time.as_ps()))
    }
}

/// `parameter` in cycles of `ck`, rounded as the standard says.
fn cycles(parameter: Duration, ck: Duration) -> u64 {
    (parameter.as_ps() * 1000 / ck.as_ps() + ROUNDING_THOUSANDTHS) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ddr4_2400_has_the_cycle_counts_of_the_standard() {
        let ck = Duration::from_ps(833);
        let cycles = |ns| cycles(Duration::from_ns(ns), ck);
        // JESD79-4B, speed bin DDR4-2400R (17-17-17) and table of timing parameters for x8 chips.
        for (ns, expected) in
            [(14.16, 17), (32.0, 39), (5.0, 6), (3.332, 4), (4.9, 6), (21.0, 26), (15.0, 18), (7.5, 9)]
        {
            assert_eq!(cycles(ns), expected, "{ns} ns");
        }
        assert_eq!(cycles(0.0), 0);
    }
}
