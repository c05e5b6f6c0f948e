//! The run loop of a core: it computes until its thread comes to something that the host deals with, or until an answer
//! is missing.

use super::Host;
use crate::cache::hierarchy::{Outcome, Request, Requester, Served, Side, Source};
use crate::cache::observation_log::Access;
use crate::core::warm::{SampledRegion, WarmEnvironment};
use crate::core::{Core, CoreRequest, Environment, Pause};
use fencepost_kernel::Context;
use fencepost_kernel::message::{Message, Opcode};
use fencepost_record::RecordError;

/// What a wake of the host is for; packed into its token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    Run { core: usize },
    Request { slot: u32 },
}

impl Wake {
    pub fn token(self) -> u64 {
        match self {
            Wake::Run { core } => core as u64,
            Wake::Request { slot } => 1 << 63 | u64::from(slot),
        }
    }

    pub fn from_token(token: u64) -> Wake {
        if token >> 63 == 1 { Wake::Request { slot: token as u32 } } else { Wake::Run { core: token as usize } }
    }
}

impl Host {
    /// Runs a core until it can go no further at `now`, and handles what its thread comes to.
    pub(super) fn run_core(&mut self, core: usize, now: u64, context: &mut Context<'_>) {
        while self.error.is_none() {
            let Some(thread) = self.socket.states[core].thread else { return };
            let horizon = now + self.run_ahead;
            self.socket.cores[core].look_ahead(now, horizon);
            let pause = match self.socket.states[core].deferred.take() {
                Some(pause) => {
                    let (cpu, mut env) = self.environment(core, thread);
                    cpu.settle(&mut env);
                    pause
                }
                None => match self.compute(core, thread, now, horizon) {
                    Ok(pause) => pause,
                    Err(error) => return self.error = Some(error),
                },
            };
            self.post_requests(core, context);
            self.notice_stores(core, thread, context);
            self.notice_awaited_writes(core, context);
            self.process.notice_loads(thread);
            if let Some(cycle) = self.socket.cores[core].held_store() {
                self.schedule_run(core, cycle, context);
            }
            if self.has_sample_boundary() && !matches!(pause, Pause::Waiting | Pause::Horizon) {
                // The simulation reads the counters up to here before the pause is dealt with.
                self.socket.states[core].deferred = Some(pause);
                return self.schedule_run(core, now, context);
            }
            if self.process.regions.is_waiting() && !matches!(pause, Pause::Waiting | Pause::Horizon) {
                self.socket.states[core].deferred = Some(pause);
                self.socket.states[core].is_held = true;
                return;
            }
            match pause {
                Pause::Waiting => {
                    if self.socket.states[core].is_preempting || !self.has_used_its_slice(core) {
                        return;
                    }
                    // A thread that always waits for memory never comes to the horizon.
                    self.socket.states[core].is_preempting = true;
                }
                Pause::Horizon if self.socket.states[core].is_preempting => self.preempt(core, thread, context),
                Pause::Horizon => {
                    self.socket.states[core].is_preempting = self.has_used_its_slice(core);
                    if !self.socket.states[core].is_preempting {
                        return self.schedule_run(core, self.socket.cores[core].cycle(), context);
                    }
                }
                Pause::Event(cycle) | Pause::Marker { cycle, .. } | Pause::End(cycle) if cycle > now => {
                    self.socket.states[core].deferred = Some(pause);
                    return self.schedule_run(core, cycle, context);
                }
                Pause::Event(_) => self.handle_event(core, thread, now, context),
                // A core that still drains at a boundary comes to its next one late, however early that would have
                // been.
                Pause::Marker { code, cycle } => self.process.regions.marker(code, self.time(cycle.max(now))),
                Pause::End(_) => self.handle_end(core, thread, context),
            }
            if self.process.regions.has_boundary() {
                self.sample_crosses_region(now);
                // The simulation reads the counters up to here before anything goes on. If a region begins, no core
                // waits for the end of the last.
                if !self.process.regions.is_settling() {
                    self.resume_held(now, context);
                }
                return self.schedule_run(core, now, context);
            }
        }
    }

    /// Lets a core compute for its thread. A core that is being preempted, or that goes from detail to warming, drains
    /// first.
    fn compute(&mut self, core: usize, thread: usize, now: u64, horizon: u64) -> Result<Pause, RecordError> {
        let pause = self.compute_to_limit(core, thread, horizon);
        self.follow_plan(now);
        pause
    }

    /// Lets a core compute for its thread, and counts the instructions.
    pub(super) fn compute_unlimited(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let before = self.process.threads[thread].instructions;
        let pause = self.compute_in_mode(core, thread, horizon);
        self.process.instructions += self.process.threads[thread].instructions - before;
        pause
    }

    /// In detail, or warming.
    fn compute_in_mode(&mut self, core: usize, thread: usize, horizon: u64) -> Result<Pause, RecordError> {
        let (is_preempting, is_warming) = (self.socket.states[core].is_preempting, self.is_warming());
        let (cpu, mut env) = self.environment(core, thread);
        if !is_preempting && !is_warming {
            return cpu.run(&mut env);
        }
        if !cpu.drain(&mut env) {
            return Ok(Pause::Waiting);
        }
        if is_preempting {
            return Ok(Pause::Horizon);
        }
        if self.process.regions.is_settling() || self.process.regions.is_waiting() {
            self.socket.states[core].is_held = true;
            return Ok(Pause::Waiting);
        }
        let horizon = horizon + self.functional_run_ahead();
        let way = self.way_to_interval();
        let sampled = way.map(|(pace, left)| SampledRegion {
            persist: &self.process.persist,
            pace,
            stop_at: self.process.threads[thread].instructions + left,
        });
        self.process.table.touched_by(self.socket.caches.socket_of(core));
        let mut env = WarmEnvironment {
            core,
            sampled,
            thread: &mut self.process.threads[thread],
            blocks: &self.process.blocks,
            caches: &mut self.socket.caches,
            table: &mut self.process.table,
        };
        self.socket.cores[core].warm(horizon, &mut env)
    }

    fn environment(&mut self, core: usize, thread: usize) -> (&mut Core, Environment<'_>) {
        if let Some(order) = &mut self.process.write_order {
            order.is_core_wanted = self.scheduler.wants(core);
        }
        self.process.table.touched_by(self.socket.caches.socket_of(core));
        let caches = self.socket.caches.of_core(core);
        let env = Environment {
            thread: &mut self.process.threads[thread],
            blocks: &self.process.blocks,
            l1d: &mut caches.l1d[core],
            l1i: &mut caches.l1i[core],
            table: &mut self.process.table,
            persist: &self.process.persist,
            synchronisation: &self.process.synchronisation,
            requests: &mut self.buffers.requests,
            core,
            observations: self.observers.observations.as_deref_mut(),
            stores: self.observers.stores.as_deref_mut(),
            order: self.process.write_order.as_deref_mut(),
            sites: caches.persist_sites.as_deref_mut(),
            accesses: self.observers.accesses.as_deref_mut(),
        };
        (&mut self.socket.cores[core], env)
    }

    /// Serves a core's request, which has reached the shared levels.
    pub(super) fn serve_request(&mut self, slot: u32, now: u64, context: &mut Context<'_>) {
        let (core, request) = self.socket.requests.take(slot);
        match request {
            CoreRequest::Line { line, want, side, cause, issued } => {
                let request = Request { core, line, want, side, cause, issued };
                if let Outcome::Ready(ready, version) = self.socket.caches.of_core(core).request(request, now) {
                    let served = [Served { request, ready, version, source: Source::Caches }];
                    self.note_brought(&served);
                    self.deliver(&served, now, context);
                }
            }
            CoreRequest::Flush { line, flush, id, issued } => {
                let by = Requester { core, id, issued };
                if let Some(cycle) = self.socket.caches.of_core(core).flush(by, line, flush, now) {
                    self.write_acknowledged(core, id, cycle);
                    self.run_core(core, now, context);
                }
            }
            CoreRequest::WriteAround { line, mask, id, issued } => {
                let by = Requester { core, id, issued };
                self.socket.caches.of_core(core).write_around(by, line, mask, now);
            }
        }
    }

    /// Logs what the caches have brought to cores, before any core uses it.
    fn note_brought(&mut self, served: &[Served]) {
        if let Some(log) = &mut self.observers.observations {
            for Served { request, ready, version, .. } in
                served.iter().filter(|served| served.request.side == Side::Data)
            {
                log.record(request.core, *ready, request.line, *version, Access::Brought);
            }
        }
    }

    /// Gives cores the lines they asked for.
    fn deliver(&mut self, served: &[Served], now: u64, context: &mut Context<'_>) {
        for served in served {
            let core = served.request.core;
            let Some(thread) = self.socket.states[core].thread else {
                self.socket.cores[core].prefetch_arrived(served);
                continue;
            };
            let horizon = now + self.run_ahead;
            let (cpu, mut env) = self.environment(core, thread);
            cpu.look_ahead(now, horizon);
            cpu.line_arrived(served, &mut env);
            self.run_core(core, now, context);
        }
    }

    /// Memory's answer arrives at a host of one socket.
    pub(super) fn handle_message(&mut self, message: &Message, now: u64, context: &mut Context<'_>) {
        if let Some(pacing) = &mut self.pacing {
            pacing.answered(message);
        }
        match message.opcode {
            Opcode::MemData => self.data_arrived(0, message, now, context),
            Opcode::Cmp => self.write_completed(0, message, now, context),
            other => unreachable!("a host is never sent {other:?}"),
        }
    }

    /// A line, or the right to write it, arrives at the caches of a socket.
    pub(super) fn data_arrived(&mut self, socket: usize, message: &Message, now: u64, context: &mut Context<'_>) {
        let mut served = std::mem::take(&mut self.buffers.served);
        self.socket.caches.of_socket(socket).data_arrived(message, now, &mut served);
        context.complete_request(message, served.first().map(|served| self.time(served.ready)));
        self.note_brought(&served);
        self.note_other_memory(socket, message.line, &mut served);
        self.deliver(&served, now, context);
        served.clear();
        self.buffers.served = served;
    }

    /// A write of a socket's caches is complete.
    pub(super) fn write_completed(&mut self, socket: usize, message: &Message, now: u64, context: &mut Context<'_>) {
        let mut acknowledged = std::mem::take(&mut self.buffers.acknowledged);
        let mut served = std::mem::take(&mut self.buffers.served);
        self.socket.caches.of_socket(socket).write_completed(message, now, &mut acknowledged, &mut served);
        context.complete_request(message, acknowledged.first().map(|first| self.time(first.cycle)));
        self.note_brought(&served);
        for acknowledged in acknowledged.drain(..) {
            self.write_acknowledged(acknowledged.by.core, acknowledged.by.id, acknowledged.cycle);
            self.run_core(acknowledged.by.core, now, context);
        }
        self.buffers.acknowledged = acknowledged;
        self.deliver(&served, now, context);
        served.clear();
        self.buffers.served = served;
    }
}
