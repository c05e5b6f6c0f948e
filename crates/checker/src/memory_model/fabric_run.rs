//! The tests of the fabric's own model that a host's instructions can express, run through the whole simulator.
//!
//! `LStore` is a store, `RFlush` is `clflush` and `mfence`, `MStore` a non-temporal store and `sfence`. Behind the last
//! of them the program stores to a line of its own: once that is visible, all is done, and a power cut may come, which
//! here takes host and fabric together. `GPF` is what the simulated platform does before the cut; it is done a second
//! time with half of the time that it needs, which has to be reported as a dirty shutdown and says nothing.

use std::collections::BTreeSet;

use fencepost_kernel::time::{Duration, Time};
use fencepost_sim::cache::observation_log::Access;
use fencepost_sim::config::Machine;
use fencepost_sim::replay::global_flush::FlushLimits;
use fencepost_sim::replay::simulation::{HostProgram, Simulation};
use fencepost_sim::switch::Scheme;

use super::cxl0::{FabricOperation, FabricTest};
use super::fabrics::varied;
use super::litmus_test::{Fence, Isa};
use super::recording::{Recording, address_of_line};
use super::run::{at_every_event, cut, durable, host, simulation};
use super::variation::{Outline, Variation};

/// The line that is stored to when all is done: none of a test's own.
const DONE: u64 = 1000;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct FabricRun {
    /// How often the power was cut.
    pub cuts: u64,
    /// How many of these cuts a flush that was cut short had reported as dirty shutdowns.
    pub dirty_shutdowns: u64,
    /// How many flushes that were cut short reported nothing.
    pub unreported: u64,
    /// What was read then, of all locations.
    pub read: BTreeSet<Vec<u32>>,
}

impl FabricTest {
    /// Whether a host or its platform can do all that the test does.
    pub fn can_be_run(&self) -> bool {
        let is_instruction = |operation: &FabricOperation| {
            use FabricOperation::{Gpf, LStore, MStore, RFlush};
            matches!(operation, LStore(_) | MStore(_) | RFlush(_) | Gpf)
        };
        self.operations.iter().all(is_instruction)
    }

    /// Runs the test on `machine` under `scheme`, timed as `seed` says, and cuts the power at every event from when all
    /// is done.
    ///
    /// # Errors
    /// If there is no such machine, or the simulation does not come to its end.
    pub fn run(&self, machine: &Machine, scheme: Scheme, seed: u64) -> Result<FabricRun, String> {
        let outline =
            Outline { id: &self.id, lines: self.locations.len(), threads: vec![vec![false; self.operations.len()]] };
        let mut variation = Variation::of(&outline, seed);
        // Values are versions here: nothing is stored before.
        variation.preparations.clear();
        let machine = varied(machine, 1 + usize::from(!variation.evictions.is_empty()), &variation.machine)?;
        let start = simulation(&machine, scheme, self.record(&variation))?;
        let mut whole = start.clone();
        while whole.step() {}
        let done = done_at(&whole).ok_or("the program did not come to its end")?;
        let addresses: Vec<u64> = variation.places.iter().map(|place| address_of_line(*place)).collect();
        let mut run = FabricRun { cuts: 0, dirty_shutdowns: 0, unreported: 0, read: BTreeSet::new() };
        at_every_event(start, |simulation| {
            if simulation.system().now() < done {
                return Ok(());
            }
            let mut last = simulation.clone();
            if self.operations.contains(&FabricOperation::Gpf) {
                let is_reported = is_reported_if_cut_short(simulation.clone(), global_flush(&mut last)?);
                *(if is_reported { &mut run.dirty_shutdowns } else { &mut run.unreported }) += 1;
                run.cuts += 1;
            }
            run.cuts += 1;
            run.read.insert(durable(&cut(last)?, &addresses).iter().map(|version| u32::from(*version > 0)).collect());
            Ok(())
        })?;
        Ok(run)
    }

    fn record(&self, variation: &Variation) -> HostProgram {
        let threads = 1 + u32::from(!variation.evictions.is_empty());
        let mut recording = Recording::new(Isa::X86, threads);
        let address = |location: usize| address_of_line(variation.places[location]);
        for (operation, delay) in self.operations.iter().zip(&variation.delays[0]) {
            recording.delay(0, *delay);
            match *operation {
                FabricOperation::LStore(location) => recording.store(0, address(location)),
                FabricOperation::MStore(location) => {
                    recording.store_non_temporal(0, address(location));
                    recording.fence(0, Fence::Sfence);
                }
                FabricOperation::RFlush(location) => {
                    recording.clflush(0, address(location));
                    recording.fence(0, Fence::Mfence);
                }
                // The platform does it when power is about to fail.
                FabricOperation::Gpf => {}
                FabricOperation::RStore(_) | FabricOperation::LFlush(_) => {
                    unreachable!("no host has an instruction for it")
                }
            }
        }
        recording.store(0, address_of_line(DONE));
        for eviction in &variation.evictions {
            recording.delay(1, eviction.delay);
            recording.evict(1, address(eviction.line));
        }
        recording.finish()
    }
}

/// What the platform does when power is about to fail, with time enough, and how long its first phase takes.
fn global_flush(simulation: &mut Simulation) -> Result<Duration, String> {
    simulation.needs_one_socket("a Global Persistent Flush").map_err(|error| error.to_string())?;
    let whole = simulation.global_persistent_flush(FlushLimits::AMPLE);
    match whole.errors.first() {
        Some(error) => Err(error.to_string()),
        None => Ok(Duration::from_ps(whole.phase_1.duration_ps)),
    }
}

/// Whether half the time of its first phase ends it with the report of a dirty shutdown.
fn is_reported_if_cut_short(mut simulation: Simulation, phase_1: Duration) -> bool {
    let limits = FlushLimits { phase_1: Duration::from_ps(phase_1.as_ps() / 2), ..FlushLimits::AMPLE };
    simulation.global_persistent_flush(limits).is_dirty_shutdown()
}

/// When the program had done all.
fn done_at(simulation: &Simulation) -> Option<Time> {
    let line = host(simulation).line_of(address_of_line(DONE))?;
    let log = host(simulation).observations().expect("it is kept").observations();
    log.iter().find(|seen| seen.line == line && seen.access == Access::Store).map(|seen| seen.time)
}
