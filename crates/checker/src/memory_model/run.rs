//! One run of a litmus test through the whole simulator, with a power cut at every event.
//!
//! A snapshot before each event loses its power and recovers; the versions of the lines that it then holds are values,
//! because one thread writes each line, and its stores are performed in its order.

use std::collections::BTreeMap;

use fencepost_kernel::line::Version;
use fencepost_kernel::time::Time;
use fencepost_sim::cache::observation_log::Access;
use fencepost_sim::config::Machine;
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::host::Host;
use fencepost_sim::host::ThreadPlacement;
use fencepost_sim::replay::simulation::{HostProgram, Options, Simulation};
use fencepost_sim::switch::Scheme;

use super::fabrics::varied;
use super::litmus_test::{LineNumber, LitmusTest, NvmState, Operand, Statement};
use super::recording::{address_of_line, record};
use super::variation::Variation;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whether every guard observed a value with which its thread goes on as recorded. If not, the run says nothing,
    /// and no power is cut.
    pub is_judged: bool,
    /// How often the power was cut.
    pub cuts: u64,
    /// The states that were left, each with the time of the first cut that left it.
    pub states: BTreeMap<NvmState, Time>,
}

/// Runs `test` on `machine` under `scheme`, timed as `seed` says, and cuts the power at every event.
///
/// # Errors
/// If there is no such machine, the simulation does not come to its end, or PM holds what nobody stored.
pub fn run(test: &LitmusTest, machine: &Machine, scheme: Scheme, seed: u64) -> Result<Run, String> {
    let variation = Variation::of(&test.outline(), seed);
    let cores = test.threads.len() + usize::from(!variation.evictions.is_empty());
    let machine = varied(machine, cores, &variation.machine)?;
    let start = simulation(&machine, scheme, record(test, &variation))?;
    let addresses: Vec<u64> = variation.places.iter().map(|place| address_of_line(*place)).collect();
    let mut whole = start.clone();
    while whole.step() {}
    is_at_its_end(&whole)?;
    let values = Values { test, variation: &variation, observed: observed(&whole, &addresses) };
    if !values.are_guards_taken() {
        return Ok(Run { is_judged: false, cuts: 0, states: BTreeMap::new() });
    }
    let mut left: BTreeMap<Vec<u64>, Time> = BTreeMap::new();
    let cuts = at_every_event(start, |simulation| {
        let left_now = durable(&cut(simulation.clone())?, &addresses);
        left.entry(left_now).or_insert(simulation.system().now());
        Ok(())
    })?;
    let mut states: BTreeMap<NvmState, Time> = BTreeMap::new();
    for (versions, time) in left {
        let first = states.entry(values.of(&versions)?).or_insert(time);
        *first = time.min(*first);
    }
    Ok(Run { is_judged: true, cuts, states })
}

/// A replay that takes down what loads observe, about to start.
pub(super) fn simulation(machine: &Machine, scheme: Scheme, program: HostProgram) -> Result<Simulation, String> {
    let options = Options {
        threads: ThreadPlacement::default(),
        persist: PersistMode::Program,
        pm_writes_limit: None,
        seed: 0,
        instructions_limit: None,
        sample: None,
        transport: fencepost_sim::transport::Transport::None,
    };
    let mut simulation = Simulation::new(machine, scheme, &[program], options).map_err(|error| error.to_string())?;
    simulation.log_observations();
    Ok(simulation)
}

/// Runs to the end; `look` gets the simulation before every event, and at the end. How often that was.
pub(super) fn at_every_event(
    mut simulation: Simulation,
    mut look: impl FnMut(&Simulation) -> Result<(), String>,
) -> Result<u64, String> {
    let mut events = 0;
    loop {
        look(&simulation)?;
        events += 1;
        if !simulation.step() {
            return is_at_its_end(&simulation).map(|()| events);
        }
    }
}

/// What there is after a power cut and a recovery.
pub(super) fn cut(mut simulation: Simulation) -> Result<Simulation, String> {
    let now = simulation.system().now();
    simulation.power_fail();
    simulation.recover().map_err(|error| format!("recovery from a power cut at {now}: {error}"))?;
    Ok(simulation)
}

fn is_at_its_end(simulation: &Simulation) -> Result<(), String> {
    let system = simulation.system();
    if system.is_finished() {
        return Ok(());
    }
    Err(format!("at {} nothing can go on any more: {}", system.now(), system.waiting().join("; ")))
}

/// The one host.
pub(super) fn host(simulation: &Simulation) -> &Host {
    simulation.system().hosts().next().expect("there is one")
}

/// The versions of the lines at these virtual addresses that the persistent domain holds; 0 of one that the program has
/// not touched.
pub(super) fn durable(simulation: &Simulation, addresses: &[u64]) -> Vec<u64> {
    let version = |address: &u64| {
        let line = host(simulation).line_of(*address);
        line.map_or(0, |line| simulation.durable_version(line).0)
    };
    addresses.iter().map(version).collect()
}

/// The version of each line that the last load of it has observed.
fn observed(simulation: &Simulation, addresses: &[u64]) -> Vec<Option<Version>> {
    let log = host(simulation).observations().expect("it is kept").observations();
    let last = |address: &u64| {
        let line = host(simulation).line_of(*address)?;
        let is_load = |access| matches!(access, Access::Hit | Access::Fill);
        log.iter().rev().find(|seen| seen.line == line && is_load(seen.access)).map(|seen| seen.version)
    };
    addresses.iter().map(last).collect()
}

/// What versions of lines mean in a run.
struct Values<'a> {
    test: &'a LitmusTest,
    variation: &'a Variation,
    /// The version of each line that its last load observed: the test's own load, where there is one, comes after all
    /// preparations.
    observed: Vec<Option<Version>>,
}

impl Values<'_> {
    /// The state in which the lines have these versions.
    fn of(&self, versions: &[u64]) -> Result<NvmState, String> {
        let mut state = vec![0; self.test.locations.len()];
        for (line, version) in versions.iter().enumerate() {
            self.fill(line, *version, &mut state)?;
        }
        Ok(state)
    }

    /// Puts the values of a line's locations in that version into `state`.
    fn fill(&self, line: LineNumber, version: u64, state: &mut NvmState) -> Result<(), String> {
        let prepared = self.variation.preparations[line].stores();
        let stores = self.stores_to(line);
        let performed = version.saturating_sub(prepared.into()) as usize;
        if performed > stores.len() {
            let in_all = prepared as usize + stores.len();
            return Err(format!("version {version} of line {line} was left, of which there were only {in_all}"));
        }
        for (location, value) in &stores[..performed] {
            state[*location] = *value;
        }
        Ok(())
    }

    /// The stores of the test to a line, in the order of the thread that makes them.
    fn stores_to(&self, line: LineNumber) -> Vec<(usize, u32)> {
        let mut stores = Vec::new();
        for thread in &self.test.threads {
            let mut loaded = None;
            for statement in thread {
                match *statement {
                    Statement::Load(location) => loaded = Some(location),
                    Statement::Exchange(location, value) | Statement::Store(location, Operand::Constant(value))
                        if self.test.lines[location] == line =>
                    {
                        stores.push((location, value));
                    }
                    Statement::Store(location, Operand::Register) if self.test.lines[location] == line => {
                        stores.push((location, loaded.map_or(0, |loaded| self.loaded(loaded))));
                    }
                    _ => {}
                }
            }
        }
        stores
    }

    /// The value that the test's load of a location got.
    fn loaded(&self, location: usize) -> u32 {
        let line = self.test.lines[location];
        let Some(version) = self.observed[line] else { return 0 };
        let mut state = vec![0; self.test.locations.len()];
        self.fill(line, version.0, &mut state).expect("a load observes what was stored");
        state[location]
    }

    /// Whether every guard observed a value that lets its thread go on.
    fn are_guards_taken(&self) -> bool {
        let guards = self.test.threads.iter().flatten().filter_map(|statement| match statement {
            Statement::If(location) => Some(*location),
            _ => None,
        });
        guards.into_iter().all(|location| self.loaded(location) != 0)
    }
}
