//! A machine: every table of its file, typed and checked, and the graph of its fabric.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Faults;
use super::errors::{ConfigError, ConfigErrors};
use super::fabric::{FabricConfig, Overrides};
use super::hold_up::HoldUpConfig;
use super::layers::{Layers, SourceText};
use super::linux::LinuxConfig;
use super::persist::PersistConfig;
use super::placement::PlacementConfig;
use super::platform::PlatformConfig;
use super::sections::{section, typed};
use super::topology::{DramNode, HostId, Topology};
use super::tree::{Node, Origin};
use super::{assignments, rules, wiring};
use crate::address_space::{MemoryNode, Rule};
use crate::cache::config::CacheConfig;
use crate::core::config::{BranchPredictorConfig, CoreConfig, SimulationConfig, TlbConfig};
use crate::device::type2::Type2Config;
use crate::device::{DramConfig, PageEngineConfig, PcieConfig, PmConfig, SwapDeviceConfig};
use crate::home_agent::{SocketLinkConfig, SocketsConfig};
use crate::host_bridge::HostBridgeConfig;
use crate::switch::SwitchConfig;
use crate::transport::TransportConfig;
use fencepost_kernel::link::LinkConfig;
use fencepost_kernel::time::Duration;

/// A simulated machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What this machine is, in one line. It is not inherited.
    pub description: String,
    /// The cores of each host.
    pub core: CoreConfig,
    /// Their branch predictors.
    pub branch_predictor: BranchPredictorConfig,
    /// Their translation look-aside buffers.
    pub tlb: TlbConfig,
    /// The caches of each host by level: `l1i`, `l1d`, then `l2`, `l3` and so on.
    #[schemars(extend("propertyNames" = {"pattern": "^(l1i|l1d|l[2-9])$"}))]
    pub cache: BTreeMap<String, CacheConfig>,
    /// The sockets of each host, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<SocketsConfig>,
    /// The link between any two sockets of a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_link: Option<SocketLinkConfig>,
    /// What lies between the last-level cache and the ports to memory.
    pub host_bridge: HostBridgeConfig,
    /// The DRAM of each host.
    pub dram: DramConfig,
    /// CXL links. A key holds for all of them unless `[fabric.link."FROM -> TO"]` gives it for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkConfig>,
    /// CXL switches. A key holds for all of them unless `[fabric.switch.NAME]` gives it for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchConfig>,
    /// Persistent memory devices. A key holds for all of them unless `[fabric.pm.NAME]` gives it for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pm: Option<PmConfig>,
    /// Memory expanders: DRAM devices in the fabric. Keys that are not here are those of `[dram]`;
    /// `[fabric.expander.NAME]` gives them for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expander: Option<Overrides<DramConfig>>,
    /// The memory of accelerators. Keys that are not here are those of `[dram]`; `[fabric.accelerator.NAME]` gives them
    /// for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Overrides<DramConfig>>,
    /// The coherence engine of accelerators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type2: Option<Type2Config>,
    /// A PCIe device, to compare accelerators with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie: Option<PcieConfig>,
    /// What works on pages in the accelerators, and in the PCIe device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_engine: Option<PageEngineConfig>,
    /// Where pages are swapped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_device: Option<SwapDeviceConfig>,
    /// What the kernel's own paths take where pages are reclaimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux: Option<LinuxConfig>,
    /// The source that feeds the platform when power fails, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_up: Option<HoldUpConfig>,
    /// What the platform promises of a power cut.
    #[serde(default, skip_serializing_if = "PlatformConfig::is_default")]
    pub platform: PlatformConfig,
    /// Hosts, switches and PM devices, and what connects them.
    pub fabric: FabricConfig,
    /// Where the memory of programs lies. A `--place` for the same part replaces a rule.
    #[serde(default, skip_serializing_if = "PlacementConfig::is_empty")]
    pub placement: PlacementConfig,
    /// What is inserted into programs that persist nothing themselves.
    #[serde(default)]
    pub persist: PersistConfig,
    /// How a transport of the pool is set, where one runs.
    #[serde(default)]
    pub transport: TransportConfig,
    /// How the simulation itself is run.
    pub simulation: SimulationConfig,
    /// The fabric as a graph.
    #[serde(skip)]
    topology: Topology,
}

/// The levels of a host's caches, from the core outwards.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLevels<'a> {
    /// First level, instructions.
    pub l1i: &'a CacheConfig,
    /// First level, data.
    pub l1d: &'a CacheConfig,
    /// The levels below both, with their names; the last one is the last-level cache.
    pub lower: Vec<(&'a str, &'a CacheConfig)>,
}

impl CacheLevels<'_> {
    /// What a load that misses in every level pays to them, on its way to memory and back, with cores of `clock_ghz`.
    pub fn miss_latency(&self, clock_ghz: f64) -> Duration {
        let levels = std::iter::once(self.l1d).chain(self.lower.iter().map(|(_, level)| *level));
        let cycles =
            levels.map(|level| u64::from(level.latency_cycles) + u64::from(level.response_cycles)).sum::<u64>();
        Duration::from_ghz(clock_ghz) * cycles
    }
}

impl Machine {
    /// The machine that `text` describes, together with what it extends (`lookup` finds a machine's text by its name)
    /// and with each `PATH=VALUE` of `sets` on top, the last one uppermost.
    ///
    /// # Errors
    /// All mistakes in those texts and assignments.
    pub fn resolve(
        text: SourceText,
        lookup: &dyn Fn(&str) -> Option<SourceText>,
        sets: &[String],
    ) -> Result<Machine, ConfigErrors> {
        let mut faults = Faults::default();
        let mut layers = Layers::read(text, lookup, &mut faults);
        if !faults.is_empty() {
            // Half a machine would only give errors that follow from the first one.
            return Err(named(faults, &layers.sources));
        }
        let mut tree = layers.merged();
        for layer in &layers.trees {
            faults.check_layer(layer, &tree);
        }
        if layers.trees[0].entry("description").is_none() {
            let origin = Origin { source: 0, line: 1 };
            faults.add(origin, "", "the key `description` is missing: what this machine is, in one line");
        }
        for set in sets {
            let source = layers.add_source(assignments::source_name(set));
            if let Some(assigned) = assignments::parse(set, source, &tree, &mut faults) {
                tree.overlay(assigned.clone());
                faults.check_layer(&assigned, &tree);
            }
        }
        Machine::assemble(&tree, faults, &layers.sources)
    }

    /// A machine from what [`Machine::to_json`] made; `name` is what messages call it.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn from_json(name: &str, json: &str) -> Result<Machine, ConfigErrors> {
        let sources = BTreeMap::from([(0, name.to_owned())]);
        let mut faults = Faults::default();
        let tree = match serde_json::from_str(json) {
            Ok(json) => Node::from_json(&json, 0),
            Err(error) => {
                let line = error.line() as u32;
                faults.add(Origin { source: 0, line }, "", format!("this is not JSON: {error}"));
                return Err(named(faults, &sources));
            }
        };
        faults.check_layer(&tree, &tree);
        Machine::assemble(&tree, faults, &sources)
    }

    /// The resolved machine with every key written out, as results keep it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("config structs have text keys and finite numbers only")
    }

    /// The fabric as a graph.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The memory nodes of `host`: its own DRAM first.
    pub fn nodes_of(&self, host: HostId) -> Vec<MemoryNode> {
        self.topology.nodes_of(host, self.dram.capacity_mib << 20)
    }

    /// The same machine, each host with so many DRAMs of its own. No machine file can say that yet.
    #[cfg(test)]
    pub(crate) fn with_drams(mut self, count: u64) -> Machine {
        self.topology.hosts.iter_mut().for_each(|host| host.drams = DramNode::of_host(count));
        self
    }

    /// What `placement` says.
    pub fn placement_rules(&self) -> Vec<Rule> {
        let rules = self.placement.0.iter().map(|(part, place)| Rule::of_machine(part, place));
        rules.map(|rule| rule.expect("it was checked when the machine was read")).collect()
    }

    /// How many sockets each host has.
    pub fn sockets(&self) -> u16 {
        self.sockets.map_or(1, |sockets| sockets.count)
    }

    /// The caches from the core outwards.
    pub fn cache_levels(&self) -> CacheLevels<'_> {
        // Level numbers have one digit, so the order of names is that of levels.
        let lower = self.cache.iter().filter(|(name, _)| !name.starts_with("l1"));
        CacheLevels {
            l1i: &self.cache["l1i"],
            l1d: &self.cache["l1d"],
            lower: lower.map(|(name, config)| (name.as_str(), config)).collect(),
        }
    }

    /// Types and checks a tree whose keys have been checked.
    fn assemble(tree: &Node, mut faults: Faults, sources: &BTreeMap<i32, String>) -> Result<Machine, ConfigErrors> {
        faults.check_complete(tree);
        let machine = Machine::typed(tree, &mut faults);
        match machine {
            Some(machine) if faults.is_empty() => Ok(machine),
            _ => Err(named(faults, sources)),
        }
    }

    /// Every table is typed and checked even if another one is wrong, so that all mistakes are found.
    fn typed(tree: &Node, faults: &mut Faults) -> Option<Machine> {
        let core = section::<CoreConfig>(tree, "core", faults);
        let branch_predictor = section(tree, "branch_predictor", faults);
        let tlb = section::<TlbConfig>(tree, "tlb", faults);
        let cache = section::<BTreeMap<String, CacheConfig>>(tree, "cache", faults);
        let sockets = section::<SocketsConfig>(tree, "sockets", faults);
        let socket_link = section::<SocketLinkConfig>(tree, "socket_link", faults);
        let host_bridge = section(tree, "host_bridge", faults);
        let dram = section::<DramConfig>(tree, "dram", faults);
        let link = section(tree, "link", faults);
        let switch = section(tree, "switch", faults);
        let pm = section::<PmConfig>(tree, "pm", faults);
        let expander = tree.entry("expander").and_then(|expander| typed(expander, "expander", faults));
        let accelerator = tree.entry("accelerator").and_then(|memory| typed(memory, "accelerator", faults));
        let type2 = section::<Type2Config>(tree, "type2", faults);
        let pcie = section::<PcieConfig>(tree, "pcie", faults);
        let page_engine = section::<PageEngineConfig>(tree, "page_engine", faults);
        let swap_device = section::<SwapDeviceConfig>(tree, "swap_device", faults);
        let linux = section::<LinuxConfig>(tree, "linux", faults);
        let hold_up = section(tree, "hold_up", faults);
        let platform = section(tree, "platform", faults);
        // A wrong number at one switch or link does not keep the graph from being checked.
        let is_readable = !faults.concern("fabric.interleave");
        let fabric = tree.entry("fabric").filter(|_| is_readable);
        let fabric = fabric.and_then(|fabric| typed::<FabricConfig>(fabric, "fabric", faults));
        let placement =
            tree.entry("placement").and_then(|placement| typed::<PlacementConfig>(placement, "placement", faults));
        let persist = section(tree, "persist", faults);
        let transport = section(tree, "transport", faults);
        let simulation = section(tree, "simulation", faults);

        rules::check_caches(tree, core.as_ref(), cache.as_ref(), faults);
        rules::check_translation(tree, tlb.as_ref(), faults);
        rules::check_capacities(tree, dram.as_ref(), pm.as_ref(), faults);
        rules::check_expander_capacity(tree, faults);
        rules::check_sockets(tree, core.as_ref(), sockets, faults);
        let mut topology = fabric.as_ref().and_then(|fabric| wiring::topology(fabric, tree, faults));
        if let Some((topology, sockets)) = topology.as_mut().zip(sockets) {
            topology.hosts.iter_mut().for_each(|host| host.drams = DramNode::of_host(u64::from(sockets.count)));
        }
        if let (Some(topology), Some(placement)) = (&topology, &placement) {
            rules::check_placement(tree, placement, topology, faults);
        }

        Some(Machine {
            description: tree.entry("description").and_then(Node::text)?.to_owned(),
            core: core?,
            branch_predictor: branch_predictor?,
            tlb: tlb?,
            cache: cache?,
            sockets,
            socket_link,
            host_bridge: host_bridge?,
            dram: dram?,
            link,
            switch,
            pm,
            expander,
            accelerator,
            type2,
            pcie,
            page_engine,
            swap_device,
            linux,
            hold_up,
            platform: platform.unwrap_or_default(),
            fabric: fabric?,
            placement: placement.unwrap_or_default(),
            persist: persist.unwrap_or_default(),
            transport: transport.unwrap_or_default(),
            simulation: simulation?,
            topology: topology?,
        })
    }
}

/// The faults with the names of their sources.
fn named(faults: Faults, sources: &BTreeMap<i32, String>) -> ConfigErrors {
    let error = |fault: super::check::Fault| ConfigError {
        source: sources[&fault.origin.source].clone(),
        line: (fault.origin.line > 0).then_some(fault.origin.line),
        key: fault.key,
        message: fault.message,
    };
    let left_out = faults.left_out();
    ConfigErrors::new(faults.into_sorted().map(error).collect(), left_out)
}
