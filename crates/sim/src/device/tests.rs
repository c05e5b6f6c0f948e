//! Whole devices at the end of a link, with a mock neighbour that counts its credits.

mod behind_a_bridge;
mod channels;
mod ports;

use super::*;
use crate::device::write_drain::WriteTurns;
use crate::host_bridge::Interleave;
use fencepost_kernel::line::{ByteMask, LineAddress, Version};
use fencepost_kernel::link::{FlitFormat, LinkConfig};
use fencepost_kernel::message::{Cause, Credits, Message, MessageClass, Stage, Tag};
use fencepost_kernel::time::Time;
use fencepost_kernel::{Component, ComponentId, Context, Event, EventQueue, PortId, Wires};

const DEVICE: ComponentId = ComponentId(0);
const NEIGHBOUR: ComponentId = ComponentId(1);

/// What reached the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Answer(MessageClass, u64),
    Credit(MessageClass),
}

struct Bench {
    queue: EventQueue,
    wires: Wires,
    device: Device,
    /// Whether the neighbour takes answers out of its buffers at once.
    returns_credits: bool,
    messages: Vec<Message>,
    /// The port by which each of them came.
    ports: Vec<PortId>,
}

/// 1 ns a flit, 5 ns of flight.
fn link(credits: u16) -> LinkConfig {
    LinkConfig {
        credits: Credits::on_every_link(credits).with(MessageClass::M2sReq, 64).with(MessageClass::M2sRwd, 64),
        ..LinkConfig::new(FlitFormat::Bytes68, 68.0, 5.0, 0)
    }
}

fn bench(config: MediumConfig, answer_credits: u16) -> Bench {
    let mut wires = Wires::default();
    wires.connect((DEVICE, DEVICE_PORT), (NEIGHBOUR, PortId(0)));
    let device = Device::new(&config, &[link(answer_credits)], Interleave::none(0).unwrap());
    Bench {
        queue: EventQueue::default(),
        wires,
        device,
        returns_credits: true,
        messages: Vec::new(),
        ports: Vec::new(),
    }
}

fn pm(ack_at: AckAt) -> MediumConfig {
    MediumConfig::Pm(PmConfig {
        send_ns: 0.0,
        banks: 1,
        row_bytes: 64,
        row_buffer: false,
        write_queue_entries: 2,
        write_high_watermark: 2,
        write_low_watermark: 1,
        write_idle_watermark: 0,
        write_turns: WriteTurns::ReadsFirst,
        requests_per_turn: 16,
        ..pm::tests::nvm(ack_at)
    })
}

impl Bench {
    fn handle(&mut self, time: Time, event: Event) {
        let mut context = Context::new(time, DEVICE, &mut self.queue, &self.wires);
        self.device.handle(event, &mut context);
    }

    /// `message` will arrive at `ns`.
    fn arrives(&mut self, ns: u64, message: Message) {
        self.arrives_at(DEVICE_PORT, ns, message);
    }

    /// `message` will arrive by `port` at `ns`.
    fn arrives_at(&mut self, port: PortId, ns: u64, mut message: Message) {
        let time = Time::from_ps(ns * 1000);
        message.stack.charge(Stage::Link, time);
        self.queue.push(time, DEVICE, Event::Arrival { port, message });
    }

    /// Runs until nothing happens any more; gives what reached the neighbour, with its time in ps.
    fn run(&mut self) -> Vec<(u64, Reached)> {
        let mut reached = Vec::new();
        while let Some((time, target, event)) = self.queue.pop() {
            if target == DEVICE {
                self.handle(time, event);
                continue;
            }
            match event {
                Event::Arrival { port, message } => {
                    reached.push((time.as_ps(), Reached::Answer(message.class(), message.line.0)));
                    let class = message.class();
                    self.messages.push(message);
                    self.ports.push(port);
                    if self.returns_credits {
                        let credit = Event::Credit { port, class };
                        self.queue.push(time, DEVICE, credit);
                    }
                }
                Event::Credit { class, .. } => reached.push((time.as_ps(), Reached::Credit(class))),
                Event::Wake { .. } => unreachable!("the neighbour asks for no wakes"),
            }
        }
        reached
    }

    fn answers(&mut self) -> Vec<(u64, u64)> {
        let answer = |(time, reached)| match reached {
            Reached::Answer(_, line) => Some((time, line)),
            Reached::Credit(_) => None,
        };
        self.run().into_iter().filter_map(answer).collect()
    }
}

fn read(line: u64) -> Message {
    Message::read(LineAddress(line), Tag(line as u32), Cause::DemandRead, Time::ZERO)
}

fn write(line: u64, version: u64) -> Message {
    Message::write(LineAddress(line), Tag(line as u32), Cause::Flush, Version(version), ByteMask::FULL, Time::ZERO)
}

#[test]
fn a_pm_read_takes_the_controller_twice_the_medium_and_the_link() {
    let mut bench = bench(pm(AckAt::Queue), 8);
    bench.arrives(7, read(0));
    // 10 ns in, 100 ns, 10 ns out, two flits, 5 ns of flight; the credit goes back in a flit when the medium takes the
    // request.
    assert_eq!(
        bench.run(),
        [(23_000, Reached::Credit(MessageClass::M2sReq)), (134_000, Reached::Answer(MessageClass::S2mDrs, 0))]
    );
    assert!(bench.device.is_idle());
}

#[test]
fn a_pm_write_is_answered_from_the_queue_or_after_the_medium() {
    for (ack_at, answered) in [(AckAt::Queue, 33_000), (AckAt::Media, 233_000)] {
        let mut bench = bench(pm(ack_at), 8);
        bench.arrives(7, write(0, 1));
        assert_eq!(bench.answers(), [(answered, 0)]);
        assert_eq!(bench.device.durable_version(LineAddress(0)), Some(Version(1)));
    }
}

#[test]
fn a_dram_read_enters_at_an_edge_of_the_clock() {
    let mut bench = bench(MediumConfig::Dram(dram::tests::ddr4_2400()), 8);
    bench.arrives(7, read(0));
    // 17 ns is in cycle 21; cycle 21 + 17 + 17 + 4 = 59 ends the burst.
    assert_eq!(bench.answers(), [(59 * 833 + 10_000 + 7_000, 0)]);
    let medium = bench.messages[0].stack.parts_ps()[Stage::Media as usize];
    assert_eq!(medium, 38 * 833);
    assert_eq!(bench.device.durable_version(LineAddress(0)), None);
}

#[test]
fn queue_and_medium_sum_exactly_to_the_time_in_the_device() {
    let mut bench = bench(pm(AckAt::Media), 1);
    for line in 0..3 {
        bench.arrives(line, write(line, 1));
        bench.arrives(line, read(10 + line));
    }
    bench.run();
    assert_eq!(bench.messages.len(), 6);
    for message in &bench.messages {
        let parts = message.stack.parts_ps();
        let sum: u64 = parts.iter().copied().sum();
        assert_eq!(sum, message.stack.total().as_ps());
    }
    let stats = &bench.device.counters();
    let counted = stats.read_latency_ps.sum().as_ps() + stats.write_latency_ps.sum().as_ps();
    let of_device = |message: &Message| {
        let parts = message.stack.parts_ps();
        parts[Stage::DeviceQueue as usize] + parts[Stage::Media as usize]
    };
    assert_eq!(counted, bench.messages.iter().map(of_device).sum::<u64>());
}

#[test]
fn a_full_write_queue_keeps_the_credits_and_reads_go_on() {
    let mut bench = bench(pm(AckAt::Queue), 8);
    for line in 0..4 {
        bench.arrives(0, write(line, 1));
    }
    bench.arrives(0, read(9));
    let reached = bench.run();
    let credits = |class| -> Vec<_> {
        reached.iter().filter(|(_, reached)| *reached == Reached::Credit(class)).map(|(time, _)| *time).collect()
    };
    assert_eq!(credits(MessageClass::M2sReq), [16_000]);
    // Two places at 10 ns; the medium begins with a write, because the queue is at its high watermark, and ends it at
    // 210 ns: room for the third. Then the read has its turn, and the next write ends at 510 ns.
    assert_eq!(credits(MessageClass::M2sRwd), [16_000, 16_000, 216_000, 516_000]);
    let stats = bench.device.counters();
    assert_eq!((stats.write_queue_full, stats.write_queue_full_ps), (2, 200_000 + 300_000));
    assert_eq!((stats.read_queue_full, stats.reads, stats.writes), (0, 1, 4));
    assert_eq!((stats.read_bytes, stats.write_bytes), (64, 256));
}

#[test]
fn a_device_whose_answers_cannot_leave_takes_no_more_than_it_can_keep() {
    let config = PmConfig { read_queue_entries: 2, read_ns: 10.0, ..pm::tests::nvm(AckAt::Queue) };
    let mut bench = bench(MediumConfig::Pm(config), 1);
    bench.returns_credits = false;
    for line in 0..20 {
        bench.arrives(line * 50, read(line));
    }
    let reached = bench.run();
    let taken = reached.iter().filter(|(_, reached)| *reached == Reached::Credit(MessageClass::M2sReq)).count();
    assert_eq!(taken, 3, "one answer is under way, two wait for credits");
    assert!(!bench.device.is_idle());
    assert_eq!(bench.device.waiting(), ["17 m2s_req wait for room in the medium", "2 s2m_drs wait for credits"]);
    bench.returns_credits = true;
    bench.handle(Time::from_ps(2_000_000), Event::Credit { port: DEVICE_PORT, class: MessageClass::S2mDrs });
    bench.run();
    assert_eq!(bench.messages.len(), 20);
    assert!(bench.device.is_idle() && bench.device.waiting().is_empty());
}

#[test]
fn partial_writes_count_their_bytes() {
    let mut bench = bench(pm(AckAt::Queue), 8);
    let mut partial = write(0, 1);
    partial.mask = ByteMask(0xff);
    bench.arrives(0, partial);
    bench.run();
    assert_eq!(bench.device.counters().write_bytes, 8);
}

#[test]
fn after_a_power_cut_a_device_writes_what_its_queue_kept() {
    let mut bench = bench(pm(AckAt::Queue), 8);
    bench.arrives(0, write(0, 1));
    bench.arrives(0, write(1, 1));
    while bench.queue.next_time().is_some_and(|time| time.as_ps() < 100_000) {
        let (time, target, event) = bench.queue.pop().unwrap();
        if target == DEVICE {
            bench.handle(time, event);
        }
    }
    bench.queue.clear();
    bench.device.power_fail();
    assert!(!bench.device.is_idle());
    let mut context = Context::new(Time::from_ps(1_000_000), DEVICE, &mut bench.queue, &bench.wires);
    bench.device.recover(&mut context);
    assert!(bench.answers().is_empty());
    assert!(bench.device.is_idle());
    assert_eq!(bench.device.stats(Time::NEVER).counter("pm.writes"), 3, "the line under way was begun twice");
}

#[test]
fn a_snapshot_goes_on_like_the_original() {
    let mut bench = bench(MediumConfig::Dram(dram::tests::ddr4_2400()), 4);
    for line in 0..30 {
        bench.arrives(line, read(line * 97 % 64));
        bench.arrives(line, write(1000 + line, 1));
    }
    for _ in 0..50 {
        let (time, target, event) = bench.queue.pop().unwrap();
        if target == DEVICE {
            bench.handle(time, event);
        }
    }
    let mut copy = Bench {
        queue: bench.queue.clone(),
        wires: bench.wires.clone(),
        device: bench.device.clone(),
        returns_credits: true,
        messages: Vec::new(),
        ports: Vec::new(),
    };
    assert_eq!(bench.run(), copy.run());
}

#[test]
fn a_device_of_an_interleaved_range_uses_all_its_banks() {
    let config = MediumConfig::Pm(PmConfig { banks: 4, ..pm::tests::nvm(AckAt::Queue) });
    let interleave = Interleave::new(0, 256, 4).unwrap();
    let mut wires = Wires::default();
    wires.connect((DEVICE, DEVICE_PORT), (NEIGHBOUR, PortId(0)));
    let device = Device::new(&config, &[link(8)], interleave);
    let mut bench = Bench {
        queue: EventQueue::default(),
        wires,
        device,
        returns_credits: true,
        messages: Vec::new(),
        ports: Vec::new(),
    };
    // Lines 0 to 3 of each 16 lie here; every fourth of these in one bank.
    for line in [0, 1, 2, 3, 16] {
        bench.arrives(0, read(line));
    }
    let ends: Vec<_> = bench.answers().iter().map(|(time, line)| (*line, *time >= 200_000)).collect();
    assert_eq!(ends, [(0, false), (1, false), (2, false), (3, false), (16, true)]);
}

#[test]
fn configurations_out_of_range_are_refused_with_their_key() {
    use garde::Validate;
    let key_of = |config: &dyn Fn(&mut DramConfig)| {
        let mut dram = dram::tests::ddr4_2400();
        config(&mut dram);
        dram.validate().unwrap_err().iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert!(dram::tests::ddr4_2400().validate().is_ok());
    assert_eq!(key_of(&|dram| dram.channel_bits = 32), "channel_bits");
    assert_eq!(key_of(&|dram| dram.row_bytes = 100), "row_bytes");
    assert_eq!(key_of(&|dram| dram.write_low_watermark = 48), "write_low_watermark");
    assert_eq!(key_of(&|dram| dram.write_high_watermark = 65), "write_high_watermark");
    assert_eq!(key_of(&|dram| dram.t_refi_ns = 500.0), "t_refi_ns");
    let mut pm = pm::tests::nvm(AckAt::Queue);
    assert!(pm.validate().is_ok());
    pm.write_low_watermark = pm.write_high_watermark;
    assert!(pm.validate().unwrap_err().to_string().contains("write_low_watermark"));
}
