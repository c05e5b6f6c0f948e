//! `fencepost-order RECORD [NAME PROCESSES]`: adds to a record that is not sealed yet what of its order a replay keeps;
//! and with the name that it is going to have, by which the records of its children are found, and how many processes
//! there are, what is kept of the whole tree's.
//!
//! The launcher calls it when the program has ended, before it seals the record. Frames are only added behind the
//! others, so that a record to which that did not come to an end is still one: a reader then finds its order itself.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fencepost_record::{CutPolicy, Ended, Problem, Record, RecordError, Source, path_of_child};

/// After which somebody wonders what it is doing.
const LONG: Duration = Duration::from_secs(2);

struct RecordFile {
    name: String,
    file: File,
    length: u64,
}

impl Source for RecordFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let count = |text: &OsString| text.to_str()?.parse().ok();
    let (path, tree) = match &arguments[..] {
        [_, path] => (Path::new(path), None),
        [_, path, name, processes] if count(processes).is_some() => {
            (Path::new(path), count(processes).map(|processes| (Path::new(name), processes)))
        }
        _ => {
            eprintln!("usage: fencepost-order RECORD [NAME PROCESSES]");
            return ExitCode::from(2);
        }
    };
    match add_order(path, tree) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("fencepost-order: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn add_order(path: &Path, tree: Option<(&Path, u64)>) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let record = open(path, file.try_clone()?)?;
    if matches!(record.ended(), Ended::Sealed { .. }) {
        return Err(format!("{}: it is sealed already", path.display()).into());
    }
    say_if_it_takes_long();
    file.write_all(&order_of(&record)?)?;
    if let Some((name, processes)) = tree {
        file.write_all(&order_of_tree(record, name, processes)?)?;
    }
    Ok(())
}

fn order_of(record: &Record) -> Result<Vec<u8>, RecordError> {
    let (frames, undecided) = record.order_frames_and_undecided()?;
    if undecided > 0 {
        eprintln!(
            "fencepost-record: threads meet too often for this length of a record: {undecided} accesses to what they \
             share are replayed in no order, and no run of it is reliable"
        );
    }
    Ok(frames)
}

fn open(path: &Path, file: File) -> Result<Record, RecordError> {
    let name = path.display().to_string();
    let length = file.metadata().map_err(|error| of_file(path, error))?.len();
    Record::open(Arc::new(RecordFile { name, file, length }), CutPolicy::Allow)
}

fn of_file(path: &Path, error: io::Error) -> RecordError {
    RecordError { record: path.display().to_string(), frame: None, problem: error.into() }
}

/// Nothing where the records cannot be read as one, or are of one process.
fn order_of_tree(first: Record, name: &Path, processes: u64) -> Result<Vec<u8>, RecordError> {
    let open_child = |number| {
        let path = path_of_child(name, number);
        match File::open(&path) {
            Ok(file) => open(&path, file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_file(&path, error)),
        }
    };
    match Record::of_tree(first, processes, open_child) {
        Ok(tree) if tree.processes() > 1 => order_of(&tree),
        Ok(_) | Err(RecordError { problem: Problem::Tree(_), .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn say_if_it_takes_long() {
    if io::stderr().is_terminal() {
        thread::spawn(|| {
            thread::sleep(LONG);
            eprintln!("fencepost-record: the program has ended; finding which of its order a replay keeps");
        });
    }
}
