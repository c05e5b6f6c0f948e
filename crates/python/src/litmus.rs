//! Litmus tests of persistency, run on a thread of Python's with the interpreter's lock released.

use fencepost_checker::memory_model::{NamedMachine, examine, fabrics, names};
use fencepost_sim::nearest::there_is_no;
use pyo3::prelude::*;
use serde_json::json;

use crate::faults::{InternalError, caught, input, panic_of};
use crate::machine;

/// The names of all published tests, in the order of their table.
#[pyfunction]
pub fn litmus_tests() -> Vec<String> {
    names()
}

/// The machines on which litmus tests run, as JSON.
#[pyfunction]
pub fn litmus_fabrics() -> String {
    let fabrics = fabrics::FABRICS.map(|fabric| {
        json!({
            "name": fabric.name,
            "description": fabric.description,
            "machine": fabric.machine,
            "sets": fabric.sets,
        })
    });
    json!(fabrics).to_string()
}

/// What was found about the test `name` on each of `machines` (name and JSON) with the seeds from `first` on, as JSON.
#[pyfunction]
pub fn litmus_examine(
    py: Python<'_>,
    name: &str,
    machines: Vec<(String, String)>,
    first: u64,
    seeds: u64,
) -> PyResult<String> {
    if !names().iter().any(|own| own == name) {
        return Err(input(there_is_no("litmus test", name, &names())));
    }
    let resolved = machines.iter().map(|(name, json)| Ok((name.clone(), machine::from_json(name, json)?)));
    let machines: Vec<NamedMachine> = resolved.collect::<PyResult<_>>()?;
    let seeds = first..first + seeds;
    let examine = || py.detach(|| examine(name, &machines, seeds, panic_of)).map_err(InternalError::new_err);
    let finding = caught(|| name.to_owned(), examine)?;
    Ok(json!(finding).to_string())
}
