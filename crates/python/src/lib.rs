//! `fencepost._core`: the simulator for Python.
//!
//! JSON texts cross the border and nothing richer, so that Python never defines a schema again. Whatever a user can
//! cause is an `InputError` with one clear message; a panic of the simulator is caught here and becomes an
//! `InternalError` that names the run. The stubs are `python/fencepost/_core.pyi`.

use pyo3::prelude::*;

mod bursts;
mod crash;
mod explain;
mod faults;
mod job;
mod link;
mod litmus;
mod machine;
mod nearest;
mod options;
mod ordinary_file;
mod persist_buffer;
mod probe;
mod prove;
mod prove_coherence;
mod record;
mod sampling;
mod service;
mod timeline;
mod toml;
mod traffic;
mod windows;

/// The simulator, compiled from crates/python. JSON texts cross the border, nothing richer.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::bursts::{bursts_follow, bursts_measure, pcie_measure};
    #[pymodule_export]
    use super::crash::{CrashStates, mapped_reads};
    #[pymodule_export]
    use super::faults::{InputError, InternalError, provoke_fault};
    #[pymodule_export]
    use super::job::Job;
    #[pymodule_export]
    use super::link::{link_saturate, link_soak};
    #[pymodule_export]
    use super::litmus::{LitmusProgress, litmus_examine, litmus_fabrics, litmus_tests};
    #[pymodule_export]
    use super::machine::{machine_resolve, machine_schema};
    #[pymodule_export]
    use super::nearest::{nearest_name, there_is_no};
    #[pymodule_export]
    use super::options::{options_check, options_resolve};
    #[pymodule_export]
    use super::persist_buffer::persist_buffer_cost;
    #[pymodule_export]
    use super::probe::medium_probe;
    #[pymodule_export]
    use super::prove::{prove_bounds, prove_catalogue, prove_mutant};
    #[pymodule_export]
    use super::prove_coherence::{coherence_bounds, coherence_catalogue, coherence_litmus, coherence_mutant};
    #[pymodule_export]
    use super::record::{OpenRecord, record_info, record_waits};
    #[pymodule_export]
    use super::sampling::matched_ratio;
    #[pymodule_export]
    use super::service::{RecordedService, compressed_bytes, lines_of_regions};
    #[pymodule_export]
    use super::toml::toml_read;
    #[pymodule_export]
    use super::traffic::{traffic_footprint_max, traffic_measure, transport_has_to_settle};

    use super::{Bound, PyModule, PyModuleMethods, PyResult, faults};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        faults::keep_panics_quiet();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("SIMULATOR", env!("FENCEPOST_SIMULATOR"))?;
        module.add("BUILD", env!("FENCEPOST_BUILD"))
    }
}
