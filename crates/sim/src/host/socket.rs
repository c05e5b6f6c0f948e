//! A socket: cores, their caches, and the requests of the cores on their way to the shared levels.

use super::run_loop::Wake;
use super::scheduler::CoreState;
use super::{BRIDGE, Host, HostConfig};
use crate::cache::array::State;
use crate::cache::hierarchy::{Acknowledged, Departure, Hierarchy, HierarchyConfig, Served};
use crate::core::config::{CleanedLine, FlushAcknowledgement};
use crate::core::{Core, CoreRequest};
use crate::kernel::Context;
use crate::time::Duration;

/// Cores and their caches.
#[derive(Clone)]
pub(super) struct Socket {
    pub cores: Vec<Core>,
    /// What each core is doing.
    pub states: Vec<CoreState>,
    pub caches: Hierarchy,
    pub requests: RequestSlots,
    /// Cycles for which cores had threads that have left them since.
    pub busy_cycles: u64,
}

/// Requests that have left their cores and not reached the next level; a wake names each by its slot.
#[derive(Clone, Default)]
pub(super) struct RequestSlots {
    /// The core and its request, by slot.
    slots: Vec<Option<(usize, CoreRequest)>>,
    free: Vec<u32>,
}

/// Empty between events; kept to reuse their memory.
#[derive(Clone, Default)]
pub(super) struct Buffers {
    /// Requests of a core, with the cycle at which each reaches the next level.
    pub requests: Vec<(u64, CoreRequest)>,
    pub served: Vec<Served>,
    pub acknowledged: Vec<Acknowledged>,
    pub departures: Vec<Departure>,
}

impl Socket {
    /// Idle cores and cold caches with a clock of that period.
    pub fn new(config: &HostConfig, period: Duration) -> Socket {
        let cores = usize::from(config.core.count);
        let core = || Core::new(&config.core, &config.tlb, &config.branch_predictor, &config.l1i, &config.l1d, period);
        let caches = Hierarchy::new(&HierarchyConfig {
            cores,
            period,
            l1i: config.l1i.clone(),
            l1d: config.l1d.clone(),
            levels: config.levels.clone(),
            bus_round_trip: config.bus_round_trip.as_ps().div_ceil(period.as_ps()),
            flushes_end_at_bus: config.core.flush_acknowledged_by == FlushAcknowledgement::MemoryBus,
            point_of_coherence: config.core.point_of_coherence,
            cleaned: match config.core.clwb_leaves {
                CleanedLine::Exclusive => Some(State::Exclusive),
                CleanedLine::Shared => Some(State::Shared),
                CleanedLine::Invalid => None,
            },
        });
        Socket {
            cores: (0..cores).map(|_| core()).collect(),
            states: vec![CoreState::default(); cores],
            caches,
            requests: RequestSlots::default(),
            busy_cycles: 0,
        }
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.caches.power_fail();
        for core in &mut self.cores {
            core.power_fail();
        }
        self.requests = RequestSlots::default();
    }
}

impl RequestSlots {
    #[inline]
    fn put(&mut self, core: usize, request: CoreRequest) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((core, request));
                slot
            }
            None => {
                self.slots.push(Some((core, request)));
                self.slots.len() as u32 - 1
            }
        }
    }

    /// The request in `slot`, with its core; the slot is free then.
    #[inline]
    pub fn take(&mut self, slot: u32) -> (usize, CoreRequest) {
        let taken = self.slots[slot as usize].take().expect("each request is served once");
        self.free.push(slot);
        taken
    }
}

impl Host {
    /// Turns the requests of a core into wakes at the times at which they reach the next level.
    pub(super) fn post_requests(&mut self, core: usize, context: &mut Context<'_>) {
        let mut requests = std::mem::take(&mut self.buffers.requests);
        for (cycle, request) in requests.drain(..) {
            let slot = self.socket.requests.put(core, request);
            let time = self.time(cycle).max(context.now());
            context.wake_at(time, Wake::Request { slot }.token());
        }
        self.buffers.requests = requests;
    }

    /// A core's flush or non-temporal store is complete at `cycle`.
    pub(super) fn write_acknowledged(&mut self, core: usize, id: u32, cycle: u64) {
        self.socket.cores[core].write_acknowledged(id, cycle);
        if let Some(sites) = &mut self.socket.caches.persist_sites {
            sites.acknowledged(core, id, cycle);
        }
    }

    /// Sends what the caches have for memory.
    pub(super) fn send_departures(&mut self, context: &mut Context<'_>) {
        if self.socket.caches.has_departures() {
            let mut departures = std::mem::take(&mut self.buffers.departures);
            self.socket.caches.take_departures(&mut departures);
            for mut departure in departures.drain(..) {
                if context.is_tracing() {
                    context.begin_request(self.socket.caches.asker(&departure.message), &mut departure.message);
                }
                let time = self.time(departure.cycle).max(context.now());
                context.send(BRIDGE, departure.message, time);
            }
            self.buffers.departures = departures;
        }
        self.stop_at_pm_writes_limit();
    }
}
