//! What a person meant who mistyped a name, for names that Python alone knows.

use fencepost_sim::nearest;
use pyo3::prelude::*;

/// The valid name most like `wanted`, if any is like it.
#[pyfunction(name = "nearest")]
pub fn nearest_name(wanted: &str, valid: Vec<String>) -> Option<String> {
    nearest::nearest(wanted, valid.iter().map(String::as_str)).map(str::to_owned)
}

/// What is said of a `kind` of which none is called `wanted`: the nearest name first, then all that there are.
#[pyfunction]
pub fn there_is_no(kind: &str, wanted: &str, valid: Vec<String>) -> String {
    nearest::there_is_no(kind, wanted, &valid)
}
