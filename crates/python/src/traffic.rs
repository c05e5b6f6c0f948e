//! Synthetic traffic on a machine, run on a thread of Python's with the interpreter's lock released.

use fencepost_sim::config::topology::HostId;
use fencepost_sim::error::SimulationError;
use fencepost_sim::flow;
use fencepost_sim::traffic::footprint;
use fencepost_sim::traffic_experiment::Experiment;
use fencepost_sim::transport::Transport;
use pyo3::prelude::*;

use crate::faults::{InternalError, caught, input};
use crate::machine;
use crate::options::scheme_of;

/// What came of `experiment` (JSON) on `machine` under `scheme`, as JSON.
#[pyfunction]
pub fn traffic_measure(
    py: Python<'_>,
    machine_name: &str,
    machine: &str,
    scheme: &str,
    experiment: &str,
) -> PyResult<String> {
    let machine = machine::from_json(machine_name, machine)?;
    let scheme = scheme_of(scheme)?;
    let experiment: Experiment = serde_json::from_str(experiment).map_err(input)?;
    let run = || py.detach(|| flow::result(&experiment, &machine, scheme));
    let explain = |error: SimulationError| match error {
        SimulationError::Deadlock { .. } | SimulationError::Livelock { .. } => {
            InternalError::new_err(format!("{machine_name} {scheme}: {error}"))
        }
        other => input(format!("{machine_name}: {other}")),
    };
    let found = caught(|| format!("{machine_name} {scheme}"), || run().map_err(explain))?;
    Ok(found.to_string())
}

/// Whether the shares of a transport settle only after some of its intervals, since hosts take part in it.
#[pyfunction]
pub fn transport_has_to_settle(transport: &str) -> PyResult<bool> {
    transport.parse().map(Transport::has_agent).map_err(|error: String| input(error))
}

/// The bytes that all streams of host number `host` have together in that memory.
#[pyfunction]
pub fn traffic_footprint_max(machine_name: &str, machine: &str, host: u32, memory: &str) -> PyResult<u64> {
    let machine = machine::from_json(machine_name, machine)?;
    if host as usize >= machine.topology().hosts.len() {
        return Err(input(format!("{machine_name} has no host number {host}")));
    }
    footprint::bytes_of(&machine, HostId(host), memory).map_err(|error| input(format!("{machine_name}: {error}")))
}
