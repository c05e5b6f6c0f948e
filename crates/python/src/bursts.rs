//! Bursts of coherent requests on a machine, run on a thread of Python's with the interpreter's lock released.

use fencepost_sim::bursts::Bursts;
use fencepost_sim::error::SimulationError;
use fencepost_sim::pcie::Transfers;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::faults::{InternalError, caught, input};
use crate::machine;

/// What came of `transfers` (JSON) with the PCIe device of `machine`, as JSON.
#[pyfunction]
pub fn pcie_measure(machine_name: &str, machine: &str, transfers: &str) -> PyResult<String> {
    let machine = machine::from_json(machine_name, machine)?;
    let transfers: Transfers = serde_json::from_str(transfers).map_err(input)?;
    let measured = transfers.run(&machine).map_err(|error| input(format!("{machine_name}: {error}")))?;
    Ok(measured.to_string())
}

/// Follows the requests of one burst of `bursts` (JSON) on `machine`: a Perfetto trace, and the same as JSON.
#[pyfunction]
pub fn bursts_follow<'py>(
    py: Python<'py>,
    machine_name: &str,
    machine: &str,
    bursts: &str,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let machine = machine::from_json(machine_name, machine)?;
    let bursts: Bursts = serde_json::from_str(bursts).map_err(input)?;
    let follow = || py.detach(|| bursts.follow(&machine).map(|found| (found.to_perfetto(), found.to_json())));
    let explain = |error| explained(machine_name, error);
    let (perfetto, json) = caught(|| machine_name.to_owned(), || follow().map_err(explain))?;
    Ok((PyBytes::new(py, &perfetto), json.to_string()))
}

/// What came of `bursts` (JSON) on `machine`, as JSON.
#[pyfunction]
pub fn bursts_measure(py: Python<'_>, machine_name: &str, machine: &str, bursts: &str) -> PyResult<String> {
    let machine = machine::from_json(machine_name, machine)?;
    let bursts: Bursts = serde_json::from_str(bursts).map_err(input)?;
    let explain = |error| explained(machine_name, error);
    let run = || py.detach(|| bursts.run(&machine));
    let measured = caught(|| machine_name.to_owned(), || run().map_err(explain))?;
    Ok(measured.to_json().to_string())
}

fn explained(machine_name: &str, error: SimulationError) -> PyErr {
    match error {
        SimulationError::Deadlock { .. } | SimulationError::Livelock { .. } => {
            InternalError::new_err(format!("{machine_name}: {error}"))
        }
        other => input(format!("{machine_name}: {other}")),
    }
}
