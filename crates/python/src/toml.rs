//! TOML documents that only Python knows, with the line of each key for its messages.

use fencepost_sim::config::located_toml;
use pyo3::prelude::*;

use crate::faults::input;

/// The tree of a TOML text as JSON, in which each node has its line; a syntax error is an `InputError` that begins with
/// `LINE: `.
#[pyfunction]
pub fn toml_read(text: &str) -> PyResult<String> {
    let tree = located_toml(text).map_err(|errors| {
        let (line, message) = errors.into_iter().next().unwrap_or_default();
        input(format!("{line}: {message}"))
    })?;
    Ok(tree.to_string())
}
