//! What every simulated thing has in common: it handles events, loses power, and tells what it counted.

use std::ops::Range;

use super::event::Event;
use super::id::{ComponentId, PortId};
use super::queue::EventQueue;
use super::trace::{MediaWrite, Place, Trace};
use crate::message::{Message, MessageClass, RequestName};
use crate::stats::StatsNode;
use crate::time::Time;

/// The contract of a component.
///
/// Its fields are all of its state: cloning it is a snapshot, and nothing else may influence what it does.
pub trait Component {
    /// Reacts to one event. Time is `context.now()`.
    fn handle(&mut self, event: Event, context: &mut Context<'_>);

    /// Power is gone: whatever is volatile is lost; whatever is in the persistent domain stays.
    fn power_fail(&mut self);

    /// Power is back: start whatever recovery this component has. Host traffic comes only after every component is idle
    /// again.
    fn recover(&mut self, context: &mut Context<'_>) {
        let _ = context;
    }

    /// Whether nothing is under way here. Asked when no event is left, for the deadlock report.
    fn is_idle(&self) -> bool;

    /// What is waiting here and for what, one line each, for the deadlock report. Empty when idle.
    fn waiting(&self) -> Vec<String> {
        Vec::new()
    }

    /// What can be watched here over time (entries in use, places in queues, credits), with its present value.
    fn gauges(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Everything counted up to `now`, the time of the last event. What lasts (a bank at work, a flit on a link, an
    /// occupied entry) counts as far as it has come.
    fn stats(&self, now: Time) -> StatsNode;
}

/// Which port is wired to which.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    /// The first port of each component in `peers`, and after the last one the number of all.
    first: Vec<u32>,
    /// By component and port: every message asks, so they lie together.
    peers: Vec<Option<(ComponentId, PortId)>>,
}

impl Wires {
    /// Connects two ports in both directions.
    ///
    /// # Panics
    /// If one of them is wired already: a system is built wrongly.
    pub fn connect(&mut self, one: (ComponentId, PortId), other: (ComponentId, PortId)) {
        for ((component, port), peer) in [(one, other), (other, one)] {
            let place = self.make_place(component, port);
            assert!(self.peers[place].is_none(), "port {port:?} of component {component:?} is wired twice");
            self.peers[place] = Some(peer);
        }
    }

    /// The components at the other ends of the ports of `component`, by port.
    pub fn peers(&self, component: ComponentId) -> impl Iterator<Item = (PortId, ComponentId)> {
        let ports = (0..).map(PortId).zip(&self.peers[self.ports(component)]);
        ports.filter_map(|(port, peer)| peer.map(|(component, _)| (port, component)))
    }

    /// The port at the other end.
    ///
    /// # Panics
    /// If nothing is wired there.
    #[inline]
    pub fn peer(&self, component: ComponentId, port: PortId) -> (ComponentId, PortId) {
        self.peers[self.place(component, port)]
            .unwrap_or_else(|| panic!("port {port:?} of component {component:?} is not wired"))
    }

    /// The number of that port among all ports of all components.
    #[inline]
    pub fn place(&self, component: ComponentId, port: PortId) -> usize {
        debug_assert!(port.index() < self.ports(component).len(), "{component:?} has no port {port:?}");
        self.first[component.0 as usize] as usize + port.index()
    }

    /// Where the ports of `component` are.
    fn ports(&self, component: ComponentId) -> Range<usize> {
        let component = component.0 as usize;
        match self.first.get(component..component + 2) {
            Some(ends) => ends[0] as usize..ends[1] as usize,
            None => 0..0,
        }
    }

    /// Where that port is; it gets a place if it has none.
    fn make_place(&mut self, component: ComponentId, port: PortId) -> usize {
        let index = component.0 as usize;
        if self.first.len() < index + 2 {
            self.first.resize(index + 2, self.peers.len() as u32);
        }
        let ports = self.ports(component);
        let missing = (port.index() + 1).saturating_sub(ports.len());
        self.peers.splice(ports.end..ports.end, std::iter::repeat_n(None, missing));
        self.first[index + 1..].iter_mut().for_each(|first| *first += missing as u32);
        ports.start + port.index()
    }
}

/// What a component may do while it handles an event.
pub struct Context<'a> {
    now: Time,
    component: ComponentId,
    queue: &'a mut EventQueue,
    wires: &'a Wires,
    trace: Option<&'a mut Trace>,
}

impl<'a> Context<'a> {
    /// The context in which `component` handles an event at `now`.
    #[inline]
    pub fn new(now: Time, component: ComponentId, queue: &'a mut EventQueue, wires: &'a Wires) -> Self {
        Context { now, component, queue, wires, trace: None }
    }

    /// The same, with a log of traced requests.
    #[inline]
    pub fn traced(self, trace: Option<&'a mut Trace>) -> Self {
        Context { trace, ..self }
    }

    /// The current simulated time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The component that handles the event.
    #[inline]
    pub fn component(&self) -> ComponentId {
        self.component
    }

    /// The same context at a later instant: for what a component already knows it will do then, which saves an event.
    #[inline]
    pub fn at(&mut self, time: Time) -> Context<'_> {
        debug_assert!(time >= self.now, "what was to be done lies in the past");
        Context {
            now: time,
            component: self.component,
            queue: self.queue,
            wires: self.wires,
            trace: self.trace.as_deref_mut(),
        }
    }

    /// Delivers `message` to whatever is wired to `port`, at `arrival`.
    #[inline]
    pub fn send(&mut self, port: PortId, message: Message, arrival: Time) {
        debug_assert!(arrival >= self.now, "a message cannot arrive in the past");
        self.show(Place::Port(port), &message);
        let (target, port) = self.wires.peer(self.component, port);
        self.queue.push(arrival, target, Event::Arrival { port, message });
    }

    /// Gives the neighbour at `port` one credit of `class`, which reaches it at `arrival`.
    #[inline]
    pub fn return_credit(&mut self, port: PortId, class: MessageClass, arrival: Time) {
        debug_assert!(arrival >= self.now, "a credit cannot arrive in the past");
        let to = self.wires.peer(self.component, port);
        self.queue.return_credit(self.wires.place(self.component, port), to, class, arrival);
    }

    /// How many credits of `class` have come to `port` since the last call, besides those that came as events. If there
    /// are none, the next one comes as an event.
    #[inline]
    pub fn take_credits(&mut self, port: PortId, class: MessageClass) -> u16 {
        let (from, from_port) = self.wires.peer(self.component, port);
        self.queue.take_credits(self.wires.place(from, from_port), (self.component, port), class)
    }

    /// Whether single requests are followed.
    #[inline]
    pub fn is_tracing(&self) -> bool {
        self.trace.is_some()
    }

    /// Shows a message whose latency stack has been charged to the trace, if there is one.
    #[inline]
    pub fn show(&mut self, place: Place, message: &Message) {
        if message.request != RequestName::NONE
            && let Some(trace) = &mut self.trace
        {
            trace.show(self.component, place, message);
        }
    }

    /// A request leaves a host's caches, which are at `place`, for that core.
    #[inline]
    pub fn begin_request(&mut self, core: Option<u16>, place: Place, message: &mut Message) {
        if let Some(trace) = &mut self.trace {
            trace.begin(self.component, core, place, message);
        }
    }

    /// A request of this component begins, which is called so.
    #[inline]
    pub fn begin_own_request(&mut self, called: &'static str, message: &mut Message) {
        if let Some(trace) = &mut self.trace {
            trace.begin_called(self.component, called, message);
        }
    }

    /// A write is in a persist buffer.
    #[inline]
    pub fn enter_buffer(&mut self, message: &Message) {
        if message.request != RequestName::NONE
            && let Some(trace) = &mut self.trace
        {
            trace.enter_buffer(message);
        }
    }

    /// A persist buffer drains a line.
    #[inline]
    pub fn begin_drain(&mut self, message: &mut Message) {
        if let Some(trace) = &mut self.trace {
            trace.begin_drain(self.component, message);
        }
    }

    /// The answer is where the request was made; the core knows at `at_core`, if one asked.
    #[inline]
    pub fn complete_request(&mut self, message: &Message, at_core: Option<Time>) {
        if message.request != RequestName::NONE
            && let Some(trace) = &mut self.trace
        {
            trace.complete(self.component, message, at_core);
        }
    }

    /// A medium writes a line.
    #[inline]
    pub fn media_write(&mut self, write: &MediaWrite) {
        if let Some(trace) = &mut self.trace {
            trace.media_write(self.component, write);
        }
    }

    /// Asks for an [`Event::Wake`] at another component: for what stands outside of the machine, as programs that hand
    /// something to each other. Components of the machine send messages.
    #[inline]
    pub fn wake_other(&mut self, component: ComponentId, time: Time, token: u64) {
        debug_assert!(time >= self.now, "a wake cannot be in the past");
        self.queue.push_wake(time, self.component, component, token);
    }

    /// Asks for an [`Event::Wake`] with `token` at `time`.
    #[inline]
    pub fn wake_at(&mut self, time: Time, token: u64) {
        debug_assert!(time >= self.now, "a wake cannot be in the past");
        self.queue.push_wake(time, self.component, self.component, token);
    }
}
