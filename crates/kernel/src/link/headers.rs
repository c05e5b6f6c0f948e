//! Counts of headers by class, and what the slots and flits of a link have room for.
//!
//! A count takes four bits, and a word holds sixteen of them, so that all counts of a word are compared by one
//! subtraction. There are as many words as the classes need.

use crate::message::{HeaderSlot, HeadersMax, MessageClass, SLOT_FORMATS};

/// How many headers of each class there are, or may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers([u64; WORDS]);

const BITS: usize = 4;
const COUNTS_PER_WORD: usize = u64::BITS as usize / BITS;
const WORDS: usize = MessageClass::COUNT.div_ceil(COUNTS_PER_WORD);
/// The highest bit of each count: none may reach it.
const GUARDS: u64 = u64::MAX / 15 * 8;
/// The largest limit: one more still leaves the next count alone.
const COUNT_MAX: u8 = 7;

/// One header of each class.
static ONE: [Headers; MessageClass::COUNT] = {
    let (mut one, mut index) = ([Headers::NONE; MessageClass::COUNT], 0);
    while index < MessageClass::COUNT {
        one[index] = Headers::NONE.with(MessageClass::ALL[index], 1);
        index += 1;
    }
    one
};

impl Headers {
    /// None at all.
    pub const NONE: Headers = Headers([0; WORDS]);

    /// The same with `count` more of `class`.
    const fn with(mut self, class: MessageClass, count: u8) -> Headers {
        assert!(
            count <= COUNT_MAX,
            "a class's `headers_max` or one of its `SLOT_FORMATS` has more than 7 headers: widen BITS and GUARDS"
        );
        let index = class.index();
        self.0[index / COUNTS_PER_WORD] += (count as u64) << (BITS * (index % COUNTS_PER_WORD));
        self
    }

    /// The same with one more of `class`.
    #[inline]
    pub fn and(mut self, class: MessageClass) -> Headers {
        let one = &ONE[class.index()];
        for (word, one) in self.0.iter_mut().zip(one.0) {
            *word += one;
        }
        self
    }

    /// Whether there are no more of any class than in `most`.
    #[inline]
    pub const fn are_within(self, most: Headers) -> bool {
        let (mut kept, mut word) = (GUARDS, 0);
        while word < WORDS {
            kept &= (most.0[word] | GUARDS) - self.0[word];
            word += 1;
        }
        kept == GUARDS
    }

    /// Whether `slot` has a format for all of them, of which at least one is of `class`.
    #[inline]
    pub fn fit(self, slot: HeaderSlot, class: MessageClass) -> bool {
        // Every format that has room for all of them has room for one of that class.
        let (formats, count) = &FORMATS_OF[slot as usize][class.index()];
        formats[..*count].iter().any(|format| self.are_within(*format))
    }
}

/// Headers that a flit of 68 bytes takes at most.
pub(super) const MAX_IN_FLIT_68: Headers = {
    let (mut most, mut index) = (Headers::NONE, 0);
    while index < MessageClass::COUNT {
        let HeadersMax { in_flit_68, .. } = MessageClass::ALL[index].description().headers_max;
        most = most.with(MessageClass::ALL[index], in_flit_68);
        index += 1;
    }
    most
};

/// Headers that a group of 128 bytes of a flit of 256 takes at most.
pub(super) const MAX_IN_GROUP_256: Headers = {
    let (mut most, mut index) = (Headers::NONE, 0);
    while index < MessageClass::COUNT {
        let HeadersMax { in_group_256, .. } = MessageClass::ALL[index].description().headers_max;
        most = most.with(MessageClass::ALL[index], in_group_256);
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
        let class = MessageClass::ALL[index];
        if has_room(format, class) && !format.are_within(Headers::NONE.with(class, 1)) {
            may_share[index] = true;
        }
        index += 1;
    }
}

/// Whether a slot of that format can hold a header of `class`.
const fn has_room(format: Headers, class: MessageClass) -> bool {
    Headers::NONE.with(class, 1).are_within(format)
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
            takes[slot][class] = formats_with(slot, class) > 0;
            // Packing looks for the first free slot, H or G.
            assert!(
                takes[slot][class] || slot == HeaderSlot::Hs256 as usize,
                "a class has no slot format for H or G slots: add one to its protocol's `SLOT_FORMATS`"
            );
            class += 1;
        }
        slot += 1;
    }
    takes
};

/// How many formats of that kind of slot have room for a header of that class.
const fn formats_with(slot: usize, class: usize) -> usize {
    let (mut count, mut format) = (0, 0);
    while format < FORMATS[slot].len() {
        if has_room(FORMATS[slot][format], MessageClass::ALL[class]) {
            count += 1;
        }
        format += 1;
    }
    count
}

/// The most formats of one kind of slot that have room for one class.
const FORMATS_MAX: usize = {
    let (mut most, mut slot) = (0, 0);
    while slot < HeaderSlot::COUNT {
        let mut class = 0;
        while class < MessageClass::COUNT {
            let count = formats_with(slot, class);
            most = if count > most { count } else { most };
            class += 1;
        }
        slot += 1;
    }
    most
};

/// The formats of each kind of slot that have room for a header of each class, and how many they are.
static FORMATS_OF: [[([Headers; FORMATS_MAX], usize); MessageClass::COUNT]; HeaderSlot::COUNT] = {
    let mut of = [[([Headers::NONE; FORMATS_MAX], 0); MessageClass::COUNT]; HeaderSlot::COUNT];
    let mut slot = 0;
    while slot < HeaderSlot::COUNT {
        let mut class = 0;
        while class < MessageClass::COUNT {
            let (formats, count) = &mut of[slot][class];
            let mut format = 0;
            while format < FORMATS[slot].len() {
                if has_room(FORMATS[slot][format], MessageClass::ALL[class]) {
                    formats[*count] = FORMATS[slot][format];
                    *count += 1;
                }
                format += 1;
            }
            class += 1;
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
    fn each_class_has_a_count_of_its_own() {
        let all = headers(&MessageClass::ALL.map(|class| (class, COUNT_MAX)));
        assert!(all.are_within(all));
        for class in MessageClass::ALL {
            let others = MessageClass::ALL.into_iter().filter(|other| *other != class);
            let others = headers(&others.map(|other| (other, COUNT_MAX)).collect::<Vec<_>>());
            assert!(others.are_within(all) && !all.are_within(others), "{class:?}");
            assert!(!all.and(class).are_within(all), "{class:?}");
            assert!(!others.and(class).are_within(others) && others.and(class).are_within(all), "{class:?}");
        }
    }

    #[test]
    fn answers_share_a_slot_as_the_formats_say() {
        let fits = |slot| {
            let counts = (0..=3).flat_map(|with| (0..=3).map(move |without| (with, without)));
            let fitting = counts.filter(|&(with, without)| {
                let class = if with > 0 { S2mDrs } else { S2mNdr };
                with + without > 1 && headers(&[(S2mDrs, with), (S2mNdr, without)]).fit(slot, class)
            });
            fitting.collect::<Vec<_>>()
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
        for class in [S2mNdr, ExchangeReq] {
            let both = headers(&[(S2mNdr, 1), (ExchangeReq, 1)]);
            assert!(both.fit(HeaderSlot::H68, class), "of two protocols");
        }
    }
}
