//! A recorded service whose memory does not suffice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fencepost_reclaim::cell::{Cell, classes, facts, pages_after, wanted};
use fencepost_reclaim::footprint;
use fencepost_reclaim::linux::preset::LINUX_6_2;
use fencepost_reclaim::linux::zswap::pool_pages_per_page;
use fencepost_reclaim::page::{Class, Codec, Facts};
use fencepost_reclaim::recorded::Service;
use pyo3::prelude::*;
use serde_json::json;

use crate::faults::{caught, input};
use crate::record::OpenRecord;

type KnownFacts = Arc<Vec<Option<Facts>>>;

/// How many lines each region of a record touches.
#[pyfunction]
pub fn lines_of_regions(py: Python<'_>, record: &OpenRecord) -> PyResult<Vec<u32>> {
    py.detach(|| footprint::lines_of_regions(record.program().record())).map_err(input)
}

/// What a page compresses to.
#[pyfunction]
pub fn compressed_bytes(page: &[u8], compressor: &str) -> PyResult<usize> {
    let page = page.try_into().map_err(input)?;
    Ok(codec(compressor)?.compress(page).len())
}

/// What a recorded redis-server did, for simulations of it.
#[pyclass(frozen, module = "fencepost._core", name = "Service")]
pub struct RecordedService {
    service: Service,
    /// By the name of the compressor.
    facts: Mutex<BTreeMap<String, KnownFacts>>,
}

impl RecordedService {
    fn known(&self, codec: Codec) -> KnownFacts {
        let mut known = self.facts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.entry(format!("{codec:?}")).or_insert_with(|| Arc::new(facts(&self.service, codec))).clone()
    }
}

fn codec(name: &str) -> PyResult<Codec> {
    serde_json::from_value(json!(name)).map_err(input)
}

#[pymethods]
impl RecordedService {
    #[new]
    fn new(py: Python<'_>, record: &OpenRecord, requests: Vec<u32>) -> PyResult<Self> {
        let service = py.detach(|| Service::read(record.program().record(), &requests)).map_err(input)?;
        Ok(Self { service, facts: Mutex::default() })
    }

    fn summary(&self, py: Python<'_>, compressor: &str) -> PyResult<String> {
        let codec = codec(compressor)?;
        let facts = py.detach(|| self.known(codec));
        let operations = &self.service.operations;
        let loaded = pages_after(&self.service, &facts, &[]);
        let instructions: u64 = operations.iter().map(|operation| operation.instructions).sum();
        let lines: usize = operations.iter().map(|operation| operation.touches.len()).sum();
        let summary = json!({
            "operations": operations.len(),
            "instructions": instructions,
            "lines": lines,
            "with_clock_event": (0..operations.len()).filter(|&of| operations[of].has_clock_event).collect::<Vec<_>>(),
            "instructions_max": operations.iter().map(|operation| operation.instructions).max(),
            "first_instruction": self.service.instructions.0,
            "end_instruction": self.service.instructions.1,
            "pages": self.service.pages.len(),
            "anonymous_pages": loaded.len(),
            "pool_pages_per_page": pool_pages_per_page(&LINUX_6_2, loaded.iter()),
            "compressed_bytes": loaded.iter().map(|facts| u64::from(facts.compressed)).sum::<u64>(),
            "classes": classes(&loaded),
        });
        Ok(summary.to_string())
    }

    fn wanted(&self, py: Python<'_>, compressor: &str, operations: Vec<u32>) -> PyResult<String> {
        let codec = codec(compressor)?;
        if operations.iter().any(|&number| number as usize >= self.service.operations.len()) {
            return Err(input(format!("there are {} operations", self.service.operations.len())));
        }
        let facts = py.detach(|| self.known(codec));
        serde_json::to_string(&wanted(&self.service, &facts, &operations)).map_err(input)
    }

    fn sample(&self, py: Python<'_>, compressor: &str, class: &str, count: usize) -> PyResult<Vec<Vec<u8>>> {
        let class: Class = serde_json::from_value(json!(class)).map_err(input)?;
        let codec = codec(compressor)?;
        let facts = py.detach(|| self.known(codec));
        let of_class: Vec<usize> = facts
            .iter()
            .enumerate()
            .filter(|&(page, facts)| {
                self.service.pages[page].is_loaded && facts.is_some_and(|facts| facts.class == class)
            })
            .map(|(page, _)| page)
            .collect();
        let step = (of_class.len() / count.max(1)).max(1);
        let pages = of_class.iter().step_by(step).take(count);
        Ok(pages.filter_map(|&page| self.service.pages[page].contents.as_ref().map(|bytes| bytes.to_vec())).collect())
    }

    fn run(&self, py: Python<'_>, cell: &str) -> PyResult<String> {
        let cell: Cell = serde_json::from_str(cell).map_err(input)?;
        let run = || {
            let facts = self.known(cell.compressor);
            cell.run(&self.service, &facts)
        };
        let measured = caught(|| "a service".to_owned(), || py.detach(run).map_err(input))?;
        serde_json::to_string(&measured).map_err(input)
    }
}
