//! A hash of a pool's content that can be kept up to date line by line.
//!
//! It is the sum of a hash of each line with its place, so that exchanging a line is a subtraction and an addition.
//! Lines of zeros count nothing: a pool's size need not be known. 128 bits make an accidental equality of a billion
//! different images less likely than 10^-19.

use xxhash_rust::xxh64::xxh64;

/// Bytes of a line.
pub const LINE: usize = 64;

/// The bytes of one line.
pub type LineBytes = [u8; LINE];

/// The hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContentHash(pub u128);

impl ContentHash {
    /// The same content with line `number` exchanged.
    #[must_use]
    pub fn exchange(self, number: u64, before: &LineBytes, after: &LineBytes) -> ContentHash {
        ContentHash(self.0.wrapping_sub(of_line(number, before)).wrapping_add(of_line(number, after)))
    }
}

fn of_line(number: u64, bytes: &LineBytes) -> u128 {
    if bytes == &[0; LINE] {
        return 0;
    }
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    u128::from(xxh64(bytes, seed)) << 64 | u128::from(xxh64(bytes, !seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_has_the_same_hash_however_it_came_about() {
        let (zero, one, two) = ([0; LINE], [1; LINE], [2; LINE]);
        let straight = ContentHash::default().exchange(3, &zero, &two).exchange(9, &zero, &one);
        let detour = ContentHash::default().exchange(9, &zero, &two).exchange(9, &two, &one).exchange(3, &zero, &two);
        assert_eq!(straight, detour);
        assert_ne!(straight, ContentHash::default().exchange(9, &zero, &two).exchange(3, &zero, &one), "places count");
        assert_eq!(straight.exchange(3, &two, &zero).exchange(9, &one, &zero), ContentHash::default());
    }
}
