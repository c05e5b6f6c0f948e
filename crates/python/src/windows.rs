//! The time of a program of which windows were recorded (`record --every`), estimated from what these took.

use fencepost_record::Record;
use fencepost_sim::replay::sampling::estimate::{Pair, ratio};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::faults::input;

/// Of a run that estimates nothing.
pub const ALONE: &str =
    "windows of the program were recorded, and times are of these alone: --sample estimates the whole";

/// Windows of a program, one in `every` instructions.
#[derive(Clone, Debug)]
pub struct Windows {
    record: String,
    every: u64,
    /// Where the first one begins and ends, in instructions of the program.
    first: (u64, u64),
    warm: u64,
    program_instructions: u64,
}

impl Windows {
    /// Those of a record, if that has some.
    pub fn of(record: &Record) -> Option<Self> {
        let options = &record.info().options;
        let (every, roi) = (options.every?, options.roi.as_deref()?);
        let (from, to) = roi.split_once(':')?;
        let first = (from.parse().ok()?, to.parse().ok()?);
        let program_instructions = record.program_instructions()?;
        let warm = options.warm.unwrap_or_default();
        Some(Self { record: record.source().name().to_owned(), every, first, warm, program_instructions })
    }

    /// Makes the entry of a run of the windows that of an estimate of the whole program.
    ///
    /// # Errors
    /// If there are not two windows.
    pub fn estimate(&self, run: &mut Value) -> PyResult<()> {
        let regions = run["regions"].as_array().into_iter().flatten();
        let window = |region: &Value| Some((region["instructions"].as_u64()?, region["simulated_ns"].as_f64()?));
        let windows: Vec<(u64, f64)> =
            regions.filter_map(window).filter(|(instructions, _)| *instructions > 0).collect();
        let pair = |&(instructions, ns): &(u64, f64)| Pair { numerator: ns, denominator: instructions as f64 };
        let pairs: Vec<Pair> = windows.iter().map(pair).collect();
        let Some(of_one) = ratio(&pairs).filter(|_| windows.len() > 1) else {
            return Err(input(format!("{}: --sample needs two windows, and it has {}", self.record, windows.len())));
        };
        let program = self.program_instructions as f64;
        let half_width = of_one.half_width.map(|half_width| half_width * program);
        let measured: u64 = windows.iter().map(|(instructions, _)| instructions).sum();
        let intervals = (0..).zip(&windows).map(|(number, &(instructions, ns))| {
            let error = (ns - of_one.value * instructions as f64) * program / measured as f64;
            json!([number, self.first.0 + number * self.every, instructions, ns, error])
        });
        let (every, detail, warm) = (self.every, self.first.1 - self.first.0, self.warm);
        run["sampling"] = json!({
            "plan": format!("{every}:{detail}:{warm}"),
            "period": every,
            "detail": detail,
            "warmup": warm,
            "measured_instructions": measured,
            "estimates": {"simulated_ns": {"value": of_one.value * program, "half_width": half_width}},
            "counts": {},
            "coefficients": 1,
            "wait_share": null,
            "intervals": intervals.collect::<Value>(),
        });
        run["simulated_ns"] = json!(of_one.value * program);
        let said = run["warnings"].as_array_mut().expect("warnings are a list");
        said.push(json!(self.what_is_not_warm()));
        Ok(())
    }

    fn what_is_not_warm(&self) -> String {
        let before = match self.warm {
            0 => "nothing is warm where a window begins".to_owned(),
            warm => format!("caches and predictors hold what the {warm} instructions before each window left there"),
        };
        format!("estimated from windows that were recorded alone: {before}, and nothing of what came earlier")
    }
}
