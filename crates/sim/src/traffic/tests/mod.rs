//! A generator before a mock host bridge, and generators on whole machines.

mod experiment;
mod generator;
mod keys;
mod leaves;

use super::{Pattern, SharedBy, StreamConfig};

/// Reads of single lines from the host's own DRAM, one after the other.
fn reads() -> StreamConfig {
    StreamConfig {
        memory: "dram".to_owned(),
        pattern: Pattern::Sequential,
        footprint_bytes: 1 << 20,
        request_bytes: 64,
        reads: 1,
        writes: 0,
        outstanding: 1,
        lines_outstanding: None,
        inject_delay_ns: 0.0,
        inject_jitter_ns: 0.0,
        dependent: false,
        shared_by: SharedBy::Stream,
        caches: false,
        modifies: false,
        weight: 1.0,
        begin_ns: 0.0,
        end_ns: None,
        group: None,
        counted_part: 1.0,
        dies: false,
        requests: None,
    }
}
