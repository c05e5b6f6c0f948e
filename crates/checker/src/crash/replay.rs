//! One replay of a record in its recorded order: when each store became visible, and when the host was promised that it is durable.
//!
//! The simulator carries versions and no data. A version of a line is a store that was performed on it, so the stores that the replay performs are
//! matched with those of the record: by thread, line and program order, which is the order in which a thread's stores to one line take effect.
//! Non-temporal stores wait in a combining buffer and become one version together.

use std::collections::{BTreeSet, HashMap, VecDeque};

use fencepost_sim::config::Machine;
use fencepost_sim::core::store_log::{LoggedStore, Performed};
use fencepost_sim::host::Host;
use fencepost_sim::kernel::Time;
use fencepost_sim::message::LineAddress;
use fencepost_sim::record::AddressRanges;
use fencepost_sim::simulation::{HostProgram, Options, Outcome, Program, Progress, Simulation, SimulationError};
use fencepost_sim::switch::Scheme;

use super::CrashError;
use super::content_hash::LINE;
use super::pool_file::PoolFile;
use super::recorded_stores::{Act, RecordedStores, StoreId, lines_of};

/// Number of a line among those that were written.
pub type LineId = u32;

/// One version of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeVersion {
    /// The simulator's number of it.
    pub version: u32,
    /// The stores that made it: one, or non-temporal ones that were combined.
    pub stores: Vec<StoreId>,
    /// Its place in [`Replayed::changes`].
    pub change: usize,
}

/// A line of the pool that was written, and its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHistory {
    /// Its line of the address space (address / 64).
    pub virtual_line: u64,
    /// Its line of the file (offset / 64).
    pub file_line: u64,
    /// The simulator's name for it.
    pub physical: LineAddress,
    /// Its versions, in the order in which they were made.
    pub versions: Vec<MadeVersion>,
}

/// Something that changes what a power cut can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes came into the pool other than by stores, and count as durable: number in [`RecordedStores::foreign`].
    Foreign(u32),
    /// A line got its next version.
    Visible(LineId),
    /// So many versions of a line are durable.
    Durable(LineId, u32),
}

/// A flush as it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedFlush {
    /// The thread that made it.
    pub thread: u32,
    /// Its place among the thread's acts.
    pub place: u32,
    /// Whether no cache had anything newer of the line than memory had been given.
    pub is_clean: bool,
}

/// All of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The file.
    pub file: PoolFile,
    /// The lines, by number.
    pub lines: Vec<LineHistory>,
    /// What happened, in order.
    pub changes: Vec<(Time, Change)>,
    /// All flushes of persistent memory.
    pub flushes: Vec<ServedFlush>,
    /// Simulated time from the start to the end of the program.
    pub duration_ps: u64,
    /// What a reader has to know.
    pub warnings: Vec<String>,
}

/// What is replayed, and where.
pub struct Setting<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The scheme of its switches.
    pub scheme: Scheme,
    /// What is persisted beyond the program's own flushes, and the seed.
    pub options: Options,
    /// What is persistent.
    pub persistent: AddressRanges,
}

impl Setting<'_> {
    /// A replay of `program` in its recorded order, about to start.
    ///
    /// # Errors
    /// If the machine cannot run it.
    pub fn start(&self, program: &Program) -> Result<Simulation, SimulationError> {
        let persistent = self.persistent.clone();
        let programs = [HostProgram { program: program.clone(), persistent, thread_limits: Vec::new() }];
        let mut simulation = Simulation::new(self.machine, self.scheme, &programs, self.options.clone())?;
        simulation.ignore_regions();
        simulation.keep_recorded_order(&programs)?;
        Ok(simulation)
    }
}

/// Replays `program` and takes everything down.
///
/// # Errors
/// If the replay does not come to its end, or performs other stores than the record has.
pub fn replay(
    program: &Program,
    setting: &Setting<'_>,
    recorded: &RecordedStores,
    file: &PoolFile,
    progress: &Progress,
) -> Result<Replayed, CrashError> {
    let mut simulation = setting.start(program)?;
    simulation.log_stores();
    simulation.log_persists();
    let outcome = simulation.run_to_end(progress)?;
    let host = simulation.system().hosts().next().expect("a record is one host's");
    let mut matching = Matching::new(host, recorded, file);
    let log = host.stores().expect("it is kept").entries();
    for entry in log {
        matching.take_in(entry)?;
    }
    matching.take_in_promises(host);
    let mut replayed = matching.finish(recorded);
    replayed.duration_ps = duration_of(&outcome);
    replayed.warnings = outcome.warnings;
    Ok(replayed)
}

/// Simulated time of a whole program.
pub fn duration_of(outcome: &Outcome) -> u64 {
    outcome.intervals.iter().map(|interval| interval.end.since(interval.start).as_ps()).sum()
}

/// What a version was made by, until its number is known.
struct Matching<'a> {
    host: &'a Host,
    recorded: &'a RecordedStores,
    file: &'a PoolFile,
    /// By frame number of physical memory, the page of the address space.
    pages: HashMap<u64, u64>,
    /// By thread, line of the address space and kind: stores that have not been performed yet.
    to_come: HashMap<(u32, u64, bool), VecDeque<StoreId>>,
    /// By thread and line: flushes that have not been sent yet, by place.
    flushes_to_come: HashMap<(u32, u64), VecDeque<u32>>,
    /// By core and line: non-temporal stores in its combining buffer.
    combining: HashMap<(usize, LineAddress), Vec<StoreId>>,
    /// By core and number: what left it.
    sent: HashMap<(usize, u32), Sent>,
    numbers: HashMap<LineAddress, LineId>,
    lines: Vec<LineHistory>,
    /// When each version was visible, as it was taken in.
    visible: Vec<(Time, LineId, MadeVersion)>,
    /// When each store was performed, for what came between them.
    times: HashMap<StoreId, Time>,
    flushes: Vec<ServedFlush>,
}

enum Sent {
    Combined(Vec<StoreId>),
    Flush { thread: u32, place: u32 },
}

impl<'a> Matching<'a> {
    fn new(host: &'a Host, recorded: &'a RecordedStores, file: &'a PoolFile) -> Matching<'a> {
        let page = |page: u64| Some((host.line_of(page << 12)?.0 >> 6, page));
        let mut to_come: HashMap<_, VecDeque<_>> = HashMap::new();
        for (number, store) in recorded.stores.iter().enumerate() {
            for line in lines_of(store.address, store.size) {
                to_come.entry((store.thread, line, store.is_non_temporal)).or_default().push_back(number as StoreId);
            }
        }
        let mut flushes_to_come: HashMap<_, VecDeque<_>> = HashMap::new();
        for (thread, acts) in recorded.threads.iter().enumerate() {
            for (place, act) in acts.iter().enumerate() {
                if let Act::Flush { address, .. } = act.act {
                    let line = address / LINE as u64;
                    flushes_to_come.entry((thread as u32, line)).or_default().push_back(place as u32);
                }
            }
        }
        Matching {
            host,
            recorded,
            file,
            pages: file.pages().filter_map(page).collect(),
            to_come,
            flushes_to_come,
            combining: HashMap::new(),
            sent: HashMap::new(),
            numbers: HashMap::new(),
            lines: Vec::new(),
            visible: Vec::new(),
            times: HashMap::new(),
            flushes: Vec::new(),
        }
    }

    /// The line of the address space that a physical line is; none if it is not the pool's.
    fn virtual_line(&self, line: LineAddress) -> Option<u64> {
        Some(self.pages.get(&(line.0 >> 6))? << 6 | (line.0 & 63))
    }

    fn take_in(&mut self, entry: &LoggedStore) -> Result<(), CrashError> {
        let Some(virtual_line) = self.virtual_line(entry.line) else { return Ok(()) };
        let thread = entry.thread.0;
        match entry.performed {
            Performed::Store(version) => {
                let store = self.next_store(entry, virtual_line, false)?;
                let line = self.line(entry.line, virtual_line);
                self.times.insert(store, entry.time);
                self.visible.push((
                    entry.time,
                    line,
                    MadeVersion { version: version.0, stores: vec![store], change: 0 },
                ));
            }
            Performed::Combined => {
                let store = self.next_store(entry, virtual_line, true)?;
                self.times.insert(store, entry.time);
                self.combining.entry((entry.core, entry.line)).or_default().push(store);
            }
            Performed::SentCombined(id) => {
                let stores = self.combining.remove(&(entry.core, entry.line)).unwrap_or_default();
                self.sent.insert((entry.core, id), Sent::Combined(stores));
            }
            Performed::SentFlush(id) => {
                // Flushes that were inserted are not in the record.
                let to_come = self.flushes_to_come.get_mut(&(thread, virtual_line));
                if let Some(place) = to_come.and_then(VecDeque::pop_front) {
                    self.sent.insert((entry.core, id), Sent::Flush { thread, place });
                }
            }
        }
        Ok(())
    }

    fn next_store(&mut self, entry: &LoggedStore, line: u64, is_non_temporal: bool) -> Result<StoreId, CrashError> {
        let to_come = self.to_come.get_mut(&(entry.thread.0, line, is_non_temporal));
        let next = to_come.and_then(VecDeque::pop_front);
        let is_part = |store: &StoreId| {
            let store = &self.recorded.stores[*store as usize];
            entry.address >= store.address && entry.address + u64::from(entry.size) <= store.address + store.size
        };
        next.filter(is_part).ok_or_else(|| {
            let LoggedStore { thread, address, size, .. } = entry;
            let what = format!("thread {} stored {size} bytes to {address:#x} in the replay", thread.0);
            CrashError::Unsuitable(format!("{what}, which is not its next store to that line in the record"))
        })
    }

    fn line(&mut self, physical: LineAddress, virtual_line: u64) -> LineId {
        *self.numbers.entry(physical).or_insert_with(|| {
            let file_line = self.file.line_of(virtual_line).expect("its page is the pool's");
            self.lines.push(LineHistory { virtual_line, file_line, physical, versions: Vec::new() });
            (self.lines.len() - 1) as LineId
        })
    }

    /// Versions of combined stores are numbered when the caches take them; flushes are judged there.
    fn take_in_promises(&mut self, host: &Host) {
        let log = host.caches().persist_log().expect("it is kept");
        for promise in log.promises() {
            let Some(virtual_line) = self.virtual_line(promise.line) else { continue };
            match self.sent.remove(&(promise.by.core, promise.by.id)) {
                Some(Sent::Combined(stores)) => {
                    let line = self.line(promise.line, virtual_line);
                    self.visible.push((
                        promise.time,
                        line,
                        MadeVersion { version: promise.version.0, stores, change: 0 },
                    ));
                }
                Some(Sent::Flush { thread, place }) => {
                    self.flushes.push(ServedFlush { thread, place, is_clean: promise.is_clean });
                }
                None => {}
            }
        }
    }

    fn finish(mut self, recorded: &RecordedStores) -> Replayed {
        // A line's versions become visible in their order, whatever was computed first.
        self.visible.sort_by_key(|(time, line, made)| (*line, made.version, *time));
        let mut changes: Vec<(Time, Change)> = Vec::new();
        let mut last = (LineId::MAX, Time::ZERO);
        for (time, line, made) in std::mem::take(&mut self.visible) {
            let time = if last.0 == line { time.max(last.1) } else { time };
            last = (line, time);
            self.lines[line as usize].versions.push(made);
            changes.push((time, Change::Visible(line)));
        }
        for (number, foreign) in recorded.foreign.iter().enumerate() {
            let time = self.time_of(foreign.thread, foreign.acts_before);
            changes.push((time, Change::Foreign(number as u32)));
        }
        let log = self.host.caches().persist_log().expect("it is kept");
        for logged in log.acknowledged() {
            if let Some(&line) = self.numbers.get(&logged.line) {
                let versions = &self.lines[line as usize].versions;
                let durable = versions.partition_point(|made| made.version <= logged.version.0);
                changes.push((logged.time, Change::Durable(line, durable as u32)));
            }
        }
        // What is visible at the instant of a promise is visible before it; what the kernel wrote comes after the store by which its time is known.
        let rank = |change: &Change| match change {
            Change::Visible(_) => 0,
            Change::Foreign(_) => 1,
            Change::Durable(..) => 2,
        };
        changes.sort_by_key(|(time, change)| (*time, rank(change)));
        let changes = self.with_syncs(changes);
        let mut made = vec![0; self.lines.len()];
        for (place, (_, change)) in changes.iter().enumerate() {
            if let Change::Visible(line) = change {
                self.lines[*line as usize].versions[made[*line as usize]].change = place;
                made[*line as usize] += 1;
            }
        }
        Replayed { file: self.file.clone(), lines: self.lines, changes, flushes: self.flushes, ..Replayed::default() }
    }

    /// With what calls promised that wait for all stores to a range: what is visible in it by then is durable.
    fn with_syncs(&self, changes: Vec<(Time, Change)>) -> Vec<(Time, Change)> {
        let mut syncs = Vec::new();
        for (thread, acts) in self.recorded.threads.iter().enumerate() {
            for (place, act) in acts.iter().enumerate() {
                if let Act::Sync { start, length } = act.act {
                    syncs.push((self.time_of(thread as u32, place as u32), lines_of(start, length)));
                }
            }
        }
        syncs.sort_by_key(|(time, _)| *time);
        let mut syncs = syncs.into_iter().peekable();
        let (mut visible, mut durable) = (vec![0; self.lines.len()], vec![0; self.lines.len()]);
        let mut all = Vec::with_capacity(changes.len());
        for next in changes.into_iter().map(Some).chain([None]) {
            while let Some((time, range)) = syncs.next_if(|(time, _)| next.is_none_or(|(next, _)| *time < next)) {
                let lines = (0..self.lines.len()).filter(|line| range.contains(&self.lines[*line].virtual_line));
                for line in lines {
                    if visible[line] > durable[line] {
                        durable[line] = visible[line];
                        all.push((time, Change::Durable(line as LineId, visible[line])));
                    }
                }
            }
            match next {
                Some((_, Change::Visible(line))) => visible[line as usize] += 1,
                Some((_, Change::Durable(line, versions))) => {
                    durable[line as usize] = versions.max(durable[line as usize]);
                }
                _ => {}
            }
            all.extend(next);
        }
        all
    }

    /// When something happened that is in the record between two acts of a thread: with the last store before it.
    fn time_of(&self, thread: u32, acts_before: u32) -> Time {
        let acts = &self.recorded.threads[thread as usize][..acts_before as usize];
        let stores = acts.iter().rev().filter_map(|act| match act.act {
            Act::Store(store) => self.times.get(&store).copied(),
            _ => None,
        });
        stores.take(1).next().unwrap_or(Time::ZERO)
    }
}

/// Instructions that no run of the program needs: every flush that they made was of a clean line.
pub fn clean_everywhere(recorded: &RecordedStores, flushes: &[ServedFlush]) -> BTreeSet<u64> {
    let instruction = |flush: &ServedFlush| recorded.threads[flush.thread as usize][flush.place as usize].instruction;
    let needed: BTreeSet<u64> = flushes.iter().filter(|flush| !flush.is_clean).map(instruction).collect();
    flushes.iter().map(instruction).filter(|instruction| !needed.contains(instruction)).collect()
}
