//! A switch between mock neighbours: hosts above, memory devices below, each with links of its own and patience as the
//! test wants it.

mod fair_queueing;
mod persistent;
#[cfg(feature = "test-protocol")]
mod second_protocol;
mod volatile;

use std::collections::BTreeMap;

use super::persist_buffer::PersistBufferStats;
use super::*;
use crate::host_bridge::decoder::{HdmDecoder, HdmRange};
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::link::{FlitFormat, LinkConfig, Transmitter};
use fencepost_kernel::message::{Cause, Tag};
use fencepost_kernel::{ComponentId, EventQueue, Wires};

const SWITCH: ComponentId = ComponentId(0);
const MIB: u64 = 1 << 20;

/// A link whose flit takes 1 ns and whose flight takes 5 ns.
fn link(credits: u16) -> LinkConfig {
    LinkConfig::new(FlitFormat::Bytes68, 68.0, 5.0, credits)
}

/// What a neighbour does with the messages it gets.
#[derive(Clone, Debug)]
struct Neighbour {
    transmitter: Transmitter,
    /// Messages that reached the switch without the transmitter, per class: their credits are not the transmitter's.
    conjured: [u16; MessageClass::COUNT],
    /// Requests are answered so long after they came; none: never.
    answers_after: Option<Duration>,
    /// Whether what came is taken out of the buffer at once.
    takes: bool,
    /// Answers on their way, by the token of their wake.
    answers: Vec<Message>,
    /// What a memory device holds.
    memory: BTreeMap<LineAddress, Version>,
}

/// A message that a neighbour got.
#[derive(Clone, Debug)]
struct Got {
    ps: u64,
    by: u16,
    message: Message,
}

#[derive(Clone)]
struct Bench {
    queue: EventQueue,
    wires: Wires,
    switch: Switch,
    neighbours: Vec<Neighbour>,
    got: Vec<Got>,
    /// Credits that the switch returned: time, neighbour, class.
    credits: Vec<(u64, u16, MessageClass)>,
    now: Time,
}

/// Stages of 2 ns, a crossbar that moves a flit in 0.5 ns, the persist buffer of Table I with `entries` entries.
fn config(entries: u16) -> SwitchConfig {
    SwitchConfig {
        pipeline_stage_ns: 2.0,
        crossbar_flit_ns: 0.5,
        persist_buffer: Some(PersistBufferConfig {
            entries,
            tag_access_ns: 0.388,
            data_access_ns: 0.785,
            service_ns: 0.0,
            reads_bypass: true,
            input_entries: 4,
            input_acknowledgement_entries: 1,
            output_entries: 4,
            drain_threshold: 0.8,
            drain_preset: 0.6,
        }),
    }
}

impl Bench {
    /// A switch with `hosts` upstream and `devices` downstream ports, in this order. Each device has 256 MiB, in the
    /// order of the ports; the lines of the first one persist in the switch if the role says so.
    fn new(config: &SwitchConfig, hosts: u16, devices: u16, credits: u16, role: Role) -> Bench {
        let description = |port| PortDescription {
            link: link(credits),
            direction: if port < hosts { PortDirection::Upstream } else { PortDirection::Downstream },
        };
        let ports: Vec<PortDescription> = (0..hosts + devices).map(description).collect();
        let range =
            |device: u16| HdmRange::new(u64::from(device) * 256 * MIB, 256 * MIB, 256, vec![PortId(hosts + device)]);
        let ranges = (0..devices).map(|device| range(device).unwrap()).collect();
        let persist_point = LineAddress(0)..LineAddress::containing(256 * MIB);
        let routing = RoutingTable::new(HdmDecoder::new(ranges).unwrap(), vec![persist_point]);
        let mut wires = Wires::default();
        for port in 0..hosts + devices {
            wires.connect((SWITCH, PortId(port)), (ComponentId(1 + u32::from(port)), PortId(0)));
        }
        let neighbour = |_| Neighbour {
            transmitter: Transmitter::new(PortId(0), &link(credits)),
            conjured: [0; MessageClass::COUNT],
            answers_after: None,
            takes: true,
            answers: Vec::new(),
            memory: BTreeMap::new(),
        };
        Bench {
            queue: EventQueue::default(),
            wires,
            switch: Switch::new(config, &ports, routing, role),
            neighbours: (0..hosts + devices).map(neighbour).collect(),
            got: Vec::new(),
            credits: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// The message reaches the switch's `port` at `ps`, whatever the link says.
    fn arrive(&mut self, ps: u64, port: u16, message: Message) {
        self.neighbours[usize::from(port)].conjured[message.class().index()] += 1;
        self.queue.push(Time::from_ps(ps), SWITCH, Event::Arrival { port: PortId(port), message });
    }

    /// The neighbour at `port` sends as its credits allow.
    fn send(&mut self, port: u16, message: Message) {
        let mut context = Context::new(self.now, ComponentId(1 + u32::from(port)), &mut self.queue, &self.wires);
        self.neighbours[usize::from(port)].transmitter.offer(message, &mut context);
    }

    /// Handles the next event.
    fn one_event(&mut self) {
        let (now, target, event) = self.queue.pop().expect("there is one");
        self.now = now;
        let mut context = Context::new(now, target, &mut self.queue, &self.wires);
        if target == SWITCH {
            self.switch.handle(event, &mut context);
        } else {
            self.neighbour_handles(target, event);
        }
    }

    /// Runs until nothing is left or the time is over.
    fn run_until(&mut self, ps: u64) -> &mut Bench {
        while self.queue.next_time().is_some_and(|time| time <= Time::from_ps(ps)) {
            self.one_event();
        }
        self.now = self.now.max(Time::from_ps(ps.min(1 << 50)));
        self
    }

    fn run(&mut self) -> &mut Bench {
        self.run_until(u64::MAX)
    }

    fn neighbour_handles(&mut self, target: ComponentId, event: Event) {
        let mut context = Context::new(self.now, target, &mut self.queue, &self.wires);
        let by = (target.0 - 1) as u16;
        let neighbour = &mut self.neighbours[usize::from(by)];
        match event {
            Event::Arrival { message, .. } => {
                self.got.push(Got { ps: self.now.as_ps(), by, message: message.clone() });
                if neighbour.takes {
                    neighbour.transmitter.return_credit(message.class(), &mut context);
                }
                if message.is_write() {
                    neighbour.memory.insert(message.line, message.version);
                }
                if let Some(after) = neighbour.answers_after {
                    let held = neighbour.memory.get(&message.line).copied().unwrap_or_default();
                    let version = if message.is_write() { message.version } else { held };
                    neighbour.answers.push(message.answer(version));
                    context.wake_at(self.now + after, neighbour.answers.len() as u64 - 1);
                }
            }
            Event::Credit { class, .. } => {
                self.credits.push((self.now.as_ps(), by, class));
                match &mut neighbour.conjured[class.index()] {
                    0 => neighbour.transmitter.credit_returned(class, &mut context),
                    conjured => *conjured -= 1,
                }
            }
            Event::Wake { token } => {
                let mut answer = neighbour.answers[token as usize].clone();
                answer.stack.charge(Stage::Media, self.now);
                neighbour.transmitter.offer(answer, &mut context);
            }
        }
    }

    /// Every memory device answers `ns` after a request came.
    fn devices_answer_after(&mut self, ns: u64) {
        for (port, neighbour) in self.neighbours.iter_mut().enumerate() {
            if self.switch.ports[port].direction == PortDirection::Downstream {
                neighbour.answers_after = Some(Duration::from_ps(ns * 1000));
            }
        }
    }

    /// Power goes and comes: wires and volatile state are lost, devices keep what they have got.
    fn cut_power(&mut self) {
        self.queue.clear();
        self.switch.power_fail();
        for (port, neighbour) in self.neighbours.iter_mut().enumerate() {
            neighbour.transmitter = Transmitter::new(PortId(0), &link(self.switch.ports[port].places.by_class()[0]));
            neighbour.answers.clear();
            neighbour.conjured = [0; MessageClass::COUNT];
        }
    }

    fn recover(&mut self) {
        let mut context = Context::new(self.now, SWITCH, &mut self.queue, &self.wires);
        self.switch.recover(&mut context);
    }

    /// When and where messages of `opcode` arrived, with their tags.
    fn arrivals(&self, opcode: Opcode) -> Vec<(u64, u16, u32)> {
        let of_opcode = self.got.iter().filter(|got| got.message.opcode == opcode);
        of_opcode.map(|got| (got.ps, got.by, got.message.tag.0)).collect()
    }

    /// How many writes arrived anywhere before that of `line`.
    fn writes_before(&self, line: u64) -> usize {
        let mut writes = self.got.iter().filter(|got| got.message.is_write());
        writes.position(|got| got.message.line == LineAddress(line)).expect("it arrives")
    }

    fn buffer_stats(&self) -> &PersistBufferStats {
        self.switch.persist_buffer().expect("it has one").counters()
    }
}

fn read(line: u64, tag: u32, ps: u64) -> Message {
    Message::read(LineAddress(line), Tag(tag), Cause::DemandRead, Time::from_ps(ps))
}

fn write(line: u64, version: u64, tag: u32, ps: u64) -> Message {
    Message::write(LineAddress(line), Tag(tag), Cause::Flush, Version(version), ByteMask::FULL, Time::from_ps(ps))
}

fn partial_write(line: u64, version: u64, mask: u64, tag: u32, ps: u64) -> Message {
    let cause = Cause::NonTemporalStore;
    Message::write(LineAddress(line), Tag(tag), cause, Version(version), ByteMask(mask), Time::from_ps(ps))
}

/// A line of device number `device`.
fn line_of(device: u64, line: u64) -> u64 {
    device * 256 * MIB / 64 + line
}
