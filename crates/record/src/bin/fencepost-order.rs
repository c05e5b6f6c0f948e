//! `fencepost-order RECORD`: adds to a record that is not sealed yet what of its order a replay keeps.
//!
//! The launcher calls it when the program has ended, before it seals the record. Frames are only added behind the
//! others, so that a record to which that did not come to an end is still one: a reader then finds its order itself.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fencepost_record::{CutPolicy, Ended, Record, Source};

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
    let [_, path] = &arguments[..] else {
        eprintln!("usage: fencepost-order RECORD");
        return ExitCode::from(2);
    };
    match add_order(Path::new(path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("fencepost-order: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn add_order(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let source = RecordFile { name: path.display().to_string(), file: file.try_clone()?, length };
    let record = Record::open(Arc::new(source), CutPolicy::Allow)?;
    if matches!(record.ended(), Ended::Sealed { .. }) {
        return Err(format!("{}: it is sealed already", path.display()).into());
    }
    say_if_it_takes_long();
    file.write_all(&record.order_frames()?)?;
    Ok(())
}

fn say_if_it_takes_long() {
    if io::stderr().is_terminal() {
        thread::spawn(|| {
            thread::sleep(LONG);
            eprintln!("fencepost-record: the program has ended; finding which of its order a replay keeps");
        });
    }
}
