//! Estimates that need the intervals of two runs.

use fencepost_sim::replay::sampling::estimate;
use fencepost_sim::replay::sampling::regression::Total;
use pyo3::prelude::*;

/// The ratio of two totals that were estimated from the same intervals, and half the width of its 95 % confidence
/// interval. Each total has what every interval contributes to its error, and how many coefficients it took.
#[pyfunction]
pub fn matched_ratio(above: (f64, Vec<f64>, usize), below: (f64, Vec<f64>, usize)) -> Option<(f64, Option<f64>)> {
    let total = |(value, errors, coefficients)| Total { value, errors, coefficients };
    let estimate = estimate::matched_ratio(&total(above), &total(below))?;
    Some((estimate.value, estimate.half_width))
}
