//! The host's side of CXL.cache, one line of its memory: home agent with directory, last-level cache and cores.
//!
//! A pure state machine. The home agent serves the requests of a line one after the other: it snoops the devices that
//! its directory names, waits for all answers, and only then sends GO; if the answer pulls data, the line stays taken
//! until they are here. Inside the host nothing is in flight: cores are looked up and invalidated at once, as far as
//! CXL.cache can see it. What a snoop brings lands in the last-level cache.
//!
//! The directory may name a device that has dropped its copy. It never misses one that has a copy.

mod service;

use super::messages::{CacheState, Part, Payload, Request, Response, Snoop};
use super::rules::Rules;

/// The line in the last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LastLevel<D> {
    /// Not there.
    Nothing,
    /// As in memory.
    Clean(D),
    /// Newer than memory.
    Dirty(D),
}

/// What the directory knows of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Holds {
    /// It has no copy.
    #[default]
    Nothing,
    /// It may have a copy to read.
    Shared,
    /// It may have a copy to write.
    Owner,
}

/// What of an answer to a snoop is still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// Nothing.
    #[default]
    Nothing,
    /// The response.
    Response,
    /// The response; its data are here.
    ResponseAfterData,
    /// The data; the response is here.
    Data,
}

/// A device as the home agent sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// What it may have.
    pub holds: Holds,
    /// What it has not answered yet.
    pub awaited: Awaited,
}

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads the line.
    Load,
    /// Writes some of its bytes.
    Store,
    /// Flushes it to memory.
    Flush,
    /// Writes all of it to memory, past the caches: a non-temporal store.
    WriteAround,
}

impl Access {
    /// All of them, in the order of their numbers.
    pub const ALL: [Access; 4] = [Access::Load, Access::Store, Access::Flush, Access::WriteAround];
}

/// A core and its own cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Core<D> {
    /// The copy's state.
    pub state: CacheState,
    /// The copy; means nothing if it is invalid.
    pub data: D,
    /// What it waits for.
    pub access: Option<Access>,
}

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    /// A device, with its request.
    Device(usize, Request),
    /// A core, with its access.
    Core(usize, Access),
}

/// What a request waits for that is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Answers to snoops.
    Snooping,
    /// Data that were pulled.
    Pulling,
    /// Data that were pulled; `ExtCmp` is due when they are here.
    PullingBeforeCompletion,
}

/// A request that is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service<D> {
    /// Whose.
    pub requester: Requester,
    /// What it waits for.
    pub phase: Phase,
    /// What `SnpCur` has brought.
    pub current: Option<D>,
    /// Of two right answers, whether the second is given: a pull with `ExtCmp` for one that is GO already, or clean
    /// data that are not wanted.
    pub takes_second_answer: bool,
}

/// A line of the host's memory, with room for `N` devices and `M` cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line<D, const N: usize, const M: usize> {
    /// What memory holds.
    pub memory: D,
    /// What the last-level cache holds.
    pub last_level: LastLevel<D>,
    /// The directory.
    pub devices: [Device; N],
    /// The cores.
    pub cores: [Core<D>; M],
    /// The request that is being served.
    pub service: Option<Service<D>>,
}

/// A message to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output<D> {
    /// A snoop.
    Snoop(usize, Snoop),
    /// A response.
    Response(usize, Response),
    /// The data of a read.
    Data(usize, D),
}

/// What a step of the home agent leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing that others see.
    Nothing,
    /// A write has come to be what the line holds.
    Wrote(Part),
    /// A device has said that it holds no line.
    HoldsNothing(usize),
    /// Nothing waits for such a message.
    Unexpected,
}

impl<D: Payload, const N: usize, const M: usize> Line<D, N, M> {
    /// A line that only memory holds.
    pub fn new(memory: D) -> Self {
        let core = Core { state: CacheState::Invalid, data: memory, access: None };
        Line {
            memory,
            last_level: LastLevel::Nothing,
            devices: [Device::default(); N],
            cores: [core; M],
            service: None,
        }
    }

    /// What the host itself has, its cores apart.
    pub fn held(&self) -> D {
        match self.last_level {
            LastLevel::Clean(data) | LastLevel::Dirty(data) => data,
            LastLevel::Nothing => self.memory,
        }
    }

    /// Whether a core may start to wait for `access`: what it needs is not in its own cache.
    pub fn may_access(&self, core: usize, access: Access) -> bool {
        let Core { state, access: pending, .. } = self.cores[core];
        pending.is_none()
            && match access {
                Access::Load => state == CacheState::Invalid,
                Access::Store => !state.is_owner(),
                Access::Flush | Access::WriteAround => true,
            }
    }

    /// Whether a core may write its own copy.
    pub fn may_store(&self, core: usize) -> bool {
        self.cores[core].access.is_none() && self.cores[core].state.is_owner()
    }

    /// A core writes its own copy.
    pub fn store(&mut self, core: usize, written: D) {
        let core = &mut self.cores[core];
        core.state = CacheState::Modified;
        core.data = core.data.overlaid(written, Part::Some);
    }

    /// Whether a core may evict its copy.
    pub fn may_evict(&self, core: usize) -> bool {
        self.cores[core].access.is_none() && self.cores[core].state != CacheState::Invalid
    }

    /// A core evicts its copy.
    pub fn evict(&mut self, core: usize) {
        self.take_from_core(core, CacheState::Invalid);
    }

    /// The last-level cache evicts the line.
    pub fn evict_last_level(&mut self) {
        if let LastLevel::Dirty(data) = self.last_level {
            self.memory = data;
        }
        self.last_level = LastLevel::Nothing;
    }

    /// `device` holds nothing: it has said so.
    pub fn forget(&mut self, rules: &Rules, device: usize) {
        let is_other = |other: usize| other != device && rules.cache_flushed_is_of_one_device;
        for (_, device) in self.devices.iter_mut().enumerate().filter(|(number, _)| !is_other(*number)) {
            device.holds = Holds::Nothing;
        }
    }

    /// A core's copy becomes `state`, which is less; what it alone has goes to the last-level cache.
    fn take_from_core(&mut self, core: usize, state: CacheState) {
        let core = &mut self.cores[core];
        if core.state == CacheState::Modified {
            self.last_level = LastLevel::Dirty(core.data);
        }
        core.state = state;
    }
}
