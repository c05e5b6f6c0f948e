//! What was found about a litmus test: what its model allows, and what the simulator left on which machine under which
//! scheme.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fencepost_sim::config::Machine;
use fencepost_sim::nearest::there_is_no;
use fencepost_sim::switch::Scheme;
use serde::Serialize;

use super::cxl0::FabricTest;
use super::litmus_test::{Isa, LitmusTest, NvmState};
use super::run::run;
use super::{model, published};

/// A machine, and what it is called.
pub type NamedMachine = (String, Machine);

/// Does the work of a run that has this name; the text of a panic in it, if there was one. Whoever has the process's
/// panics knows more of them.
pub type Guard = fn(run: &str, work: &mut dyn FnMut()) -> Option<String>;

/// How far the runs of a test are; from any thread.
#[derive(Debug)]
pub struct Progress {
    runs: AtomicU64,
    runs_in_all: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Nothing has begun.
    pub const fn new() -> Self {
        Progress { runs: AtomicU64::new(0), runs_in_all: AtomicU64::new(0), is_cancelled: AtomicBool::new(false) }
    }

    /// Runs so far, and in all; zeros before the first begins.
    pub fn runs(&self) -> (u64, u64) {
        (self.runs.load(Ordering::Relaxed), self.runs_in_all.load(Ordering::Relaxed))
    }

    /// Makes the examination end after the present run.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// Why a test was not examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotExamined {
    /// There is none of this name; the text names those that there are.
    Unknown(String),
    /// [`Progress::cancel`] has ended it.
    Cancelled,
}

/// How a state that is not allowed can be seen again.
#[derive(Clone, Debug, Serialize)]
pub struct Offence {
    /// The state.
    pub state: String,
    /// The variation.
    pub seed: u64,
    /// The simulated time of the power cut; none if it was not noted.
    pub time_ps: Option<u64>,
}

/// What the runs on one machine under one scheme left.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The machine.
    pub machine: String,
    /// The scheme.
    pub scheme: String,
    /// Runs in which every guard observed what it takes.
    pub judged: u64,
    /// The others.
    pub not_judged: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Power cuts among them that a Global Persistent Flush had reported as dirty shutdowns: they say nothing.
    pub dirty_shutdowns: u64,
    /// The states that were left.
    pub states: Vec<String>,
    /// Whether one of them is what the test asks for.
    pub is_reached: bool,
    /// The states that are forbidden, or that the model does not have; and runs in which a flush that was cut short was
    /// not reported.
    pub offences: Vec<Offence>,
    /// The run that failed by a fault of the simulator, and how; the seeds behind it were not run then.
    pub error: Option<String>,
}

/// What was found about a test.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The test's name.
    pub id: String,
    /// `x86-64`, `arm64` or `fabric`.
    pub isa: String,
    /// What it does.
    pub text: String,
    /// What is asked, or what is read.
    pub query: String,
    /// What was published: `allowed`, `forbidden`, or a set of values.
    pub verdict: String,
    /// The states that the model allows.
    pub states: Vec<String>,
    /// How many there are, as published.
    pub published_states: Option<usize>,
    /// Whether the model agrees with what was published.
    pub model_agrees: bool,
    /// Why no machine can run it, if none can.
    pub not_run: Option<String>,
    /// What was left where.
    pub cells: Vec<Cell>,
    /// States that the model allows and no run has left.
    pub never_left: Vec<String>,
    /// Whether the model agrees, each machine was judged under each scheme, and none left what it must not.
    pub holds: bool,
}

/// The names of all published tests, in the order of their table.
pub fn names() -> Vec<String> {
    let processor = published::processor_tests().into_iter().map(|test| test.id);
    processor.chain(published::fabric_tests().into_iter().map(|test| test.id)).collect()
}

/// Runs the test `name` on each machine under each scheme that it can run, timed as each of `seeds` says. A run that
/// panics or does not come to its end is the error of its cell, and leaves the others whole.
///
/// # Errors
/// If there is no such test, or `progress` was cancelled.
pub fn examine(
    name: &str,
    machines: &[NamedMachine],
    seeds: Range<u64>,
    guard: Guard,
    progress: &Progress,
) -> Result<Finding, NotExamined> {
    let runs = Runs { machines, seeds, guard, progress };
    if let Some(test) = published::processor_tests().into_iter().find(|test| test.id == name) {
        return examine_processor(&test, &runs);
    }
    let test = published::fabric_tests().into_iter().find(|test| test.id == name);
    let test = test.ok_or_else(|| NotExamined::Unknown(there_is_no("litmus test", name, &names())))?;
    examine_fabric(&test, &runs)
}

/// The runs of a test.
struct Runs<'a> {
    machines: &'a [NamedMachine],
    seeds: Range<u64>,
    guard: Guard,
    progress: &'a Progress,
}

impl Runs<'_> {
    /// Every machine with every scheme that it can run.
    fn pairs(&self) -> Vec<(&str, &Machine, Scheme)> {
        let schemes = self.machines.iter().flat_map(|named| Scheme::ALL.map(|scheme| (named, scheme)));
        let possible = schemes.filter(|((_, machine), scheme)| machine.topology().check_scheme(*scheme).is_ok());
        let pairs: Vec<_> = possible.map(|((name, machine), scheme)| (name.as_str(), machine, scheme)).collect();
        let runs_in_all = pairs.len() as u64 * (self.seeds.end - self.seeds.start);
        self.progress.runs_in_all.store(runs_in_all, Ordering::Relaxed);
        pairs
    }
}

/// What the runs under one scheme on one machine have left so far.
struct Tally {
    cell: Cell,
    /// Each state, with the first seed and time that left it.
    left: BTreeMap<NvmState, (u64, Option<u64>)>,
}

impl Tally {
    fn new(machine: &str, scheme: Scheme) -> Tally {
        let cell = Cell {
            machine: machine.to_owned(),
            scheme: scheme.to_string(),
            judged: 0,
            not_judged: 0,
            cuts: 0,
            dirty_shutdowns: 0,
            states: Vec::new(),
            is_reached: false,
            offences: Vec::new(),
            error: None,
        };
        Tally { cell, left: BTreeMap::new() }
    }

    /// Makes the runs of `id` with all seeds, until one fails.
    fn run<T>(
        &mut self,
        id: &str,
        runs: &Runs<'_>,
        run: impl Fn(u64) -> Result<T, String>,
        mut count: impl FnMut(&mut Tally, u64, T),
    ) -> Result<(), NotExamined> {
        for seed in runs.seeds.clone() {
            if runs.progress.is_cancelled.load(Ordering::Relaxed) {
                return Err(NotExamined::Cancelled);
            }
            let name = format!("{id} on {} under {}, seed {seed}", self.cell.machine, self.cell.scheme);
            let mut outcome = None;
            let panic = (runs.guard)(&name, &mut || outcome = Some(run(seed)));
            runs.progress.runs.fetch_add(1, Ordering::Relaxed);
            match outcome.unwrap_or_else(|| Err(panic.expect("work that does not end panics"))) {
                Ok(run) => count(self, seed, run),
                Err(error) => {
                    self.cell.error = Some(format!("{name}: {error}"));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Says of each state how it is written, whether it is asked for, and whether it may be.
    fn finish(mut self, describe: impl Fn(&NvmState) -> (String, bool, bool)) -> (Cell, BTreeSet<NvmState>) {
        for (state, (seed, time_ps)) in &self.left {
            let (text, is_asked_for, may_be) = describe(state);
            self.cell.is_reached |= is_asked_for;
            if !may_be {
                self.cell.offences.push(Offence { state: text.clone(), seed: *seed, time_ps: *time_ps });
            }
            self.cell.states.push(text);
        }
        (self.cell, self.left.into_keys().collect())
    }
}

fn examine_processor(test: &LitmusTest, runs: &Runs<'_>) -> Result<Finding, NotExamined> {
    let allowed = model::states(test);
    let mut left = BTreeSet::new();
    let mut cells = Vec::new();
    for (name, machine, scheme) in runs.pairs() {
        let mut tally = Tally::new(name, scheme);
        let run = |seed| run(test, machine, scheme, seed);
        tally.run(&test.id, runs, run, |tally, seed, run| {
            *(if run.is_judged { &mut tally.cell.judged } else { &mut tally.cell.not_judged }) += 1;
            tally.cell.cuts += run.cuts;
            for (state, time) in run.states {
                tally.left.entry(state).or_insert((seed, Some(time.as_ps())));
            }
        })?;
        let (cell, states) = tally.finish(|state| {
            let is_asked_for = test.query.holds(state);
            (test.display(state), is_asked_for, allowed.contains(state) && (test.is_allowed || !is_asked_for))
        });
        left.extend(states);
        cells.push(cell);
    }
    let model_agrees = allowed.iter().any(|state| test.query.holds(state)) == test.is_allowed
        && test.published_states.is_none_or(|published| published == allowed.len());
    Ok(Finding {
        id: test.id.clone(),
        isa: if test.isa == Isa::X86 { "x86-64" } else { "arm64" }.into(),
        text: test.text.clone(),
        query: test.question.clone(),
        verdict: if test.is_allowed { "allowed" } else { "forbidden" }.into(),
        states: allowed.iter().map(|state| test.display(state)).collect(),
        published_states: test.published_states,
        model_agrees,
        not_run: None,
        never_left: allowed.difference(&left).map(|state| test.display(state)).collect(),
        holds: model_agrees && do_hold(&cells),
        cells,
    })
}

fn examine_fabric(test: &FabricTest, runs: &Runs<'_>) -> Result<Finding, NotExamined> {
    let allowed = test.readable();
    let mut left = BTreeSet::new();
    let mut cells = Vec::new();
    let pairs = if test.can_be_run() { runs.pairs() } else { Vec::new() };
    for (name, machine, scheme) in pairs {
        let mut tally = Tally::new(name, scheme);
        let run = |seed| test.run(machine, scheme, seed);
        tally.run(&test.id, runs, run, |tally, seed, run| {
            tally.cell.judged += 1;
            tally.cell.cuts += run.cuts;
            tally.cell.dirty_shutdowns += run.dirty_shutdowns;
            if run.unreported > 0 {
                let state = "a global persistent flush cut short and not reported".to_owned();
                tally.cell.offences.push(Offence { state, seed, time_ps: None });
            }
            for state in run.read {
                tally.left.entry(state).or_insert((seed, None));
            }
        })?;
        let (cell, states) =
            tally.finish(|state| (test.display(state), allowed.contains(state), allowed.contains(state)));
        left.extend(states);
        cells.push(cell);
    }
    let never_left = if cells.is_empty() { BTreeSet::new() } else { &allowed - &left };
    let model_agrees = allowed == test.published;
    Ok(Finding {
        id: test.id.clone(),
        isa: "fabric".into(),
        text: test.text.clone(),
        query: format!("read {}", test.locations.join(" ")),
        verdict: test.published.iter().map(|state| test.display(state)).collect::<Vec<_>>().join(" or "),
        states: allowed.iter().map(|state| test.display(state)).collect(),
        published_states: Some(test.published.len()),
        model_agrees,
        not_run: (!test.can_be_run()).then(|| "a host has no instruction for it".into()),
        never_left: never_left.iter().map(|state| test.display(state)).collect(),
        holds: model_agrees && do_hold(&cells),
        cells,
    })
}

fn do_hold(cells: &[Cell]) -> bool {
    cells.iter().all(|cell| cell.judged > 0 && cell.offences.is_empty() && cell.error.is_none())
}
