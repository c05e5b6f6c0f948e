//! The device's coherence engine (DCOH), one line of host memory: its copy and the transaction under way for it.
//!
//! A pure state machine. It has at most one transaction for a line. It answers a snoop by the state that its copy has
//! now, whatever it has asked for, with one exception: between GO and the data of a read it holds the snoop back.
//! A line that is snooped away while it waits to be given up is pulled all the same, and its data are bogus then.

use super::messages::{CacheState, Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse};
use super::rules::Rules;

/// What a transaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits<D> {
    /// All that there is to come.
    All,
    /// The data; GO has come.
    Data {
        /// With this state.
        granted: CacheState,
    },
    /// GO; the data have come.
    Go {
        /// They.
        data: D,
    },
    /// The last response; the data were pulled.
    Completion,
}

/// A transaction of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transaction<D> {
    /// What was asked.
    pub request: Request,
    /// What is to come.
    pub waits: Waits<D>,
}

/// A line of host memory at the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line<D> {
    /// The copy's state.
    pub state: CacheState,
    /// The copy; means nothing if it is invalid.
    pub data: D,
    /// What is under way.
    pub transaction: Option<Transaction<D>>,
}

/// What a message leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<D> {
    /// Nothing that others see.
    Nothing,
    /// These data go to the host.
    Send(Pulled<D>),
    /// As before, and the same request anew.
    SendAndRequest(Pulled<D>),
    /// The same request goes to the host anew.
    Request,
    /// The copy was written: from now on that is what the line holds.
    Wrote(Part),
    /// A `RdCurr` has read this.
    Read(D),
    /// No transaction waits for such a message.
    Unexpected,
}

impl<D: Payload> Line<D> {
    /// A line that the device has no copy of.
    pub fn new(data: D) -> Self {
        Line { state: CacheState::Invalid, data, transaction: None }
    }

    /// Whether the device may send `request` now. `CacheFlushed` is about all lines: that of this one is looked at.
    pub fn may_request(&self, request: Request) -> bool {
        use CacheState::{Exclusive, Invalid, Modified, Shared};
        self.transaction.is_none()
            && match request {
                Request::RdOwn | Request::RdOwnNoData => matches!(self.state, Invalid | Shared),
                Request::CleanEvict | Request::CleanEvictNoData => matches!(self.state, Shared | Exclusive),
                Request::DirtyEvict => self.state == Modified,
                _ => self.state == Invalid,
            }
    }

    /// Begins a transaction.
    pub fn request(&mut self, request: Request) {
        debug_assert!(self.may_request(request));
        self.transaction = Some(Transaction { request, waits: Waits::All });
    }

    /// Whether the copy may be written without a word.
    pub fn may_store(&self) -> bool {
        self.transaction.is_none() && self.state.is_owner()
    }

    /// Writes some bytes of the copy.
    pub fn store(&mut self, written: D) {
        self.state = CacheState::Modified;
        self.data = self.data.overlaid(written, Part::Some);
    }

    /// Whether the copy may be dropped without a word.
    pub fn may_drop(&self) -> bool {
        self.transaction.is_none() && matches!(self.state, CacheState::Shared | CacheState::Exclusive)
    }

    /// Drops the copy.
    pub fn drop_copy(&mut self) {
        self.state = CacheState::Invalid;
    }

    /// Takes a response. `written` is what the device writes, if it writes anything.
    pub fn take_response(&mut self, rules: &Rules, response: Response, written: D) -> Outcome<D> {
        let Some(Transaction { request, waits }) = self.transaction else { return Outcome::Unexpected };
        match (response, waits) {
            (Response::Go(CacheState::Invalid), Waits::All) if request == Request::RdOwn => Outcome::Request,
            (Response::Go(granted), Waits::All) if request.reads() => {
                self.wait_for(request, Waits::Data { granted });
                Outcome::Nothing
            }
            (Response::Go(granted), Waits::Go { data }) => self.complete_read(rules, request, granted, data),
            (Response::Go(CacheState::Exclusive), Waits::All) if request == Request::RdOwnNoData => {
                *self = Line { state: CacheState::Modified, data: written, transaction: None };
                Outcome::Wrote(Part::Whole)
            }
            (Response::Go(CacheState::Invalid), Waits::All | Waits::Completion) | (Response::GoWritePullDrop, _) => {
                *self = Line { state: CacheState::Invalid, transaction: None, ..*self };
                Outcome::Nothing
            }
            (Response::ExtCmp, Waits::Completion) => {
                self.transaction = None;
                Outcome::Nothing
            }
            (Response::GoWritePull, Waits::All) if request.is_eviction() => self.give_up(rules, request),
            (Response::GoWritePull, Waits::All) if request.writes().is_some() => {
                self.transaction = None;
                Outcome::Send(Pulled { data: written, is_bogus: false })
            }
            (Response::WritePull | Response::FastGoWritePull, Waits::All) if request.writes().is_some() => {
                self.wait_for(request, Waits::Completion);
                Outcome::Send(Pulled { data: written, is_bogus: false })
            }
            _ => Outcome::Unexpected,
        }
    }

    /// Takes the data of a read.
    pub fn take_data(&mut self, rules: &Rules, data: D) -> Outcome<D> {
        match self.transaction {
            Some(Transaction { request, waits: Waits::Data { granted } }) => {
                self.complete_read(rules, request, granted, data)
            }
            Some(Transaction { request, waits: Waits::All }) if request.reads() => {
                self.wait_for(request, Waits::Go { data });
                Outcome::Nothing
            }
            _ => Outcome::Unexpected,
        }
    }

    /// Whether a snoop is answered now, and not later.
    pub fn answers_snoops(&self, rules: &Rules) -> bool {
        let Some(Transaction { request, waits }) = self.transaction else { return true };
        let is_upgrade = request == Request::RdOwn && self.state == CacheState::Shared;
        !(rules.snoop_waits_for_data && matches!(waits, Waits::Data { .. })
            || !rules.evicting_device_answers && request.is_eviction()
            || !rules.upgrading_device_answers && is_upgrade)
    }

    /// Answers a snoop; with data, if the response says so. `gives_up`: a line that may be shared is given up.
    pub fn take_snoop(&mut self, rules: &Rules, snoop: Snoop, gives_up: bool) -> (SnoopResponse, Option<D>) {
        use CacheState::{Exclusive, Invalid, Modified, Shared};
        let (was, data) = (self.state, self.data);
        let (state, response) = match (snoop, was) {
            (_, Invalid) => (Invalid, SnoopResponse::RspIHitI),
            (Snoop::SnpCur, Modified) if rules.snp_cur_keeps => (Modified, SnoopResponse::RspVFwdV),
            (Snoop::SnpCur, Modified) => (Exclusive, SnoopResponse::RspVFwdV),
            (Snoop::SnpCur, Shared | Exclusive) => (was, SnoopResponse::RspVHitV),
            (Snoop::SnpData, Modified) if !gives_up => {
                (if rules.snp_data_shares { Shared } else { Modified }, SnoopResponse::RspSFwdM)
            }
            (Snoop::SnpData, Shared | Exclusive) if !gives_up => (Shared, SnoopResponse::RspSHitSE),
            (_, Modified) => (Invalid, SnoopResponse::RspIFwdM),
            (_, Shared) if !rules.snp_inv_invalidates => (Shared, SnoopResponse::RspIHitSE),
            (_, Shared | Exclusive) => (Invalid, SnoopResponse::RspIHitSE),
        };
        self.state = state;
        (response, response.brings_data().then_some(data))
    }

    fn wait_for(&mut self, request: Request, waits: Waits<D>) {
        self.transaction = Some(Transaction { request, waits });
    }

    fn complete_read(&mut self, rules: &Rules, request: Request, granted: CacheState, data: D) -> Outcome<D> {
        let keeps = request != Request::RdCurr || !rules.rd_curr_keeps_nothing;
        let state = if request == Request::RdCurr { CacheState::Shared } else { granted };
        *self = Line { state: if keeps { state } else { CacheState::Invalid }, data, transaction: None };
        if request == Request::RdCurr { Outcome::Read(data) } else { Outcome::Nothing }
    }

    /// The host pulls a line that waits to be given up.
    fn give_up(&mut self, rules: &Rules, request: Request) -> Outcome<D> {
        let is_stale = self.state == CacheState::Invalid;
        let pulled = Pulled { data: self.data, is_bogus: is_stale && rules.device_marks_bogus };
        self.state = CacheState::Invalid;
        if is_stale && !rules.stale_evictions_end {
            self.wait_for(request, Waits::All);
            return Outcome::SendAndRequest(pulled);
        }
        if !pulled.is_bogus || rules.bogus_data_end_a_pull {
            self.transaction = None;
        }
        Outcome::Send(pulled)
    }
}
