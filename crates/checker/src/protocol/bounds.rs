//! Within which bounds the protocol is explored, and which of the reductions are used.

use fencepost_sim::switch::Scheme;
use fencepost_sim::switch::persist_buffer::{DrainPolicy, Parameters};
use serde::{Deserialize, Serialize};

use super::world::{ADDRESSES_MAX, HOSTS_MAX, IN_FLIGHT_MAX};

/// How hosts, switches and the PM device are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// Hosts, one switch, PM.
    Single,
    /// Hosts, two switches one behind the other, PM. With persist buffers both switches have one: what the first drains
    /// the second accepts.
    Chain,
    /// Host 0 at the switch next to PM, all others at a second switch behind which the first lies. The switch next to
    /// PM is the one that all paths share.
    Shared,
}

impl Topology {
    /// All of them.
    pub const ALL: [Topology; 3] = [Topology::Single, Topology::Chain, Topology::Shared];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Topology::Single => "single",
            Topology::Chain => "chain",
            Topology::Shared => "shared",
        }
    }
}

/// The bounds of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// What switches do with persists.
    pub scheme: Scheme,
    /// What is joined to what.
    pub topology: Topology,
    /// Entries of each persist buffer; there is one slot more.
    pub entries: u16,
    /// Lines that are written and read.
    pub addresses: u8,
    /// Hosts.
    pub hosts: u8,
    /// Writes that each host may issue.
    pub writes: u8,
    /// Reads that each host may issue.
    pub reads: u8,
    /// Messages under way in each channel: a message class of a link.
    pub in_flight: u8,
    /// Power cuts, those during a recovery among them.
    pub crashes: u8,
    /// Acknowledgements that the PM device sends a second time.
    pub duplicates: u8,
    /// Failures that the PM device declares. It fails for good, so one at most.
    pub failures: u8,
    /// Places for reads and writes in the controller's input.
    pub inputs: u16,
    /// Places for acknowledgements in it.
    pub acknowledgement_inputs: u16,
    /// Occupied entries up to which `pb_rf` drains nothing.
    pub threshold: u16,
    /// Dirty entries at which `pb_rf` stops draining.
    pub preset: u16,
    /// Whether the controller serves reads that find nothing in turn with everything else; otherwise they pass it by.
    pub reads_in_turn: bool,
    /// Whether writes may carry half a line (`MemWrPtl`) too.
    pub partial_writes: bool,
    /// The reductions.
    pub reductions: Reductions,
}

/// What makes the explored graph smaller without changing what can be found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reductions {
    /// Slots of a persist buffer are interchangeable.
    pub slots: bool,
    /// Hosts at the same place are interchangeable.
    pub hosts: bool,
    /// Addresses are interchangeable.
    pub addresses: bool,
    /// Steps that no power cut and nothing else can tell from not having been done are done with the step before them.
    pub invisible_steps: bool,
    /// A request is issued when it reaches its switch; the time on the way there is time before it was issued. That
    /// takes for granted that the host bridge holds a request for a line whose write has no `Cmp`. A read that its own
    /// host's later write overtakes is issued behind that.
    pub arrival: bool,
}

impl Reductions {
    /// All of them.
    pub const ALL: Reductions =
        Reductions { slots: true, hosts: true, addresses: true, invisible_steps: true, arrival: true };
    /// None of them.
    pub const NONE: Reductions =
        Reductions { slots: false, hosts: false, addresses: false, invisible_steps: false, arrival: false };
}

impl Default for Reductions {
    fn default() -> Reductions {
        Reductions::ALL
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            scheme: Scheme::Pb,
            topology: Topology::Single,
            entries: 4,
            addresses: 2,
            hosts: 3,
            writes: 3,
            reads: 1,
            in_flight: 2,
            crashes: 2,
            duplicates: 1,
            failures: 0,
            inputs: 1,
            acknowledgement_inputs: 1,
            threshold: 1,
            preset: 0,
            reads_in_turn: false,
            partial_writes: false,
            reductions: Reductions::ALL,
        }
    }
}

/// Slots of a buffer in an exhaustive exploration.
pub const SLOTS: usize = 5;
/// Places of a controller's input in an exhaustive exploration.
pub const INPUTS: usize = 4;

impl Bounds {
    /// Refuses what cannot be explored, and says what could be.
    pub fn check(&self) -> Result<(), String> {
        let limits: [(&str, u64, u64, u64); 12] = [
            ("entries", self.entries.into(), 1, SLOTS as u64 - 1),
            ("addresses", self.addresses.into(), 1, ADDRESSES_MAX as u64),
            ("hosts", self.hosts.into(), 1, HOSTS_MAX as u64),
            ("writes", self.writes.into(), 0, 7),
            ("reads", self.reads.into(), 0, 3),
            ("in flight", self.in_flight.into(), 1, IN_FLIGHT_MAX as u64),
            ("crashes", self.crashes.into(), 0, 3),
            ("duplicates", self.duplicates.into(), 0, 3),
            ("failures", self.failures.into(), 0, 1),
            ("acknowledgement inputs", self.acknowledgement_inputs.into(), 1, INPUTS as u64 - 1),
            ("inputs", self.inputs.into(), 1, INPUTS as u64 - 1),
            ("preset", self.preset.into(), 0, self.threshold.into()),
        ];
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(format!("{name}: {value} is not {least} to {most}"));
            }
        }
        let inputs = self.inputs + self.acknowledgement_inputs;
        if usize::from(inputs) > INPUTS {
            return Err(format!("inputs and acknowledgement inputs: {inputs} are more than {INPUTS} together"));
        }
        if self.topology == Topology::Shared && self.hosts < 2 {
            return Err("the shared topology needs 2 hosts or more".into());
        }
        Ok(())
    }

    /// Sizes and policy of each persist buffer; nothing if the scheme has none.
    pub fn parameters(&self) -> Option<Parameters> {
        let policy = match self.scheme {
            Scheme::Nopb => return None,
            Scheme::Pb => DrainPolicy::AtOnce,
            Scheme::PbRf => DrainPolicy::Threshold { above: self.threshold, down_to: self.preset },
            // Whatever may be held back is; the other choice is an action of its own.
            Scheme::PbAdaptive => DrainPolicy::Adaptive { hold: self.entries },
        };
        Some(Parameters {
            entries: self.entries,
            input_places: self.inputs,
            acknowledgement_places: self.acknowledgement_inputs,
            reads_bypass: !self.reads_in_turn,
            policy,
        })
    }
}
