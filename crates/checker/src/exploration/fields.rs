//! Fields of a state in a few words, one behind the other, without gaps.
//!
//! A description of a state names its fields once, to a [`Coder`]: one that writes gives each field back as it is, one
//! that reads gives what was written.

use super::Words;

/// Reads or writes groups of fields.
pub trait Coder {
    /// The fields of a group.
    type Group: Fields;
    /// Begins a group: fields of at most 64 bits together, which are read or written at once.
    fn begin(&mut self) -> Self::Group;
    /// A group has no more fields.
    fn end(&mut self, group: Self::Group);
}

/// Reads or writes fields. Within a slot, a host and the like no branch depends on what is in them: it would be guessed
/// wrong half the time.
pub trait Fields {
    /// Whether fields are read.
    const READS: bool;
    /// The field: `value` when writing, what was written when reading.
    fn field(&mut self, value: u64, bits: u32) -> u64;
    /// A field of which no more is known than that larger values than it has bits for are rare: then there are no
    /// words.
    fn unbounded(&mut self, value: u64, bits: u32) -> u64;
    /// If `nothing_follows`, the fields after this one in the group are 0, and take no bits.
    fn end_if(&mut self, nothing_follows: bool);

    #[inline(always)]
    fn flag(&mut self, value: bool) -> bool {
        self.field(value.into(), 1) == 1
    }

    #[inline(always)]
    fn small(&mut self, value: u8, bits: u32) -> u8 {
        self.field(value.into(), bits) as u8
    }
}

/// Collects groups in a word, and puts it down when it is full.
pub struct Writer<const K: usize> {
    words: Words<K>,
    /// Words that were put down, those without a place among them.
    full: usize,
    word: u64,
    bits: u32,
    /// Not 0 if a value had more bits than its field.
    overflow: u64,
}

impl<const K: usize> Writer<K> {
    pub fn new() -> Self {
        Writer { words: [0; K], full: 0, word: 0, bits: 0, overflow: 0 }
    }

    #[inline(always)]
    fn put_down(&mut self) {
        if let Some(place) = self.words.get_mut(self.full) {
            *place = self.word;
        }
        self.full += 1;
    }

    /// The words; nothing if there are too many, or a value was too large for its field.
    pub fn finish(mut self) -> Option<Words<K>> {
        if self.bits > 0 {
            self.put_down();
        }
        (self.full <= K && self.overflow == 0).then_some(self.words)
    }
}

impl<const K: usize> Coder for Writer<K> {
    type Group = WrittenGroup;

    #[inline(always)]
    fn begin(&mut self) -> WrittenGroup {
        WrittenGroup { word: 0, bits: 0, end: u64::BITS, overflow: 0 }
    }

    #[inline(always)]
    fn end(&mut self, group: WrittenGroup) {
        let width = group.bits.min(group.end);
        debug_assert!(group.bits <= u64::BITS, "a group has no more than a word");
        debug_assert!(group.word.checked_shr(width).unwrap_or(0) == 0, "what comes after the end of a group is 0");
        self.overflow |= group.overflow;
        self.word |= group.word << self.bits;
        self.bits += width;
        if self.bits >= u64::BITS {
            self.put_down();
            self.bits -= u64::BITS;
            // What of the group did not fit.
            self.word = group.word.checked_shr(width - self.bits).unwrap_or(0);
        }
    }
}

/// A group that is written.
pub struct WrittenGroup {
    word: u64,
    bits: u32,
    /// How many of the bits count.
    end: u32,
    overflow: u64,
}

impl Fields for WrittenGroup {
    const READS: bool = false;

    #[inline(always)]
    fn field(&mut self, value: u64, bits: u32) -> u64 {
        debug_assert!(value >> bits == 0, "{value} has more than {bits} bits");
        // For the compiler, which then need not find the value.
        if bits == 0 {
            return 0;
        }
        self.word |= value.wrapping_shl(self.bits);
        self.bits += bits;
        value
    }

    #[inline(always)]
    fn unbounded(&mut self, value: u64, bits: u32) -> u64 {
        self.overflow |= value >> bits;
        self.field(value & ((1 << bits) - 1), bits);
        value
    }

    #[inline(always)]
    fn end_if(&mut self, nothing_follows: bool) {
        self.end = self.end.min(if nothing_follows { self.bits } else { u64::BITS });
    }
}

/// Takes groups out of words, from the first bit on.
pub struct Reader<'a, const K: usize> {
    words: &'a Words<K>,
    position: u32,
}

impl<'a, const K: usize> Reader<'a, K> {
    pub fn new(words: &'a Words<K>) -> Self {
        Reader { words, position: 0 }
    }
}

impl<const K: usize> Coder for Reader<'_, K> {
    type Group = ReadGroup;

    #[inline(always)]
    fn begin(&mut self) -> ReadGroup {
        let (word, shift) = ((self.position / u64::BITS) as usize, self.position % u64::BITS);
        let at = |word: usize| self.words.get(word).copied().unwrap_or(0);
        let rest = at(word) >> shift | at(word + 1).checked_shl(u64::BITS - shift).unwrap_or(0);
        ReadGroup { rest, bits: 0, end: u64::BITS }
    }

    #[inline(always)]
    fn end(&mut self, group: ReadGroup) {
        self.position += group.bits.min(group.end);
    }
}

/// A group that is read.
pub struct ReadGroup {
    rest: u64,
    bits: u32,
    /// How many of the bits count.
    end: u32,
}

impl Fields for ReadGroup {
    const READS: bool = true;

    #[inline(always)]
    fn field(&mut self, _: u64, bits: u32) -> u64 {
        let value = self.rest & ((1 << bits) - 1);
        self.rest >>= bits;
        self.bits += bits;
        value
    }

    #[inline(always)]
    fn unbounded(&mut self, value: u64, bits: u32) -> u64 {
        self.field(value, bits)
    }

    #[inline(always)]
    fn end_if(&mut self, nothing_follows: bool) {
        self.end = self.end.min(if nothing_follows { self.bits } else { u64::BITS });
        self.rest = if nothing_follows { 0 } else { self.rest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_too_large_for_its_field_gives_no_words() {
        let packed = |value| {
            let mut writer = Writer::<1>::new();
            for (value, bits) in [(3, 2), (value, 4)] {
                let mut fields = writer.begin();
                fields.unbounded(value, bits);
                writer.end(fields);
            }
            writer.finish()
        };
        assert_eq!(packed(15), Some([0b11_1111]));
        assert_eq!(packed(16), None);
    }
}
