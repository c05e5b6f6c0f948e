//! Counts of headers by class, and what the slots and flits of a link have room for.
//!
//! The counts of all classes lie in one word, four bits each, so that a comparison of all of them is one subtraction.

use crate::message::{HeaderSlot, HeadersMax, MessageClass, SLOT_FORMATS};

/// Room for the counts. A protocol for tests has more classes than there are otherwise.
#[cfg(not(test))]
type Word = u64;
#[cfg(test)]
type Word = u128;

/// How many headers of each class there are, or may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers(Word);

const BITS: usize = 4;
/// How many counts there are: see [`place`].
const PLACES: usize = MessageClass::COUNT - 1;
/// The highest bit of each count: none may reach it.
const GUARDS: Word = Word::MAX / 15 * 8;
/// The largest limit: one more still lies below the next count.
const COUNT_MAX: u8 = 7;

/// Which count is of `class`. Snoops of devices and their answers share one: they never travel in the same direction,
/// and are packed alike.
const fn place(class: MessageClass) -> usize {
    let index = class.index();
    if index < MessageClass::M2sBiRsp.index() { index } else { index - 1 }
}

impl Headers {
    /// None at all.
    pub const NONE: Headers = Headers(0);

    /// The same with `count` more of `class`.
    const fn with(self, class: MessageClass, count: u8) -> Headers {
        assert!(count <= COUNT_MAX && BITS * PLACES <= Word::BITS as usize, "the counts do not fit");
        Headers(self.0 + ((count as Word) << (BITS * place(class))))
    }

    /// The same with one more of `class`.
    #[inline]
    pub const fn and(self, class: MessageClass) -> Headers {
        Headers(self.0 + (1 << (BITS * place(class))))
    }

    /// Whether there are no more of any class than in `most`.
    #[inline]
    pub const fn are_within(self, most: Headers) -> bool {
        ((most.0 | GUARDS) - self.0) & GUARDS == GUARDS
    }

    /// Whether `slot` has a format for all of them.
    #[inline]
    pub fn fit(self, slot: HeaderSlot) -> bool {
        // Every format that has room for all of them has room for those of the first class.
        let first = self.0.trailing_zeros() as usize / BITS;
        let Some((formats, count)) = FORMATS_OF[slot as usize].get(first) else { return true };
        formats[..*count].iter().any(|format| self.are_within(*format))
    }
}

/// Whether no class before it has the same count.
const fn is_first_of_its_place(index: usize) -> bool {
    index != MessageClass::M2sBiRsp.index()
}

/// Headers that a flit of 68 bytes takes at most.
pub(super) const MAX_IN_FLIT_68: Headers = {
    let (mut most, mut index) = (Headers::NONE, 0);
    while index < MessageClass::COUNT {
        let HeadersMax { in_flit_68, .. } = MessageClass::ALL[index].description().headers_max;
        if is_first_of_its_place(index) {
            most = most.with(MessageClass::ALL[index], in_flit_68);
        }
        index += 1;
    }
    most
};

/// Headers that a group of 128 bytes of a flit of 256 takes at most.
pub(super) const MAX_IN_GROUP_256: Headers = {
    let (mut most, mut index) = (Headers::NONE, 0);
    while index < MessageClass::COUNT {
        let HeadersMax { in_group_256, .. } = MessageClass::ALL[index].description().headers_max;
        if is_first_of_its_place(index) {
            most = most.with(MessageClass::ALL[index], in_group_256);
        }
        index += 1;
    }
    most
};

/// Whether a header of `class` can share a slot of some kind.
#[inline]
pub(super) fn may_share(class: MessageClass) -> bool {
    const MAY_SHARE: [bool; MessageClass::COUNT] = {
        let (mut may_share, mut index) = ([false; MessageClass::COUNT], 0);
        while index < HeaderSlot::COUNT {
            let mut format = 0;
            while format < FORMATS[index].len() {
                note_sharing(FORMATS[index][format], &mut may_share);
                format += 1;
            }
            index += 1;
        }
        may_share
    };
    MAY_SHARE[class.index()]
}

/// Notes the classes that share a slot of that format.
const fn note_sharing(format: Headers, may_share: &mut [bool; MessageClass::COUNT]) {
    let mut index = 0;
    while index < MessageClass::COUNT {
        let alone = Headers::NONE.and(MessageClass::ALL[index]);
        if alone.are_within(format) && format.0 != alone.0 {
            may_share[index] = true;
        }
        index += 1;
    }
}

/// Whether a slot of that kind takes a header of `class`.
#[inline]
pub(super) fn takes(slot: HeaderSlot, class: MessageClass) -> bool {
    TAKES[slot as usize][class.index()]
}

const TAKES: [[bool; MessageClass::COUNT]; HeaderSlot::COUNT] = {
    let mut takes = [[false; MessageClass::COUNT]; HeaderSlot::COUNT];
    let mut slot = 0;
    while slot < HeaderSlot::COUNT {
        let mut class = 0;
        while class < MessageClass::COUNT {
            let mut format = 0;
            while format < FORMATS[slot].len() {
                takes[slot][class] |= Headers::NONE.and(MessageClass::ALL[class]).are_within(FORMATS[slot][format]);
                format += 1;
            }
            // Packing looks for the first free slot, H or G.
            assert!(takes[slot][class] || slot == HeaderSlot::Hs256 as usize, "a class lacks a slot format");
            class += 1;
        }
        slot += 1;
    }
    takes
};

/// The most formats of a kind of slot that one class has a place in.
const FORMATS_MAX: usize = 6;

/// The formats of each kind of slot, by the counts that they have a place for, and how many they are.
static FORMATS_OF: [[([Headers; FORMATS_MAX], usize); PLACES]; HeaderSlot::COUNT] = {
    let mut of = [[([Headers::NONE; FORMATS_MAX], 0); PLACES]; HeaderSlot::COUNT];
    let mut slot = 0;
    while slot < HeaderSlot::COUNT {
        let mut format = 0;
        while format < FORMATS[slot].len() {
            let mut class = 0;
            while class < MessageClass::COUNT {
                let has_place = Headers::NONE.and(MessageClass::ALL[class]).are_within(FORMATS[slot][format]);
                if has_place && is_first_of_its_place(class) {
                    let (formats, count) = &mut of[slot][place(MessageClass::ALL[class])];
                    formats[*count] = FORMATS[slot][format];
                    *count += 1;
                }
                class += 1;
            }
            format += 1;
        }
        slot += 1;
    }
    of
};

/// The formats of each kind of slot.
const FORMATS: [&[Headers]; HeaderSlot::COUNT] = [
    &formats::<{ count(HeaderSlot::H68) }>(HeaderSlot::H68),
    &formats::<{ count(HeaderSlot::G68) }>(HeaderSlot::G68),
    &formats::<{ count(HeaderSlot::H256) }>(HeaderSlot::H256),
    &formats::<{ count(HeaderSlot::G256) }>(HeaderSlot::G256),
    &formats::<{ count(HeaderSlot::Hs256) }>(HeaderSlot::Hs256),
];

/// How many formats `slot` has.
const fn count(slot: HeaderSlot) -> usize {
    collect::<0>(slot).1
}

/// The formats of `slot`, of which there are `N`.
const fn formats<const N: usize>(slot: HeaderSlot) -> [Headers; N] {
    collect(slot).0
}

/// The first `N` formats of `slot`, and how many there are.
const fn collect<const N: usize>(slot: HeaderSlot) -> ([Headers; N], usize) {
    let (mut formats, mut count) = ([Headers::NONE; N], 0);
    let mut protocol = 0;
    while protocol < SLOT_FORMATS.len() {
        let mut format = 0;
        while format < SLOT_FORMATS[protocol].len() {
            let of = &SLOT_FORMATS[protocol][format];
            let mut kind = 0;
            while kind < of.slots.len() {
                if of.slots[kind] as usize == slot as usize {
                    if count < N {
                        formats[count] = sum(of.headers);
                    }
                    count += 1;
                }
                kind += 1;
            }
            format += 1;
        }
        protocol += 1;
    }
    (formats, count)
}

const fn sum(of: &[(MessageClass, u8)]) -> Headers {
    let (mut headers, mut index) = (Headers::NONE, 0);
    while index < of.len() {
        headers = headers.with(of[index].0, of[index].1);
        index += 1;
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageClass::{ExchangeReq, M2sReq, S2mDrs, S2mNdr};

    fn headers(of: &[(MessageClass, u8)]) -> Headers {
        sum(of)
    }

    #[test]
    fn counts_are_compared_class_by_class() {
        let most = headers(&[(M2sReq, 7), (S2mNdr, 2)]);
        assert!(headers(&[(M2sReq, 7), (S2mNdr, 2)]).are_within(most));
        assert!(!headers(&[(M2sReq, 7)]).and(M2sReq).are_within(most));
        assert!(!headers(&[(S2mNdr, 3)]).are_within(most));
        assert!(!headers(&[(S2mDrs, 1)]).are_within(most));
    }

    #[test]
    fn answers_share_a_slot_as_the_formats_say() {
        let fits = |slot| {
            let counts = (0..=3).flat_map(|with| (0..=3).map(move |without| (with, without)));
            let fitting = counts.filter(|&(with, without)| headers(&[(S2mDrs, with), (S2mNdr, without)]).fit(slot));
            fitting.filter(|(with, without)| with + without > 1).collect::<Vec<_>>()
        };
        assert_eq!(fits(HeaderSlot::H68), [(0, 2), (1, 1), (2, 0)]);
        assert_eq!(fits(HeaderSlot::G68), [(0, 2), (1, 1), (1, 2), (2, 0), (3, 0)]);
        assert_eq!(fits(HeaderSlot::H256), [(0, 2), (1, 1), (2, 0)]);
        assert_eq!(fits(HeaderSlot::G256), [(0, 2), (0, 3), (1, 1), (1, 2), (2, 0), (3, 0)]);
        assert_eq!(fits(HeaderSlot::Hs256), []);
    }

    #[test]
    fn a_class_shares_or_has_a_kind_of_slot_only_if_a_format_says_so() {
        assert!(may_share(S2mNdr) && may_share(ExchangeReq) && !may_share(MessageClass::M2sRwd));
        assert!(takes(HeaderSlot::Hs256, S2mDrs) && !takes(HeaderSlot::Hs256, MessageClass::M2sRwd));
        assert!(headers(&[(S2mNdr, 1), (ExchangeReq, 1)]).fit(HeaderSlot::H68), "of two protocols");
    }
}
