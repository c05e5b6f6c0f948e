//! Sampled replay: periodic intervals in detail, and in between only what keeps the machine's state warm.
//!
//! [`SamplePlan`] says where in the program the intervals lie; the host follows it (`host/sampling.rs`), the simulation
//! measures what lies in an interval, and [`estimate`](crate::replay::sampling::estimate) makes figures of the whole
//! program from that, each with its confidence interval.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Where the intervals lie, in instructions of all threads of a host together, counted inside regions of interest.
///
/// Every period has one interval: `warmup` instructions in detail whose figures are thrown away, then `detail`
/// instructions that are measured (as in SMARTS: Wunderlich et al., ISCA 2003). Everything else only warms. Where in
/// its period an interval lies is drawn for each period anew, always the same way: a program that repeats itself in
/// step with the period would show only some of its phases otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplePlan {
    /// From the beginning of one interval to the beginning of the next.
    pub period: u64,
    /// Measured in each period.
    pub detail: u64,
    /// In detail before that, until queues, buffers and banks are as full as they were.
    pub warmup: u64,
}

impl SamplePlan {
    /// Instructions of a period that only warm.
    pub fn functional(&self) -> u64 {
        self.period - self.detail - self.warmup
    }

    /// Where the part in detail of period `index` begins.
    pub fn begin_of(&self, index: u64) -> u64 {
        index * self.period + mixed(index) % (self.functional() + 1)
    }

    /// The first period whose part in detail begins at `position` or behind it.
    pub fn period_from(&self, position: u64) -> u64 {
        let index = position / self.period;
        index + u64::from(self.begin_of(index) < position)
    }
}

impl fmt::Display for SamplePlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.period, self.detail, self.warmup)
    }
}

impl Serialize for SamplePlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A number without a pattern for each index: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
fn mixed(index: u64) -> u64 {
    let value = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--sample {text}: {problem}")]
pub struct PlanError {
    text: String,
    problem: String,
}

impl FromStr for SamplePlan {
    type Err = PlanError;

    /// Reads `PERIOD:DETAIL[:WARMUP]`, each a number of instructions with an optional k, M or G. Without a warm-up it
    /// is as long as what is measured, as far as the period has room for that.
    fn from_str(text: &str) -> Result<SamplePlan, PlanError> {
        let error = |problem: &str| PlanError { text: text.to_owned(), problem: problem.to_owned() };
        let numbers: Option<Vec<u64>> = text.split(':').map(instructions).collect();
        let (period, detail, warmup) = match numbers.as_deref() {
            Some(&[period, detail]) => (period, detail, detail.min(period.saturating_sub(detail))),
            Some(&[period, detail, warmup]) => (period, detail, warmup),
            _ => {
                return Err(error(
                    "it has to be PERIOD:DETAIL or PERIOD:DETAIL:WARMUP, in instructions (1000000, 1000k or 1M)",
                ));
            }
        };
        if detail == 0 {
            return Err(error("DETAIL has to be at least 1 instruction"));
        }
        if detail.checked_add(warmup).is_none_or(|sum| sum > period) {
            return Err(error("DETAIL and WARMUP together have to fit into PERIOD"));
        }
        Ok(SamplePlan { period, detail, warmup })
    }
}

fn instructions(text: &str) -> Option<u64> {
    let (digits, factor) = match text.char_indices().last()? {
        (end, 'k') => (&text[..end], 1_000),
        (end, 'M') => (&text[..end], 1_000_000),
        (end, 'G') => (&text[..end], 1_000_000_000),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_and_written() {
        let plan: SamplePlan = "1M:20k:30k".parse().unwrap();
        assert_eq!(plan, SamplePlan { period: 1_000_000, detail: 20_000, warmup: 30_000 });
        assert_eq!(plan.to_string(), "1000000:20000:30000");
        assert_eq!("1M:20k".parse::<SamplePlan>().unwrap().warmup, 20_000, "as long as what is measured");
        assert_eq!("10:8".parse::<SamplePlan>().unwrap().warmup, 2, "as far as there is room");
    }

    #[test]
    fn what_is_no_plan_is_refused_with_the_reason() {
        for (text, problem) in [
            ("1000", "PERIOD:DETAIL or"),
            ("1:2:3:4", "PERIOD:DETAIL or"),
            ("1M:x", "PERIOD:DETAIL or"),
            ("1M:-5", "PERIOD:DETAIL or"),
            ("", "PERIOD:DETAIL or"),
            ("99999999999G:1", "PERIOD:DETAIL or"),
            ("1M:0", "at least 1"),
            ("1000:600:500", "fit into PERIOD"),
            ("0:1", "fit into PERIOD"),
            ("5:18446744073709551615:2", "fit into PERIOD"),
        ] {
            let error = text.parse::<SamplePlan>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn each_interval_lies_somewhere_else_in_its_period() {
        let plan = SamplePlan { period: 1000, detail: 100, warmup: 300 };
        let offsets: Vec<u64> = (0..1000).map(|index| plan.begin_of(index) - index * 1000).collect();
        assert!(offsets.iter().all(|offset| *offset <= 600));
        let mean = offsets.iter().sum::<u64>() / 1000;
        assert!((285..=315).contains(&mean), "everywhere alike: {mean}");
        let (begin, next) = (plan.begin_of(7), plan.begin_of(8));
        assert_eq!([begin, begin + 1, next, 7000].map(|position| plan.period_from(position)), [7, 8, 8, 7]);
        let whole = SamplePlan { period: 500, detail: 400, warmup: 100 };
        assert_eq!([0, 1].map(|index| whole.begin_of(index)), [0, 500], "no room to lie elsewhere");
    }
}
