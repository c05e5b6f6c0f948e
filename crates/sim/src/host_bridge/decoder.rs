//! HDM decoders: which target a host physical address belongs to, and which address it has there.
//!
//! The rules are those of CXL 3.1, chapter 8.2.4.20 (HDM decoder capability), for power-of-two ways: ranges begin at a
//! multiple of 256 MiB and hold a multiple of 256 MiB for each way; consecutive blocks of 256 B to 16 KiB go to
//! consecutive ways. A host bridge uses a [`HdmDecoder`] over its ports, a switch one over its downstream ports, and a
//! device the [`Interleave`] it is part of, to close the gaps.

use thiserror::Error;

use fencepost_kernel::PortId;
use fencepost_kernel::line::{LINE_BYTES, LineAddress};

/// Ranges begin at a multiple of this, and each way of a range holds a multiple of it.
pub const HDM_ALIGNMENT: u64 = 256 << 20;

/// The smallest block that is dealt out, in bytes.
pub const GRANULARITY_MIN: u64 = 256;
/// The largest one.
pub const GRANULARITY_MAX: u64 = 16 << 10;

/// The most ways that an address is dealt out to in one place (3, 6 and 12 ways are not supported).
pub const WAYS_MAX: u64 = 16;

/// Why ranges do not make a decoder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HdmError {
    /// A range has no target.
    #[error("the range at {base:#x} has no target")]
    NoTarget {
        /// First address of the range.
        base: u64,
    },
    /// The number of ways is none that the specification knows as a power of two.
    #[error("the range at {base:#x} has {ways} ways; possible are 1, 2, 4, 8 and 16")]
    Ways {
        /// First address of the range.
        base: u64,
        /// The ways it was to have.
        ways: u64,
    },
    /// The granularity is none that the specification knows.
    #[error(
        "the range at {base:#x} is interleaved in blocks of {granularity_bytes} bytes; possible are powers of two from 256 to 16384"
    )]
    Granularity {
        /// First address of the range.
        base: u64,
        /// The granularity it was to have.
        granularity_bytes: u64,
    },
    /// A range begins where none may begin.
    #[error("the range at {base:#x} does not begin at a multiple of 256 MiB")]
    Base {
        /// First address of the range.
        base: u64,
    },
    /// A range has a size that none may have.
    #[error(
        "the range at {base:#x} has {size:#x} bytes; with {ways} ways its size must be a multiple of {ways} x 256 MiB"
    )]
    Size {
        /// First address of the range.
        base: u64,
        /// Its size in bytes.
        size: u64,
        /// Its ways.
        ways: u64,
    },
    /// One target twice in a range.
    #[error("the range at {base:#x} names port {} twice", .target.0)]
    TargetTwice {
        /// First address of the range.
        base: u64,
        /// The target.
        target: PortId,
    },
    /// Two ranges share addresses.
    #[error("the ranges at {first:#x} and {second:#x} overlap")]
    Overlap {
        /// First address of the lower range.
        first: u64,
        /// First address of the upper range.
        second: u64,
    },
}

/// How a range of host addresses is dealt out: block by block to each way in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleave {
    base: u64,
    granularity_shift: u32,
    ways_shift: u32,
}

impl Interleave {
    /// All addresses from 0 on, for one target.
    pub const WHOLE: Interleave =
        Interleave { base: 0, granularity_shift: GRANULARITY_MIN.trailing_zeros(), ways_shift: 0 };

    /// A range from `base` on, dealt out to `ways` ways in blocks of `granularity_bytes`. With one way the granularity
    /// means nothing.
    ///
    /// # Errors
    /// If the specification does not allow the base, the granularity or the number of ways.
    pub fn new(base: u64, granularity_bytes: u64, ways: u64) -> Result<Interleave, HdmError> {
        if !base.is_multiple_of(HDM_ALIGNMENT) {
            return Err(HdmError::Base { base });
        }
        if !ways.is_power_of_two() || ways > WAYS_MAX {
            return Err(HdmError::Ways { base, ways });
        }
        if !granularity_bytes.is_power_of_two() || !(GRANULARITY_MIN..=GRANULARITY_MAX).contains(&granularity_bytes) {
            return Err(HdmError::Granularity { base, granularity_bytes });
        }
        Ok(Interleave {
            base,
            granularity_shift: granularity_bytes.trailing_zeros(),
            ways_shift: ways.trailing_zeros(),
        })
    }

    /// A range from `base` on that has one target only.
    ///
    /// # Errors
    /// If `base` is not a multiple of 256 MiB.
    pub fn none(base: u64) -> Result<Interleave, HdmError> {
        Interleave::new(base, GRANULARITY_MIN, 1)
    }

    /// How many ways there are.
    pub fn ways(&self) -> u64 {
        1 << self.ways_shift
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.granularity_shift
    }

    /// The way that `line` belongs to.
    pub fn way(&self, line: LineAddress) -> usize {
        ((self.offset(line) >> self.granularity_shift) & (self.ways() - 1)) as usize
    }

    /// The line's number within its way, counted from 0 without gaps: the device physical address divided by 64.
    pub fn device_line(&self, line: LineAddress) -> u64 {
        let offset = self.offset(line);
        let block = offset >> (self.granularity_shift + self.ways_shift);
        let within = offset & ((1 << self.granularity_shift) - 1);
        (block << self.granularity_shift | within) / LINE_BYTES
    }

    /// The host's line that is number `device_line` of `way`: the inverse of [`Self::way`] and [`Self::device_line`].
    pub fn host_line(&self, way: usize, device_line: u64) -> LineAddress {
        let address = device_line * LINE_BYTES;
        let block = address >> self.granularity_shift;
        let within = address & ((1 << self.granularity_shift) - 1);
        let offset = ((block << self.ways_shift | way as u64) << self.granularity_shift) | within;
        LineAddress::containing(self.base + offset)
    }

    fn offset(&self, line: LineAddress) -> u64 {
        debug_assert!(line.byte() >= self.base, "line {line:?} lies below its range at {:#x}", self.base);
        line.byte() - self.base
    }
}

/// One decoder: a range of host addresses and the ports it is dealt out to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdmRange {
    interleave: Interleave,
    size: u64,
    targets: Vec<PortId>,
}

impl HdmRange {
    /// `size` bytes from `base` on, dealt out to `targets` in blocks of `granularity_bytes`.
    ///
    /// # Errors
    /// If the specification does not allow it, or a target is named twice.
    pub fn new(base: u64, size: u64, granularity_bytes: u64, targets: Vec<PortId>) -> Result<HdmRange, HdmError> {
        if targets.is_empty() {
            return Err(HdmError::NoTarget { base });
        }
        let ways = targets.len() as u64;
        let interleave = Interleave::new(base, granularity_bytes, ways)?;
        if size == 0 || !size.is_multiple_of(ways * HDM_ALIGNMENT) || base.checked_add(size).is_none() {
            return Err(HdmError::Size { base, size, ways });
        }
        if let Some((_, &target)) =
            targets.iter().enumerate().find(|(index, target)| targets[..*index].contains(target))
        {
            return Err(HdmError::TargetTwice { base, target });
        }
        Ok(HdmRange { interleave, size, targets })
    }

    /// The first address.
    pub fn base(&self) -> u64 {
        self.interleave.base
    }

    /// The first address after the range.
    pub fn end(&self) -> u64 {
        self.base() + self.size
    }

    /// How it is dealt out; a device behind one of the targets needs it.
    pub fn interleave(&self) -> Interleave {
        self.interleave
    }
}

/// All decoders of one host bridge or switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HdmDecoder {
    /// In the order of their addresses, without overlap.
    ranges: Vec<HdmRange>,
    /// The same, with neighbours joined that lie behind one and the same port: what most requests need to know, in
    /// little memory.
    spans: Vec<Span>,
}

/// Addresses without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    base: u64,
    end: u64,
    /// The one port they lie behind; nothing if they are dealt out to several.
    port: Option<PortId>,
}

impl HdmDecoder {
    /// A decoder of `ranges`, in any order.
    ///
    /// # Errors
    /// If two of them overlap.
    pub fn new(mut ranges: Vec<HdmRange>) -> Result<HdmDecoder, HdmError> {
        ranges.sort_by_key(HdmRange::base);
        for pair in ranges.windows(2) {
            if pair[1].base() < pair[0].end() {
                return Err(HdmError::Overlap { first: pair[0].base(), second: pair[1].base() });
            }
        }
        let mut spans: Vec<Span> = Vec::new();
        for range in &ranges {
            let port = (range.targets.len() == 1).then(|| range.targets[0]);
            match spans.last_mut().filter(|last| port.is_some() && last.port == port && last.end == range.base()) {
                Some(last) => last.end = range.end(),
                None => spans.push(Span { base: range.base(), end: range.end(), port }),
            }
        }
        Ok(HdmDecoder { ranges, spans })
    }

    /// The port that `line` lies behind, if it lies in a range.
    pub fn decode(&self, line: LineAddress) -> Option<PortId> {
        let following = self.spans.partition_point(|span| span.base <= line.byte());
        let span = self.spans[..following].last().filter(|span| line.byte() < span.end)?;
        span.port.or_else(|| {
            let range = self.range(line)?;
            Some(range.targets[range.interleave.way(line)])
        })
    }

    /// The range that holds `line`.
    pub fn range(&self, line: LineAddress) -> Option<&HdmRange> {
        let following = self.ranges.partition_point(|range| range.base() <= line.byte());
        self.ranges[..following].last().filter(|range| line.byte() < range.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_kernel::address_map::PM_BASE;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn ports(ports: impl IntoIterator<Item = u16>) -> Vec<PortId> {
        ports.into_iter().map(PortId).collect()
    }

    #[test]
    fn blocks_go_to_the_ports_in_turn() {
        let range = HdmRange::new(PM_BASE, 1024 * MIB, 512, ports([3, 1])).unwrap();
        let decoder = HdmDecoder::new(vec![range]).unwrap();
        let port = |offset| decoder.decode(LineAddress::containing(PM_BASE + offset)).unwrap().0;
        assert_eq!([port(0), port(448), port(512), port(1023), port(1024)], [3, 3, 1, 1, 3]);
    }

    #[test]
    fn what_no_range_holds_has_no_port() {
        let low = HdmRange::new(0, 256 * MIB, 256, ports([1])).unwrap();
        let high = HdmRange::new(PM_BASE, 256 * MIB, 256, ports([2])).unwrap();
        let decoder = HdmDecoder::new(vec![high, low]).unwrap();
        let port = |address| decoder.decode(LineAddress::containing(address));
        assert_eq!(port(0), Some(PortId(1)));
        assert_eq!(port(256 * MIB - 1), Some(PortId(1)));
        assert_eq!(port(256 * MIB), None);
        assert_eq!(port(PM_BASE - 1), None);
        assert_eq!(port(PM_BASE), Some(PortId(2)));
        assert_eq!(port(PM_BASE + 256 * MIB), None);
    }

    #[test]
    fn neighbours_behind_one_port_are_joined_and_others_are_not() {
        let range = |number: u64, port: u16| HdmRange::new(number * 256 * MIB, 256 * MIB, 256, ports([port])).unwrap();
        let decoder =
            HdmDecoder::new([(0, 1), (1, 1), (3, 1), (4, 2)].map(|(at, port)| range(at, port)).into()).unwrap();
        assert_eq!(decoder.spans.len(), 3);
        let port = |number: u64| decoder.decode(LineAddress::containing(number * 256 * MIB)).map(|port| port.0);
        assert_eq!([0u64, 1, 2, 3, 4, 5].map(port), [Some(1), Some(1), None, Some(1), Some(2), None]);
    }

    #[test]
    fn two_levels_of_interleaving_are_one_of_finer_granularity() {
        let host = HdmRange::new(0, 1024 * MIB, 256, ports([1, 2])).unwrap();
        let switch = HdmRange::new(0, 1024 * MIB, 512, ports([1, 2])).unwrap();
        let device = Interleave::new(0, 256, 4).unwrap();
        for line in 0..4096 {
            let line = LineAddress(line);
            let path = host.interleave().way(line) + 2 * switch.interleave().way(line);
            assert_eq!(path, device.way(line));
        }
    }

    #[test]
    fn a_range_that_the_specification_does_not_allow_is_refused() {
        let range = |base, size, granularity, targets: u16| HdmRange::new(base, size, granularity, ports(1..=targets));
        assert_eq!(range(0, 256 * MIB, 256, 0), Err(HdmError::NoTarget { base: 0 }));
        assert_eq!(range(0, 768 * MIB, 256, 3), Err(HdmError::Ways { base: 0, ways: 3 }));
        assert_eq!(range(0, 8192 * MIB, 256, 32), Err(HdmError::Ways { base: 0, ways: 32 }));
        assert_eq!(range(64, 256 * MIB, 256, 1), Err(HdmError::Base { base: 64 }));
        for granularity_bytes in [0, 64, 128, 384, 32 << 10] {
            let error = HdmError::Granularity { base: 0, granularity_bytes };
            assert_eq!(range(0, 512 * MIB, granularity_bytes, 2), Err(error));
        }
        for size in [0, 64, 256 * MIB, 768 * MIB] {
            assert_eq!(range(0, size, 256, 2), Err(HdmError::Size { base: 0, size, ways: 2 }));
        }
        let twice = HdmRange::new(0, 512 * MIB, 256, ports([7, 7]));
        assert_eq!(twice, Err(HdmError::TargetTwice { base: 0, target: PortId(7) }));
    }

    #[test]
    fn ranges_that_overlap_are_refused() {
        let low = HdmRange::new(0, 512 * MIB, 256, ports([1])).unwrap();
        let high = HdmRange::new(256 * MIB, 256 * MIB, 256, ports([2])).unwrap();
        let error = HdmDecoder::new(vec![high, low]).unwrap_err();
        assert_eq!(error, HdmError::Overlap { first: 0, second: 256 * MIB });
        assert_eq!(error.to_string(), "the ranges at 0x0 and 0x10000000 overlap");
    }

    proptest! {
        #[test]
        fn way_and_device_address_name_exactly_one_host_address(
            granularity in 8u32..=14, ways in 0u32..=4, base in 0u64..64, offset in any::<u32>(),
        ) {
            let interleave = Interleave::new(base * HDM_ALIGNMENT, 1 << granularity, 1 << ways).unwrap();
            let line = LineAddress(base * HDM_ALIGNMENT / LINE_BYTES + u64::from(offset));
            let (way, device_line) = (interleave.way(line), interleave.device_line(line));
            prop_assert!((way as u64) < interleave.ways());
            prop_assert_eq!(interleave.host_line(way, device_line), line);
        }

        #[test]
        fn each_way_of_a_range_is_filled_without_gaps(
            granularity in 8u32..=14, ways in 0u32..=4, line in 0u64..1 << 20,
        ) {
            let interleave = Interleave::new(0, 1 << granularity, 1 << ways).unwrap();
            let lines_of_each_way = 1 << 20;
            for way in 0..1 << ways {
                let host_line = interleave.host_line(way, line);
                prop_assert!(host_line.0 < lines_of_each_way << ways);
                prop_assert_eq!((interleave.way(host_line), interleave.device_line(host_line)), (way, line));
            }
        }
    }
}
