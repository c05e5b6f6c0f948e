//! One replay of a record in its recorded order: when each store became visible, and when the host was promised that it
//! is durable.
//!
//! The simulator carries versions and no data. A version of a line is a store that was performed on it, so the stores
//! that the replay performs are matched with those of the record: by thread, line and program order, which is the order
//! in which a thread's stores to one line take effect. Non-temporal stores wait in a combining buffer and become one
//! version together.

use std::collections::{BTreeSet, HashMap, VecDeque};

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::Time;
use fencepost_sim::address_space::Placement;
use fencepost_sim::config::{Machine, Persistence};
use fencepost_sim::core::config::WHOLE_VECTORS;
use fencepost_sim::core::store_log::{LoggedStore, Performed};
use fencepost_sim::error::SimulationError;
use fencepost_sim::host::Host;
use fencepost_sim::replay::simulation::{HostProgram, Options, Outcome, Program, Progress, Simulation};
use fencepost_sim::switch::Scheme;

use super::CrashError;
use super::content_hash::LINE;
use super::operations::{MarkTimes, PassedMark, in_order, with_calls, with_marks};
use super::pool_file::PoolFile;
use super::recorded_stores::{Act, RecordedStores, StoreId, lines_of};

/// Number of a line among those that were written.
pub type LineId = u32;

/// One version of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeVersion {
    /// The simulator's number of it; of what a call wrote, which the simulator does not do, that of the one before.
    pub version: u64,
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
    /// Bytes that the pool held when it was mapped: number in [`RecordedStores::foreign`].
    Foreign(u32),
    /// A line got its next version.
    Visible(LineId),
    /// So many versions of a line are durable.
    Durable(LineId, u32),
    /// A thread has passed a mark: number in [`Replayed::marks`].
    Mark(u32),
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
    /// Whether that was so because the line had been evicted since its last flush: with less in the caches there had
    /// been something to write back.
    pub is_evicted: bool,
}

impl ServedFlush {
    /// Whether there was nothing to write back, and would not have been in any caches.
    pub fn is_redundant(&self) -> bool {
        self.is_clean && !self.is_evicted
    }
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
    /// What the program said of its operations, in order.
    pub marks: Vec<PassedMark>,
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
    /// Where the program's memory lies; the pool in PM.
    pub placement: Placement,
}

impl Setting<'_> {
    /// A replay of `program` in its recorded order, about to start.
    ///
    /// # Errors
    /// If the machine cannot run it.
    pub fn start(&self, program: &Program) -> Result<Simulation, SimulationError> {
        // Each store of the record is one store of the replay, however wide the machine's are.
        let mut machine = self.machine.clone();
        machine.core.widest_operation_bytes = WHOLE_VECTORS;
        let programs =
            [HostProgram { program: program.clone(), placement: self.placement.clone(), thread_limits: Vec::new() }];
        let mut simulation = Simulation::new(&machine, self.scheme, &programs, self.options.clone())?;
        simulation.needs_one_socket("crash exploration")?;
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
    let mut matching = Matching::new(host, recorded, file, setting.machine.platform.persistence);
    let log = host.stores().expect("it is kept").entries();
    for entry in log {
        matching.take_in(entry)?;
    }
    matching.take_in_promises(host);
    let mut replayed = matching.finish(recorded);
    replayed.duration_ps = duration_of(&outcome);
    replayed.warnings = outcome.unreliable_because.into_iter().chain(outcome.warnings).collect();
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
    persistence: Option<Persistence>,
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
    /// By thread: how many calls it has come to.
    calls: HashMap<u32, usize>,
    /// By thread and place: when calls were made.
    call_times: HashMap<(u32, u32), Time>,
    /// When marks were passed.
    marks: MarkTimes,
    /// Flushes, each with the place of its promise.
    flushes: Vec<(usize, ServedFlush)>,
}

/// The versions of a line, each with the time from which on it is visible.
type History = Vec<(Time, MadeVersion)>;

enum Sent {
    Combined(Vec<StoreId>),
    Flush { thread: u32, place: u32 },
}

impl<'a> Matching<'a> {
    fn new(
        host: &'a Host,
        recorded: &'a RecordedStores,
        file: &'a PoolFile,
        persistence: Option<Persistence>,
    ) -> Matching<'a> {
        let page = |page: u64| Some((host.line_of(page << 12)?.0 >> 6, page));
        let mut to_come: HashMap<_, VecDeque<_>> = HashMap::new();
        for (number, store) in recorded.stores.iter().enumerate().filter(|(_, store)| !store.is_of_call) {
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
            persistence,
            pages: file.pages().filter_map(page).collect(),
            to_come,
            flushes_to_come,
            combining: HashMap::new(),
            sent: HashMap::new(),
            numbers: HashMap::new(),
            lines: Vec::new(),
            visible: Vec::new(),
            times: HashMap::new(),
            calls: HashMap::new(),
            call_times: HashMap::new(),
            marks: MarkTimes::new(),
            flushes: Vec::new(),
        }
    }

    /// The line of the address space that a physical line is; none if it is not the pool's.
    fn virtual_line(&self, line: LineAddress) -> Option<u64> {
        Some(self.pages.get(&(line.0 >> 6))? << 6 | (line.0 & 63))
    }

    fn take_in(&mut self, entry: &LoggedStore) -> Result<(), CrashError> {
        let thread = entry.thread.0;
        match entry.performed {
            Performed::CameToCall => {
                self.come_to_call(thread, entry.time);
                return Ok(());
            }
            Performed::PassedMark => {
                self.marks.entry(thread).or_default().push(entry.time);
                return Ok(());
            }
            _ => {}
        }
        let Some(virtual_line) = self.virtual_line(entry.line) else { return Ok(()) };
        match entry.performed {
            Performed::CameToCall | Performed::PassedMark => unreachable!("that was one"),
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

    /// A call takes effect when it is made, and not before what its thread stored before it.
    fn come_to_call(&mut self, thread: u32, time: Time) {
        let number = self.calls.entry(thread).or_default();
        if let Some(Some(place)) = self.recorded.calls[thread as usize].get(*number) {
            self.call_times.insert((thread, *place), time);
        }
        *number += 1;
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
        for (number, promise) in log.promises().iter().enumerate() {
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
                    let flush = ServedFlush { thread, place, is_clean: promise.is_clean, is_evicted: false };
                    self.flushes.push((number, flush));
                }
                None => {}
            }
        }
    }

    fn finish(mut self, recorded: &RecordedStores) -> Replayed {
        let histories = self.histories();
        let mut changes: Vec<(Time, Change)> = Vec::new();
        for (line, history) in histories.iter().enumerate() {
            changes.extend(history.iter().map(|(time, _)| (*time, Change::Visible(line as LineId))));
            self.lines[line].versions = history.iter().map(|(_, made)| made.clone()).collect();
        }
        for (number, foreign) in recorded.foreign.iter().enumerate() {
            let time = self.time_of(foreign.thread, foreign.acts_before);
            changes.push((time, Change::Foreign(number as u32)));
        }
        changes.extend(self.promises(&histories));
        self.judge_flushes(&histories);
        // What is visible at the instant of a promise is visible before it.
        let rank = |change: &Change| match change {
            Change::Visible(_) => 0,
            Change::Foreign(_) => 1,
            Change::Durable(..) | Change::Mark(_) => 2,
        };
        changes.sort_by_key(|(time, change)| (*time, rank(change)));
        let changes = if self.persistence == Some(Persistence::None) { changes } else { self.with_syncs(changes) };
        let (changes, marks) = if recorded.marks_are_calls {
            with_calls(changes, recorded, &self.lines)
        } else {
            let marks = in_order(recorded, &self.marks);
            (with_marks(changes, &marks), marks)
        };
        let mut made = vec![0; self.lines.len()];
        for (place, (_, change)) in changes.iter().enumerate() {
            if let Change::Visible(line) = change {
                self.lines[*line as usize].versions[made[*line as usize]].change = place;
                made[*line as usize] += 1;
            }
        }
        let flushes = self.flushes.into_iter().map(|(_, flush)| flush).collect();
        Replayed { file: self.file.clone(), lines: self.lines, changes, marks, flushes, ..Replayed::default() }
    }

    /// What is durable, and from when on.
    fn promises(&self, histories: &[History]) -> Vec<(Time, Change)> {
        match self.persistence {
            Some(Persistence::None) => Vec::new(),
            Some(Persistence::Caches) => durable_when_visible(histories),
            Some(Persistence::Controller | Persistence::PersistBuffer) | None => {
                let mut promises = self.acknowledged();
                promises.extend(self.kept_for_calls(histories));
                promises
            }
        }
    }

    /// What the persist point acknowledged.
    fn acknowledged(&self) -> Vec<(Time, Change)> {
        let log = self.host.caches().persist_log().expect("it is kept");
        let mut acknowledged = Vec::new();
        for logged in log.acknowledged() {
            if let Some(&line) = self.numbers.get(&logged.line) {
                let is_durable = |made: &MadeVersion| made.version <= logged.version.0 && !self.is_of_call(made);
                let durable = self.lines[line as usize].versions.iter().rposition(is_durable);
                acknowledged.push((logged.time, Change::Durable(line, durable.map_or(0, |last| last as u32 + 1))));
            }
        }
        acknowledged
    }

    /// Whether a call made this version.
    fn is_of_call(&self, made: &MadeVersion) -> bool {
        self.recorded.stores[made.stores[0] as usize].is_of_call
    }

    /// The versions of each line with their times. They become visible in their order, whatever was computed first;
    /// what calls wrote lies between them by its time.
    fn histories(&mut self) -> Vec<History> {
        self.visible.sort_by_key(|(time, line, made)| (*line, made.version, *time));
        let mut histories: Vec<History> = vec![Vec::new(); self.lines.len()];
        for (time, line, made) in std::mem::take(&mut self.visible) {
            let history = &mut histories[line as usize];
            let time = history.last().map_or(time, |(last, _)| time.max(*last));
            history.push((time, made));
        }
        for (number, store) in self.recorded.stores.iter().enumerate().filter(|(_, store)| store.is_of_call) {
            let store_id = number as StoreId;
            let time = self.time_of(store.thread, store.place);
            self.times.insert(store_id, time);
            for virtual_line in lines_of(store.address, store.size) {
                if self.file.line_of(virtual_line).is_none() {
                    continue;
                }
                // What the simulated program has never touched has no place in its memory; then no line has this name.
                let nowhere = LineAddress(u64::MAX - virtual_line);
                let physical = self.host.line_of(virtual_line * LINE as u64).unwrap_or(nowhere);
                let line = self.line(physical, virtual_line) as usize;
                histories.resize(self.lines.len(), Vec::new());
                let place = histories[line].partition_point(|(before, _)| *before <= time);
                let version = place.checked_sub(1).map_or(0, |before| histories[line][before].1.version);
                histories[line].insert(place, (time, MadeVersion { version, stores: vec![store_id], change: 0 }));
            }
        }
        histories
    }

    /// What calls wrote, and a flush of the line that came later has made durable.
    fn kept_for_calls(&self, histories: &[History]) -> Vec<(Time, Change)> {
        let log = self.host.caches().persist_log().expect("it is kept");
        let mut kept = Vec::new();
        for promise in log.promises() {
            let (Some(&line), Some(time)) = (self.numbers.get(&promise.line), promise.kept) else { continue };
            let is_before = |(time, made): &&(Time, MadeVersion)| {
                *time <= promise.time && (made.version <= promise.version.0 || self.is_of_call(made))
            };
            let before: Vec<_> = histories[line as usize].iter().take_while(is_before).collect();
            if before.last().is_some_and(|(_, made)| self.is_of_call(made)) {
                kept.push((time, Change::Durable(line, before.len() as u32)));
            }
        }
        kept
    }

    /// Tells flushes apart that had nothing to write back: what a call wrote is in the cache that the simulator does
    /// not know, and what is missing there since the line's last flush was evicted.
    fn judge_flushes(&mut self, histories: &[History]) {
        let log = self.host.caches().persist_log().expect("it is kept");
        let mut flushes = std::mem::take(&mut self.flushes);
        let mut last: HashMap<LineAddress, (Time, u64)> = HashMap::new();
        for (promise, flush) in &mut flushes {
            let promise = &log.promises()[*promise];
            let (from, version) = last.insert(promise.line, (promise.time, promise.version.0)).unwrap_or_default();
            let Some(&line) = self.numbers.get(&promise.line) else { continue };
            let is_new = |(time, made): &(Time, MadeVersion)| {
                self.is_of_call(made) && *time <= promise.time && (from == Time::ZERO || *time > from)
            };
            flush.is_clean &= !histories[line as usize].iter().any(is_new);
            flush.is_evicted = flush.is_clean && promise.version.0 > version;
        }
        self.flushes = flushes;
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

    /// When something happened that is in the record between two acts of a thread: with the last store before it, or
    /// where it is a call that the thread came to later, then.
    fn time_of(&self, thread: u32, acts_before: u32) -> Time {
        let acts = &self.recorded.threads[thread as usize][..acts_before as usize];
        let stores = acts.iter().rev().filter_map(|act| match act.act {
            Act::Store(store) => self.times.get(&store).copied(),
            _ => None,
        });
        let before = stores.take(1).next().unwrap_or(Time::ZERO);
        self.call_times.get(&(thread, acts_before)).map_or(before, |time| before.max(*time))
    }
}

/// Of caches that persist. Non-temporal stores are visible when they have left the core's combining buffer.
fn durable_when_visible(histories: &[History]) -> Vec<(Time, Change)> {
    let of_line = |(line, history): (usize, &History)| {
        let durable = move |(number, time): (usize, Time)| (time, Change::Durable(line as LineId, number as u32 + 1));
        history.iter().map(|(time, _)| *time).enumerate().map(durable).collect::<Vec<_>>()
    };
    histories.iter().enumerate().flat_map(of_line).collect()
}

/// Instructions that no run of the program needs: every flush that they made was of a clean line, which no eviction had
/// made clean.
pub fn clean_everywhere(recorded: &RecordedStores, flushes: &[ServedFlush]) -> BTreeSet<u64> {
    let instruction = |flush: &ServedFlush| recorded.instruction_at(flush.thread, flush.place);
    let needed: BTreeSet<u64> = flushes.iter().filter(|flush| !flush.is_redundant()).map(instruction).collect();
    flushes.iter().map(instruction).filter(|instruction| !needed.contains(instruction)).collect()
}
