//! Flushes that never mattered: whenever they were made, no cache had anything newer of their line than memory had been given.
//!
//! What they cost is measured and not estimated: the program is replayed once more without them.

use std::collections::BTreeMap;

use fencepost_sim::simulation::{Program, Progress};
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
        let instruction = recorded.threads[flush.thread as usize][flush.place as usize].instruction;
        let none = || RedundantFlush { instruction, executions: 0, redundant: 0, evicted: 0 };
        let found = found.entry(instruction).or_insert_with(none);
        found.executions += 1;
        found.redundant += u64::from(flush.is_redundant());
        found.evicted += u64::from(flush.is_evicted);
    }
    found.into_values().filter(|flush| flush.redundant > 0).collect()
}

/// How much longer the program takes with those flushes that were redundant each time: picoseconds of simulated time with and without them. None
/// if there are none.
///
/// # Errors
/// If the replay does not come to its end.
pub fn cost(
    program: &Program,
    setting: &Setting<'_>,
    recorded: &RecordedStores,
    flushes: &[ServedFlush],
    progress: &Progress,
) -> Result<Option<(u64, u64)>, CrashError> {
    let dropped = clean_everywhere(recorded, flushes);
    if dropped.is_empty() {
        return Ok(None);
    }
    let with = setting.start(program)?.run(progress)?;
    let without = setting.start(&program.without_flushes(&dropped))?.run(progress)?;
    Ok(Some((duration_of(&with), duration_of(&without))))
}
