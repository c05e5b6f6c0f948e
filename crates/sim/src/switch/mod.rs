//! CXL switches: volatile ones, and persistent ones (PCS) with a persist buffer.
//!
//! A switch is a four-stage pipelined router: (1) buffer write and decoding, (2) routing and the persist buffer's
//! lookup, (3) switch allocation, (4) switch traversal. Each port has one ingress buffer for each message class, first
//! in, first out, with as many places as the link that feeds it has credits. A class says how its messages are routed:
//! requests by their line, through HDM ranges, answers by the tag that the switch gave the request. The heads of the
//! buffers that want the same port are served in turn, and a head is allocated only when the link behind the port has a
//! credit of its class and is about to run dry: like real ones, the switch has no buffers at its outputs, so that
//! head-of-line blocking and credit stalls emerge. A persist buffer takes part in CXL.mem; all else passes it by.
//!
//! What an allocated message will do is certain: it is handed to its transmitter at once, dated two stages later. So a
//! message costs the switch two events: it arrives, and it is ready.

mod allocation;
mod arbitration;
pub mod config;
mod fair_queueing;
pub mod persist_buffer;
mod pipeline;
mod port;
mod routing;
pub mod scheme;
mod stats;
mod tags;

#[cfg(test)]
mod tests;

pub use config::{PersistBufferConfig, SwitchConfig};
pub use port::{PortDescription, PortDirection};
pub use routing::RoutingTable;
pub use scheme::Scheme;
pub use stats::SwitchStats;

use arbitration::Arbiter;
use fair_queueing::FairQueueing;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::link::BackpressureAverage;
use fencepost_kernel::message::{Flow, Message, MessageClass, Opcode, Route, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::trace::Place;
use fencepost_kernel::{Component, Context, Event, PortId};
use persist_buffer::PersistBuffer;
use pipeline::Pipeline;
use port::{Buffered, Destination, Port};
use rustc_hash::FxHashMap;
use tags::{OutstandingRequests, Requester};

/// Stages before switch allocation.
const STAGES_BEFORE_ALLOCATION: u64 = 2;
/// Stages from the start of switch allocation to the transmitter.
const STAGES_FROM_ALLOCATION: u64 = 2;

/// Some buffer has a head that has passed the first two stages.
const WAKE_READY: u64 = 0;
/// The persist buffer's controller has finished what it was doing.
const WAKE_CONTROLLER: u64 = 1;
/// Port number `token - WAKE_PORT` can take another message.
const WAKE_PORT: u64 = 2;

/// What a switch does with the writes to the lines it is the persist point of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It passes them on.
    Volatile,
    /// It does what the scheme says; under `nopb` it is volatile.
    Persistent(Scheme),
}

/// One switch. Its ports are numbered as in the list it is made from.
#[derive(Clone, Debug)]
pub struct Switch {
    stage: Duration,
    crossbar_flit: Duration,
    routing: RoutingTable,
    ports: Vec<Port>,
    outstanding: OutstandingRequests,
    pipeline: Pipeline,
    /// One for each port, and one for the controller's input.
    arbiters: Vec<Arbiter>,
    /// The crossbar's input of each port, and at the end that of the controller's output.
    inputs: Vec<CrossbarInput>,
    /// Destinations where something may have become possible.
    to_visit: Vec<usize>,
    persist_buffer: Option<Box<PersistBuffer>>,
    /// Set if messages are served by flows, and not in turn.
    fair_queueing: Option<Box<FairQueueing>>,
    stats: SwitchStats,
}

/// An input of the crossbar, which one message at a time passes.
#[derive(Clone, Debug)]
struct CrossbarInput {
    /// From when on it is free.
    free: Time,
    /// The ports that wait for it.
    waiting: Arbiter,
}

impl Switch {
    /// A switch with `ports`, all buffers empty and all credits in hand.
    ///
    /// # Panics
    /// If `role` asks for a persist buffer that `config` does not describe: a machine is checked for this before it is
    /// built.
    pub fn new(config: &SwitchConfig, ports: &[PortDescription], routing: RoutingTable, role: Role) -> Switch {
        let persist_buffer = match role {
            Role::Persistent(scheme) if scheme.has_persist_buffer() => {
                let config = config.persist_buffer.as_ref().expect("a persist point has a persist buffer");
                PersistBuffer::new(config, scheme).map(Box::new)
            }
            Role::Persistent(_) | Role::Volatile => None,
        };
        let sources = (ports.len() + 1) * MessageClass::COUNT;
        Switch {
            stage: config.pipeline_stage(),
            crossbar_flit: Duration::from_ns(config.crossbar_flit_ns),
            routing,
            ports: ports.iter().enumerate().map(|(id, port)| Port::new(PortId(id as u16), port)).collect(),
            outstanding: OutstandingRequests::default(),
            pipeline: Pipeline::default(),
            arbiters: vec![Arbiter::new(sources); ports.len() + 1],
            inputs: vec![CrossbarInput { free: Time::ZERO, waiting: Arbiter::new(ports.len()) }; ports.len() + 1],
            to_visit: Vec::new(),
            persist_buffer,
            fair_queueing: None,
            stats: SwitchStats::default(),
        }
    }

    /// The version of `line` that a recovery would bring to the memory device from here; nothing if the persist buffer
    /// does not hold the line.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        self.persist_buffer.as_ref()?.durable_version(line)
    }

    /// Makes the persist buffer's entry of `line` hold `version`, without time; whether it has one. Nothing may be
    /// under way.
    pub fn preload(&mut self, line: LineAddress, version: Version) -> bool {
        self.persist_buffer.as_mut().is_some_and(|buffer| buffer.preload(line, version))
    }

    /// Lets the persist buffer take a line without time, if this is a persist point of the line: gives what drains
    /// because of it. Nothing may be under way.
    pub fn write_functionally(
        &mut self,
        line: LineAddress,
        version: Version,
        now: Time,
    ) -> Option<Vec<(LineAddress, Version)>> {
        self.buffer_of(line).map(|buffer| buffer.write_functionally(line, version, now))
    }

    /// The persist buffer drains all that it holds: phase 2 of a Global Persistent Flush.
    pub fn begin_global_flush(&mut self, context: &mut Context<'_>) {
        if let Some(buffer) = &mut self.persist_buffer {
            buffer.begin_global_flush();
            self.run_controller(context);
            self.allocate(context);
        }
    }

    /// What is counted over time begins `now`, unless it has begun.
    pub fn begin_series(&mut self, now: Time) {
        if let Some(buffer) = &mut self.persist_buffer {
            buffer.begin_series(now);
        }
    }

    /// The persist buffer, if this switch has one.
    pub fn persist_buffer(&self) -> Option<&PersistBuffer> {
        self.persist_buffer.as_deref()
    }

    /// What the ports and the pipeline counted.
    pub fn counters(&self) -> &SwitchStats {
        &self.stats
    }

    /// One of the ports.
    pub fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// From now on flows are served by their weights, and those that are not named by 1.
    pub fn queue_fairly(&mut self, weights: FxHashMap<Flow, f64>) {
        self.fair_queueing = Some(Box::new(FairQueueing::new(weights)));
    }

    /// From now on the backpressure averages of all ports are kept.
    pub fn sample_backpressure(&mut self, average: BackpressureAverage) {
        self.ports.iter_mut().for_each(|port| port.sample_backpressure(average));
    }

    /// The backpressure average of one of the ports, 0 to 1.
    pub fn backpressure(&mut self, port: PortId, now: Time) -> f64 {
        self.ports[port.index()].backpressure(now)
    }

    /// A message came in: it enters the pipeline.
    fn receive(&mut self, port: PortId, mut message: Message, context: &mut Context<'_>) {
        let ready = context.now() + self.stage * STAGES_BEFORE_ALLOCATION;
        message.stack.charge(Stage::SwitchPipeline, ready);
        context.show(Place::Port(port), &message);
        let destination = self.destination(port, &message);
        let source = port.index() * MessageClass::COUNT + message.class().index();
        let is_head = self.ports[port.index()].ingress[message.class().index()].is_empty();
        let fair_tag = self.fair_queueing.as_mut().map_or(0.0, |queueing| queueing.tag(&message));
        self.ports[port.index()].receive(Buffered { message, destination, ready, fair_tag });
        if is_head {
            self.head_changed(source, context);
        }
    }

    /// Where a message that came in at `port` goes, as far as that is known before it is the head of its buffer.
    fn destination(&self, port: PortId, message: &Message) -> Destination {
        let class = message.class();
        debug_assert!(
            self.ports[port.index()].direction.receives(class.direction()),
            "{} does not come in at {port:?}",
            class.name()
        );
        match class.route() {
            Route::ByLine if message.is_write() && self.persists_here(message.line) => Destination::Controller,
            Route::ByLine => Destination::Port(self.routing.port(message.line)),
            Route::ByTag => match self.outstanding.requester(message.tag) {
                Requester::Neighbour { port, .. } => Destination::Port(port),
                Requester::PersistBuffer(_) => Destination::Controller,
            },
        }
    }

    /// The persist buffer, if this is a persist point of the line.
    fn buffer_of(&mut self, line: LineAddress) -> Option<&mut PersistBuffer> {
        let is_here = self.routing.is_persist_point(line);
        self.persist_buffer.as_deref_mut().filter(|_| is_here)
    }

    fn persists_here(&self, line: LineAddress) -> bool {
        self.persist_buffer.is_some() && self.routing.is_persist_point(line)
    }

    /// The buffer `source` of a port has a new head, or none: it asks for its destination as soon as it is ready.
    fn head_changed(&mut self, source: usize, context: &mut Context<'_>) {
        let Some(head) = self.ingress(source).head() else { return };
        let ready = head.ready;
        if ready <= context.now() {
            self.ask_for_destination(source, context.now());
        } else if self.pipeline.push(ready, source) {
            context.wake_at(ready, WAKE_READY);
        }
    }

    /// The head of the buffer `source` of a port leaves routing. The persist buffer's selector (PBCS) has its say here.
    fn ask_for_destination(&mut self, source: usize, now: Time) {
        let head = self.ingress(source).head().expect("a head asks");
        let (opcode, line, mut destination) = (head.message.opcode, head.message.line, head.destination);
        if opcode == Opcode::MemRd
            && let Some(buffer) = self.buffer_of(line)
            && buffer.selects_read(line, now)
        {
            destination = Destination::Controller;
            self.ingress_mut(source).head_mut().expect("it is still there").destination = destination;
        }
        self.ask(source, destination);
    }

    fn ask(&mut self, source: usize, destination: Destination) {
        let destination = self.arbiter_of(destination);
        self.arbiters[destination].ask(source);
        self.visit(destination);
    }

    fn arbiter_of(&self, destination: Destination) -> usize {
        match destination {
            Destination::Port(port) => port.index(),
            Destination::Controller => self.ports.len(),
        }
    }

    fn visit(&mut self, destination: usize) {
        if !self.to_visit.contains(&destination) {
            self.to_visit.push(destination);
        }
    }

    fn ingress(&self, source: usize) -> &port::IngressBuffer {
        &self.ports[source / MessageClass::COUNT].ingress[source % MessageClass::COUNT]
    }

    fn ingress_mut(&mut self, source: usize) -> &mut port::IngressBuffer {
        &mut self.ports[source / MessageClass::COUNT].ingress[source % MessageClass::COUNT]
    }
}

impl Component for Switch {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { port, message } => self.receive(port, message, context),
            Event::Credit { port, class } => {
                let now = context.now();
                let sender = &mut self.ports[port.index()];
                sender.transmitter.credit_returned(class, context);
                // To look again is not harmless: of ports that have not waited for an input of the crossbar the first
                // to look gets it.
                if sender.note_credit(class, now) {
                    self.visit(port.index());
                }
            }
            Event::Wake { token: WAKE_READY } => {
                while let Some(source) = self.pipeline.pop(context.now()) {
                    self.ask_for_destination(source, context.now());
                }
            }
            Event::Wake { token: WAKE_CONTROLLER } => self.controller_finished(context),
            Event::Wake { token } => {
                let port = (token - WAKE_PORT) as usize;
                self.ports[port].retry_at = None;
                self.visit(port);
            }
        }
        self.allocate(context);
    }

    fn power_fail(&mut self) {
        self.ports.iter_mut().for_each(Port::power_fail);
        self.arbiters.iter_mut().for_each(Arbiter::clear);
        self.inputs.iter_mut().for_each(|input| input.waiting.clear());
        self.outstanding.clear();
        self.pipeline.clear();
        self.to_visit.clear();
        if let Some(buffer) = &mut self.persist_buffer {
            buffer.power_fail();
        }
    }

    fn recover(&mut self, context: &mut Context<'_>) {
        if let Some(buffer) = &mut self.persist_buffer {
            buffer.recover(context.now());
            self.run_controller(context);
            self.allocate(context);
        }
    }

    fn is_idle(&self) -> bool {
        let is_port_idle =
            |port: &Port| port.ingress.iter().all(port::IngressBuffer::is_empty) && port.transmitter.is_idle();
        self.ports.iter().all(is_port_idle)
            && self.outstanding.is_empty()
            && self.persist_buffer.as_ref().is_none_or(|buffer| buffer.is_idle())
    }

    fn waiting(&self) -> Vec<String> {
        self.report_waiting()
    }

    fn gauges(&self) -> Vec<(String, u64)> {
        let mut gauges = Vec::new();
        for (id, port) in self.ports.iter().enumerate() {
            for class in port.places.carried() {
                let (name, waiting) = (class.name(), port.ingress[class.index()].len() as u64);
                gauges.push((format!("port {id}: {name} waiting"), waiting));
                gauges.push((format!("port {id}: {name} credits"), port.transmitter.credits(class).into()));
            }
        }
        if let Some(buffer) = &self.persist_buffer {
            gauges.push(("persist buffer: entries in use".to_owned(), buffer.state().occupied() as u64));
            gauges.push(("persist buffer: packets waiting".to_owned(), buffer.state().input.packets().len() as u64));
        }
        gauges
    }

    fn stats(&self, now: Time) -> StatsNode {
        let mut children = self.stats.to_nodes();
        for (id, port) in self.ports.iter().enumerate() {
            children.push((format!("port{id}"), port.stats(now)));
        }
        if let Some(buffer) = &self.persist_buffer {
            children.push(("persist_buffer".to_owned(), buffer.stats(now)));
        }
        StatsNode::group(children)
    }
}
