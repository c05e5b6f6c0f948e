//! What fuzz targets and the maker of their first inputs share: records whose checksums are right whatever is in them.

use xxhash_rust::xxh64::{Xxh64, xxh64};

const HEADER_BYTES: usize = 48;
/// The header's bytes that its checksum covers.
const CHECKED_BYTES: usize = 40;
const FOOTER_BYTES: usize = 32;

/// The record `input` with the checksum of each frame, and its footer, as docs/record-format.md asks for them. Frames
/// are found by their lengths; what does not fit stays as it is.
pub fn with_right_checksums(input: &[u8]) -> Vec<u8> {
    let mut file = input.to_vec();
    let mut offset = 0;
    let mut last = 0;
    while let Some(length) = frame_length(&file[offset..]) {
        let frame = &mut file[offset..offset + length];
        let mut hash = Xxh64::new(0);
        hash.update(&frame[..CHECKED_BYTES]);
        hash.update(&frame[HEADER_BYTES..]);
        frame[CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&hash.digest().to_le_bytes());
        last = offset;
        offset += length;
    }
    if file.len() - offset >= FOOTER_BYTES {
        file.truncate(offset + FOOTER_BYTES);
        let length = file.len() as u64;
        let footer = &mut file[offset..];
        footer[..8].copy_from_slice(b"FPRECEND");
        footer[8..16].copy_from_slice(&(last as u64).to_le_bytes());
        footer[16..24].copy_from_slice(&length.to_le_bytes());
        let checksum = xxh64(&footer[..24], 0);
        footer[24..].copy_from_slice(&checksum.to_le_bytes());
    }
    file
}

/// The length of the frame at the beginning of `bytes`, if one is there.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(b"FPFR"))?;
    let stored = u32::from_le_bytes(header[32..36].try_into().expect("four bytes"));
    HEADER_BYTES.checked_add(stored as usize).filter(|&length| length <= bytes.len())
}
