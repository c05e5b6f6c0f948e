//! The host bridge: the way from a host's last-level cache to its memory ports.
//!
//! It decodes where a line lies, crosses the on-chip fabric, and sends the request out of the port that leads there: a
//! CXL root port, or the local connection to a memory controller. It guarantees that no request overtakes a write to
//! the same line, which a local memory controller does and CXL.mem does not, and that tags are unique on each link.
//! Port 0 leads to the last-level cache and has no credits, because that cache bounds what is under way.

pub mod config;
pub mod decoder;
mod device_map;
mod stats;
mod tags;
pub mod write_order;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use config::{HostBridgeConfig, PortDescription};
pub use decoder::{HdmDecoder, HdmError, HdmRange, Interleave};
pub use device_map::DeviceMap;
pub use stats::{HostBridgeStats, NodeCounts};

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::link::Transmitter;
use fencepost_kernel::message::{Flow, Message, MessageClass, Opcode, Stage, mem};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, Context, Event, PortId};
use tags::TagTable;
use write_order::WriteOrder;

/// The port to the host's last-level cache.
pub const HOST_PORT: PortId = PortId(0);

/// The host bridge of one host.
#[derive(Clone, Debug)]
pub struct HostBridge {
    latency: Duration,
    /// The host's number, which tells its flows from those of others.
    host: u32,
    decoder: HdmDecoder,
    /// Port 1 and following.
    memory_ports: Vec<MemoryPort>,
    /// Requests in the on-chip fabric, with the time at which they reach their port.
    fabric: VecDeque<(Time, Message)>,
    write_order: WriteOrder,
    stats: HostBridgeStats,
}

#[derive(Clone, Debug)]
struct MemoryPort {
    transmitter: Transmitter,
    tags: TagTable,
    keeps_order: bool,
}

impl HostBridge {
    /// A bridge whose port 1 and following are `ports`, with the address ranges of `decoder` behind them.
    pub fn new(config: &HostBridgeConfig, decoder: HdmDecoder, ports: &[PortDescription]) -> HostBridge {
        let memory_port = |(index, port): (usize, &PortDescription)| {
            let id = PortId(index as u16 + 1);
            MemoryPort {
                transmitter: Transmitter::new(id, &port.link),
                tags: TagTable::default(),
                keeps_order: port.keeps_order,
            }
        };
        HostBridge {
            latency: Duration::from_ns(config.latency_ns),
            host: 0,
            decoder,
            memory_ports: ports.iter().enumerate().map(memory_port).collect(),
            fabric: VecDeque::new(),
            write_order: WriteOrder::default(),
            stats: HostBridgeStats::default(),
        }
    }

    /// The same, of host number `host`.
    #[must_use]
    pub fn of_host(mut self, host: u32) -> HostBridge {
        self.host = host;
        self
    }

    /// The same, which counts by these memory nodes, in the order of their addresses.
    #[must_use]
    pub fn counting(mut self, nodes: Vec<NodeCounts>) -> HostBridge {
        self.stats.nodes = nodes;
        self
    }

    /// Everything counted so far, without the ports.
    pub fn counters(&self) -> &HostBridgeStats {
        &self.stats
    }

    fn memory_port(&mut self, port: PortId) -> &mut MemoryPort {
        &mut self.memory_ports[port.index() - 1]
    }

    /// A request of the last-level cache enters the fabric.
    fn request_arrived(&mut self, message: Message, context: &mut Context<'_>) {
        self.stats.count_request(&message);
        let at_port = context.now() + self.latency;
        self.fabric.push_back((at_port, message));
        context.wake_at(at_port, 0);
    }

    /// The oldest request in the fabric reaches its port.
    fn fabric_crossed(&mut self, context: &mut Context<'_>) {
        let (at_port, message) = self.fabric.pop_front().expect("each request in the fabric asked for one wake");
        debug_assert_eq!(at_port, context.now());
        if message.names_its_device() || matches!(message.opcode, Opcode::MemRdFwdI | Opcode::MemRdFwdS) {
            return self.cache_crossed(message, context);
        }
        let number = self.port_to(message.line);
        let port = self.memory_port(number);
        // What leaves at once for a controller that keeps the order cannot be overtaken.
        let needs_no_watch = port.keeps_order && port.transmitter.has_credit(message.class(), context);
        if needs_no_watch && !self.write_order.holds(message.line) {
            self.send_request(number, message, false, context);
        } else if let Some(message) = self.write_order.admit(message, context.now()) {
            let is_watched = message.is_write();
            self.send_request(number, message, is_watched, context);
        } else {
            self.stats.held += 1;
            self.stats.held_max = self.stats.held_max.max(self.write_order.held() as u64);
        }
    }

    /// A message of CXL.cache or back-invalidation to a device enters the fabric, or one that answers it by CXL.mem.
    fn cache_leaves(&mut self, message: Message, context: &mut Context<'_>) {
        let at_port = context.now() + self.latency;
        self.fabric.push_back((at_port, message));
        context.wake_at(at_port, 0);
    }

    /// Such a message reaches the port of its device, which its flow names.
    fn cache_crossed(&mut self, mut message: Message, context: &mut Context<'_>) {
        message.stack.charge(Stage::HostBridge, context.now());
        let port = PortId(message.flow.0 as u16);
        self.memory_port(port).transmitter.offer(message, context);
    }

    /// A message of CXL.cache or back-invalidation arrives from a device, whose port its flow names from now on.
    fn cache_arrived(&mut self, port: PortId, mut message: Message, context: &mut Context<'_>) {
        self.memory_port(port).transmitter.return_credit(message.class(), context);
        let at_host = context.now() + self.latency;
        message.stack.charge(Stage::HostBridge, at_host);
        message.flow = Flow(u32::from(port.0));
        context.send(HOST_PORT, message, at_host);
    }

    /// The port behind which `line` lies.
    fn port_to(&self, line: LineAddress) -> PortId {
        self.decoder.decode(line).unwrap_or_else(|| panic!("no HDM decoder holds the address {:#x}", line.byte()))
    }

    /// Sends a request to `port`, behind which its line lies; `is_watched` says whether others of its line wait for its
    /// answer.
    fn send_request(&mut self, port: PortId, mut message: Message, is_watched: bool, context: &mut Context<'_>) {
        message.stack.charge(Stage::HostBridge, context.now());
        message.flow = Flow::of_host(self.host, message.flow.0);
        let port = self.memory_port(port);
        port.tags.rename(&mut message, is_watched);
        port.transmitter.offer(message, context);
    }

    /// An answer arrives from memory and goes back through the fabric.
    fn answer_arrived(&mut self, port: PortId, mut answer: Message, context: &mut Context<'_>) {
        let memory_port = self.memory_port(port);
        memory_port.transmitter.return_credit(answer.class(), context);
        let outstanding = memory_port.tags.answered(&mut answer);
        let at_host = context.now() + self.latency;
        answer.stack.charge(Stage::HostBridge, at_host);
        self.stats.count_answer(&answer);
        context.send(HOST_PORT, answer, at_host);
        if outstanding.is_watched {
            for held in self.write_order.finished(outstanding.line) {
                self.stats.held_ps += context.now().since(held.since).as_ps();
                let is_watched = held.message.is_write();
                self.send_request(port, held.message, is_watched, context);
            }
        }
    }
}

impl Component for HostBridge {
    fn handle(&mut self, event: Event, context: &mut Context<'_>) {
        match event {
            Event::Arrival { port: HOST_PORT, message } if message.names_its_device() => {
                self.cache_leaves(message, context)
            }
            Event::Arrival { port, message } => match message.opcode {
                _ if message.names_its_device() => self.cache_arrived(port, message, context),
                Opcode::MemRd | Opcode::MemRdOwn | Opcode::MemInv | Opcode::MemWr | Opcode::MemWrPtl => {
                    self.request_arrived(message, context);
                }
                Opcode::MemRdFwdI | Opcode::MemRdFwdS => self.cache_leaves(message, context),
                // Of CXL.mem too: it is the answer to a request that left here.
                _ => self.answer_arrived(port, message, context),
            },
            Event::Credit { port, class } => self.memory_port(port).transmitter.credit_returned(class, context),
            Event::Wake { .. } => self.fabric_crossed(context),
        }
    }

    fn power_fail(&mut self) {
        self.fabric.clear();
        self.write_order = WriteOrder::default();
        for port in &mut self.memory_ports {
            port.transmitter.power_fail();
            port.tags = TagTable::default();
        }
    }

    fn is_idle(&self) -> bool {
        let port_is_idle = |port: &MemoryPort| port.tags.is_empty() && port.transmitter.is_idle();
        self.fabric.is_empty() && self.write_order.is_empty() && self.memory_ports.iter().all(port_is_idle)
    }

    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (index, port) in self.memory_ports.iter().enumerate() {
            for (class, _) in mem::REQUEST_CLASSES {
                let count = port.transmitter.waiting(class);
                if count > 0 {
                    waiting.push(format!("{count} {} wait for credits of port {}", class.name(), index + 1));
                }
            }
            for request in port.tags.outstanding() {
                let (line, answer) = (request.line.byte(), request.answer.name());
                waiting.push(format!("line {line:#x} waits for its {answer} from port {}", index + 1));
            }
        }
        for (line, count) in self.write_order.waiting() {
            waiting.push(format!("{count} requests wait behind the write to line {:#x}", line.byte()));
        }
        waiting
    }

    fn gauges(&self) -> Vec<(String, u64)> {
        let mut gauges = vec![("requests held behind writes".to_owned(), self.write_order.held() as u64)];
        for (index, port) in self.memory_ports.iter().enumerate() {
            let credits = |class: MessageClass| {
                (format!("port {}: {} credits", index + 1, class.name()), port.transmitter.credits(class).into())
            };
            gauges.extend(mem::REQUEST_CLASSES.map(|(class, _)| credits(class)));
        }
        gauges
    }

    fn stats(&self, now: Time) -> StatsNode {
        let mut nodes = self.stats.to_nodes();
        for (index, port) in self.memory_ports.iter().enumerate() {
            nodes.push((format!("port{}", index + 1), port.transmitter.stats(now)));
        }
        StatsNode::group(nodes)
    }
}
