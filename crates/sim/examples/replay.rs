//! Replays one record on one machine under one scheme, for profilers: nothing but the simulator runs.
//!
//! `cargo run --release --example replay -- MACHINE.toml RECORD SCHEME [PM-SELECTOR] [PERSIST] [SAMPLE]`

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fencepost_record::{CutPolicy, PmSelector, Record, Source};
use fencepost_sim::address_space::Placement;
use fencepost_sim::config::{Machine, SourceText};
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::host::ThreadPlacement;
use fencepost_sim::replay::simulation::{HostProgram, Options, Program, Progress, Simulation};

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, record, scheme, more @ ..] = &arguments[..] else {
        return Err("usage: replay MACHINE.toml RECORD SCHEME [PM-SELECTOR] [PERSIST] [SAMPLE]".into());
    };
    let read = |path: &Path| SourceText {
        name: path.display().to_string(),
        text: std::fs::read_to_string(path).unwrap_or_default(),
    };
    let folder = Path::new(machine).parent().unwrap_or(Path::new(".")).to_owned();
    let lookup = |name: &str| Some(read(&folder.join(format!("{name}.toml"))));
    let machine = Machine::resolve(read(Path::new(machine)), &lookup, &[])?;
    let file = File::open(record)?;
    let bytes = file.metadata()?.len();
    let record = Record::open(Arc::new(RecordFile { name: record.clone(), file, bytes }), CutPolicy::Refuse)?;
    let selector: PmSelector = more.first().map_or("heap", String::as_str).parse()?;
    let persist = match more.get(1).map(String::as_str) {
        None | Some("program") => PersistMode::Program,
        Some("sync") => PersistMode::Sync,
        Some(other) => PersistMode::Every(other.parse()?),
    };
    let sample = more.get(2).map(|text| text.parse()).transpose()?;
    let options = Options {
        persist,
        pm_writes_limit: None,
        seed: 0,
        threads: ThreadPlacement::default(),
        instructions_limit: None,
        sample,
        transport: fencepost_sim::transport::Transport::None,
    };
    let persistent = record.memory_map()?.select(&selector);
    let program = HostProgram {
        program: Program::new(record)?,
        placement: Placement::in_dram_and_pm(&persistent),
        thread_limits: Vec::new(),
    };
    let start = Instant::now();
    let outcome = Simulation::new(&machine, scheme.parse()?, &[program], options)?.run(&Progress::default())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string_pretty(&outcome.stats.to_json())?);
    let simulated = Simulation::total(&outcome.intervals);
    let mips = outcome.instructions as f64 / seconds / 1e6;
    eprintln!("{simulated} simulated, {} instructions in {seconds:.3} s: {mips:.2} MIPS", outcome.instructions);
    for warning in outcome.unreliable_because.into_iter().chain(outcome.warnings) {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
