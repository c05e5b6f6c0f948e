//! Loads of words that are updated atomically: whether they came before the store that they saw while being recorded.
//!
//! The record says of each such load whose store it saw, and threads note when they come to either. A load before its
//! store is a sign that the replay is another run of the program than the one recorded, and not only a faster one.

use rustc_hash::FxHashMap;

use crate::core::thread::Noted;
use fencepost_record::Clock;

#[derive(Clone, Debug, Default)]
pub(super) struct EarlyLoads {
    loads: u64,
    early: u64,
    /// When each store came.
    stores: FxHashMap<Clock, u64>,
    /// Loads of stores that have not come yet, with when they came and how many they stand for.
    open: FxHashMap<Clock, Vec<(u64, u64)>>,
}

impl EarlyLoads {
    pub fn take_in(&mut self, noted: Noted) {
        match noted {
            Noted::Store { clock, cycle } => {
                let loads = self.open.remove(&clock).unwrap_or_default();
                self.early += loads.iter().filter(|(came, _)| *came < cycle).map(|(_, count)| count).sum::<u64>();
                self.stores.insert(clock, cycle);
            }
            Noted::Loads { count, store, cycle } => {
                self.loads += count;
                let Some(store) = store else { return };
                match self.stores.get(&store) {
                    Some(&came) => self.early += if cycle < came { count } else { 0 },
                    None => self.open.entry(store).or_default().push((cycle, count)),
                }
            }
        }
    }

    /// All loads, and the early ones. What has not come at the end of a whole replay does not come.
    pub fn counted(&self, is_whole: bool) -> (u64, u64) {
        let open = self.open.values().flatten().map(|(_, count)| count).sum::<u64>();
        (self.loads, self.early + if is_whole { open } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(clock: u64, cycle: u64) -> Noted {
        Noted::Store { clock: Clock(clock), cycle }
    }

    fn load(clock: u64, cycle: u64) -> Noted {
        Noted::Loads { count: 1, store: Some(Clock(clock)), cycle }
    }

    #[test]
    fn a_load_before_the_store_that_it_saw_is_early_whichever_is_noted_first() {
        let mut loads = EarlyLoads::default();
        loads.take_in(store(1, 100));
        loads.take_in(load(1, 99));
        loads.take_in(load(2, 99));
        loads.take_in(load(2, 101));
        loads.take_in(store(2, 100));
        loads.take_in(Noted::Loads { count: 7, store: None, cycle: 0 });
        assert_eq!(loads.counted(true), (10, 2));
    }

    #[test]
    fn a_store_that_never_comes_makes_its_loads_early_unless_the_replay_stops_before_it() {
        let mut loads = EarlyLoads::default();
        loads.take_in(load(1, 5));
        assert_eq!((loads.counted(true), loads.counted(false)), ((1, 1), (1, 0)));
    }
}
