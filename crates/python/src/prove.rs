//! The protocol explored on a thread of Python's, with the interpreter's lock released.

use std::ops::ControlFlow;
use std::time::Duration;

use fencepost_checker::exploration::{Means, Progress, every};
use fencepost_checker::protocol::bounds::Bounds;
use fencepost_checker::protocol::mutants::{self, Explored, Mutant};
use fencepost_checker::protocol::{predicates, prove};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::faults::{caught, input};

/// How often the callback is told.
const INTERVAL: Duration = Duration::from_secs(2);

/// What is explored within `bounds` (JSON), as JSON, with `memory_max` bytes for the set of states and so many threads
/// beside the caller's. `observe` is called now and then with how far it is, as JSON, and with signals handled.
#[pyfunction]
pub fn prove_bounds(
    py: Python<'_>,
    bounds: &str,
    memory_max: u64,
    threads: usize,
    observe: Py<PyAny>,
) -> PyResult<String> {
    let bounds: Bounds = serde_json::from_str(bounds).map_err(input)?;
    let model = prove::sound(bounds).map_err(input)?;
    run(py, &format!("{} {}", bounds.scheme, bounds.topology.name()), &model, Means { memory_max, threads }, &observe)
}

/// The attempt to kill the mutant `name`, as JSON.
#[pyfunction]
pub fn prove_mutant(py: Python<'_>, name: &str, observe: Py<PyAny>) -> PyResult<String> {
    let mutant = Mutant::named(name).map_err(input)?;
    run(py, name, &mutant.model(), Means { memory_max: u64::MAX, threads: 0 }, &observe)
}

/// All predicates, all mutants and the default bounds, as JSON.
#[pyfunction]
pub fn prove_catalogue() -> String {
    let predicate = |predicate: &predicates::Predicate| json!({"name": predicate.name, "invariants": predicate.invariants, "says": predicate.says});
    let mutant = |mutant: &Mutant| json!({"name": mutant.name, "does": mutant.does, "predicate": mutant.predicate});
    let all: Vec<Value> = predicates::all().map(predicate).collect();
    let mutants: Vec<Value> = mutants::ALL.iter().map(mutant).collect();
    json!({"predicates": all, "mutants": mutants, "bounds": Bounds::default()}).to_string()
}

fn run(py: Python<'_>, what: &str, model: &Explored, means: Means, observe: &Py<PyAny>) -> PyResult<String> {
    observed(py, what, observe, |tell| prove::prove(model, means, tell))
}

/// What `explore` reports, as JSON. It is let run without the interpreter's lock, and told through `observe` how far it
/// is, which may raise.
pub fn observed<R: Serialize + Send>(
    py: Python<'_>,
    what: &str,
    observe: &Py<PyAny>,
    explore: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> R + Send,
) -> PyResult<String> {
    let mut failed = None;
    let explore = || {
        let tell = |progress: &Progress| {
            let text = serde_json::to_string(progress).expect("numbers are JSON");
            match Python::attach(|py| py.check_signals().and_then(|()| observe.call1(py, (text,)))) {
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let report = py.detach(|| explore(&mut every(INTERVAL, tell)));
        Ok(serde_json::to_string(&report).expect("a report is JSON"))
    };
    let report = caught(|| what.to_owned(), explore)?;
    failed.map_or(Ok(report), Err)
}
