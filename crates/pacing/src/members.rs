//! Which channels are alive: a row whose heartbeat stands still expires.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::Claim;

/// A channel's row as the owner reads it.
#[derive(Clone, Copy, Debug)]
pub struct Row<Id, C = Claim> {
    /// Identifies the channel: its slot, and which of the slot's channels it is. A participant that restarts takes its
    /// old slot, so that the row of the one that died is gone at once and is not counted beside the new one's.
    pub id: Id,
    /// A live channel changes it at least once per interval.
    pub heartbeat: u64,
    /// What the channel claims (with its group, where there are groups); its weight is the configuration's, whatever
    /// the channel's process has written.
    pub claim: C,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    heartbeat: u64,
    silent_intervals: u32,
    is_present: bool,
}

/// The owner's memory of rows.
#[derive(Clone, Debug)]
pub struct Members<Id> {
    silent_intervals_max: u32,
    members: HashMap<Id, Member>,
}

impl<Id: Copy + Eq + Hash> Members<Id> {
    /// A row expires once its heartbeat has stood still for more than `silent_intervals_max` intervals.
    pub fn new(silent_intervals_max: u32) -> Members<Id> {
        Members { silent_intervals_max, members: HashMap::new() }
    }

    /// The claims of the live channels among `rows`, in the order of the rows. Call it once per interval.
    pub fn live<C: Copy>(&mut self, rows: &[Row<Id, C>]) -> Vec<C> {
        self.members.values_mut().for_each(|member| member.is_present = false);
        for row in rows {
            let heartbeat = row.heartbeat;
            match self.members.entry(row.id) {
                Entry::Vacant(place) => {
                    place.insert(Member { heartbeat, silent_intervals: 0, is_present: true });
                }
                Entry::Occupied(mut place) => {
                    let member = place.get_mut();
                    let is_silent = member.heartbeat == heartbeat;
                    let silent_intervals = if is_silent { member.silent_intervals.saturating_add(1) } else { 0 };
                    *member = Member { heartbeat, silent_intervals, is_present: true };
                }
            }
        }
        self.members.retain(|_, member| member.is_present);
        rows.iter().filter(|row| !self.has_expired(row.id)).map(|row| row.claim).collect()
    }

    /// Whether the channel counts as dead, so that its row may be reused.
    pub fn has_expired(&self, id: Id) -> bool {
        self.members.get(&id).is_some_and(|member| member.silent_intervals > self.silent_intervals_max)
    }
}
