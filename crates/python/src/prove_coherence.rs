//! The coherence of CXL devices explored, as `prove.rs` has the persist buffer explored.

use fencepost_checker::coherence::bounds::Bounds;
use fencepost_checker::coherence::mutants::{self, Mutant};
use fencepost_checker::coherence::{litmus, predicates, prove};
use fencepost_checker::exploration::Means;
use fencepost_sim::device::type2::litmus::ALL as LITMUS_TESTS;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::faults::{caught, input};
use crate::prove::observed;

/// What is explored within `bounds` (JSON), as JSON; the rest as for `prove_bounds`.
#[pyfunction]
pub fn coherence_bounds(
    py: Python<'_>,
    bounds: &str,
    memory_max: u64,
    threads: usize,
    observe: Py<PyAny>,
) -> PyResult<String> {
    let bounds: Bounds = serde_json::from_str(bounds).map_err(input)?;
    let model = prove::sound(bounds).map_err(input)?;
    observed(py, "coherence", &observe, |tell| prove::prove(&model, Means { memory_max, threads }, tell))
}

/// The attempt to kill the mutant `name`, as JSON.
#[pyfunction]
pub fn coherence_mutant(py: Python<'_>, name: &str, observe: Py<PyAny>) -> PyResult<String> {
    let model = Mutant::named(name).map_err(input)?.model();
    let means = Means { memory_max: u64::MAX, threads: 0 };
    observed(py, name, &observe, |tell| prove::prove(&model, means, tell))
}

/// What the litmus test `name` comes to, with its broken variants, as JSON.
#[pyfunction]
pub fn coherence_litmus(py: Python<'_>, name: &str) -> PyResult<String> {
    let test = litmus::named(name).map_err(input)?;
    caught(|| name.to_owned(), || Ok(json!(py.detach(|| litmus::explore(test))).to_string()))
}

/// All predicates, all mutants, the names of the litmus tests and the default bounds, as JSON.
#[pyfunction]
pub fn coherence_catalogue() -> String {
    let predicate = |predicate: &predicates::Predicate| json!({"name": predicate.name, "says": predicate.says});
    let mutant = |mutant: &Mutant| json!({"name": mutant.name, "does": mutant.does, "predicate": mutant.predicate});
    let all: Vec<Value> = predicates::ALL.iter().map(predicate).collect();
    let mutants: Vec<Value> = mutants::ALL.iter().map(mutant).collect();
    let tests: Vec<&str> = LITMUS_TESTS.iter().map(|test| test.name).collect();
    json!({"predicates": all, "mutants": mutants, "litmus": tests, "bounds": Bounds::default()}).to_string()
}
