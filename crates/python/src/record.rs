//! Records as files: the simulator itself knows no paths.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use fencepost_sim::record::{CutPolicy, Record, Source};
use pyo3::prelude::*;

use crate::faults::{caught, input};

struct RecordFile {
    name: String,
    file: File,
    bytes: u64,
}

impl Source for RecordFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

/// The file of a record, opened.
pub fn source(path: &str) -> PyResult<Arc<dyn Source>> {
    let open = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::other("it is a folder"));
        }
        Ok(RecordFile { name: path.to_owned(), file, bytes: metadata.len() })
    };
    let file = open().map_err(|error| input(format!("{path}: cannot be read: {error}")))?;
    Ok(Arc::new(file))
}

/// The record in the file at `path`.
pub fn open(path: &str, allow_cut: bool) -> PyResult<Record> {
    let cut = if allow_cut { CutPolicy::Allow } else { CutPolicy::Refuse };
    Record::open(source(path)?, cut).map_err(input)
}
