//! One link alone: what it sustains, and whether it loses anything.

use fencepost_kernel::link::{LinkConfig, pair};
use pyo3::prelude::*;

use crate::faults::{caught, input};

/// What a link (`[link]` of a machine file, as JSON) carries of a mix of messages (JSON) when there are always more, as
/// JSON.
#[pyfunction]
pub fn link_saturate(py: Python<'_>, link: &str, mix: &str, messages: u64) -> PyResult<String> {
    let link: LinkConfig = serde_json::from_str(link).map_err(input)?;
    let mix: pair::Mix = serde_json::from_str(mix).map_err(input)?;
    run(py, || serde_json::to_string(&pair::saturate(&link, &mix, messages)))
}

/// What becomes of random traffic in both directions of a link (`[link]` of a machine file, as JSON), as JSON.
#[pyfunction]
pub fn link_soak(py: Python<'_>, link: &str, messages: u64, seed: u64) -> PyResult<String> {
    let link: LinkConfig = serde_json::from_str(link).map_err(input)?;
    run(py, || serde_json::to_string(&pair::soak(&link, messages, seed)))
}

fn run(py: Python<'_>, work: impl FnOnce() -> serde_json::Result<String> + Send) -> PyResult<String> {
    let json = caught(|| "a link".to_owned(), || Ok(py.detach(work)))?;
    Ok(json.expect("plain numbers"))
}
