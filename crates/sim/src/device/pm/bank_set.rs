//! A set of banks, by number.

/// Which banks have something to do: what an idle bank would say about itself need not be read.
#[derive(Clone, Debug, Default)]
pub struct BankSet {
    words: Vec<u64>,
}

impl BankSet {
    /// None of `banks` banks.
    pub fn none_of(banks: usize) -> BankSet {
        BankSet { words: vec![0; banks.div_ceil(64)] }
    }

    /// `bank` is in the set.
    pub fn insert(&mut self, bank: usize) {
        self.words[bank / 64] |= 1 << (bank % 64);
    }

    /// `bank` is not in the set.
    pub fn remove(&mut self, bank: usize) {
        self.words[bank / 64] &= !(1 << (bank % 64));
    }

    /// The first bank in the set from `bank` on.
    pub fn next_from(&self, bank: usize) -> Option<usize> {
        let first = bank / 64;
        let mut mask = u64::MAX << (bank % 64);
        for (index, word) in self.words.iter().enumerate().skip(first) {
            if word & mask != 0 {
                return Some(index * 64 + (word & mask).trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_come_in_order_whatever_word_they_are_in() {
        let mut set = BankSet::none_of(130);
        for bank in [129, 0, 63, 64, 65] {
            set.insert(bank);
        }
        set.remove(64);
        let mut banks = Vec::new();
        let mut from = 0;
        while let Some(bank) = set.next_from(from) {
            banks.push(bank);
            from = bank + 1;
        }
        assert_eq!(banks, [0, 63, 65, 129]);
    }
}
