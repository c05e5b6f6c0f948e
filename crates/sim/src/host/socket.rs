//! The cores of a host's sockets, their caches, and the requests of the cores on their way to the shared levels.

use super::between_sockets::{BetweenSockets, is_answer};
use super::run_loop::Wake;
use super::scheduler::CoreState;
use super::{Host, HostConfig};
use crate::cache::array::State;
use crate::cache::hierarchy::{Acknowledged, Departure, HierarchyConfig, Served};
use crate::cache::sockets::Caches;
use crate::core::config::{CleanedLine, FlushAcknowledgement};
use crate::core::{Core, CoreRequest};
use fencepost_kernel::Context;
use fencepost_kernel::message::Message;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;

/// Cores and their caches.
#[derive(Clone)]
pub(super) struct Socket {
    pub cores: Vec<Core>,
    /// What each core is doing.
    pub states: Vec<CoreState>,
    pub caches: Caches,
    /// None where there is one socket.
    pub between: Option<Box<BetweenSockets>>,
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
        let levels = HierarchyConfig {
            cores,
            own_cores: 0..cores,
            period,
            l1i: config.l1i.clone(),
            l1d: config.l1d.clone(),
            levels: config.levels.clone(),
            bus_round_trip: config.bus_round_trip.as_ps().div_ceil(period.as_ps()),
            flushes_end_at_bus: config.core.flush_acknowledged_by == FlushAcknowledgement::MemoryBus,
            point_of_coherence: config.core.point_of_coherence,
            is_one_of_several: false,
            cleaned: match config.core.clwb_leaves {
                CleanedLine::Exclusive => Some(State::Exclusive),
                CleanedLine::Shared => Some(State::Shared),
                CleanedLine::Invalid => None,
            },
        };
        let sockets = config.sockets.as_ref();
        Socket {
            cores: (0..cores).map(|_| core()).collect(),
            states: vec![CoreState::default(); cores],
            caches: match sockets {
                Some(sockets) => Caches::new(&levels, &sockets.memory_ends, sockets.memory_directory),
                None => Caches::new(&levels, &[], false),
            },
            between: sockets.map(|sockets| Box::new(BetweenSockets::new(sockets))),
            requests: RequestSlots::default(),
            busy_cycles: 0,
        }
    }

    /// What each socket counts, where there are several.
    pub fn stats_by_socket(&self, now: Time) -> Vec<(String, StatsNode)> {
        let Some(between) = &self.between else { return Vec::new() };
        let parts = self.caches.iter().zip(self.caches.homes()).enumerate().map(|(socket, (caches, home))| {
            let mut nodes = caches.stats();
            nodes.push(("home_agent".to_owned(), home.counters().stats()));
            nodes.extend(between.stats_of(socket, now));
            (format!("socket{socket}"), StatsNode::group(nodes))
        });
        parts.collect()
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        self.caches.power_fail();
        if let Some(between) = &mut self.between {
            between.power_fail();
        }
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
        if let Some(sites) = &mut self.socket.caches.of_core(core).persist_sites {
            sites.acknowledged(core, id, cycle);
        }
    }

    /// A request that leaves the caches of a socket may have to be traced; an answer to a home agent belongs to the
    /// request that this serves.
    #[cold]
    fn trace_departure(&mut self, socket: usize, message: &mut Message, context: &mut Context<'_>) {
        let place = if self.socket.between.is_some() { Place::Socket(socket as u16) } else { Place::Anywhere };
        if is_answer(message) {
            return context.show(place, message);
        }
        let asker = self.socket.caches.of_socket(socket).asker(message);
        context.begin_request(asker, place, message);
    }

    /// Sends what the caches have for memory.
    pub(super) fn send_departures(&mut self, context: &mut Context<'_>) {
        for socket in 0..self.socket.caches.sockets() {
            if !self.socket.caches.of_socket(socket).has_departures() {
                continue;
            }
            let port = self.port_of_socket(socket);
            let mut departures = std::mem::take(&mut self.buffers.departures);
            self.socket.caches.of_socket(socket).take_departures(&mut departures);
            for mut departure in departures.drain(..) {
                if context.is_tracing() {
                    self.trace_departure(socket, &mut departure.message, context);
                }
                let time = self.time(departure.cycle).max(context.now());
                context.send(port, departure.message, time);
            }
            self.buffers.departures = departures;
        }
        self.stop_at_pm_writes_limit();
    }
}
