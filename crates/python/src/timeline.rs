//! Which requests a timeline is to follow, as Python says it.

use fencepost_kernel::time::Time;
use fencepost_kernel::trace::{Selection, Trace};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::faults::input;

/// What Python asks for: `slices_max`, and one of `persist`, `region`, or `from_ps` and `until_ps`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    slices_max: u64,
    persist: Option<u64>,
    region: Option<u32>,
    from_ps: Option<u64>,
    until_ps: Option<u64>,
}

/// An empty trace that will take down what `selection` (JSON) asks for.
pub fn trace_of(selection: &str) -> PyResult<Trace> {
    let asked: Asked =
        serde_json::from_str(selection).map_err(|error| input(format!("what is to be followed: {error}")))?;
    let selection = match (asked.persist, asked.from_ps, asked.until_ps) {
        (Some(persist), ..) => Selection::Persist(persist),
        (None, None, None) => Selection::FromFirstPersist(asked.region),
        (None, from, until) => {
            Selection::Window(from.map_or(Time::ZERO, Time::from_ps), until.map_or(Time::NEVER, Time::from_ps))
        }
    };
    Ok(Trace::new(selection, asked.slices_max as usize))
}
