//! The options of a replay as a result's provenance holds them, and what they mean to the simulator.

use std::str::FromStr;

use fencepost_record::{AddressRanges, PmSelector, Record, RecordError};
use fencepost_sim::address_space::{Part, Placement, Rule, RuleOrigin};
use fencepost_sim::config::Machine;
use fencepost_sim::config::topology::HostId;
use fencepost_sim::core::persist::PersistMode;
use fencepost_sim::host::ThreadPlacement;
use fencepost_sim::host::sample_plan::SamplePlan;
use fencepost_sim::switch::Scheme;
use fencepost_sim::transport::Transport;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::faults::input;
use crate::machine;

/// `provenance.options` of docs/results.md, read.
pub struct Options {
    /// What is PM.
    pub pm: Vec<PmSelector>,
    /// Where the program's memory lies, besides.
    pub place: Vec<Rule>,
    /// On which cores threads run.
    pub threads: ThreadPlacement,
    /// What is persisted.
    pub persist: PersistMode,
    /// Writes to PM after which a replay ends.
    pub limit_pm_writes: Option<u64>,
    /// Instructions after which a replay ends.
    pub limit_instructions: Option<u64>,
    /// Which start times threads get.
    pub seed: u64,
    /// Which parts are replayed in detail.
    pub sample: Option<SamplePlan>,
    /// Who sees to it that threads share the fabric fairly.
    pub transport: Transport,
}

/// The members of `provenance.options` that mean something here; the others are Python's.
#[derive(Deserialize)]
struct Document {
    schemes: Vec<String>,
    pm: Vec<String>,
    #[serde(default)]
    place: Vec<String>,
    #[serde(default)]
    threads: Option<String>,
    #[serde(default)]
    transport: Option<String>,
    persist: String,
    limit_pm_writes: Option<u64>,
    limit_instructions: Option<u64>,
    seed: u64,
    sample: Option<String>,
}

impl Document {
    fn read(options: &str) -> PyResult<Document> {
        serde_json::from_str(options).map_err(|error| input(format!("options: {error}")))
    }
}

/// Checks options (JSON, `provenance.options`) and gives them back.
#[pyfunction]
pub fn options_resolve(options: &str) -> PyResult<String> {
    let schemes = Document::read(options)?.schemes;
    if schemes.is_empty() {
        return Err(input(format!("no scheme is given; there are: {}", names(&Scheme::ALL))));
    }
    for (index, scheme) in schemes.iter().enumerate() {
        scheme_of(scheme)?;
        if schemes[..index].contains(scheme) {
            return Err(input(format!("scheme {scheme} is given twice")));
        }
    }
    let read = Options::read(options)?;
    let mut json: Value = serde_json::from_str(options).map_err(input)?;
    json["sample"] = json!(read.sample);
    json["place"] = json!(read.place.iter().map(Rule::to_string).collect::<Vec<_>>());
    json["threads"] = json!(read.threads.to_string());
    json["transport"] = json!(read.transport.name());
    Ok(json.to_string())
}

/// Checks that a machine (JSON) has the memory nodes and cores that options (JSON) name.
#[pyfunction]
pub fn options_check(options: &str, machine_name: &str, machine: &str) -> PyResult<()> {
    let (read, machine) = (Options::read(options)?, machine::from_json(machine_name, machine)?);
    let wrong = |problem: String| input(format!("{machine_name}: {problem}"));
    read.threads.check(machine.core.count as usize).map_err(wrong)?;
    for host in 0..machine.topology().hosts.len() {
        let nodes = machine.nodes_of(HostId(host as u32));
        for rule in &read.place {
            rule.check(&nodes).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(())
}

/// The scheme of that name.
pub fn scheme_of(name: &str) -> PyResult<Scheme> {
    Scheme::from_str(name).map_err(input)
}

impl Options {
    /// Reads the options; with one clear message if they are wrong.
    pub fn read(options: &str) -> PyResult<Options> {
        let document = Document::read(options)?;
        let selectors: Result<Vec<PmSelector>, _> = document.pm.iter().map(|text| text.parse()).collect();
        Ok(Options {
            pm: selectors.map_err(input)?,
            place: document.place.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(input)?,
            threads: document.threads.as_deref().map_or(Ok(ThreadPlacement::default()), str::parse).map_err(input)?,
            transport: document.transport.as_deref().map_or(Ok(Transport::None), str::parse).map_err(input)?,
            persist: persist_of(&document.persist)?,
            limit_pm_writes: document.limit_pm_writes,
            limit_instructions: document.limit_instructions,
            seed: document.seed,
            sample: document.sample.as_deref().map(str::parse).transpose().map_err(input)?,
        })
    }

    /// Where the memory of `record` lies on `host` of that machine, and what a reader has to know about it.
    pub fn placement(
        &self,
        record: &Record,
        machine_name: &str,
        machine: &Machine,
        host: HostId,
    ) -> PyResult<(Placement, Vec<String>)> {
        let rules_of_machine = machine.placement_rules();
        let nodes = machine.nodes_of(host);
        // `--pm heap` is what holds where nobody says anything, so a machine that says something of the heap replaces
        // it.
        let heap = Part::Selected(PmSelector::Heap);
        let is_of_heap = |rule: &Rule| rule.part == heap || rule.part == Part::All;
        let places_heap = rules_of_machine.iter().any(is_of_heap);
        let has_pm = nodes.iter().any(|node| node.is_pm);
        if let (false, Some(other)) = (has_pm, self.pm.iter().find(|selector| **selector != PmSelector::Heap)) {
            let listed = nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
            let message = format!("the machine has no persistent memory, only {listed}; say --place {other}=NODE");
            return Err(input(format!("--pm {other}: {message}")));
        }
        let lacks_pm = !has_pm && !self.place.iter().any(is_of_heap);
        let is_usual = |selector: &&PmSelector| **selector == PmSelector::Heap && (places_heap || lacks_pm);
        let pm = self.pm.iter().filter(|selector| !is_usual(selector));
        let own: Vec<Rule> = pm.cloned().map(Rule::in_pm).chain(self.place.iter().cloned()).collect();
        let is_replaced = |rule: &Rule| own.iter().any(|other| other.part == rule.part);
        let of_machine = rules_of_machine.into_iter().filter(|rule| !is_replaced(rule));
        let rules: Vec<Rule> = of_machine.chain(own.iter().cloned()).collect();
        let (placement, unmatched) = Placement::resolve(&rules, record.memory_map().map_err(input)?, &nodes)
            .map_err(|error| input(format!("{machine_name}: {error}")))?;
        let warning = |rule: &Rule| {
            let of_machine =
                if rule.origin == RuleOrigin::Machine { format!("{machine_name}: ") } else { String::new() };
            format!("{of_machine}{} matches nothing in this record", rule.as_given())
        };
        let mut warnings: Vec<String> = unmatched.into_iter().map(warning).collect();
        if lacks_pm && self.pm.contains(&PmSelector::Heap) && !places_heap {
            let first = &nodes[0].name;
            warnings.push(format!(
                "the machine has no persistent memory, so the heap lies in {first}; --place heap=NODE puts it elsewhere"
            ));
        }
        Ok((placement, warnings))
    }

    /// Whether they name persistent memory: other than `heap`, which is PM where nobody says anything, or by its node.
    pub fn asks_for_pm(&self, machine: &Machine, host: HostId) -> bool {
        let nodes = machine.nodes_of(host);
        let is_pm = |name: &String| nodes.iter().any(|node| node.is_pm && node.name == *name);
        self.pm.iter().any(|selector| *selector != PmSelector::Heap)
            || self.place.iter().any(|rule| rule.nodes.iter().any(is_pm))
    }

    /// The addresses of `record` that `--pm` means.
    pub fn persistent(&self, record: &Record) -> Result<AddressRanges, RecordError> {
        let map = record.memory_map()?;
        let selected: Vec<AddressRanges> = self.pm.iter().map(|selector| map.select(selector)).collect();
        Ok(AddressRanges::union(selected.iter().flat_map(|ranges| ranges.as_slice().iter().copied())))
    }
}

fn persist_of(text: &str) -> PyResult<PersistMode> {
    let stores = text.strip_prefix("every:").map(str::parse);
    match (text, stores) {
        ("program", _) => Ok(PersistMode::Program),
        ("sync", _) => Ok(PersistMode::Sync),
        (_, Some(Ok(stores))) if stores > 0 => Ok(PersistMode::Every(stores)),
        _ => Err(input(format!("--persist {text}: it has to be program, sync or every:N with N of at least 1"))),
    }
}

fn names(schemes: &[Scheme]) -> String {
    schemes.iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ")
}
