//! The device's engine: a line of its own memory, its copy in the device's cache, and what the host may have.

use super::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::{CacheState, Part, Payload};

/// A line of device memory at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<D> {
    /// What memory holds.
    pub memory: D,
    /// What the host may have; invalid is device bias.
    pub host: Meta,
    /// The state of the copy in the device's cache.
    pub cache: CacheState,
    /// That copy; means nothing if it is invalid.
    pub data: D,
    /// What the host has been asked for.
    pub asked: Option<Ask>,
}

/// What is sent to the host for a request of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<D> {
    /// The answer without data.
    pub completion: Completion,
    /// The data, if they were wanted.
    pub data: Option<D>,
    /// Whether the device's cache had the line modified: its data go to memory first.
    pub wrote_back: bool,
}

impl<D: Payload> Line<D> {
    /// A line without copies.
    pub fn new(memory: D) -> Self {
        Line { memory, host: Meta::Invalid, cache: CacheState::Invalid, data: memory, asked: None }
    }

    /// Whether the device's cache has what an access takes.
    pub fn has(&self, ask: Ask) -> bool {
        match ask {
            Ask::Share => self.cache != CacheState::Invalid,
            Ask::Own => self.cache.is_owner(),
        }
    }

    /// Whether the host has to be asked first.
    pub fn must_ask(&self, ask: Ask) -> bool {
        match ask {
            Ask::Share => self.host == Meta::Any,
            Ask::Own => self.host != Meta::Invalid,
        }
    }

    /// Asks the host.
    pub fn ask(&mut self, ask: Ask) {
        debug_assert!(self.asked.is_none() && self.must_ask(ask));
        self.asked = Some(ask);
    }

    /// Does an access for which the host need not be asked; `written` is what it writes, if it writes.
    pub fn access(&mut self, ask: Ask, written: D) {
        if self.cache == CacheState::Invalid {
            self.data = self.memory;
            self.cache = if self.host == Meta::Invalid { CacheState::Exclusive } else { CacheState::Shared };
        }
        if ask == Ask::Own {
            self.cache = CacheState::Modified;
            self.data = self.data.overlaid(written, Part::Whole);
        }
    }

    /// Writes the line past the device's cache, in device bias.
    pub fn write_memory(&mut self, written: D) {
        debug_assert!(self.host == Meta::Invalid);
        self.cache = CacheState::Invalid;
        self.memory = written;
    }

    /// The cache gives its copy up.
    pub fn evict(&mut self) {
        if self.cache == CacheState::Modified {
            self.memory = self.data;
        }
        self.cache = CacheState::Invalid;
    }

    /// Whether a request of the host is answered now, and not later.
    pub fn answers(&self, rules: &MemoryRules, kind: Kind, request: MemRequest) -> bool {
        let is_forward = matches!(request, MemRequest::Forward(_));
        match kind {
            _ if self.asked.is_none() || is_forward => true,
            Kind::Bias => rules.asking_device_answers,
            Kind::BackInvalidate => !rules.snooping_device_holds_back,
        }
    }

    /// Takes a request of the host for the line; `MemRdFwd` goes to [`Self::take_answer`].
    pub fn take_request(&mut self, rules: &MemoryRules, request: MemRequest) -> Answer<D> {
        let wrote_back = self.cache == CacheState::Modified;
        if wrote_back && rules.device_writes_back {
            self.memory = self.data;
        }
        let takes_away = match request {
            MemRequest::Read => false,
            _ => rules.ownership_takes_device_copy,
        };
        if takes_away {
            self.cache = CacheState::Invalid;
        } else if self.cache.is_owner() && rules.reads_share_device_copy {
            self.cache = CacheState::Shared;
        }
        let is_shared = request == MemRequest::Read && self.cache != CacheState::Invalid;
        let (completion, host) =
            if is_shared { (Completion::CmpS, Meta::Shared) } else { (Completion::CmpE, Meta::Any) };
        if rules.reads_end_device_bias || request != MemRequest::Read {
            self.host = host;
        }
        let data = (request != MemRequest::Invalidate).then_some(self.memory);
        Answer { completion, data, wrote_back }
    }

    /// Takes a write of the host, which keeps `meta` of it.
    /// Takes the device's copy away, if the host had none.
    pub fn take_write(&mut self, rules: &MemoryRules, data: D, meta: Meta) -> Completion {
        self.memory = data;
        if rules.writes_take_device_copy {
            self.cache = CacheState::Invalid;
        }
        self.host = meta;
        Completion::Cmp
    }

    /// The host has done what it was asked for, and keeps `meta`. What was asked may be done now; nothing if nothing
    /// was.
    pub fn take_answer(&mut self, meta: Meta) -> Option<Ask> {
        self.host = meta;
        self.asked.take()
    }
}
