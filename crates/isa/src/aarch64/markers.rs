//! Markers of the region of interest.

use fencepost_record::Marker;

/// `movz xzr, #0x5000, lsl #48`: writes to the zero register do nothing on any core, and compilers emit none. The low
/// 12 bits of the immediate are the marker's code.
const MARKER: u32 = 0xd2ea_001f;
/// Bits that markers share: all but those of the code.
const FIXED: u32 = !(0xfff << 5);

/// The marker that these bytes of an instruction are, if any.
pub fn marker_of(bytes: &[u8]) -> Option<Marker> {
    let word = u32::from_le_bytes(bytes.try_into().ok()?);
    (word & FIXED == MARKER).then_some(Marker((word >> 5 & 0xfff) as u16))
}
