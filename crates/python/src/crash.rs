//! The crash states of a record. Writing images and running checks on them is Python's part.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fencepost_checker::crash::choices::Choice;
use fencepost_checker::crash::content_hash::LINE;
use fencepost_checker::crash::explanation::ExplainedStore;
use fencepost_checker::crash::exploration::Patch;
use fencepost_checker::crash::image_stores::StoreRun;
use fencepost_checker::crash::mapped_reads::MappedReads;
use fencepost_checker::crash::named_functions::NamedFunctions;
use fencepost_checker::crash::operations::{MarksMatter, PassedMark};
use fencepost_checker::crash::origins::{OriginId, Origins};
use fencepost_checker::crash::pool_file::{MappedFile, PoolFile, place_in_file};
use fencepost_checker::crash::recorded_stores::RecordedStores;
use fencepost_checker::crash::redundant_flushes::{cost, redundant_flushes};
use fencepost_checker::crash::replay::{Setting, replay};
use fencepost_checker::crash::sites::SiteId;
use fencepost_checker::crash::source_lines::SourceLines;
use fencepost_checker::crash::{CrashError, Exploration};
use fencepost_record::{AddressRanges, CutPolicy, MarkKind, PmSelector, Record};
use fencepost_sim::address_space::{Part, Placement};
use fencepost_sim::config::Machine;
use fencepost_sim::config::topology::HostId;
use fencepost_sim::error::SimulationError;
use fencepost_sim::replay::simulation::{self, Program, Progress};
use fencepost_sim::switch::Scheme;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::faults::{InternalError, caught, input};
use crate::machine;
use crate::options::{Options, scheme_of};
use crate::record::{OpenRecord, shown, source};

/// A way through the instants of a record's replay, with the images that a power cut can leave at each.
#[pyclass(frozen, module = "fencepost._core")]
pub struct CrashStates {
    name: String,
    machine: Machine,
    scheme: Scheme,
    options: simulation::Options,
    persistent: AddressRanges,
    placement: Placement,
    warnings: Vec<String>,
    selector: PmSelector,
    program: Program,
    progress: Progress,
    state: Mutex<Option<(Exploration, Sources)>>,
}

/// Where what the program did comes from.
struct Sources {
    lines: SourceLines,
    origins: Origins,
}

type FilePatch<'py> = (u64, Bound<'py, PyBytes>);

/// Instants, each with the lines of the program that have stores in doubt there for the first time.
type FirstCuts = Vec<(usize, Vec<OriginId>)>;

#[pymethods]
impl CrashStates {
    /// `options` has one PM selector, that of the pool's file; a rule for the same file may say which PM.
    #[new]
    fn new(
        machine_name: &str,
        machine: &str,
        record: PyRef<'_, OpenRecord>,
        scheme: &str,
        options: &str,
    ) -> PyResult<Self> {
        let machine = machine::from_json(machine_name, machine)?;
        let (scheme, mut options) = (scheme_of(scheme)?, Options::read(options)?);
        let program = record.program().clone();
        let [selector] = &options.pm[..] else { return Err(input("one --pm file:PATTERN is needed")) };
        let selector = selector.clone();
        let persistent = options.persistent(program.record()).map_err(input)?;
        if !program.record().info().options.values {
            let name = program.record().source().name();
            return Err(input(format!("{name}: it has no values; record with --values --pm {selector}")));
        }
        if options.place.iter().any(|rule| rule.part == Part::Selected(selector.clone())) {
            options.pm.clear();
        }
        if !machine.nodes_of(HostId(0)).iter().any(|node| node.is_pm) {
            return Err(input(format!(
                "{machine_name} has no persistent memory, so a power cut leaves nothing there; pcs-table1 has some"
            )));
        }
        let (placement, warnings) = options.placement(program.record(), machine_name, &machine, HostId(0))?;
        if !placement.is_in_pm(&persistent, &machine.nodes_of(HostId(0))) {
            return Err(input(format!(
                "--place: {selector} has to lie in PM: crash states are what a power cut leaves there"
            )));
        }
        Ok(Self {
            name: format!("{machine_name} {scheme}"),
            machine,
            scheme,
            options: simulation::Options {
                persist: options.persist,
                pm_writes_limit: None,
                instructions_limit: None,
                threads: options.threads,
                seed: options.seed,
                sample: None,
                transport: fencepost_sim::transport::Transport::None,
            },
            persistent,
            placement,
            warnings,
            selector,
            program,
            progress: Progress::default(),
            state: Mutex::new(None),
        })
    }

    /// Replays the record; gives what is known of it then, as JSON. Calls of the functions that `operations` names are
    /// operations.
    fn replay(&self, py: Python<'_>, operations: Vec<String>) -> PyResult<String> {
        let run = || -> Result<(Exploration, Sources), CrashError> {
            let file = PoolFile::of_record(self.program.record(), &self.selector)?;
            let point_of_coherence = self.machine.core.point_of_coherence;
            let functions = NamedFunctions::of_record(self.program.record(), &operations)?;
            let recorded =
                RecordedStores::read(&self.program, &self.persistent, &file, point_of_coherence, &functions)?;
            let replayed = replay(&self.program, &self.setting(), &recorded, &file, &self.progress)?;
            let mut lines = SourceLines::of_record(self.program.record())?;
            let origins = Origins::of(&recorded.sites, &mut lines);
            let atomicity = self.machine.platform.atomicity_bytes.bytes();
            Ok((Exploration::new(Arc::new(recorded), Arc::new(replayed), atomicity), Sources { lines, origins }))
        };
        let (exploration, sources) =
            caught(|| self.name.clone(), || py.detach(run).map_err(|error| self.explain_error(&error)))?;
        let replayed = &exploration.replayed;
        let warnings = [&self.warnings[..], &replayed.warnings].concat();
        let file_json = |(number, file): (usize, &MappedFile)| {
            json!({
                "path": file.path,
                "mapped_bytes": file.mapped_bytes,
                "mapped_pages": replayed.file.mapped_pages(number),
                "stored_until": exploration.stored_until(number),
            })
        };
        let files: Vec<Value> = replayed.file.files.iter().enumerate().map(file_json).collect();
        let summary = json!({
            "files": files,
            "lines": replayed.lines.len(),
            "stores": exploration.recorded.stores.len(),
            "flushes": replayed.flushes.len(),
            "threads": exploration.recorded.threads.len(),
            "marks": replayed.marks.iter().map(mark_json).collect::<Vec<Value>>(),
            "duration_ps": replayed.duration_ps,
            "warnings": warnings,
        });
        *self.state.lock().expect("no panic holds it") = Some((exploration, sources));
        Ok(summary.to_string())
    }

    /// The pool as the program left it, everything visible: (offset, bytes); before the first call of `advance`.
    fn left<'py>(&self, py: Python<'py>) -> PyResult<Vec<FilePatch<'py>>> {
        self.with("the pool as it was left", |exploration, _| in_file(py, exploration.left()))
    }

    /// What is promised right before the last promise, and nothing newer: (offset, bytes); before the first call of
    /// `advance`.
    fn before_last_promise<'py>(&self, py: Python<'py>) -> PyResult<Vec<FilePatch<'py>>> {
        self.with("the pool before the last promise", |exploration, _| in_file(py, exploration.before_last_promise()))
    }

    /// How marks bear on the exploration: whether the check is told of them, and whether what comes before the first
    /// operation is skipped.
    fn set_marks_matter(&self, check_is_told: bool, skips_creation: bool) -> PyResult<()> {
        self.with("marks of operations", |exploration, _| {
            exploration.set_marks_matter(MarksMatter { check_is_told, skips_creation });
        })
    }

    /// What lies ahead: how many instants there are, how many are skipped, and, if `with_lines`, at which instants
    /// which lines of the program (their origins) have stores in doubt for the first time; before the first call of
    /// `advance`.
    fn survey(&self, with_lines: bool) -> PyResult<(usize, usize, FirstCuts)> {
        self.with("instants", |exploration, sources| {
            let mut ahead = exploration.clone();
            let (mut instants, mut first_cuts, mut known) = (0, Vec::new(), BTreeSet::<OriginId>::new());
            while ahead.advance() {
                if with_lines {
                    let sites = ahead.lost_sites(&vec![0; ahead.doubtful().len()]).into_iter();
                    let origins: BTreeSet<OriginId> = sites.map(|site| sources.origins.number_of(site)).collect();
                    let new: Vec<OriginId> = origins.into_iter().filter(|&origin| known.insert(origin)).collect();
                    if !new.is_empty() {
                        first_cuts.push((instants, new));
                    }
                }
                instants += 1;
            }
            (instants, ahead.skipped(), first_cuts)
        })
    }

    /// Goes back to before the first instant. Images that were given are not given again.
    fn rewind(&self) -> PyResult<()> {
        self.with("the first instant", |exploration, _| exploration.rewind())
    }

    /// How many marks were passed before the present instant.
    fn marks_passed(&self) -> PyResult<u32> {
        self.with("marks of operations", |exploration, _| exploration.marks_passed())
    }

    /// All that is performed before the mark with this number, as if it were durable: (offset, bytes); before the
    /// first call of `advance`.
    fn at_mark<'py>(&self, py: Python<'py>, number: u32) -> PyResult<Vec<FilePatch<'py>>> {
        self.with("the pool at a mark", |exploration, _| in_file(py, exploration.at_mark(number)))
    }

    /// Makes `replay` end soon, with KeyboardInterrupt; from any thread.
    fn cancel(&self) {
        self.progress.cancel();
    }

    /// Goes on to the next instant; its time in picoseconds, None after the last.
    fn advance(&self) -> PyResult<Option<u64>> {
        self.with("the next instant", |exploration, _| exploration.advance().then(|| exploration.now().as_ps()))
    }

    /// What has changed since the last call of what is promised durable: (offset, bytes).
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Vec<FilePatch<'py>>> {
        self.with("what is promised", |exploration, _| in_file(py, exploration.take_changes()))
    }

    /// The lines in doubt: (offset in the file, how many contents each may have).
    fn doubtful(&self) -> PyResult<Vec<(u64, usize)>> {
        self.with("the lines in doubt", |exploration, _| {
            let lines = exploration.doubtful().iter();
            let offset = |line: u32| exploration.replayed.lines[line as usize].file_line * LINE as u64;
            lines.map(|doubtful| (offset(doubtful.line), doubtful.contents.len())).collect()
        })
    }

    /// By line in doubt: which of its contents are a number of whole stores; the first and the last are.
    fn whole_contents(&self) -> PyResult<Vec<Vec<usize>>> {
        self.with("whole contents", |exploration, _| {
            exploration.doubtful().iter().map(|doubtful| doubtful.wholes(0).collect()).collect()
        })
    }

    /// Which images `images` would look at: (choices, whether these are all combinations).
    fn choices(&self, bound: usize, seed: u64, read: Option<HashSet<u64>>) -> PyResult<(Vec<Choice>, bool)> {
        self.with("choices of images", |exploration, _| {
            let (choices, _, is_all) = exploration.choices(bound, seed, read.as_ref());
            (choices, is_all)
        })
    }

    /// The images of this instant that were not given before: ((hash, choice) of each, duplicates, combinations,
    /// whether these are all).
    #[allow(clippy::type_complexity, reason = "a tuple is all that crosses the border")]
    fn images(
        &self,
        bound: usize,
        seed: u64,
        read: Option<HashSet<u64>>,
    ) -> PyResult<(Vec<(String, Choice)>, u64, f64, bool)> {
        self.with("images", |exploration, _| {
            let images = exploration.images(bound, seed, read.as_ref());
            let listed = images.images.into_iter().map(|image| (format!("{:032x}", image.hash.0), image.choice));
            (listed.collect(), images.duplicates, images.combinations, images.is_all)
        })
    }

    /// The hash of an image of this instant.
    fn hash(&self, choice: Choice) -> PyResult<String> {
        self.with("an image's hash", |exploration, _| format!("{:032x}", exploration.hash_of(&choice).0))
    }

    /// How an image of this instant differs from what is promised: (offset, bytes).
    fn patches<'py>(&self, py: Python<'py>, choice: Choice) -> PyResult<Vec<FilePatch<'py>>> {
        self.with("an image", |exploration, _| in_file(py, exploration.patches(&choice)))
    }

    /// The lines of the program that store to the pool, as JSON: places with the number (`origin`) that `lost` and
    /// `without_loss` know them by.
    fn stored_from(&self) -> PyResult<String> {
        self.with("where it is stored to", |exploration, sources| {
            let recorded = &exploration.recorded;
            let stores = 0..recorded.stores.len() as u32;
            let found: BTreeSet<OriginId> =
                stores.map(|store| sources.origins.number_of(recorded.site_of(store))).collect();
            let listed =
                found.into_iter().map(|origin| json!({"origin": origin, "source": sources.origins.get(origin)}));
            json!(listed.collect::<Vec<Value>>()).to_string()
        })
    }

    /// The origins whose stores an image of this instant lacks.
    fn lost(&self, choice: Choice) -> PyResult<Vec<OriginId>> {
        self.with("what an image lacks", |exploration, sources| {
            let sites = exploration.lost_sites(&choice).into_iter();
            let origins: BTreeSet<OriginId> = sites.map(|site| sources.origins.number_of(site)).collect();
            origins.into_iter().collect()
        })
    }

    /// The image of this instant that lacks no store of these origins, and the one that lacks them from the first one
    /// on.
    fn without_loss(&self, choice: Choice, origins: HashSet<OriginId>) -> PyResult<(Choice, Choice)> {
        self.with("an image that lacks less", |exploration, sources| {
            exploration.without_loss(&choice, |site| origins.contains(&sources.origins.number_of(site)))
        })
    }

    /// Why an image of this instant fails, as JSON; `early` and `lost` are the lines in doubt that it depends on: it
    /// passes with the content before, or behind, the one that they have.
    fn explain(&self, choice: Choice, early: Vec<usize>, lost: Vec<usize>) -> PyResult<String> {
        self.with("an explanation", |exploration, sources| {
            let explanation = exploration.explain(&choice, &early, &lost);
            let durable = explanation.durable.as_ref().map(|store| store_json(exploration, sources, store));
            let lost = explanation.lost.as_ref().map(|store| store_json(exploration, sources, store));
            let place = |site: Option<SiteId>| site.map_or(Value::Null, |site| place_json(exploration, sources, site));
            json!({
                "fault": explanation.fault,
                "durable": durable,
                "lost": lost,
                "flush": place(explanation.flush),
                "fence": place(explanation.fence),
                "idle_flush": place(explanation.idle_flush),
                "has_ended": explanation.has_ended,
            })
            .to_string()
        })
    }

    /// Of an image of this instant, what became of each line in doubt, as JSON: the stores that are durable and those
    /// that are lost.
    fn stores(&self, choice: Choice) -> PyResult<String> {
        self.with("the stores of an image", |exploration, sources| {
            let lines = exploration.stores_in(&choice);
            let lines = lines.iter().map(|line| {
                json!({
                    "file": named_place(exploration, line.offset).0,
                    "offset": named_place(exploration, line.offset).1,
                    "promised": line.promised.as_ref().map(|store| store_json(exploration, sources, store)),
                    "durable": runs_json(exploration, sources, &line.durable),
                    "torn": runs_json(exploration, sources, &line.torn),
                    "lost": runs_json(exploration, sources, &line.lost),
                })
            });
            json!(lines.collect::<Vec<Value>>()).to_string()
        })
    }

    /// The flushes that never mattered, and what they cost, as JSON.
    fn redundant(&self, py: Python<'_>) -> PyResult<String> {
        let (recorded, replayed) = self.with("redundant flushes", |exploration, _| {
            (Arc::clone(&exploration.recorded), Arc::clone(&exploration.replayed))
        })?;
        let measure = || cost(&self.program, &self.setting(), &recorded, &replayed.flushes, &self.progress);
        let cost = caught(|| self.name.clone(), || py.detach(measure).map_err(|error| self.explain_error(&error)))?;
        let found = redundant_flushes(&recorded, &replayed.flushes);
        self.with("redundant flushes", |_, sources| {
            let flushes = found.iter().map(|flush| {
                let without_ps = cost.as_ref().and_then(|cost| cost.without_one_ps.get(&flush.instruction));
                json!({
                    "executions": flush.executions, "redundant": flush.redundant, "evicted": flush.evicted,
                    "source": sources.lines.place(flush.instruction), "without_ps": without_ps,
                })
            });
            let flushes: Vec<Value> = flushes.collect();
            let cost = cost.as_ref().map(|cost| json!({ "with_ps": cost.with_ps, "without_ps": cost.without_ps }));
            json!({ "flushes": flushes, "cost": cost }).to_string()
        })
    }
}

impl CrashStates {
    fn setting(&self) -> Setting<'_> {
        Setting {
            machine: &self.machine,
            scheme: self.scheme,
            options: self.options.clone(),
            placement: self.placement.clone(),
        }
    }

    /// Does something with the exploration; `what` says what, for messages.
    fn with<T>(&self, what: &str, act: impl FnOnce(&mut Exploration, &mut Sources) -> T) -> PyResult<T> {
        let work = || {
            let mut state = self.state.lock().expect("no panic was in it");
            let (exploration, sources) = state.as_mut().ok_or_else(|| input("replay() comes first"))?;
            Ok(act(exploration, sources))
        };
        caught(|| format!("{}: {what}", self.name), work)
    }

    fn explain_error(&self, error: &CrashError) -> PyErr {
        match error {
            CrashError::Simulation(SimulationError::Cancelled) => PyKeyboardInterrupt::new_err(()),
            CrashError::Simulation(SimulationError::Deadlock { .. } | SimulationError::Livelock { .. }) => {
                InternalError::new_err(format!("{}: {error}", self.name))
            }
            _ => input(error),
        }
    }
}

/// What a recorded process read of the mapping of the file at `path`: the lines (offset / 64), None if it mapped no
/// such file; how many children it had; whether its record is whole.
#[pyfunction]
pub fn mapped_reads(py: Python<'_>, record: PathBuf, path: &str) -> PyResult<(Option<Vec<u64>>, u64, bool)> {
    let source = source(&record)?;
    let read = || MappedReads::of_record(&Record::open(source, CutPolicy::Allow)?, path);
    let MappedReads { lines, children, is_whole } = caught(|| shown(&record), || py.detach(read).map_err(input))?;
    Ok((lines, children, is_whole))
}

/// Where something comes from; null of a call of which that is not known.
fn place_json(exploration: &Exploration, sources: &Sources, site: SiteId) -> Value {
    let origin = sources.origins.get(sources.origins.number_of(site));
    let is_known = exploration.recorded.sites.get(site).instruction != 0 || origin.program_frame.is_some();
    if is_known { json!(origin) } else { Value::Null }
}

fn mark_json(passed: &PassedMark) -> Value {
    let kind = match passed.mark.kind {
        MarkKind::Begin => "begin",
        MarkKind::End => "end",
        MarkKind::Acknowledged => "acknowledged",
    };
    json!({ "kind": kind, "text": passed.mark.text, "thread": passed.thread, "ps": passed.time.as_ps() })
}

/// Of a pool of several files, the name of the one that a byte of it lies in; and where in it.
fn named_place(exploration: &Exploration, offset: u64) -> (Option<&str>, u64) {
    let files = &exploration.replayed.file.files;
    let (number, offset) = place_in_file(offset);
    let name = files[number].path.rsplit('/').next();
    (name.filter(|_| files.len() > 1), offset)
}

fn store_json(exploration: &Exploration, sources: &Sources, store: &ExplainedStore) -> Value {
    let (file, offset) = named_place(exploration, store.offset);
    json!({
        "thread": store.thread, "file": file, "offset": offset, "size": store.size,
        "instruction": exploration.recorded.sites.get(store.site).instruction,
        "origin": sources.origins.number_of(store.site), "source": place_json(exploration, sources, store.site),
    })
}

fn runs_json(exploration: &Exploration, sources: &Sources, runs: &[StoreRun]) -> Vec<Value> {
    let run = |run: &StoreRun| json!({"first": store_json(exploration, sources, &run.first), "stores": run.stores});
    runs.iter().map(run).collect()
}

fn in_file(py: Python<'_>, patches: Vec<Patch>) -> Vec<FilePatch<'_>> {
    patches.into_iter().map(|(line, bytes)| (line * LINE as u64, PyBytes::new(py, &bytes))).collect()
}
