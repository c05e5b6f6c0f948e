//! Where a replay persists and waits, by source line: what the simulator counted for each instruction, put together by
//! where that comes from.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fencepost_checker::crash::source_lines::{SourceFrame, SourceLines, SourcePlace};
use fencepost_isa::InstructionSet;
use fencepost_isa::micro_op::Operation;
use fencepost_kernel::message::Stage;
use fencepost_kernel::stats::{Histogram, LatencySum};
use fencepost_record::RecordError;
use fencepost_sim::cache::persist_sites::{PersistSite, PersistSites, SiteId, SiteKey};
use fencepost_sim::core::access_sites::{AccessKey, AccessSites, MemoryKind, Origin};
use fencepost_sim::replay::simulation::{HostProgram, Program, Simulation};
use fencepost_sim::results::measure;
use serde_json::{Map, Value, json};

/// What makes one line of the program out of instructions: their source, or, where nobody knows that, their address in
/// their module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Source(Option<String>, Vec<(Option<String>, Option<String>, Option<u32>)>),
    Address(Option<String>, u64),
}

impl Place {
    fn of(place: &SourcePlace) -> Place {
        let frame = |frame: &SourceFrame| (frame.function.clone(), frame.file.clone(), frame.line);
        if has_line(place) {
            return Place::Source(place.module.clone(), place.frames.iter().map(frame).collect());
        }
        Place::Address(place.module.clone(), if place.module.is_some() { place.offset } else { place.address })
    }
}

/// A line of the program that persists or waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LineKey {
    kind: &'static str,
    is_inserted: bool,
    place: Place,
    caller: Option<Place>,
}

/// The sum over its instructions.
struct Line {
    key: LineKey,
    place: SourcePlace,
    caller: Option<SourcePlace>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    lines: u64,
    clean: u64,
    behind_writes: u64,
    outside_pm: u64,
    persists: LatencySum,
    held_ps: u64,
    fence_wait_ps: u64,
    executions: u64,
    stall: Histogram,
    waited_ps: u64,
    stores_ps: u64,
    /// By number of line.
    waited_for: BTreeMap<usize, u64>,
}

/// Of which blocks source lines are known; block 0, which is none, needs none.
pub fn has_source(program: &Program) -> Result<Arc<[bool]>, RecordError> {
    let mut sources = SourceLines::of_record(program.record())?;
    let blocks = 0..program.blocks().len() as u32;
    Ok(blocks.map(|block| block == 0 || has_line(&place_in(program, &mut sources, block, 0))).collect())
}

fn has_line(place: &SourcePlace) -> bool {
    place.frames.iter().any(|frame| frame.line.is_some())
}

/// The sites of all hosts of a replay that counted them, as JSON: `flushes` and `fences` of docs/explain-reference.md;
/// and what a reader must know of them.
pub fn persist_sites(
    simulation: &Simulation,
    programs: &[HostProgram],
) -> Result<(Value, BTreeSet<String>), RecordError> {
    let mut lines: Vec<Line> = Vec::new();
    let mut warnings = BTreeSet::new();
    let mut numbers: HashMap<LineKey, usize> = HashMap::new();
    for (host, HostProgram { program, .. }) in simulation.system().hosts().zip(programs) {
        let places = Places::of(program, host.persist_sites().flat_map(PersistSites::sites))?;
        warnings.extend(places.changed.iter().map(|path| changed_warning(path)));
        // Each socket has its own sites of an instruction.
        for sites in host.persist_sites().map(PersistSites::sites) {
            let of_site: Vec<usize> = sites
                .iter()
                .map(|site| {
                    let line = places.line(&site.key);
                    *numbers.entry(line.key.clone()).or_insert_with(|| {
                        lines.push(line);
                        lines.len() - 1
                    })
                })
                .collect();
            for (site, &number) in sites.iter().zip(&of_site) {
                lines[number].counts.add(site, &of_site);
            }
        }
    }
    let numbered = || lines.iter().enumerate();
    let flushes: Value = numbered().filter(|(_, line)| line.persists()).map(flush_line).collect();
    let fences: Value = numbered().filter(|(_, line)| line.counts.executions > 0).map(fence_line).collect();
    Ok((json!({"flushes": flushes, "fences": fences}), warnings))
}

/// A line of the program that loads or stores.
struct AccessLine {
    kind: &'static str,
    place: SourcePlace,
    caller: Option<SourcePlace>,
    count: u64,
    from_memory: [u64; MemoryKind::ALL.len()],
    lines: [u64; Origin::COUNT],
    waits_ps: [u64; Origin::COUNT],
}

/// The loads and stores of all hosts of a replay that counted them, as JSON: `accesses` of docs/explain-reference.md;
/// and what a reader must know of them.
pub fn access_sites(
    simulation: &Simulation,
    programs: &[HostProgram],
) -> Result<(Value, BTreeSet<String>), RecordError> {
    let mut lines: Vec<AccessLine> = Vec::new();
    let mut warnings = BTreeSet::new();
    let mut numbers: HashMap<(&'static str, Place, Option<Place>), usize> = HashMap::new();
    for (host, HostProgram { program, .. }) in simulation.system().hosts().zip(programs) {
        let mut sources = SourceLines::of_record(program.record())?;
        for site in host.access_sites().map_or(&[][..], AccessSites::sites) {
            let AccessKey { block, micro_op, is_store, caller } = site.key;
            let kind = match (block, is_store) {
                (0, _) => "synchronisation",
                (_, true) => "store",
                (_, false) => "load",
            };
            let place = place_in(program, &mut sources, block, micro_op);
            let caller = (caller != 0).then(|| place_in(program, &mut sources, caller, last_of(program, caller)));
            let line = (kind, Place::of(&place), caller.as_ref().map(Place::of));
            let number = *numbers.entry(line).or_insert_with(|| {
                lines.push(AccessLine::new(kind, place, caller));
                lines.len() - 1
            });
            let line = &mut lines[number];
            line.count += site.count;
            let from_memory = MemoryKind::ALL.map(|kind| site.from_memory(kind));
            line.from_memory.iter_mut().zip(from_memory).for_each(|(all, own)| *all += own);
            line.lines.iter_mut().zip(site.lines).for_each(|(all, own)| *all += own);
            line.waits_ps.iter_mut().zip(site.waits_ps).for_each(|(all, own)| *all += own);
        }
        warnings.extend(sources.changed().iter().map(|path| changed_warning(path)));
    }
    Ok((lines.iter().map(access_line).collect(), warnings))
}

impl AccessLine {
    fn new(kind: &'static str, place: SourcePlace, caller: Option<SourcePlace>) -> AccessLine {
        let (from_memory, lines, waits_ps) = ([0; MemoryKind::ALL.len()], [0; Origin::COUNT], [0; Origin::COUNT]);
        AccessLine { kind, place, caller, count: 0, from_memory, lines, waits_ps }
    }
}

fn access_line(line: &AccessLine) -> Value {
    let from_memory = MemoryKind::NAMES.iter().zip(line.from_memory);
    let origins = Origin::NAMES.iter().zip(line.lines.into_iter().zip(line.waits_ps));
    let origins = origins.filter(|(_, (lines, wait_ps))| lines + wait_ps > 0);
    let origins =
        origins.map(|(name, (lines, wait_ps))| ((*name).to_owned(), json!({"lines": lines, "wait_ns": ns(wait_ps)})));
    json!({
        "kind": line.kind,
        "is_inserted": false,
        "place": line.place,
        "called_from": line.caller,
        "count": line.count,
        "from_memory": from_memory.map(|(name, count)| ((*name).to_owned(), json!(count))).collect::<Map<_, _>>(),
        "wait_ns": ns(line.waits_ps.iter().sum()),
        "origins": origins.collect::<Map<_, _>>(),
    })
}

/// Where that micro-operation comes from; block 0 stands for none.
fn place_in(program: &Program, sources: &mut SourceLines, block: u32, micro_op: u32) -> SourcePlace {
    match block {
        0 => SourcePlace::default(),
        _ => program.instruction_of(block, micro_op).map_or_else(SourcePlace::default, |at| sources.place(at)),
    }
}

/// The last micro-operation of a block.
fn last_of(program: &Program, block: u32) -> u32 {
    program.blocks()[block as usize].micro_ops.len() as u32 - 1
}

fn changed_warning(path: &str) -> String {
    format!("{path} is not the file that was recorded: its source lines are not known")
}

impl Counts {
    fn add(&mut self, site: &PersistSite, of_site: &[usize]) {
        self.lines += site.lines;
        self.clean += site.clean;
        self.behind_writes += site.behind_writes;
        self.outside_pm += site.outside_pm;
        self.persists.add_all(&site.persists);
        self.held_ps += site.held_ps;
        self.fence_wait_ps += site.fence_wait_ps;
        self.executions += site.executions;
        self.stall.add(&site.stall);
        self.waited_ps += site.waited_ps;
        self.stores_ps += site.stores_ps;
        for (&site, ps) in &site.waited_for {
            *self.waited_for.entry(of_site[site as SiteId as usize]).or_default() += ps;
        }
    }
}

impl Line {
    fn persists(&self) -> bool {
        self.counts.lines + self.counts.outside_pm + self.counts.persists.count() + self.counts.fence_wait_ps > 0
    }

    /// The members that say where it is.
    fn identity(&self, number: usize) -> Map<String, Value> {
        let members = json!({
            "number": number,
            "kind": self.key.kind,
            "is_inserted": self.key.is_inserted,
            "place": self.place,
            "called_from": self.caller,
        });
        let Value::Object(members) = members else { unreachable!("it was made as one") };
        members
    }
}

fn flush_line((number, line): (usize, &Line)) -> Value {
    let mut entry = line.identity(number);
    let counts = &line.counts;
    let parts = Stage::NAMES.iter().zip(counts.persists.parts_ps());
    entry.insert("lines".into(), json!(counts.lines));
    entry.insert("outside_pm".into(), json!(counts.outside_pm));
    entry.insert("redundant".into(), json!(counts.clean));
    entry.insert("redundant_behind_writes".into(), json!(counts.behind_writes));
    entry.insert("persist".into(), measure(counts.persists.latency()));
    entry.insert("latency_ns".into(), json!(counts.persists.latency().sum().as_ns()));
    entry.insert("parts_ns".into(), parts.map(|(name, ps)| ((*name).to_owned(), json!(ns(ps)))).collect());
    entry.insert("held_ns".into(), json!(ns(counts.held_ps)));
    entry.insert("fence_wait_ns".into(), json!(ns(counts.fence_wait_ps)));
    Value::Object(entry)
}

fn fence_line((number, line): (usize, &Line)) -> Value {
    let mut entry = line.identity(number);
    let counts = &line.counts;
    entry.insert("executions".into(), json!(counts.executions));
    entry.insert("stall".into(), measure(&counts.stall));
    entry.insert("stall_ns".into(), json!(counts.stall.sum().as_ns()));
    entry.insert("waited_ns".into(), json!(ns(counts.waited_ps)));
    entry.insert("stores_ns".into(), json!(ns(counts.stores_ps)));
    let waited_for = counts.waited_for.iter().map(|(number, ps)| json!({"number": number, "wait_ns": ns(*ps)}));
    entry.insert("waited_for".into(), waited_for.collect());
    Value::Object(entry)
}

/// Where the instructions of one program come from.
struct Places {
    instruction_set: InstructionSet,
    /// By block and micro-operation.
    found: HashMap<(u32, u32), SourcePlace>,
    /// The last instruction of a block that calls.
    callers: HashMap<u32, SourcePlace>,
    /// Instructions in functions that were called from more than one line.
    many_callers: HashSet<(u32, u32)>,
    /// Modules whose files are not what was recorded.
    changed: Vec<String>,
}

impl Places {
    fn of<'a>(program: &Program, sites: impl Iterator<Item = &'a PersistSite>) -> Result<Places, RecordError> {
        let mut sources = SourceLines::of_record(program.record())?;
        let mut place = |block: u32, micro_op: u32| place_in(program, &mut sources, block, micro_op);
        let mut places = Places {
            instruction_set: program.instruction_set(),
            found: HashMap::new(),
            callers: HashMap::new(),
            many_callers: HashSet::new(),
            changed: Vec::new(),
        };
        let mut callers: HashMap<(u32, u32), HashSet<Place>> = HashMap::new();
        for SiteKey { block, micro_op, caller, .. } in sites.map(|site| site.key) {
            places.found.entry((block, micro_op)).or_insert_with(|| place(block, micro_op));
            if caller != 0 {
                let last = last_of(program, caller);
                let calling = places.callers.entry(caller).or_insert_with(|| place(caller, last));
                let known = callers.entry((block, micro_op)).or_default();
                known.insert(Place::of(calling));
                if known.len() > 1 {
                    places.many_callers.insert((block, micro_op));
                }
            }
        }
        places.changed = sources.changed().to_vec();
        Ok(places)
    }

    fn line(&self, key: &SiteKey) -> Line {
        let at = (key.block, key.micro_op);
        let place = self.found[&at].clone();
        // Where a function with source lines has one caller, that says nothing; where a frame does not show which of
        // several it was, nobody knows.
        let caller = self.callers.get(&key.caller);
        let is_told = |caller: &&SourcePlace| self.many_callers.contains(&at) || !has_line(&place) && has_line(caller);
        let caller = caller.filter(is_told).cloned();
        let (kind, is_inserted) = kind_of(key, self.instruction_set);
        let key = LineKey { kind, is_inserted, place: Place::of(&place), caller: caller.as_ref().map(Place::of) };
        Line { key, place, caller, counts: Counts::default() }
    }
}

/// What an instruction is called, and whether it was inserted rather than in the program.
fn kind_of(key: &SiteKey, set: InstructionSet) -> (&'static str, bool) {
    let kind = match key.operation {
        // The access to its object that the replay makes in the place of a call.
        Operation::Atomic(_) if key.is_inserted => return ("synchronisation", false),
        other => set.name_of(other).expect("only flushes, fences, non-temporal stores and atomics persist or wait"),
    };
    (kind, key.is_inserted)
}

fn ns(ps: u64) -> f64 {
    ps as f64 / 1000.0
}
