//! Machine files by name or path: the simulator itself knows no paths.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fencepost_record::RECORD_MAGIC;
use fencepost_sim::config::{Machine, SourceText, json_schema};
use fencepost_sim::nearest::there_is_no;
use pyo3::prelude::*;

use crate::faults::{caught, input};
use crate::ordinary_file;

/// The JSON Schema of machine files.
#[pyfunction]
pub fn machine_schema() -> String {
    json_schema().to_string()
}

/// The machine of that name in one of `directories`, or in the file of that path, as JSON: resolved, with `sets` on
/// top.
#[pyfunction]
pub fn machine_resolve(machine: &str, directories: Vec<PathBuf>, sets: Vec<String>) -> PyResult<String> {
    let path = find(machine, &directories)?;
    let text = read(&path).map_err(|error| input(format!("{}: cannot be read: {error}", path.display())))?;
    // A machine of one's own may extend another one that lies beside it.
    let beside = path.parent().map(Path::to_owned);
    let unreadable = RefCell::new(None);
    let lookup = |name: &str| {
        let folders = beside.iter().chain(&directories);
        let mut paths = folders.map(|folder| folder.join(format!("{name}.toml")));
        paths.find_map(|path| match read(&path) {
            Ok(text) => Some(text),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    unreadable.replace(Some(format!("{}: cannot be read: {error}", path.display())));
                }
                None
            }
        })
    };
    let resolve = || Machine::resolve(text, &lookup, &sets);
    let resolved = caught(|| machine.to_owned(), || Ok(resolve()))?;
    // That a machine which cannot be read is not there would be half of the truth.
    let machine = resolved.map_err(|errors| unreadable.take().map_or_else(|| input(errors), input))?;
    Ok(machine.to_json().to_string())
}

/// The machine that a result calls `name`, from what [`machine_resolve`] gave.
pub fn from_json(name: &str, json: &str) -> PyResult<Machine> {
    caught(|| name.to_owned(), || Machine::from_json(name, json).map_err(input))
}

fn find(machine: &str, directories: &[PathBuf]) -> PyResult<PathBuf> {
    let is_path = machine.contains('/') || machine.ends_with(".toml");
    if is_path {
        return Ok(machine.into());
    }
    let named = directories.iter().map(|folder| folder.join(format!("{machine}.toml")));
    named.into_iter().find(|path| path.exists()).ok_or_else(|| {
        let unknown = there_is_no("machine", machine, &names(directories));
        input(format!("{unknown}, or name a file (NAME.toml)"))
    })
}

fn names(directories: &[PathBuf]) -> Vec<String> {
    let entries = directories.iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let machines = entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "toml"));
    let mut names: Vec<String> =
        machines.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Longest machine file, in bytes: a thousand times the longest that ships. What is read takes some forty times its
/// length in memory.
const MACHINE_BYTES_MAX: u64 = 16 << 20;

fn read(path: &Path) -> io::Result<SourceText> {
    let mut file = ordinary_file::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > MACHINE_BYTES_MAX {
        let message = format!("it has {bytes} bytes, and a machine file at most {MACHINE_BYTES_MAX}");
        return Err(io::Error::other(message));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let text = String::from_utf8(text).map_err(|error| io::Error::other(not_text(error.as_bytes())))?;
    Ok(SourceText { name: path.display().to_string(), text })
}

/// What is wrong with a file of these `bytes`, which are no text.
fn not_text(bytes: &[u8]) -> &'static str {
    match bytes.starts_with(&RECORD_MAGIC) {
        true => "it is a record, and a machine comes first: a name from machines/, or a file NAME.toml",
        false => "it is not UTF-8 text",
    }
}
