//! Litmus tests of persistency, run on a thread of Python's with the interpreter's lock released.

use fencepost_checker::memory_model::{NamedMachine, NotExamined, Progress, examine, fabrics, names};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;

use crate::faults::{caught, input, panic_of};
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

/// How far the examination of a test is, for whoever shows it.
#[pyclass(frozen, module = "fencepost._core")]
pub struct LitmusProgress(Progress);

#[pymethods]
impl LitmusProgress {
    #[new]
    fn new() -> Self {
        Self(Progress::new())
    }

    /// (runs, runs in all); from any thread.
    fn runs(&self) -> (u64, u64) {
        self.0.runs()
    }

    /// Makes the examination end after the present run, with KeyboardInterrupt; from any thread.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// What was found about the test `name` on each of `machines` (name and JSON) with the seeds from `first` on, as JSON.
#[pyfunction]
pub fn litmus_examine(
    py: Python<'_>,
    name: &str,
    machines: Vec<(String, String)>,
    first: u64,
    seeds: u64,
    progress: &LitmusProgress,
) -> PyResult<String> {
    let resolved = machines.iter().map(|(name, json)| Ok((name.clone(), machine::from_json(name, json)?)));
    let machines: Vec<NamedMachine> = resolved.collect::<PyResult<_>>()?;
    let last = first.checked_add(seeds).ok_or_else(|| input(format!("there are no {seeds} seeds from {first} on")))?;
    let examine = || {
        py.detach(|| examine(name, &machines, first..last, panic_of, &progress.0)).map_err(|error| match error {
            NotExamined::Unknown(message) => input(message),
            NotExamined::Cancelled => PyKeyboardInterrupt::new_err(()),
        })
    };
    let finding = caught(|| name.to_owned(), examine)?;
    Ok(json!(finding).to_string())
}
