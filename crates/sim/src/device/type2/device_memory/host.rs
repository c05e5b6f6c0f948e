//! The host's side of device memory: a line in its caches, all of them together.

use super::{Ask, Completion, Kind, MemRequest, MemoryRules, Meta};
use crate::device::type2::messages::{CacheState, Part, Payload};

/// What the host has under way for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// A request, and what of its answer is here.
    Request(MemRequest),
    /// A modified line is written back.
    Write,
}

/// How far the host is with what the device has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// What the host had modified is being written.
    Writing(Ask),
    /// The device has been asked whether its snoop came before or after the host's request.
    Resolving(Ask),
    /// The snoop came after the request that was granted: its data come first.
    AfterData(Ask),
}

/// A line of device memory at the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<D> {
    /// The copy's state.
    pub state: CacheState,
    /// The copy; means nothing if it is invalid.
    pub data: D,
    /// What is under way.
    pub transaction: Option<Transaction>,
    /// The state that has been granted, when data are still to come.
    pub granted: Option<CacheState>,
    /// The data that have come, when the grant is still to come.
    pub arrived: Option<D>,
    /// What is being done for the device.
    pub serving: Option<Serving>,
}

/// A message to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<D> {
    /// A request.
    Request(MemRequest),
    /// A write, after which the host keeps that.
    Write(D, Meta),
    /// The answer to a snoop: what the host keeps.
    BiRsp(Meta),
    /// Which came first?
    BiConflict,
}

/// What a message leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that others see.
    Nothing,
    /// The host has written the line: that is what it holds from now on.
    Wrote,
    /// Nothing waits for such a message.
    Unexpected,
}

impl<D: Payload> Line<D> {
    /// A line that the host has no copy of.
    pub fn new(data: D) -> Self {
        Line { state: CacheState::Invalid, data, transaction: None, granted: None, arrived: None, serving: None }
    }

    /// Whether the host may send `request`: its copy is not enough, and nothing else is under way.
    pub fn may_request(&self, request: MemRequest) -> bool {
        let is_free = self.transaction.is_none() && self.serving.is_none();
        is_free
            && match request {
                MemRequest::Read => self.state == CacheState::Invalid,
                MemRequest::ReadOwn | MemRequest::Invalidate => !self.state.is_owner(),
                MemRequest::Forward(_) => false,
            }
    }

    /// Sends a request.
    pub fn request(&mut self, request: MemRequest) {
        debug_assert!(self.may_request(request));
        self.transaction = Some(Transaction::Request(request));
    }

    /// Whether the copy may be written without a word.
    pub fn may_store(&self) -> bool {
        self.transaction.is_none() && self.serving.is_none() && self.state.is_owner()
    }

    /// Writes the copy.
    pub fn store(&mut self, written: D) {
        self.state = CacheState::Modified;
        self.data = self.data.overlaid(written, Part::Whole);
    }

    /// Whether the copy may be given up.
    pub fn may_evict(&self) -> bool {
        self.transaction.is_none() && self.serving.is_none() && self.state != CacheState::Invalid
    }

    /// Gives the copy up; what is to be written of it.
    pub fn evict(&mut self) -> Option<Output<D>> {
        let is_dirty = self.state == CacheState::Modified;
        self.state = CacheState::Invalid;
        is_dirty.then(|| {
            self.transaction = Some(Transaction::Write);
            Output::Write(self.data, Meta::Invalid)
        })
    }

    /// Whether the host may write the line past its caches.
    pub fn may_write_around(&self) -> bool {
        self.transaction.is_none() && self.serving.is_none()
    }

    /// Writes the whole line past the caches; whatever copy there was is overwritten.
    pub fn write_around(&mut self, written: D) -> Output<D> {
        debug_assert!(self.may_write_around());
        self.state = CacheState::Invalid;
        self.transaction = Some(Transaction::Write);
        Output::Write(written, Meta::Invalid)
    }

    /// Whether what the device asks is served now, and not later.
    pub fn serves(&self, kind: Kind) -> bool {
        self.serving.is_none()
            && match (kind, self.transaction) {
                (_, None) => true,
                // Requests and snoops may cross: waiting for each other would block both.
                (Kind::BackInvalidate, Some(Transaction::Request(_))) => true,
                (Kind::Bias, Some(Transaction::Request(_))) | (_, Some(Transaction::Write)) => false,
            }
    }

    /// Takes what the device asks.
    pub fn take_ask(&mut self, rules: &MemoryRules, kind: Kind, ask: Ask, send: &mut impl FnMut(Output<D>)) {
        let is_crossing = matches!(self.transaction, Some(Transaction::Request(_)));
        if kind == Kind::BackInvalidate && is_crossing && rules.conflicts_are_resolved {
            self.serving = Some(Serving::Resolving(ask));
            return send(Output::BiConflict);
        }
        self.serve(rules, kind, ask, send);
    }

    /// Takes an answer without data. `written` is what the host writes with the right to do so.
    pub fn take_completion(
        &mut self,
        rules: &MemoryRules,
        kind: Kind,
        completion: Completion,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        match (completion, self.transaction, self.serving) {
            (Completion::Cmp, _, Some(Serving::Writing(_))) => {
                self.serving = None;
                if rules.answer_waits_for_write {
                    self.answer(rules, kind, send);
                }
                Outcome::Nothing
            }
            (Completion::Cmp, Some(Transaction::Write), _) => {
                self.transaction = None;
                Outcome::Nothing
            }
            (Completion::CmpE, Some(Transaction::Request(MemRequest::Invalidate)), _) => {
                (self.state, self.data, self.transaction) = (CacheState::Modified, written, None);
                Outcome::Wrote
            }
            (Completion::CmpS | Completion::CmpE, Some(Transaction::Request(request)), _) if self.granted.is_none() => {
                let state = if completion == Completion::CmpS { CacheState::Shared } else { CacheState::Exclusive };
                self.granted = Some(state);
                self.complete(rules, kind, request, written, send)
            }
            (Completion::BiConflictAck, transaction, Some(Serving::Resolving(ask))) => {
                if transaction.is_some() && self.granted.is_some() {
                    self.serving = Some(Serving::AfterData(ask));
                } else {
                    self.serving = None;
                    self.serve(rules, kind, ask, send);
                }
                Outcome::Nothing
            }
            _ => Outcome::Unexpected,
        }
    }

    /// Takes the data of a read.
    pub fn take_data(
        &mut self,
        rules: &MemoryRules,
        kind: Kind,
        data: D,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        match self.transaction {
            Some(Transaction::Request(request @ (MemRequest::Read | MemRequest::ReadOwn)))
                if self.arrived.is_none() =>
            {
                self.arrived = Some(data);
                self.complete(rules, kind, request, written, send)
            }
            _ => Outcome::Unexpected,
        }
    }

    /// A read is complete when its grant and its data are here; what the device asked after it is served then.
    fn complete(
        &mut self,
        rules: &MemoryRules,
        kind: Kind,
        request: MemRequest,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        let (Some(granted), Some(data)) = (self.granted, self.arrived) else { return Outcome::Nothing };
        (self.state, self.data) = (granted, data);
        (self.transaction, self.granted, self.arrived) = (None, None, None);
        let is_write = request == MemRequest::ReadOwn;
        if is_write {
            self.store(written);
        }
        if let Some(Serving::AfterData(ask)) = self.serving {
            self.serving = None;
            self.serve(rules, kind, ask, send);
        }
        if is_write { Outcome::Wrote } else { Outcome::Nothing }
    }

    /// Gives up what the device wants, and says so; what is modified is written first.
    fn serve(&mut self, rules: &MemoryRules, kind: Kind, ask: Ask, send: &mut impl FnMut(Output<D>)) {
        let left = match (ask, self.state) {
            (_, CacheState::Invalid) => CacheState::Invalid,
            (Ask::Own, _) if rules.host_gives_up => CacheState::Invalid,
            _ => CacheState::Shared,
        };
        let was_modified = self.state == CacheState::Modified;
        self.state = left;
        if was_modified {
            let meta = if left == CacheState::Invalid { Meta::Invalid } else { Meta::Shared };
            self.serving = Some(Serving::Writing(ask));
            send(Output::Write(self.data, meta));
            if rules.answer_waits_for_write {
                return;
            }
        }
        self.answer(rules, kind, send);
    }

    /// Tells the device what the host keeps.
    fn answer(&self, rules: &MemoryRules, kind: Kind, send: &mut impl FnMut(Output<D>)) {
        let is_kept = self.state != CacheState::Invalid && rules.host_gives_up && rules.kept_copies_are_said;
        let meta = if is_kept { Meta::Shared } else { Meta::Invalid };
        send(match kind {
            Kind::Bias => Output::Request(MemRequest::Forward(meta)),
            Kind::BackInvalidate => Output::BiRsp(meta),
        });
    }
}
