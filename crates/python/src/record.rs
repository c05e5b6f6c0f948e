//! Records as files: the simulator itself knows no paths.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencepost_checker::crash::source_lines::SourceLines;
use fencepost_record::{
    CutPolicy, Ended, MappingKind, PmSelector, Record, RecordError, Source, Summary, WaitingLoop, escaped,
    path_of_child, waiting_loops,
};
use fencepost_sim::replay::simulation::Program;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::json;

use crate::faults::{caught, input};
use crate::ordinary_file;

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

/// A path as messages have it, whatever its bytes.
pub fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

/// The file of that path as a source of a record's bytes.
pub fn source(path: &Path) -> PyResult<Arc<dyn Source>> {
    file_of(path).map_err(|error| input(format!("{}: cannot be read: {error}", shown(path))))
}

fn file_of(path: &Path) -> io::Result<Arc<dyn Source>> {
    let file = ordinary_file::open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Arc::new(RecordFile { name: shown(path), file, bytes }))
}

/// The record of a process that began in the one whose record has this path; nothing where it has none.
fn open_child(root: &Path, number: u64, cut: CutPolicy) -> Result<Option<Record>, RecordError> {
    let path = path_of_child(root, number);
    match file_of(&path) {
        Ok(source) => Record::open(source, cut).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError { record: shown(&path), frame: None, problem: error.into() }),
    }
}

/// A record that has been opened and checked, shared by all replays of it.
#[pyclass(frozen, module = "fencepost._core", name = "Record")]
pub struct OpenRecord {
    path: PathBuf,
    allow_cut: bool,
    children: bool,
    program: Program,
    decode_time: Duration,
}

#[pymethods]
impl OpenRecord {
    #[new]
    #[pyo3(signature = (path, allow_cut, children=false))]
    fn new(py: Python<'_>, path: PathBuf, allow_cut: bool, children: bool) -> PyResult<Self> {
        let cut = if allow_cut { CutPolicy::Allow } else { CutPolicy::Refuse };
        let source = source(&path)?;
        let open = || {
            let root = Record::open(source, cut)?;
            let record =
                if children { Record::of_tree(root, 0, |number| open_child(&path, number, cut))? } else { root };
            let start = Instant::now();
            let program = Program::new(record)?;
            Ok::<_, RecordError>(Self {
                path: path.clone(),
                allow_cut,
                children,
                program,
                decode_time: start.elapsed(),
            })
        };
        caught(|| shown(&path), || py.detach(open).map_err(input))
    }

    /// Pickled as its path: whoever unpickles it opens the file again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (PathBuf, bool, bool))> {
        Ok((py.get_type::<Self>(), (std::path::absolute(&self.path)?, self.allow_cut, self.children)))
    }

    /// Whether `selector` (`heap`, `file:PATTERN`, `range:LO-HI`) means any address of it.
    fn has(&self, selector: &str) -> PyResult<bool> {
        let selector: PmSelector = selector.parse().map_err(input)?;
        let map = self.program.record().memory_map().map_err(input)?;
        Ok(!map.select(&selector).as_slice().is_empty())
    }

    /// The files that the program mapped, besides itself and its libraries, in order.
    fn data_files(&self) -> PyResult<Vec<String>> {
        let map = self.program.record().memory_map().map_err(input)?;
        let is_code = |name: &str| map.modules().iter().any(|module| &*module.path == name);
        let files = map.mappings().iter().filter(|mapping| mapping.kind == MappingKind::File);
        let names: BTreeSet<&str> = files.map(|mapping| &*mapping.name).filter(|name| !is_code(name)).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// What a result says of the record it was made from, as JSON.
    fn provenance(&self) -> String {
        let record = self.program.record();
        let info = record.info();
        let ended = match record.ended() {
            Ended::Sealed { how, .. } => Some(how),
            Ended::Cut { .. } => None,
        };
        json!({
            "hash": record.hash(),
            "bytes": record.bytes(),
            "isa": info.isa,
            "program": info.program.rsplit('/').next(),
            // The first one is the name by which the program was called.
            "arguments": info.arguments.get(1..).unwrap_or_default(),
            "recorder": info.recorder,
            "engine": info.engine,
            "ended": ended,
            "instructions": record.instructions(),
            "threads": record.threads(),
            "processes": record.processes(),
        })
        .to_string()
    }
}

impl OpenRecord {
    /// The record, its code decoded once for all replays.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Where it was opened; of a tree, the record of its first process.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long decoding took: a part of the host time of each replay, since `mips` are to be what one replay alone
    /// would give.
    pub fn decode_time(&self) -> Duration {
        self.decode_time
    }
}

/// Where threads of a record waited, as JSON: `waits` of docs/record-format.md.
#[pyfunction]
pub fn record_waits(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let source = source(&path)?;
    let find = || {
        let record = Record::open(source, CutPolicy::Allow)?;
        let (loops, mut sources) = (waiting_loops(&record)?, SourceLines::of_record(&record)?);
        let entry = |of: &WaitingLoop| {
            let ended_by =
                of.ended_by.iter().map(|(&store, waits)| json!({"source": sources.place(store), "waits": waits}));
            let ended_by: Vec<_> = ended_by.collect();
            json!({
                "source": sources.place(of.address),
                "waits": of.waits,
                "rounds": of.rounds,
                "instructions": of.instructions,
                "ended_by": ended_by,
            })
        };
        Ok::<_, RecordError>(loops.iter().map(entry).collect::<Vec<_>>())
    };
    let found = caught(|| shown(&path), || py.detach(find).map_err(input))?;
    Ok(json!(found).to_string())
}

/// What a record holds, as JSON; also of one that was cut off or is damaged, up to there.
#[pyfunction]
pub fn record_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let source = source(&path)?;
    let inspect = || py.detach(|| Summary::inspect(source, fencepost_isa::noted)).map_err(input);
    let summary = caught(|| shown(&path), inspect)?;
    Ok(serde_json::to_string(&summary).expect("a summary is plain data"))
}
