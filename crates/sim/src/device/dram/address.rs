//! Where a line lies in a DRAM channel.

use super::channel::BankId;
use super::config::{AddressMapping, DramConfig};
use fencepost_kernel::Divisor;
use fencepost_kernel::line::LINE_BYTES;

/// Finds bank and row of a line.
#[derive(Clone, Debug)]
pub struct AddressMap {
    mapping: AddressMapping,
    ranks: u64,
    bank_groups: u64,
    banks_per_group: u64,
    columns: u64,
    /// The same four numbers, to divide by.
    divisors: [Divisor; 4],
    /// How many bits of the row at a time are XORed with the number of the bank in its rank; 0: none are.
    hashed_bits: u32,
}

/// Where a line lies: each number is counted within the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank.
    pub rank: u64,
    /// The bank group of the rank.
    pub bank_group: u64,
    /// The bank of the group.
    pub bank: u64,
    /// The row of the bank.
    pub row: u64,
    /// The line of the row.
    pub column: u64,
}

impl AddressMap {
    /// The map of a channel like `config`.
    pub fn new(config: &DramConfig) -> AddressMap {
        let (ranks, bank_groups) = (u64::from(config.ranks), u64::from(config.bank_groups));
        let (banks_per_group, columns) = (u64::from(config.banks_per_group), u64::from(config.row_bytes) / LINE_BYTES);
        AddressMap {
            mapping: config.address_mapping,
            ranks,
            bank_groups,
            banks_per_group,
            columns,
            divisors: [ranks, bank_groups, banks_per_group, columns].map(Divisor::new),
            hashed_bits: if config.bank_hash { (bank_groups * banks_per_group).ilog2() } else { 0 },
        }
    }

    /// What the number of a bank in its rank is XORed with for `row`: its bits folded to as many (after Zhang, Zhu and
    /// Zhang, MICRO 2000, and Pessl et al., USENIX Security 2016, whose controllers XOR several row bits for each).
    #[inline]
    fn hash(&self, row: u64) -> u64 {
        let (mut rest, mut hash) = (row, 0);
        while rest != 0 && self.hashed_bits != 0 {
            hash ^= rest & ((1 << self.hashed_bits) - 1);
            rest >>= self.hashed_bits;
        }
        hash
    }

    /// The bank and the row of line `device_line` of the device.
    pub fn locate(&self, device_line: u64) -> (BankId, u64) {
        let mut rest = device_line;
        let mut take = |count: Divisor| {
            let digit;
            (rest, digit) = count.divide(rest);
            digit
        };
        let [ranks, bank_groups, banks_per_group, columns] = self.divisors;
        let (group, bank, rank);
        match self.mapping {
            AddressMapping::RoRaBaBgCo => {
                take(columns);
                group = take(bank_groups);
                bank = take(banks_per_group);
                rank = take(ranks);
            }
            AddressMapping::RoCoRaBaBg => {
                group = take(bank_groups);
                bank = take(banks_per_group);
                rank = take(ranks);
                take(columns);
            }
            AddressMapping::RoRaBaCoBg => {
                group = take(bank_groups);
                take(columns);
                bank = take(banks_per_group);
                rank = take(ranks);
            }
        }
        let in_rank = (group * self.banks_per_group + bank) ^ self.hash(rest);
        let bank = rank * self.bank_groups * self.banks_per_group + in_rank;
        (BankId(bank as u16), rest)
    }

    /// The line of the device in `column` (counted in lines) of `row` in a bank: what [`Self::locate`] finds there.
    pub fn line(&self, place: Place) -> u64 {
        let Place { rank, bank_group: group, bank, row, column } = place;
        let in_rank = (group * self.banks_per_group + bank) ^ self.hash(row);
        let (group, bank) = (in_rank / self.banks_per_group, in_rank % self.banks_per_group);
        // Each with how many there are, from the least significant one.
        let column = (column, self.columns);
        let (group, bank, rank) = ((group, self.bank_groups), (bank, self.banks_per_group), (rank, self.ranks));
        let digits = match self.mapping {
            AddressMapping::RoRaBaBgCo => [column, group, bank, rank],
            AddressMapping::RoCoRaBaBg => [group, bank, rank, column],
            AddressMapping::RoRaBaCoBg => [group, column, bank, rank],
        };
        digits.iter().rev().fold(row, |line, (digit, count)| line * count + digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::dram::tests::ddr4_2400;
    use std::collections::{BTreeMap, BTreeSet};

    fn map(mapping: AddressMapping) -> AddressMap {
        AddressMap::new(&DramConfig { address_mapping: mapping, ranks: 2, ..ddr4_2400() })
    }

    #[test]
    fn consecutive_lines_go_where_the_mapping_says() {
        let first = |mapping, count| -> Vec<_> { (0..count).map(|line| map(mapping).locate(line).0.0).collect() };
        assert_eq!(first(AddressMapping::RoRaBaBgCo, 128), [0; 128]);
        assert_eq!(map(AddressMapping::RoRaBaBgCo).locate(128), (BankId(4), 0));
        assert_eq!(first(AddressMapping::RoCoRaBaBg, 6), [0, 4, 8, 12, 1, 5]);
        assert_eq!(map(AddressMapping::RoCoRaBaBg).locate(16), (BankId(16), 0));
        assert_eq!(first(AddressMapping::RoRaBaCoBg, 6), [0, 4, 8, 12, 0, 4]);
        assert_eq!(map(AddressMapping::RoRaBaCoBg).locate(512), (BankId(1), 0));
    }

    fn hashed(mapping: AddressMapping) -> AddressMap {
        AddressMap::new(&DramConfig { address_mapping: mapping, ranks: 2, bank_hash: true, ..ddr4_2400() })
    }

    fn maps() -> impl Iterator<Item = (AddressMapping, AddressMap)> {
        let mappings = [AddressMapping::RoRaBaBgCo, AddressMapping::RoCoRaBaBg, AddressMapping::RoRaBaCoBg];
        mappings.into_iter().flat_map(|mapping| [(mapping, map(mapping)), (mapping, hashed(mapping))])
    }

    #[test]
    fn rows_that_a_power_of_two_separates_lie_in_one_bank_unless_it_is_hashed() {
        // 32 banks of 128 lines: 16 consecutive rows of one bank, and 16 rows 16 apart.
        for step in [1, 16, 256] {
            let banks = |map: AddressMap| -> Vec<_> {
                (0..16).map(|row| map.locate(row * step * 32 * 128).0.0).collect::<BTreeSet<_>>().into_iter().collect()
            };
            assert_eq!(banks(map(AddressMapping::RoRaBaBgCo)), [0]);
            assert_eq!(banks(hashed(AddressMapping::RoRaBaBgCo)), (0..16).collect::<Vec<_>>(), "{step}");
        }
        assert_eq!(hashed(AddressMapping::RoRaBaBgCo).locate(0x35 * 32 * 128), (BankId(0x3 ^ 0x5), 0x35));
    }

    #[test]
    fn a_place_is_found_where_it_was_made() {
        for (mapping, map) in maps() {
            let mut lines = BTreeMap::new();
            for rank in 0..2 {
                for (bank_group, bank) in [(0, 0), (1, 3), (3, 1)] {
                    for (row, column) in [(0, 0), (7, 127), (9, 1)] {
                        let line = map.line(Place { rank, bank_group, bank, row, column });
                        assert_eq!(map.locate(line), (BankId((rank * 16 + bank_group * 4 + bank) as u16), row));
                        lines.insert(line, column);
                    }
                }
            }
            assert_eq!(lines.len(), 18, "{mapping:?}: columns differ too");
        }
    }

    #[test]
    fn every_row_of_every_bank_gets_its_number_of_lines() {
        for (mapping, map) in maps() {
            let mut lines = BTreeMap::new();
            for line in 0..32 * 128 * 3 {
                *lines.entry(map.locate(line)).or_insert(0) += 1;
            }
            assert_eq!(lines.len(), 32 * 3);
            assert!(lines.values().all(|lines| *lines == 128), "{mapping:?}");
        }
    }
}
