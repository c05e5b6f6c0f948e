//! The formats of flits: what they hold, what of it may be lost, and how an error is handled.
//!
//! From the CXL 3.1 specification, chapter 4 (link layers: 4.2 for 68-byte flits, 4.3 for 256-byte flits) and chapter 6
//! (framing, CRC, FEC); tables and figures recalled, not read again.
//!
//! | | 68 bytes | 256 bytes | 256 bytes, latency-optimised |
//! |---|---|---|---|
//! | protocol ID or flit header | 2 | 2 | 2 |
//! | slots | 4 of 16 | one H of 14, 14 G of 16 | one H of 14, one HS of 10, 13 G of 16 |
//! | flit header's credits, acknowledgement, slot formats | in slot 0: 4 of its 16 | in slots and credit field | as before |
//! | credit field, reserved | – | 2 | 2 and 2 |
//! | CRC | 2 | 8 | 6 for each half |
//! | FEC | – | 6 | 6 |

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How messages are packed into flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FlitFormat {
    /// 68-byte flits: CXL 1.1 and 2.0, and CXL 3.x at up to 32 GT/s.
    #[serde(rename = "68_byte")]
    Bytes68,
    /// Standard 256-byte flits: CXL 3.x.
    #[serde(rename = "256_byte")]
    Bytes256,
    /// 256-byte flits of two halves with a CRC each, so that the first is consumed before the second has arrived.
    #[serde(rename = "256_byte_latency_optimised")]
    LatencyOptimised256,
}

impl FlitFormat {
    /// All of them.
    pub const ALL: [FlitFormat; 3] = [FlitFormat::Bytes68, FlitFormat::Bytes256, FlitFormat::LatencyOptimised256];

    /// Bytes of a flit on the wire.
    pub fn bytes(self) -> u32 {
        match self {
            FlitFormat::Bytes68 => 68,
            FlitFormat::Bytes256 | FlitFormat::LatencyOptimised256 => 256,
        }
    }

    /// Slots of a flit that take data, at least in some flits.
    pub fn slots(self) -> u32 {
        match self {
            FlitFormat::Bytes68 => 4,
            FlitFormat::Bytes256 => 15,
            FlitFormat::LatencyOptimised256 => 14,
        }
    }

    /// Control flits that ask for a retry, and those that announce it. 68 bytes: five RETRY.Frame and the RETRY.Req or
    /// RETRY.Ack (CXL 3.1, 4.2.8.2; recalled). 256 bytes: a standard NAK is a field in the header of the next flit, and
    /// what is sent again follows without announcement.
    pub fn retry_handshake_flits(self) -> (u64, u64) {
        match self {
            FlitFormat::Bytes68 => (6, 6),
            FlitFormat::Bytes256 | FlitFormat::LatencyOptimised256 => (1, 0),
        }
    }

    /// The probability that a flit must be sent again where each bit is wrong with probability `bit_error_rate`.
    ///
    /// 68 bytes: any wrong bit of the 66 bytes that the CRC covers. 256 bytes: the FEC is three interleaved codes over
    /// 86, 85 and 85 bytes, each of which mends one byte; a flit is lost when two bytes of one code are wrong. Errors
    /// that a CRC does not notice are left out.
    pub fn retry_probability(self, bit_error_rate: f64) -> f64 {
        match self {
            FlitFormat::Bytes68 => at_least(1, 66 * 8, bit_error_rate),
            FlitFormat::Bytes256 | FlitFormat::LatencyOptimised256 => {
                let byte = at_least(1, 8, bit_error_rate);
                let codes = [86, 85, 85].map(|bytes| at_least(2, bytes, byte));
                codes.iter().fold(0.0, |lost, code| lost + (1.0 - lost) * code)
            }
        }
    }

    /// How many flits it takes to return `credits` of one class. A field of a 68-byte flit's header says 0 or a power
    /// of two up to 64, one of a 256-byte flit's credit field 0, 1, 4, 8, 12 or 16 (CXL 3.1, tables of credit return
    /// encodings; recalled).
    pub fn flits_to_return(self, credits: u16) -> u64 {
        let credits = u64::from(credits);
        match self {
            FlitFormat::Bytes68 => credits / 64 + u64::from((credits % 64).count_ones()),
            FlitFormat::Bytes256 | FlitFormat::LatencyOptimised256 => {
                credits / 16 + u64::from(credits % 16 >= 4) + credits % 4
            }
        }
    }
}

/// The probability that at least `least` of `count` independent things happen, each of which does with `probability`.
/// Summed from small terms, so that nothing is lost where it is tiny; plain arithmetic only, so that it is the same on
/// every machine.
fn at_least(least: u32, count: u32, probability: f64) -> f64 {
    let power = |base: f64, exponent: u32| (0..exponent).fold(1.0, |product, _| product * base);
    let term = |happen: u32| {
        let choices = (0..happen).fold(1.0, |ways, i| ways * f64::from(count - i) / f64::from(i + 1));
        choices * power(probability, happen) * power(1.0 - probability, count - happen)
    };
    // Terms fall fast: for a bit error rate of 0.001 the mean is half a bit.
    (least..=count.min(least + 24)).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_error_rate_of_bits_gives_that_of_flits() {
        let flits = FlitFormat::Bytes68.retry_probability(1e-12);
        assert!((flits / 528e-12 - 1.0).abs() < 1e-6, "{flits}");
        let flits = FlitFormat::Bytes68.retry_probability(1e-3);
        assert!((flits - (1.0 - 0.999f64.powi(528))).abs() < 1e-9, "{flits}");
    }

    #[test]
    fn the_fec_mends_all_but_two_bytes_of_one_code() {
        let flits = FlitFormat::Bytes256.retry_probability(1e-6);
        let pairs = f64::from(86 * 85 / 2 + 2 * (85 * 84 / 2));
        assert!((flits / (pairs * 8e-6 * 8e-6) - 1.0).abs() < 2e-3, "{flits}");
        assert_eq!(FlitFormat::LatencyOptimised256.retry_probability(0.0), 0.0);
    }

    #[test]
    fn credits_go_back_in_the_numbers_that_the_fields_know() {
        let flits = |format: FlitFormat, credits: [u16; 6]| credits.map(|credits| format.flits_to_return(credits));
        assert_eq!(flits(FlitFormat::Bytes68, [1, 2, 3, 7, 64, 66]), [1, 1, 2, 3, 1, 2]);
        assert_eq!(flits(FlitFormat::Bytes256, [1, 2, 4, 7, 12, 17]), [1, 2, 1, 4, 1, 2]);
    }
}
