//! What the core does and when, a chapter a file; each test is one sentence of the specification.
//!
//! A core runs on the [bench](crate::host::bench): its caches are real, memory answers after a fixed time. Cycles in
//! these tests are reckoned from the model, not read off it: an instruction that dispatches in cycle d issues in d + 1
//! at the earliest and commits one cycle after its result.

mod access_sites;
mod fences;
mod flushes;
mod front_end;
mod inserted_persists;
mod loads;
mod non_temporal;
mod persist_sites;
mod prefetching;
mod splitting;
mod stores;
mod strings;
mod translation;
mod warming;

use crate::host::bench::assembler::Instruction;
use crate::host::bench::{Bench, Script, Setup};

/// Where the last level's distance is: from an instruction's turn in the store queue to its message leaving the last
/// level.
const DISPATCH_TO_COMMIT: u64 = 3;
/// The turn of a store or flush that is the first instruction: it dispatches in 0, issues in 1, is complete in 2 and
/// commits in 3.
const FIRST_TURN: u64 = DISPATCH_TO_COMMIT + 1;

/// One core about to execute `instructions`.
fn core_with(sets: &[&str], instructions: &[Instruction]) -> Bench {
    Setup::machine(sets).run(Script::of(instructions))
}

/// One core of the unchanged machine about to execute `instructions`.
fn core(instructions: &[Instruction]) -> Bench {
    core_with(&[], instructions)
}
