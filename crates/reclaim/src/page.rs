//! Real pages: their bytes, what each compressor makes of them, and the classes by which work on them is timed.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::xxh64;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Lines of a page.
pub const LINES: u32 = 64;
/// As zstd's module of the kernel sets it (crypto/zstd.c, `ZSTD_DEF_LEVEL`).
const ZSTD_LEVEL: i32 = 3;

/// The bytes of a page.
pub type Bytes = [u8; PAGE];

/// A compressor that zswap can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// LZO1X-1.
    Lzo,
    /// LZ4's fast mode.
    Lz4,
    /// zstd, level 3.
    Zstd,
}

impl Codec {
    /// What the page compresses to; more than a page where it does not compress.
    ///
    /// # Panics
    /// If a compressor fails, which none does on a page in memory.
    #[must_use]
    pub fn compress(self, page: &Bytes) -> Vec<u8> {
        match self {
            Self::Lzo => lzokay_native::compress(page).expect("memory suffices"),
            Self::Lz4 => lz4_flex::block::compress(page),
            Self::Zstd => zstd::bulk::compress(page, ZSTD_LEVEL).expect("memory suffices"),
        }
    }

    /// The page again; none if these are not the bytes of one.
    #[must_use]
    pub fn decompress(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Lzo => lzokay_native::decompress_all(bytes, Some(PAGE)).ok(),
            Self::Lz4 => lz4_flex::block::decompress(bytes, PAGE).ok(),
            Self::Zstd => zstd::bulk::decompress(bytes, PAGE).ok(),
        }
    }
}

/// How far a page compresses: work on it is timed by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// All of its words are the same.
    SameFilled,
    /// To a quarter or less.
    Quarter,
    /// To a half or less.
    Half,
    /// To three quarters or less.
    ThreeQuarters,
    /// Less far, or not at all.
    Poor,
}

/// All of them, in order.
pub const CLASSES: [Class; 5] = [Class::SameFilled, Class::Quarter, Class::Half, Class::ThreeQuarters, Class::Poor];

/// What is known of a page's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The word that it is filled with, if it is.
    pub same_filled: Option<u64>,
    /// Bytes that it compresses to.
    pub compressed: u32,
    /// See [`Class`].
    pub class: Class,
    /// The hash that ksm compares, of the whole page (`calc_checksum`).
    pub checksum: u64,
}

impl Facts {
    /// Of a page, under a compressor.
    #[must_use]
    pub fn of(page: &Bytes, codec: Codec) -> Self {
        let same_filled = same_filled(page);
        let compressed = codec.compress(page).len() as u32;
        let class = match compressed {
            _ if same_filled.is_some() => Class::SameFilled,
            0..=1024 => Class::Quarter,
            1025..=2048 => Class::Half,
            2049..=3072 => Class::ThreeQuarters,
            _ => Class::Poor,
        };
        Self { same_filled, compressed, class, checksum: xxh64(page, 0) }
    }
}

/// The word that a page is filled with (`zswap_is_page_same_filled`).
#[must_use]
pub fn same_filled(page: &Bytes) -> Option<u64> {
    let mut words = page.as_chunks::<8>().0.iter();
    let first = words.next()?;
    words.all(|word| word == first).then(|| u64::from_ne_bytes(*first))
}

/// How many lines `memcmp` looks at until two pages differ; all if they are the same.
#[must_use]
pub fn lines_compared(one: &Bytes, other: &Bytes) -> u32 {
    let differing = one.iter().zip(other).position(|(one, other)| one != other);
    differing.map_or(LINES, |place| place as u32 / 64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(seed: u64) -> Bytes {
        std::array::from_fn(|place| b"field0 value1 "[(place as u64 * (seed % 3 + 1)) as usize % 14])
    }

    #[test]
    fn a_page_of_one_word_is_known_by_it() {
        let mut page = [0x5a; PAGE];
        assert_eq!(same_filled(&page), Some(0x5a5a_5a5a_5a5a_5a5a));
        page[PAGE - 1] = 0;
        assert_eq!(same_filled(&page), None);
        assert_eq!(Facts::of(&[0; PAGE], Codec::Lzo).class, Class::SameFilled);
    }

    #[test]
    fn comparison_ends_at_the_first_difference() {
        let (one, mut other) = ([7; PAGE], [7; PAGE]);
        assert_eq!(lines_compared(&one, &other), 64);
        other[64] = 8;
        assert_eq!(lines_compared(&one, &other), 2);
        other[0] = 8;
        assert_eq!(lines_compared(&one, &other), 1);
    }

    #[test]
    fn text_compresses_and_noise_does_not() {
        let mut state = 1u64;
        let noise: Bytes = std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        for codec in [Codec::Lzo, Codec::Lz4, Codec::Zstd] {
            assert_eq!(Facts::of(&text(0), codec).class, Class::Quarter, "{codec:?}");
            assert_eq!(Facts::of(&noise, codec).class, Class::Poor, "{codec:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_compressor_changes_a_page(seed: u64, places in prop::collection::vec((0..PAGE, any::<u8>()), 0..300)) {
            let mut page = text(seed);
            for (place, byte) in places {
                page[place] = byte;
            }
            for codec in [Codec::Lzo, Codec::Lz4, Codec::Zstd] {
                let again = codec.decompress(&codec.compress(&page));
                prop_assert!(again.is_some_and(|again| again == page), "{:?}", codec);
            }
        }
    }
}
