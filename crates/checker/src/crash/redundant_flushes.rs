//! Flushes that never mattered: whenever they were made, no cache had anything newer of their line than memory had been
//! given.
//!
//! What they cost is measured and not estimated: the program is replayed once more without them, all together and each
//! flush instruction alone. An instruction of which some executions were needed cannot be left out, so what its others
//! cost is not known.

use std::collections::{BTreeMap, BTreeSet};

use fencepost_sim::replay::simulation::{Program, Progress};
use serde::Serialize;

use super::CrashError;
use super::recorded_stores::RecordedStores;
use super::replay::{ServedFlush, Setting, clean_everywhere, duration_of};

/// One flush instruction of which executions were redundant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedundantFlush {
    /// Its address.
    pub instruction: u64,
    /// How often it was executed, and how often of these for nothing.
    pub executions: u64,
    /// See there.
    pub redundant: u64,
    /// How often it had nothing to write back because an eviction had done that just before.
    pub evicted: u64,
}

/// The flush instructions of which executions were redundant, by address.
pub fn redundant_flushes(recorded: &RecordedStores, flushes: &[ServedFlush]) -> Vec<RedundantFlush> {
    let mut found: BTreeMap<u64, RedundantFlush> = BTreeMap::new();
    for flush in flushes {
        let instruction = recorded.instruction_at(flush.thread, flush.place);
        let none = || RedundantFlush { instruction, executions: 0, redundant: 0, evicted: 0 };
        let found = found.entry(instruction).or_insert_with(none);
        found.executions += 1;
        found.redundant += u64::from(flush.is_redundant());
        found.evicted += u64::from(flush.is_evicted);
    }
    found.into_values().filter(|flush| flush.redundant > 0).collect()
}

/// Of flush instructions that were redundant each time, so many are left out alone too: each of them takes a replay.
pub const ALONE_MAX: usize = 16;

/// How long the program takes with and without flush instructions that were redundant each time, in picoseconds of
/// simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// With all of them.
    pub with_ps: u64,
    /// With none of them.
    pub without_ps: u64,
    /// By address: without that one alone. Of [`ALONE_MAX`] instructions, those that were executed most often.
    pub without_one_ps: BTreeMap<u64, u64>,
}

/// How much longer the program takes with those flushes that were redundant each time. None if there are none.
///
/// # Errors
/// If the replay does not come to its end.
pub fn cost(
    program: &Program,
    setting: &Setting<'_>,
    recorded: &RecordedStores,
    flushes: &[ServedFlush],
    progress: &Progress,
) -> Result<Option<Cost>, CrashError> {
    let dropped = clean_everywhere(recorded, flushes);
    if dropped.is_empty() {
        return Ok(None);
    }
    let without = |dropped: &BTreeSet<u64>| -> Result<u64, CrashError> {
        let outcome = setting.start(&program.without_flushes(dropped))?.run(progress)?;
        Ok(duration_of(&outcome))
    };
    let mut cost =
        Cost { with_ps: without(&BTreeSet::new())?, without_ps: without(&dropped)?, without_one_ps: BTreeMap::new() };
    let mut alone: Vec<RedundantFlush> = redundant_flushes(recorded, flushes);
    alone.retain(|flush| dropped.contains(&flush.instruction));
    alone.sort_by_key(|flush| std::cmp::Reverse(flush.executions));
    for flush in alone.iter().take(ALONE_MAX) {
        let only = BTreeSet::from([flush.instruction]);
        let without_ps = if only == dropped { cost.without_ps } else { without(&only)? };
        cost.without_one_ps.insert(flush.instruction, without_ps);
    }
    Ok(Some(cost))
}
