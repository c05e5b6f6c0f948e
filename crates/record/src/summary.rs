//! What a person wants to know about a record before anything is simulated: `info`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use xxhash_rust::xxh64::{Xxh64, xxh64};

use super::code::Block;
use super::error::{Problem, RecordError};
use super::event::{Event, ThreadId};
use super::info::Info;
use super::memory_map::{LoadedModule, Mapping, MappingEvents};
use super::order::Changes;
use super::reader::{Ended, Record};
use super::source::Source;
use super::trace::Frame;

/// The description of one record. Counts are those of executions, over all threads.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The record's name.
    pub record: String,
    /// What is wrong with it, if anything: the rest describes what can be read before that.
    pub problem: Option<String>,
    /// How it ends.
    pub ended: EndedSummary,
    /// What has to be known before it is used: it may hold less than one thinks.
    pub warnings: Vec<String>,
    /// What it says about its recording.
    pub info: Info,
    /// The hash of its content.
    pub hash: String,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Length over instructions; `None` without instructions.
    pub bytes_per_instruction: Option<f64>,
    /// Number of frames.
    pub frames: u64,
    /// Number of static blocks.
    pub blocks: u64,
    /// Architectural instructions of all threads.
    pub instructions: u64,
    /// Share of those that are replayed in rounds that only read the same words again, which other threads store to,
    /// without being recognised as waiting; `None` without instructions.
    pub polling_share: Option<f64>,
    /// Share of those in such rounds that a count or a clock ended.
    pub polling_ended_by_count: Option<f64>,
    /// What should come behind something of another thread that the record does not name.
    pub dropped_edges: u64,
    /// Each thread, by its dense id.
    pub threads: Vec<ThreadSummary>,
    /// Flushes, non-temporal stores and fences by name.
    pub persist_instructions: BTreeMap<&'static str, u64>,
    /// Regions of interest that were begun: by markers in the program and by `--roi`.
    pub regions_of_interest: u64,
    /// Synchronisation events by name.
    pub synchronisation: BTreeMap<&'static str, u64>,
    /// All other events by name.
    pub other_events: BTreeMap<&'static str, u64>,
    /// What lay where, and when.
    pub mappings: Vec<Mapping>,
    /// Executables and libraries.
    pub modules: Vec<LoadedModule>,
}

/// What is counted of an instruction besides its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It is a flush, fence or non-temporal store of this name.
    Persists(&'static str),
    /// It is the marker that begins a region of interest.
    BeginsRegion,
}

/// Tells what is counted of an instruction by the record's instruction set ([`Info::isa`]) and the bytes. A record's
/// reader does not decode.
pub type NotedBy = fn(isa: &str, bytes: &[u8]) -> Option<Noted>;

/// How a record ends.
#[derive(Clone, Debug, Serialize)]
pub struct EndedSummary {
    /// Whether the launcher sealed it.
    pub is_sealed: bool,
    /// How the program ended, if it was sealed; else how the record does.
    pub how: String,
    /// Threads whose last buffer was lost because the process was killed.
    pub threads_cut_short: u64,
}

/// One thread.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ThreadSummary {
    /// Architectural instructions.
    pub instructions: u64,
    /// Executed blocks.
    pub blocks: u64,
    /// The kernel's number for it, 0 if its start was not recorded.
    pub kernel_tid: u64,
    /// A hash of the code it executed, in order: equal in two records where it took the same way through the same code
    /// at the same place.
    pub path: String,
}

impl Summary {
    /// Describes any record, even one that was cut off or is damaged.
    ///
    /// # Errors
    /// If not even its first frame can be read.
    pub fn inspect(source: Arc<dyn Source>, noted_by: NotedBy) -> Result<Self, RecordError> {
        let (record, problem) = Record::open_up_to_problem(source)?;
        let mut summary = Self::of(&record, noted_by);
        if let Some(problem) = problem {
            summary.problem = Some(problem.to_string());
            summary.warnings.clear();
            summary.ended.how = "damaged".to_string();
        }
        Ok(summary)
    }

    /// Describes an opened record. If a frame turns out to break the format, [`Summary::problem`] says so.
    #[must_use]
    pub fn of(record: &Record, noted_by: NotedBy) -> Self {
        let mut counts = Counts::new(record);
        // Nobody walks through a record that has no order yet for what may be a part of it.
        let changes = if record.is_sealed() { record.changes() } else { Ok(None) };
        let (changes, unread) = changes.map_or_else(|error| (None, Some(error)), |changes| (changes, None));
        let mut frame = Frame::default();
        let result = record.visit_trace(|thread, decoder, predictors| {
            decoder.steps(predictors, &mut frame)?;
            if let Some(changes) = &changes {
                let changes = changes.of_frame(thread, decoder.header.sequence as usize);
                counts.left_out += changes.left_out(record.program(), &frame);
            }
            counts.take_in(thread, &frame)
        });
        let (persist_instructions, markers) = counts.of_code(record, noted_by);
        counts.finish_paths();
        let map = counts.mapping_events.into_map();
        let (bytes, instructions) = (record.source().len(), record.instructions());
        let regions_of_interest = markers + counts.explicit_regions;
        let (polling, by_count) = changes.as_ref().map_or((0, 0), Changes::polling);
        let kept = instructions - counts.left_out;
        let share = |of: u64| (kept > 0).then(|| of as f64 / kept as f64);
        let mut warnings = record.warnings();
        warnings.extend(record.unreliable_because());
        if regions_of_interest == 0 {
            warnings.extend(never_reached(record, noted_by));
        }
        Self {
            record: record.source().name().to_string(),
            problem: result.err().or(unread).map(|problem| problem.to_string()),
            ended: EndedSummary::of(record.ended()),
            warnings,
            info: record.info().clone(),
            hash: record.hash(),
            bytes,
            bytes_per_instruction: (instructions > 0).then(|| bytes as f64 / instructions as f64),
            frames: record.frames(),
            blocks: record.program().blocks.len() as u64 - 1,
            instructions,
            polling_share: share(polling),
            polling_ended_by_count: share(by_count),
            dropped_edges: counts.dropped_edges + changes.as_ref().map_or(0, Changes::dropped_edges),
            threads: counts.threads,
            persist_instructions,
            regions_of_interest,
            synchronisation: counts.synchronisation,
            other_events: counts.other_events,
            mappings: map.mappings().to_vec(),
            modules: map.modules().to_vec(),
        }
    }
}

impl EndedSummary {
    fn of(ended: &Ended) -> Self {
        match ended {
            Ended::Sealed { how, lost } => Self { is_sealed: true, how: how.clone(), threads_cut_short: *lost },
            Ended::Cut { whole_frames, incomplete } => {
                let rest = incomplete.map_or(String::new(), |frame| {
                    format!("; frame {} at offset {} is incomplete", frame.number, frame.offset)
                });
                let how = format!("cut off after {whole_frames} whole frames{rest}");
                Self { is_sealed: false, how, threads_cut_short: 0 }
            }
        }
    }
}

/// What is counted while the frames go by.
struct Counts {
    threads: Vec<ThreadSummary>,
    /// The path of each thread so far.
    paths: Vec<Xxh64>,
    /// The hash of each block's place and bytes: ids follow the order in which blocks were found.
    block_hashes: Vec<[u8; 8]>,
    /// Complete executions of each block.
    executions: Vec<u64>,
    /// Interrupted executions: block and instructions of it.
    interrupted: BTreeMap<(u32, u64), u64>,
    synchronisation: BTreeMap<&'static str, u64>,
    other_events: BTreeMap<&'static str, u64>,
    explicit_regions: u64,
    left_out: u64,
    dropped_edges: u64,
    mapping_events: MappingEvents,
}

impl Counts {
    fn new(record: &Record) -> Self {
        let instructions = |thread| record.thread_instructions(ThreadId(thread as u32));
        let of_thread = |thread| ThreadSummary { instructions: instructions(thread), ..ThreadSummary::default() };
        Self {
            threads: (0..record.threads()).map(of_thread).collect(),
            paths: vec![Xxh64::new(0); record.threads()],
            block_hashes: record.program().blocks.iter().map(hash_of_block).collect(),
            executions: vec![0; record.program().blocks.len()],
            interrupted: BTreeMap::new(),
            synchronisation: BTreeMap::new(),
            other_events: BTreeMap::new(),
            explicit_regions: 0,
            left_out: 0,
            dropped_edges: 0,
            mapping_events: MappingEvents::default(),
        }
    }

    fn take_in(&mut self, thread: ThreadId, frame: &Frame) -> Result<(), Problem> {
        let of_thread = &mut self.threads[thread.0 as usize];
        let mut events = frame.events.iter();
        let mut last = 0;
        let mut path = Vec::with_capacity(size_of::<u64>() * frame.steps.len());
        for &step in &frame.steps {
            if step != 0 {
                self.executions[step as usize] += 1;
                path.extend_from_slice(&self.block_hashes[step as usize]);
                last = step;
                continue;
            }
            match events.next() {
                Some(Event::Interrupted { instructions }) => {
                    self.executions[last as usize] -= 1;
                    *self.interrupted.entry((last, *instructions)).or_default() += 1;
                    path.extend_from_slice(&instructions.to_le_bytes());
                }
                Some(Event::ThreadStart { kernel_tid, .. }) => of_thread.kernel_tid = *kernel_tid,
                Some(Event::DroppedEdges { count }) => self.dropped_edges += count,
                Some(Event::Roi { begin: true }) => self.explicit_regions += 1,
                _ => {}
            }
        }
        self.paths[thread.0 as usize].update(&path);
        of_thread.blocks += frame.steps.len() as u64 - frame.events.len() as u64;
        for event in &frame.events {
            let counts = if event.is_synchronisation() { &mut self.synchronisation } else { &mut self.other_events };
            *counts.entry(event.name()).or_default() += 1;
        }
        self.mapping_events.take_in(&frame.events)
    }

    fn finish_paths(&mut self) {
        for (thread, path) in self.threads.iter_mut().zip(&self.paths) {
            thread.path = format!("{:016x}", path.digest());
        }
    }

    /// Persist instructions by name, and markers that begin a region of interest.
    fn of_code(&self, record: &Record, noted_by: NotedBy) -> (BTreeMap<&'static str, u64>, u64) {
        let whole = self.executions.iter().enumerate().map(|(id, &count)| (id as u32, usize::MAX, count));
        let parts = self.interrupted.iter().map(|(&(id, instructions), &count)| (id, instructions as usize, count));
        let (mut persists, mut markers) = (BTreeMap::new(), 0);
        for (id, instructions, count) in whole.chain(parts).filter(|part| part.2 > 0) {
            for noted in noted_in(record, record.program().block(id), noted_by).take(instructions).flatten() {
                match noted {
                    Noted::Persists(name) => *persists.entry(name).or_default() += count,
                    Noted::BeginsRegion => markers += count,
                }
            }
        }
        (persists, markers)
    }
}

/// What is counted of each instruction of a block.
fn noted_in(record: &Record, block: &Block, noted_by: NotedBy) -> impl Iterator<Item = Option<Noted>> {
    block.instructions().map(move |(_, bytes)| noted_by(&record.info().isa, bytes))
}

/// Why a record in which regions of interest were expected has none.
fn never_reached(record: &Record, noted_by: NotedBy) -> Option<String> {
    if let Some(roi) = &record.info().options.roi {
        return Some(format!("the region of interest was never reached (--roi {roi})"));
    }
    let marks = |block| noted_in(record, block, noted_by).any(|noted| noted == Some(Noted::BeginsRegion));
    let is_marked = record.program().blocks.iter().any(marks);
    is_marked.then(|| "the program marks regions of interest, but came to none".to_string())
}

fn hash_of_block(block: &Block) -> [u8; 8] {
    xxh64(&block.bytes, block.address).to_le_bytes()
}
