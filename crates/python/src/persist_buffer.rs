//! What a persist buffer costs, for Python.

use fencepost_sim::switch::persist_buffer::Cost;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::faults::input;
use crate::options::scheme_of;

/// The hardware cost (JSON) of a persist buffer of `entries` entries under `scheme`: bits, comparators, bytes to drain;
/// `null` without a buffer.
#[pyfunction]
pub fn persist_buffer_cost(scheme: &str, entries: u16) -> PyResult<String> {
    if !(1..=256).contains(&entries) {
        return Err(input(format!("entries: {entries} is not 1 to 256")));
    }
    let cost = Cost::of(scheme_of(scheme)?, entries).map_or(Value::Null, |cost| json!(cost));
    Ok(cost.to_string())
}
