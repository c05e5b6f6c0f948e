//! How the home agent serves a request, from the snoops to the answer.

use super::{Access, Awaited, Device, Holds, LastLevel, Line, Outcome, Output, Phase, Requester, Service};
use crate::device::type2::messages::{CacheState, Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse};
use crate::device::type2::rules::Rules;

impl<D: Payload, const N: usize, const M: usize> Line<D, N, M> {
    /// Begins to serve a request; none is being served. `written` is what a core writes.
    pub fn serve(
        &mut self,
        rules: &Rules,
        requester: Requester,
        takes_second_answer: bool,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        debug_assert!(self.service.is_none());
        self.service = Some(Service { requester, phase: Phase::Snooping, current: None, takes_second_answer });
        self.ask_cores(rules, requester);
        self.ask_devices(rules, requester, send);
        if self.is_answered() || !rules.go_after_snoops {
            return self.answer(rules, written, send);
        }
        Outcome::Nothing
    }

    /// Takes a response to a snoop.
    pub fn take_snoop_response(
        &mut self,
        rules: &Rules,
        device: usize,
        response: SnoopResponse,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        let Device { holds, awaited } = &mut self.devices[device];
        *awaited = match (*awaited, response.brings_data()) {
            (Awaited::Response, true) => Awaited::Data,
            (Awaited::Response, false) | (Awaited::ResponseAfterData, true) => Awaited::Nothing,
            _ => return Outcome::Unexpected,
        };
        match response {
            SnoopResponse::RspSHitSE | SnoopResponse::RspSFwdM => *holds = Holds::Shared,
            SnoopResponse::RspIHitSE | SnoopResponse::RspIFwdM | SnoopResponse::RspIHitI => *holds = Holds::Nothing,
            SnoopResponse::RspVHitV | SnoopResponse::RspVFwdV => {}
        }
        if response == SnoopResponse::RspVHitV && !rules.kept_is_an_answer {
            *awaited = Awaited::Response;
            send(Output::Snoop(device, Snoop::SnpCur));
        }
        self.go_on(rules, written, send)
    }

    /// Takes data that come with a response to a snoop.
    pub fn take_snooped_data(
        &mut self,
        rules: &Rules,
        device: usize,
        data: D,
        written: D,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        let awaited = &mut self.devices[device].awaited;
        *awaited = match *awaited {
            Awaited::Response => Awaited::ResponseAfterData,
            Awaited::Data => Awaited::Nothing,
            _ => return Outcome::Unexpected,
        };
        match &mut self.service {
            Some(service) if service.requester.reads_current() => service.current = Some(data),
            _ if rules.snooped_data_are_kept => self.last_level = LastLevel::Dirty(data),
            _ => {}
        }
        self.go_on(rules, written, send)
    }

    /// Takes data that were pulled.
    pub fn take_pulled(
        &mut self,
        rules: &Rules,
        device: usize,
        pulled: Pulled<D>,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        let Some(Service { requester: Requester::Device(served, request), phase, .. }) = self.service else {
            return Outcome::Unexpected;
        };
        if served != device || phase == Phase::Snooping {
            return Outcome::Unexpected;
        }
        if pulled.is_bogus && !rules.bogus_data_end_a_pull {
            send(Output::Response(device, Response::GoWritePull));
            return Outcome::Nothing;
        }
        self.service = None;
        if !pulled.is_bogus || !rules.host_drops_bogus {
            self.keep_pulled(rules, request, pulled.data);
        }
        if phase == Phase::PullingBeforeCompletion {
            let is_ordered = request == Request::WrInv;
            let response = if is_ordered { Response::Go(CacheState::Invalid) } else { Response::ExtCmp };
            send(Output::Response(device, response));
        }
        request.writes().map_or(Outcome::Nothing, Outcome::Wrote)
    }

    /// Pulled data go where the request wants them.
    fn keep_pulled(&mut self, rules: &Rules, request: Request, data: D) {
        match request {
            Request::CleanEvict if self.last_level == LastLevel::Nothing => self.last_level = LastLevel::Clean(data),
            Request::CleanEvict => {}
            Request::DirtyEvict => self.last_level = LastLevel::Dirty(data),
            Request::ItoMWr if rules.ito_m_wr_leaves_dirty => self.last_level = LastLevel::Dirty(data),
            Request::ItoMWr => self.last_level = LastLevel::Clean(data),
            Request::WrCur if self.last_level != LastLevel::Nothing => self.last_level = LastLevel::Dirty(data),
            Request::WrCur if rules.wr_cur_writes_on_miss => self.memory = data,
            Request::WrCur => {}
            _ => {
                let base = if rules.partial_writes_merge_with_cache { self.held() } else { self.memory };
                let part = request.writes().expect("only evictions and writes are pulled");
                self.memory = base.overlaid(data, part);
                self.last_level = LastLevel::Nothing;
            }
        }
    }

    fn go_on(&mut self, rules: &Rules, written: D, send: &mut impl FnMut(Output<D>)) -> Outcome {
        let is_snooping = matches!(self.service, Some(Service { phase: Phase::Snooping, .. }));
        if is_snooping && self.is_answered() { self.answer(rules, written, send) } else { Outcome::Nothing }
    }

    fn is_answered(&self) -> bool {
        self.devices.iter().all(|device| device.awaited == Awaited::Nothing)
    }

    /// What cores have is taken away or shared, as far as `requester` needs it.
    fn ask_cores(&mut self, rules: &Rules, requester: Requester) {
        let left = match requester {
            Requester::Device(_, Request::RdShared) | Requester::Core(_, Access::Load) => CacheState::Shared,
            Requester::Device(_, Request::RdAny) if rules.rd_any_looks_at_sharers => CacheState::Shared,
            Requester::Core(..) => CacheState::Invalid,
            Requester::Device(_, request) if request.takes_away() => CacheState::Invalid,
            Requester::Device(..) => return,
        };
        for core in 0..M {
            if self.cores[core].state.is_owner() || left == CacheState::Invalid {
                self.take_from_core(core, left);
            }
        }
    }

    fn ask_devices(&mut self, rules: &Rules, requester: Requester, send: &mut impl FnMut(Output<D>)) {
        let (snoop, asks_sharers) = match requester {
            Requester::Device(_, Request::RdCurr) => (Snoop::SnpCur, false),
            Requester::Device(_, Request::RdShared | Request::RdAny) | Requester::Core(_, Access::Load) => {
                (Snoop::SnpData, false)
            }
            Requester::Device(_, Request::RdOwn) => (Snoop::SnpInv, rules.rd_own_snoops_sharers),
            Requester::Device(_, request) if request.takes_away() => (Snoop::SnpInv, rules.writes_snoop_sharers),
            Requester::Core(_, Access::Store) => (Snoop::SnpInv, rules.stores_snoop_sharers),
            Requester::Core(..) => (Snoop::SnpInv, true),
            Requester::Device(..) => return,
        };
        for (number, device) in self.devices.iter_mut().enumerate() {
            let is_asked = device.holds == Holds::Owner || asks_sharers && device.holds == Holds::Shared;
            if is_asked && !matches!(requester, Requester::Device(own, _) if own == number) {
                device.awaited = Awaited::Response;
                send(Output::Snoop(number, snoop));
            }
        }
    }

    /// Every snoop is answered: now the request is.
    fn answer(&mut self, rules: &Rules, written: D, send: &mut impl FnMut(Output<D>)) -> Outcome {
        let service = self.service.expect("a request is being served");
        match service.requester {
            Requester::Device(device, request) => self.answer_device(rules, device, request, &service, send),
            Requester::Core(core, access) => self.answer_core(core, access, written),
        }
    }

    fn answer_core(&mut self, number: usize, access: Access, written: D) -> Outcome {
        self.service = None;
        let held = self.held();
        let is_alone = self.is_alone(None) && self.cores.iter().all(|core| core.state == CacheState::Invalid);
        let core = &mut self.cores[number];
        core.access = None;
        match access {
            Access::Load => {
                core.state = if is_alone { CacheState::Exclusive } else { CacheState::Shared };
                core.data = held;
                Outcome::Nothing
            }
            Access::Store => {
                core.state = CacheState::Modified;
                core.data = held.overlaid(written, Part::Some);
                self.last_level = LastLevel::Nothing;
                Outcome::Wrote(Part::Some)
            }
            Access::Flush => {
                self.evict_last_level();
                Outcome::Nothing
            }
            Access::WriteAround => {
                self.memory = held.overlaid(written, Part::Whole);
                self.last_level = LastLevel::Nothing;
                Outcome::Wrote(Part::Whole)
            }
        }
    }

    fn answer_device(
        &mut self,
        rules: &Rules,
        device: usize,
        request: Request,
        service: &Service<D>,
        send: &mut impl FnMut(Output<D>),
    ) -> Outcome {
        self.service = None;
        let go = |state| Output::Response(device, Response::Go(state));
        match request {
            Request::RdCurr => {
                let at_a_core = self.cores.iter().find(|core| core.state.is_owner()).map(|core| core.data);
                send(go(CacheState::Invalid));
                send(Output::Data(device, at_a_core.or(service.current).unwrap_or_else(|| self.held())));
            }
            Request::RdShared => self.grant_shared(device, send),
            Request::RdAny => {
                let has_core = self.cores.iter().any(|core| core.state != CacheState::Invalid);
                if !rules.rd_any_looks_at_sharers || self.is_alone(Some(device)) && !has_core {
                    self.grant_owned(device, send);
                } else {
                    self.grant_shared(device, send);
                }
            }
            Request::RdOwn => self.grant_owned(device, send),
            Request::RdOwnNoData => {
                self.last_level = LastLevel::Nothing;
                self.devices[device].holds = Holds::Owner;
                send(go(CacheState::Exclusive));
            }
            Request::CLFlush if rules.flush_writes_back => {
                self.evict_last_level();
                send(go(CacheState::Invalid));
            }
            Request::CLFlush => {
                self.last_level = LastLevel::Nothing;
                send(go(CacheState::Invalid));
            }
            Request::CleanEvictNoData => {
                self.give_up(rules, device);
                send(go(CacheState::Invalid));
            }
            Request::CacheFlushed => {
                send(go(CacheState::Invalid));
                return Outcome::HoldsNothing(device);
            }
            _ => self.pull(rules, device, request, service, send),
        }
        Outcome::Nothing
    }

    fn pull(
        &mut self,
        rules: &Rules,
        device: usize,
        request: Request,
        service: &Service<D>,
        send: &mut impl FnMut(Output<D>),
    ) {
        if request.is_eviction() {
            self.give_up(rules, device);
        }
        let is_unwanted = match request {
            Request::CleanEvict => service.takes_second_answer,
            Request::DirtyEvict => !rules.dirty_evictions_are_pulled,
            _ => false,
        };
        if is_unwanted {
            send(Output::Response(device, Response::GoWritePullDrop));
            return;
        }
        let (response, phase) = match request {
            Request::WrInv => (Response::WritePull, Phase::PullingBeforeCompletion),
            Request::WOWrInv | Request::WOWrInvF => (Response::FastGoWritePull, Phase::PullingBeforeCompletion),
            Request::ItoMWr | Request::WrCur if service.takes_second_answer => {
                (Response::FastGoWritePull, Phase::PullingBeforeCompletion)
            }
            _ => (Response::GoWritePull, Phase::Pulling),
        };
        self.service = Some(Service { phase, takes_second_answer: false, ..*service });
        send(Output::Response(device, response));
    }

    /// The directory no longer names a device that gives the line up.
    fn give_up(&mut self, rules: &Rules, device: usize) {
        self.devices[device].holds = Holds::Nothing;
        if !rules.evictions_are_of_one_device {
            self.devices.iter_mut().for_each(|device| device.holds = Holds::Nothing);
        }
    }

    /// Whether no device but `but` may have the line.
    fn is_alone(&self, but: Option<usize>) -> bool {
        self.devices.iter().enumerate().all(|(number, device)| Some(number) == but || device.holds == Holds::Nothing)
    }

    fn grant_shared(&mut self, device: usize, send: &mut impl FnMut(Output<D>)) {
        self.devices[device].holds = Holds::Shared;
        send(Output::Response(device, Response::Go(CacheState::Shared)));
        send(Output::Data(device, self.held()));
    }

    /// Gives the line to own; data that are newer than memory go along, to be kept there.
    fn grant_owned(&mut self, device: usize, send: &mut impl FnMut(Output<D>)) {
        let is_dirty = matches!(self.last_level, LastLevel::Dirty(_));
        let state = if is_dirty { CacheState::Modified } else { CacheState::Exclusive };
        let data = self.held();
        self.last_level = LastLevel::Nothing;
        self.devices[device].holds = Holds::Owner;
        send(Output::Response(device, Response::Go(state)));
        send(Output::Data(device, data));
    }

    /// Whether a request of a device is refused, to be sent again.
    pub fn refuses(&self, rules: &Rules, requester: Requester) -> bool {
        let Requester::Device(device, Request::RdOwn) = requester else { return false };
        let is_shared = |(number, other): (usize, &Device)| number != device && other.holds == Holds::Shared;
        !rules.host_serves_shared_lines && self.devices.iter().enumerate().any(is_shared)
    }
}

impl Requester {
    /// Whether the line's present data are wanted, and nothing else.
    pub fn reads_current(self) -> bool {
        matches!(self, Requester::Device(_, Request::RdCurr))
    }
}

impl Request {
    /// Whether no other cache may keep the line.
    fn takes_away(self) -> bool {
        matches!(self, Request::RdOwn | Request::RdOwnNoData | Request::CLFlush) || self.writes().is_some()
    }
}
