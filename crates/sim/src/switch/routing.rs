//! The routing table: which downstream port a line lies behind, and whether this switch is its persist point.

use std::ops::Range;

use crate::host_bridge::decoder::HdmDecoder;
use fencepost_kernel::PortId;
use fencepost_kernel::line::LineAddress;

/// Where requests go. Answers are routed by their tags, never by an address.
#[derive(Clone, Debug, Default)]
pub struct RoutingTable {
    decoder: HdmDecoder,
    /// The lines that persist here, as ascending ranges.
    persist_point: Vec<Range<LineAddress>>,
}

impl RoutingTable {
    /// Routes by `decoder`, over the downstream ports. `persist_point` are the ranges of lines whose persists are
    /// accepted in this switch.
    pub fn new(decoder: HdmDecoder, mut persist_point: Vec<Range<LineAddress>>) -> RoutingTable {
        persist_point.sort_by_key(|range| range.start);
        RoutingTable { decoder, persist_point }
    }

    /// The downstream port that `line` lies behind.
    ///
    /// # Panics
    /// If it lies behind none: an upstream decoder and this one differ.
    pub fn port(&self, line: LineAddress) -> PortId {
        self.decoder
            .decode(line)
            .unwrap_or_else(|| panic!("no range of this switch holds the line at {:#x}", line.byte()))
    }

    /// Whether a write of `line` persists in this switch.
    pub fn is_persist_point(&self, line: LineAddress) -> bool {
        let following = self.persist_point.partition_point(|range| range.start <= line);
        self.persist_point[..following].last().is_some_and(|range| line < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_bridge::decoder::HdmRange;

    #[test]
    fn only_the_lines_of_a_persist_range_persist_here() {
        let line = LineAddress;
        let table = RoutingTable::new(HdmDecoder::default(), vec![line(40)..line(50), line(10)..line(20)]);
        let persistent: Vec<u64> = (0..60).filter(|number| table.is_persist_point(line(*number))).collect();
        assert_eq!(persistent, (10..20).chain(40..50).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_is_found_behind_its_port() {
        let range = HdmRange::new(0, 512 << 20, 256, vec![PortId(4), PortId(2)]).unwrap();
        let table = RoutingTable::new(HdmDecoder::new(vec![range]).unwrap(), Vec::new());
        assert_eq!([0, 3, 4, 8].map(|number| table.port(LineAddress(number)).0), [4, 4, 2, 4]);
    }

    #[test]
    #[should_panic(expected = "no range of this switch holds the line at 0x40")]
    fn a_line_behind_no_port_is_a_bug() {
        RoutingTable::default().port(LineAddress(1));
    }
}
