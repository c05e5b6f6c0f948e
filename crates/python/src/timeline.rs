//! Which requests a timeline is to follow, as Python says it.

use fencepost_sim::kernel::Time;
use fencepost_sim::kernel::trace::{Selection, Trace};
use pyo3::prelude::*;
use serde_json::Value;

use crate::faults::input;

/// An empty trace that will take down what `selection` asks for: JSON with `slices_max`, and one of `persist`, `region`, or `from_ps` and `until_ps`.
pub fn trace_of(selection: &str) -> PyResult<Trace> {
    let asked: Value = serde_json::from_str(selection).map_err(input)?;
    let number = |name: &str| asked[name].as_u64();
    let selection = match (number("persist"), number("from_ps"), number("until_ps")) {
        (Some(persist), ..) => Selection::Persist(persist),
        (None, None, None) => Selection::FromFirstPersist(number("region").map(|region| region as u32)),
        (None, from, until) => {
            Selection::Window(from.map_or(Time::ZERO, Time::from_ps), until.map_or(Time::NEVER, Time::from_ps))
        }
    };
    let slices_max = number("slices_max").ok_or_else(|| input("a selection has `slices_max`"))?;
    Ok(Trace::new(selection, slices_max as usize))
}
