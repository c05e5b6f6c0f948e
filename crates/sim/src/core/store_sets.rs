//! Store sets: for which stores a load waits although their addresses may differ (Chrysos and Emer, ISCA 1998).
//!
//! A core does not know the address of an older store before that has been executed. It lets a load go ahead all the
//! same; where the load turns out to have overtaken a store to its own place, both get into one set, and from then on
//! the load waits for the last store of its set. The core compares places in granules that may be larger than an
//! access, so loads and stores get into one set that never meet. The cost of undoing the load is not modelled: it is
//! paid once for each pair that is learnt.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory dependence prediction by store sets (Chrysos and Emer 1998): loads wait for stores with which they once
/// conflicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct StoreSetsConfig {
    /// Whether loads wait for the stores of their set. False: a load knows the addresses of all older stores, and waits
    /// for those whose data it needs.
    #[garde(skip)]
    pub enabled: bool,
    /// Instructions, and sets, that are kept track of; those whose addresses collide share their set.
    #[garde(range(min = 1, max = 65_535))]
    #[schemars(range(min = 1, max = 65_535))]
    pub entries: u16,
    /// Bytes of a granule; a power of two.
    #[garde(custom(power_of_two))]
    #[schemars(range(min = 1, max = 64))]
    pub granule_bytes: u8,
    /// Loads and stores after which everything learnt is forgotten.
    #[garde(range(min = 1, max = 1_000_000_000))]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub forgotten_after: u32,
}

fn power_of_two(bytes: &u8, (): &()) -> garde::Result {
    if bytes.is_power_of_two() && *bytes <= 64 {
        Ok(())
    } else {
        Err(garde::Error::new("not a power of two from 1 to 64"))
    }
}

/// A store that has been dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastStore {
    /// Its slot in the reorder buffer.
    pub slot: u32,
    /// Its place in program order: the slot may have another holder by now.
    pub sequence: u64,
}

/// The sets of one core.
#[derive(Clone, Debug)]
pub struct StoreSets {
    /// By instruction.
    sets: Box<[Option<u16>]>,
    /// By set.
    last_stores: Box<[Option<LastStore>]>,
    granule_shift: u32,
    forgotten_after: u32,
    accesses: u32,
}

impl StoreSets {
    /// No sets yet; none at all if they are not enabled.
    pub fn of(config: &StoreSetsConfig) -> Option<StoreSets> {
        let entries = usize::from(config.entries);
        config.enabled.then(|| StoreSets {
            sets: vec![None; entries].into(),
            last_stores: vec![None; entries].into(),
            granule_shift: config.granule_bytes.trailing_zeros(),
            forgotten_after: config.forgotten_after,
            accesses: 0,
        })
    }

    /// The granules of an access, the first and the last.
    pub fn granules(&self, address: u64, size: u16) -> (u64, u64) {
        (address >> self.granule_shift, (address + u64::from(size.max(1)) - 1) >> self.granule_shift)
    }

    /// A load is dispatched: gives the store for which it waits.
    pub fn load_dispatched(&mut self, instruction: u32) -> Option<LastStore> {
        self.count_access();
        let set = self.sets[self.index(instruction)]?;
        self.last_stores[usize::from(set)]
    }

    /// A store is dispatched.
    pub fn store_dispatched(&mut self, instruction: u32, store: LastStore) {
        self.count_access();
        if let Some(set) = self.sets[self.index(instruction)] {
            self.last_stores[usize::from(set)] = Some(store);
        }
    }

    /// A load has overtaken a store to one of its granules. Of two sets the one with the lower number stays.
    pub fn overtaken(&mut self, load: u32, store: u32) {
        let (load, store) = (self.index(load), self.index(store));
        let set = match (self.sets[load], self.sets[store]) {
            (Some(of_load), Some(of_store)) => of_load.min(of_store),
            (Some(set), None) | (None, Some(set)) => set,
            (None, None) => load as u16,
        };
        self.sets[load] = Some(set);
        self.sets[store] = Some(set);
    }

    fn index(&self, instruction: u32) -> usize {
        // Fibonacci hashing: neighbours do not collide.
        let hash = instruction.wrapping_mul(0x9e37_79b9);
        ((u64::from(hash) * self.sets.len() as u64) >> 32) as usize
    }

    fn count_access(&mut self) {
        self.accesses += 1;
        if self.accesses >= self.forgotten_after {
            self.accesses = 0;
            self.sets.fill(None);
            self.last_stores.fill(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(forgotten_after: u32) -> StoreSets {
        StoreSets::of(&StoreSetsConfig { enabled: true, entries: 1024, granule_bytes: 16, forgotten_after }).unwrap()
    }

    fn store(sequence: u64) -> LastStore {
        LastStore { slot: 7, sequence }
    }

    #[test]
    fn a_load_waits_for_the_last_store_of_its_set_only_after_it_has_overtaken_one() {
        let mut sets = sets(100);
        sets.store_dispatched(1, store(10));
        assert_eq!(sets.load_dispatched(2), None);
        sets.overtaken(2, 1);
        assert_eq!(sets.load_dispatched(2), None, "no store of the set has been dispatched since");
        sets.store_dispatched(1, store(11));
        sets.store_dispatched(3, store(12));
        assert_eq!(sets.load_dispatched(2), Some(store(11)));
        sets.overtaken(2, 3);
        sets.store_dispatched(3, store(13));
        assert_eq!(sets.load_dispatched(2), Some(store(13)), "both stores are in the set now");
    }

    #[test]
    fn what_was_learnt_is_forgotten_in_the_end() {
        let mut sets = sets(4);
        sets.overtaken(2, 1);
        sets.store_dispatched(1, store(10));
        assert_eq!(sets.load_dispatched(2), Some(store(10)));
        sets.load_dispatched(9);
        assert_eq!(sets.load_dispatched(2), None, "the fourth access");
    }

    #[test]
    fn granules_are_those_that_an_access_touches() {
        assert_eq!(sets(1).granules(0x18, 8), (1, 1));
        assert_eq!(sets(1).granules(0x1c, 8), (1, 2));
    }
}
