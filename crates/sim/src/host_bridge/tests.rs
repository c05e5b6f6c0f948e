//! A host bridge between a mock last-level cache and mock memory behind two ports.

use super::*;
use fencepost_kernel::address_map::PM_BASE;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::link::{FlitFormat, LinkConfig};
use fencepost_kernel::message::{Cause, Opcode, Tag};
use fencepost_kernel::{ComponentId, EventQueue, Wires};

const BRIDGE: ComponentId = ComponentId(0);
const HOST: ComponentId = ComponentId(1);
const MEMORY: ComponentId = ComponentId(2);
const DRAM_PORT: PortId = PortId(1);
const PM_PORT: PortId = PortId(2);

struct Bench {
    queue: EventQueue,
    wires: Wires,
    bridge: HostBridge,
}

/// What left the bridge: time in ps, receiver, port, message.
type Sent = (u64, ComponentId, PortId, Message);

/// 4 ns of fabric; links of 1 ns a flit and 5 ns of flight.
fn bench(credits: u16) -> Bench {
    bench_with(credits, false)
}

fn bench_with(credits: u16, keeps_order: bool) -> Bench {
    let link = LinkConfig::new(FlitFormat::Bytes68, 68.0, 5.0, credits);
    let range = |base, port| HdmRange::new(base, 256 << 20, 256, vec![port]).unwrap();
    let decoder = HdmDecoder::new(vec![range(0, DRAM_PORT), range(PM_BASE, PM_PORT)]).unwrap();
    let ports = [PortDescription { link: link.clone(), keeps_order }, PortDescription { link, keeps_order }];
    let mut wires = Wires::default();
    wires.connect((BRIDGE, HOST_PORT), (HOST, PortId(0)));
    wires.connect((BRIDGE, DRAM_PORT), (MEMORY, DRAM_PORT));
    wires.connect((BRIDGE, PM_PORT), (MEMORY, PM_PORT));
    let bridge = HostBridge::new(&HostBridgeConfig { latency_ns: 4.0 }, decoder, &ports);
    Bench { queue: EventQueue::default(), wires, bridge }
}

impl Bench {
    fn handle(&mut self, ps: u64, event: Event) {
        let mut context = Context::new(Time::from_ps(ps), BRIDGE, &mut self.queue, &self.wires);
        self.bridge.handle(event, &mut context);
    }

    fn request(&mut self, ps: u64, message: Message) {
        self.handle(ps, Event::Arrival { port: HOST_PORT, message });
    }

    fn answer(&mut self, ps: u64, port: PortId, request: &Message, version: u64) {
        let mut message = request.clone().answer(Version(version));
        message.stack.charge(Stage::Media, Time::from_ps(ps));
        if message.opcode == Opcode::Cmp {
            message.line = LineAddress(u64::MAX);
        }
        self.handle(ps, Event::Arrival { port, message });
    }

    /// Lets the bridge do all it has to do, and gives the messages that left it.
    fn run(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some((time, target, event)) = self.queue.pop() {
            match event {
                Event::Arrival { port, message } => sent.push((time.as_ps(), target, port, message)),
                Event::Credit { .. } => {}
                Event::Wake { .. } => self.handle(time.as_ps(), event),
            }
        }
        sent
    }
}

fn read(ps: u64, line: u64, tag: u32) -> Message {
    Message::read(LineAddress(line), Tag(tag), Cause::DemandRead, Time::from_ps(ps))
}

fn write(ps: u64, line: u64, tag: u32, version: u64) -> Message {
    Message::write(LineAddress(line), Tag(tag), Cause::Flush, Version(version), ByteMask::FULL, Time::from_ps(ps))
}

fn pm_line(line: u64) -> u64 {
    PM_BASE / 64 + line
}

#[test]
fn a_read_crosses_the_fabric_and_leaves_by_the_port_of_its_region() {
    let mut bench = bench(4);
    bench.request(0, read(0, 7, 3));
    bench.request(0, read(0, pm_line(7), 3));
    let sent: Vec<_> = bench.run().iter().map(|sent| (sent.0, sent.1, sent.2, sent.3.line.0)).collect();
    assert_eq!(sent, [(10_000, MEMORY, DRAM_PORT, 7), (10_000, MEMORY, PM_PORT, pm_line(7))]);
}

#[test]
fn an_answer_comes_back_under_the_hosts_tag_after_the_fabric() {
    let mut bench = bench(4);
    bench.request(0, read(0, 1, 77));
    bench.request(0, read(0, 2, 78));
    let requests = bench.run();
    assert_ne!(requests[0].3.tag, requests[1].3.tag);
    bench.answer(50_000, DRAM_PORT, &requests[1].3, 5);
    let (time, target, port, answer) = bench.run().swap_remove(0);
    assert_eq!((time, target, port), (54_000, HOST, PortId(0)));
    assert_eq!((answer.tag, answer.line, answer.version), (Tag(78), LineAddress(2), Version(5)));
    assert!(!bench.bridge.is_idle());
}

#[test]
fn the_bridge_charges_the_fabric_both_ways_and_nothing_else() {
    let mut bench = bench(4);
    bench.request(1_000, read(0, 1, 0));
    let request = bench.run().swap_remove(0).3;
    assert_eq!(request.stack.parts_ps()[Stage::HostBridge as usize], 5_000);
    bench.answer(50_000, DRAM_PORT, &request, 0);
    let answer = bench.run().swap_remove(0).3;
    assert_eq!(answer.stack.parts_ps()[Stage::HostBridge as usize], 9_000);
    assert_eq!(answer.stack.total().as_ps(), 54_000);
    assert_eq!(answer.stack.parts_ps().iter().sum::<u64>(), 54_000);
}

#[test]
fn a_read_behind_a_write_to_its_line_goes_when_the_write_is_complete() {
    let mut bench = bench(4);
    bench.request(0, write(0, 1, 0, 1));
    bench.request(0, read(0, 1, 1));
    bench.request(0, read(0, 2, 2));
    let sent = bench.run();
    assert_eq!(sent.len(), 2, "the read of line 1 is held");
    let write = &sent.iter().find(|sent| sent.3.is_write()).unwrap().3;
    assert_eq!(bench.bridge.waiting().last().unwrap(), "1 requests wait behind the write to line 0x40");
    bench.answer(100_000, DRAM_PORT, write, 1);
    let sent = bench.run();
    let read = sent.iter().find(|sent| sent.1 == MEMORY).unwrap();
    assert_eq!((read.0, read.3.opcode, read.3.line), (106_000, Opcode::MemRd, LineAddress(1)));
    assert_eq!(read.3.stack.parts_ps()[Stage::HostBridge as usize], 100_000, "held time is the bridge's");
    let counters = bench.bridge.counters();
    assert_eq!((counters.held, counters.held_ps, counters.held_max), (1, 96_000, 1));
}

#[test]
fn a_read_follows_a_write_at_once_where_the_controller_keeps_their_order() {
    let mut bench = bench_with(1, true);
    bench.request(0, write(0, pm_line(1), 1, 1));
    bench.request(0, read(0, pm_line(1), 2));
    let sent = bench.run();
    assert_eq!(sent.len(), 2, "{sent:?}");
    bench.request(0, write(0, pm_line(2), 3, 1));
    bench.request(0, read(0, pm_line(2), 4));
    assert_eq!(bench.run().len(), 0, "a write without a credit still holds what follows");
    assert_eq!(bench.bridge.counters().held, 1);
}

#[test]
fn requests_held_for_one_line_go_in_order_up_to_the_next_write() {
    let mut bench = bench(8);
    let requests = [write(0, 1, 0, 1), read(0, 1, 1), write(0, 1, 2, 2), read(0, 1, 3), read(0, 1, 4)];
    for request in requests {
        bench.request(0, request);
    }
    let to_memory = |sent: Vec<Sent>| -> Vec<Message> {
        sent.into_iter().filter(|sent| sent.1 == MEMORY).map(|sent| sent.3).collect()
    };
    let first = to_memory(bench.run());
    assert_eq!(first.len(), 1);
    bench.answer(100_000, DRAM_PORT, &first[0], 1);
    let second = to_memory(bench.run());
    assert_eq!(second.iter().map(|message| message.opcode).collect::<Vec<_>>(), [Opcode::MemRd, Opcode::MemWr]);
    bench.answer(200_000, DRAM_PORT, &second[1], 2);
    let third = to_memory(bench.run());
    assert_eq!(third.iter().map(|message| message.opcode).collect::<Vec<_>>(), [Opcode::MemRd, Opcode::MemRd]);
    for read in [&second[0], &third[0], &third[1]] {
        bench.answer(300_000, DRAM_PORT, read, 2);
    }
    assert!(bench.bridge.write_order.is_empty());
    assert_eq!(bench.bridge.counters().held, 4);
}

#[test]
fn a_read_does_not_hold_back_what_follows_it() {
    let mut bench = bench(4);
    bench.request(0, read(0, 1, 0));
    bench.request(0, read(0, 1, 1));
    bench.request(0, write(0, 1, 2, 1));
    assert_eq!(bench.run().len(), 3);
}

#[test]
fn a_port_without_credits_holds_its_own_traffic_only() {
    let mut bench = bench(1);
    for line in 0..3 {
        bench.request(0, read(0, line, line as u32));
    }
    bench.request(0, read(0, pm_line(0), 9));
    let ports: Vec<_> = bench.run().iter().map(|sent| sent.2).collect();
    assert_eq!(ports, [DRAM_PORT, PM_PORT]);
    assert_eq!(bench.bridge.waiting()[0], "2 m2s_req wait for credits of port 1");
    bench.handle(60_000, Event::Credit { port: DRAM_PORT, class: MessageClass::M2sReq });
    let sent = bench.run();
    assert_eq!((sent[0].0, sent[0].3.line), (66_000, LineAddress(1)));
}

#[test]
fn an_answer_gives_its_buffer_place_back_at_once() {
    let mut bench = bench(4);
    bench.request(0, read(0, 1, 0));
    let request = bench.run().swap_remove(0).3;
    bench.answer(50_000, DRAM_PORT, &request, 0);
    let credit = std::iter::from_fn(|| bench.queue.pop())
        .find_map(|(time, target, event)| match event {
            Event::Credit { port, class } => Some((time.as_ps(), target, port, class)),
            _ => None,
        })
        .unwrap();
    assert_eq!(credit, (56_000, MEMORY, DRAM_PORT, MessageClass::S2mDrs));
}

#[test]
fn requests_are_counted_by_opcode_and_cause() {
    let mut bench = bench(8);
    bench.request(0, write(0, 1, 0, 1));
    bench.request(0, read(0, 2, 1));
    let mut partial = write(0, 3, 2, 1);
    partial.opcode = Opcode::MemWrPtl;
    partial.cause = Cause::NonTemporalStore;
    bench.request(0, partial);
    bench.run();
    let stats = bench.bridge.stats(Time::NEVER);
    assert_eq!(stats.counter("requests.mem_wr.flush"), 1);
    assert_eq!(stats.counter("requests.mem_rd.demand_read"), 1);
    assert_eq!(stats.counter("requests.mem_wr_ptl.non_temporal_store"), 1);
    assert_eq!(stats.counter("port1.messages.m2s_rwd"), 2);
}

#[test]
fn a_power_cut_leaves_an_idle_bridge() {
    let mut bench = bench(1);
    for tag in 0..3 {
        bench.request(0, write(0, 1, tag, tag.into()));
        bench.request(0, read(0, 2, tag));
    }
    bench.run();
    assert!(!bench.bridge.is_idle());
    bench.bridge.power_fail();
    assert!(bench.bridge.is_idle());
    assert!(bench.bridge.waiting().is_empty());
}

#[test]
#[should_panic(expected = "no HDM decoder holds the address 0x10000000")]
fn an_address_outside_every_range_is_a_fault() {
    let mut bench = bench(1);
    bench.request(0, read(0, (256 << 20) / 64, 0));
    bench.run();
}
