//! Markers of the region of interest.

use fencepost_record::Marker;

/// The marker that these bytes of an instruction are, if any: the 8-byte NOP `0F 1F 84 00`, whose displacement is the
/// code and `0x5043` above it.
pub fn marker_of(bytes: &[u8]) -> Option<Marker> {
    match *bytes {
        [0x0f, 0x1f, 0x84, 0x00, low, high, 0x43, 0x50] => Some(Marker(u16::from_le_bytes([low, high]))),
        _ => None,
    }
}
