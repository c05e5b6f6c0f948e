//! The number encodings of the format: unsigned LEB128, zigzag, and the fields of fixed width, read from a slice and
//! written to a vector.

use super::error::Problem;

/// Bytes after the readable part of a slice that [`decode`] may look at.
///
/// The decoder loads eight bytes at once. Padding the buffer spares a check for the end in the inner loop.
pub(super) const PADDING: usize = 16;

/// The zigzag encoding of a signed difference: small magnitudes become small numbers.
pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends the LEB128 encoding.
pub(super) fn encode(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Reads one number at `*position` and moves behind it.
///
/// `bytes` should have [`PADDING`] bytes after the last number; without them the last ones take the slow way. `None`
/// if the number runs past the end of `bytes` or does not fit 64 bits.
#[inline(always)]
pub(super) fn decode(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let first = *bytes.get(*position)?;
    if first < 0x80 {
        *position += 1;
        return Some(u64::from(first));
    }
    decode_long(bytes, position)
}

/// Numbers of two to eight bytes without a branch per byte: find the last byte by its clear top bit, then close the
/// gaps between the groups of seven bits pairwise.
#[inline(always)]
fn decode_long(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let Some(word) = load(bytes, *position) else {
        return decode_bytewise(bytes, position);
    };
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return decode_bytewise(bytes, position);
    }
    let length = (ends.trailing_zeros() as usize + 1) / 8;
    let groups = word & (u64::MAX >> (64 - 8 * length)) & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = (groups & 0x007f_007f_007f_007f) | ((groups & 0x7f00_7f00_7f00_7f00) >> 1);
    let quads = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    *position += length;
    Some((quads & 0x0fff_ffff) | ((quads & 0x0fff_ffff_0000_0000) >> 4))
}

/// The eight bytes at `position`, if there are as many.
#[inline(always)]
pub(super) fn load(bytes: &[u8], position: usize) -> Option<u64> {
    let end = position.checked_add(8)?;
    let word: [u8; 8] = bytes.get(position..end)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

#[cold]
#[inline(never)]
fn decode_bytewise(bytes: &[u8], position: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for index in 0..10 {
        let byte = *bytes.get(*position + index)?;
        if index == 9 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *position += index + 1;
            return Some(value);
        }
    }
    None
}

/// Reads the fields of a payload one after the other, each checked against the payload's end.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// What every field says when the payload ends before it does.
const CUT_SHORT: Problem = Problem::Malformed("a field runs past its end");

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let end = self.position.checked_add(length).ok_or(CUT_SHORT)?;
        let bytes = self.bytes.get(self.position..end).ok_or(CUT_SHORT)?;
        self.position = end;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        let bytes = self.take(4)?.try_into().map_err(|_| CUT_SHORT)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        let bytes = self.take(8)?.try_into().map_err(|_| CUT_SHORT)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn varint(&mut self) -> Result<u64, Problem> {
        decode(self.bytes, &mut self.position).ok_or(Problem::Malformed("a number runs past its end or beyond 64 bits"))
    }

    pub(super) fn svarint(&mut self) -> Result<i64, Problem> {
        self.varint().map(unzigzag)
    }

    /// A number that has to be at most `limit`.
    pub(super) fn varint_up_to(&mut self, limit: u64, what: &'static str) -> Result<u64, Problem> {
        let value = self.varint()?;
        Problem::check_limit(what, value, limit)?;
        Ok(value)
    }

    /// A varint length and as many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Problem> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| CUT_SHORT)?)
    }
}

/// Appends a varint length and the bytes.
pub(super) fn encode_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    encode(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn eleven_bytes_and_numbers_beyond_64_bits_are_refused() {
        for bytes in [[0x80u8; 11].to_vec(), [[0xff; 9].to_vec(), vec![2]].concat(), vec![0x80], vec![]] {
            assert_eq!(decode(&bytes, &mut 0), None, "{bytes:?}");
        }
        let largest = [[0xff; 9].to_vec(), vec![1]].concat();
        assert_eq!(decode(&largest, &mut 0), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn any_number_comes_back_with_and_without_padding(value: u64, shift in 0..64u32, padding in 0..12usize) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            encode(&mut bytes, value);
            let length = bytes.len();
            // Padding that looks like more groups must not be taken in.
            bytes.extend(std::iter::repeat_n(0xff, padding));
            let mut position = 0;
            prop_assert_eq!(decode(&bytes, &mut position), Some(value));
            prop_assert_eq!(position, length);
        }

        #[test]
        fn any_difference_comes_back(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
