//! One replay, run on a thread of Python's with the interpreter's lock released.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fencepost_kernel::time::Duration as SimulatedDuration;
use fencepost_record::path_of_first;
use fencepost_sim::config::Machine;
use fencepost_sim::config::topology::HostId;
use fencepost_sim::error::SimulationError;
use fencepost_sim::replay::global_flush::FlushLimits;
use fencepost_sim::replay::power::EVENTS_BETWEEN_CHECKPOINTS;
use fencepost_sim::replay::simulation::{self, HostProgram, Outcome, Program, Progress, Simulation};
use fencepost_sim::results::run_entry;
use fencepost_sim::switch::Scheme;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::explain;
use crate::faults::{InternalError, caught, input};
use crate::machine;
use crate::options::{Options, scheme_of};
use crate::record::{OpenRecord, shown};
use crate::timeline;
use crate::windows::{self, Windows};

/// One replay: a record for each host of a machine under a scheme.
#[pyclass(frozen, module = "fencepost._core")]
pub struct Job {
    machine_name: String,
    machine: Machine,
    scheme: Scheme,
    programs: Vec<HostProgram>,
    options: simulation::Options,
    asks_for_pm: bool,
    warnings: Vec<String>,
    /// The estimate of a whole program that was asked for.
    windows: Option<Windows>,
    /// How long it took to decode the code of all hosts' records.
    decode_time: Duration,
    progress: Progress,
    positions: OnceLock<Vec<Vec<u64>>>,
}

#[pymethods]
impl Job {
    /// `stop_at` ends each thread of each host after so many instructions; empty for no such end.
    #[new]
    fn new(
        py: Python<'_>,
        machine_name: &str,
        machine: &str,
        records: Vec<PyRef<'_, OpenRecord>>,
        scheme: &str,
        options: &str,
        stop_at: Vec<Vec<u64>>,
    ) -> PyResult<Self> {
        let machine = machine::from_json(machine_name, machine)?;
        let (scheme, options) = (scheme_of(scheme)?, Options::read(options)?);
        check_trees(&records)?;
        let decode_time = records.iter().map(|record| record.decode_time()).sum();
        let records: Vec<Program> = records.iter().map(|record| record.program().clone()).collect();
        let windows = records.first().filter(|_| records.len() == 1);
        let windows = windows.and_then(|program| Windows::of(program.record()));
        let is_estimated = windows.is_some() && options.sample.is_some();
        let prepare = || {
            options
                .threads
                .check(usize::from(machine.core.count))
                .map_err(|error| input(format!("{machine_name}: {error}")))?;
            let (programs, mut warnings) = hosted(&records, &options, machine_name, &machine, &stop_at)?;
            if windows.is_some() && !is_estimated {
                warnings.push(windows::ALONE.into());
            }
            let asks_for_pm = (0..programs.len() as u32).any(|host| options.asks_for_pm(&machine, HostId(host)));
            let options = simulation::Options {
                persist: options.persist,
                pm_writes_limit: options.limit_pm_writes,
                instructions_limit: options.limit_instructions,
                threads: options.threads.clone(),
                seed: options.seed,
                sample: options.sample.filter(|_| windows.is_none()),
                transport: options.transport,
            };
            // Only to know now whether it can be run: a simulation takes memory, and many jobs may wait.
            py.detach(|| Simulation::new(&machine, scheme, &programs, options.clone()))
                .map_err(|error| input(format!("{machine_name}: {error}")))?;
            Ok((programs, options, asks_for_pm, warnings))
        };
        let (programs, options, asks_for_pm, warnings) = caught(|| format!("{machine_name} {scheme}"), prepare)?;
        Ok(Self {
            machine_name: machine_name.to_owned(),
            machine,
            scheme,
            programs,
            options,
            asks_for_pm,
            warnings,
            windows: windows.filter(|_| is_estimated),
            decode_time,
            progress: Progress::default(),
            positions: OnceLock::new(),
        })
    }

    /// Replays; gives one entry of `runs` as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        caught(|| self.name(), || py.detach(|| self.replay()))
    }

    /// Replays, and counts which lines of the program persist and wait; gives the same as `run` with two members more,
    /// `persist_sites` and `accesses`.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        caught(|| self.name(), || py.detach(|| self.replay_by_line()))
    }

    /// Replays and follows single requests: those that `selection` (JSON) names. Gives a Perfetto trace, and the same
    /// requests as JSON.
    fn timeline<'py>(&self, py: Python<'py>, selection: &str) -> PyResult<(Bound<'py, PyBytes>, String)> {
        let trace = timeline::trace_of(selection)?;
        let follow = || {
            py.detach(|| {
                let simulation = Simulation::new(&self.machine, self.scheme, &self.programs, self.options.clone());
                let timeline = simulation.and_then(|simulation| simulation.run_traced(trace, &self.progress));
                let timeline = timeline.map_err(|error| self.explain_error(&error))?;
                Ok((timeline.to_perfetto(), timeline.to_json().to_string()))
            })
        };
        let (perfetto, json) = caught(|| self.name(), follow)?;
        Ok((PyBytes::new(py, &perfetto), json))
    }

    /// Replays, and finds the instant at which the most would have to be saved if power failed; saves it there within
    /// time limits in ns (none: as long as it takes). Gives the same as `run`, in which `power` is filled.
    fn power(&self, py: Python<'_>, phase_1_ns: Option<f64>, phase_2_ns: Option<f64>) -> PyResult<String> {
        let ample = FlushLimits::AMPLE;
        let limits = FlushLimits {
            phase_1: phase_1_ns.map_or(ample.phase_1, SimulatedDuration::from_ns),
            phase_2: phase_2_ns.map_or(ample.phase_2, SimulatedDuration::from_ns),
        };
        caught(|| self.name(), || py.detach(|| self.replay_with_power_cut(limits)))
    }

    /// (simulated picoseconds, instructions, instructions in all); from any thread.
    fn progress(&self) -> (u64, u64, u64) {
        let of_host = |host: &HostProgram| match &host.thread_limits[..] {
            [] => host.program.record().instructions(),
            limits => limits.iter().sum(),
        };
        let stopped = self.programs.iter().map(of_host).sum();
        let in_all = self.options.instructions_limit.map_or(stopped, |limit| limit.min(stopped));
        (self.progress.simulated_ps(), self.progress.instructions(), in_all)
    }

    /// Instructions of each thread of each host at the end; empty before.
    fn positions(&self) -> Vec<Vec<u64>> {
        self.positions.get().cloned().unwrap_or_default()
    }

    /// Makes `run` end soon, with KeyboardInterrupt; from any thread.
    fn cancel(&self) {
        self.progress.cancel();
    }
}

impl Job {
    /// The machine and the scheme, for messages.
    fn name(&self) -> String {
        format!("{} {}", self.machine_name, self.scheme)
    }

    fn replay(&self) -> PyResult<String> {
        let start = Instant::now();
        let outcome = Simulation::new(&self.machine, self.scheme, &self.programs, self.options.clone())
            .and_then(|simulation| simulation.run(&self.progress))
            .map_err(|error| self.explain_error(&error))?;
        let mut run = self.entry(outcome, start);
        if let Some(windows) = &self.windows {
            windows.estimate(&mut run)?;
        }
        Ok(run.to_string())
    }

    fn replay_by_line(&self) -> PyResult<String> {
        let start = Instant::now();
        let mut simulation = Simulation::new(&self.machine, self.scheme, &self.programs, self.options.clone())
            .map_err(|error| self.explain_error(&error))?;
        let has_source: Result<Vec<_>, _> =
            self.programs.iter().map(|host| explain::has_source(&host.program)).collect();
        simulation.log_sites(has_source.map_err(input)?);
        let outcome = simulation.run_to_end(&self.progress).map_err(|error| self.explain_error(&error))?;
        let mut run = self.entry(outcome, start);
        let (sites, mut warnings) = explain::persist_sites(&simulation, &self.programs).map_err(input)?;
        let (accesses, others) = explain::access_sites(&simulation, &self.programs).map_err(input)?;
        warnings.extend(others);
        run["warnings"].as_array_mut().expect("warnings are a list").extend(warnings.into_iter().map(Value::from));
        run["persist_sites"] = sites;
        run["accesses"] = accesses;
        Ok(run.to_string())
    }

    fn replay_with_power_cut(&self, limits: FlushLimits) -> PyResult<String> {
        let start = Instant::now();
        let (outcome, report) = Simulation::new(&self.machine, self.scheme, &self.programs, self.options.clone())
            .and_then(|simulation| {
                simulation.run_to_worst_power_cut(limits, EVENTS_BETWEEN_CHECKPOINTS, &self.progress)
            })
            .map_err(|error| self.explain_error(&error))?;
        let mut run = self.entry(outcome, start);
        let errors: Vec<String> = report.flush.errors.iter().map(ToString::to_string).collect();
        run["power"] = json!({"report": report, "errors": errors});
        Ok(run.to_string())
    }

    /// The entry of `runs` for a replay that began at `start`.
    fn entry(&self, mut outcome: Outcome, start: Instant) -> Value {
        outcome.wants_persists |= self.asks_for_pm;
        outcome.unreliable_because.extend(self.programs.iter().enumerate().flat_map(|(host, program)| {
            let place = place_of(host, self.programs.len());
            program.program.record().unreliable_because().into_iter().map(move |reason| format!("{place}{reason}"))
        }));
        let seconds = (start.elapsed() + self.decode_time).as_secs_f64();
        let mut run = run_entry(&outcome, &self.machine_name, self.scheme, seconds);
        let said = run["warnings"].as_array_mut().expect("warnings are a list");
        said.splice(0..0, self.warnings.iter().map(|warning| json!(warning)));
        let _ = self.positions.set(outcome.positions);
        run
    }

    fn explain_error(&self, error: &SimulationError) -> PyErr {
        match error {
            SimulationError::Cancelled => PyKeyboardInterrupt::new_err(()),
            SimulationError::Deadlock { .. } | SimulationError::Livelock { .. } => {
                InternalError::new_err(format!("{}: {error}", self.name()))
            }
            SimulationError::Impossible(_) | SimulationError::Record(_) => input(error),
        }
    }
}

/// Refuses processes of one tree on several hosts: what one supplied to another would be lost.
fn check_trees(records: &[PyRef<'_, OpenRecord>]) -> PyResult<()> {
    let number = |record: &OpenRecord| record.program().record().info().process.unwrap_or_default();
    let mut firsts: BTreeMap<PathBuf, (usize, u64)> = BTreeMap::new();
    for (host, record) in records.iter().enumerate() {
        let number = number(record);
        let Some(first) = path_of_first(record.path(), number) else { continue };
        let (other, of_other) = *firsts.entry(first).or_insert((host, number));
        if of_other != number {
            return Err(input(format!(
                "{}: it is of a process of the same tree as the record of host {other}, and several hosts keep nothing \
                 of what processes supplied to each other; --children replays all of the tree on one host",
                shown(record.path())
            )));
        }
    }
    Ok(())
}

/// What stands before what is said of a host, if there are several.
fn place_of(host: usize, hosts: usize) -> String {
    if hosts == 1 { String::new() } else { format!("host {host}: ") }
}

/// What each host replays, and what a reader has to know about it.
fn hosted(
    records: &[Program],
    options: &Options,
    machine_name: &str,
    machine: &Machine,
    stop_at: &[Vec<u64>],
) -> PyResult<(Vec<HostProgram>, Vec<String>)> {
    let (mut programs, mut warnings) = (Vec::new(), Vec::new());
    for (host, program) in records.iter().enumerate() {
        let (placement, mut said) = options.placement(program.record(), machine_name, machine, HostId(host as u32))?;
        said.extend(program.record().warnings());
        let place = place_of(host, records.len());
        warnings.extend(said.into_iter().map(|warning| format!("{place}{warning}")));
        let thread_limits = stop_at.get(host).cloned().unwrap_or_default();
        programs.push(HostProgram { program: program.clone(), placement, thread_limits });
    }
    Ok((programs, warnings))
}
