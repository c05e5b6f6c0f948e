//! Devices with several ports, whose neighbours know nothing of each other.

use super::*;
use fencepost_kernel::stats::StatsNode;

const PORTS: [PortId; 2] = [PortId(0), PortId(1)];

/// A device with two ports, each with so many credits for answers.
fn two_ports(config: MediumConfig, answer_credits: u16) -> Bench {
    let mut bench = bench(config.clone(), answer_credits);
    bench.wires.connect((DEVICE, PORTS[1]), (NEIGHBOUR, PORTS[1]));
    let links = [link(answer_credits), link(answer_credits)];
    bench.device = Device::new(&config, &links, Interleave::none(0).unwrap());
    bench
}

/// A read that its neighbour calls `tag`.
fn tagged(line: u64, tag: u32) -> Message {
    Message { tag: Tag(tag), ..read(line) }
}

#[test]
fn answers_leave_by_the_port_of_their_request_whatever_its_tag() {
    let mut bench = two_ports(pm(AckAt::Queue), 8);
    bench.arrives_at(PORTS[0], 0, tagged(10, 7));
    bench.arrives_at(PORTS[1], 0, tagged(20, 7));
    bench.arrives_at(PORTS[1], 0, Message { tag: Tag(7), ..write(30, 4) });
    // The write is answered from the queue: 10 ns in, 10 ns out, a flit, 5 ns of flight. The bank takes 100 ns for each
    // read, two flits carry it.
    assert_eq!(bench.answers(), [(26_000, 30), (127_000, 10), (227_000, 20)]);
    assert_eq!(bench.ports, [PORTS[1], PORTS[0], PORTS[1]]);
    assert!(bench.messages.iter().all(|message| message.tag == Tag(7)));
    assert!(bench.device.is_idle());
}

#[test]
fn ports_share_the_medium_in_turn() {
    let config = PmConfig { read_queue_entries: 1, ..pm::tests::nvm(AckAt::Queue) };
    let mut bench = two_ports(MediumConfig::Pm(PmConfig { banks: 1, ..config }), 8);
    for line in 0..4 {
        bench.arrives_at(PORTS[0], 0, read(line));
    }
    for line in 10..12 {
        bench.arrives_at(PORTS[1], 1, read(line));
    }
    // Reads 0 and 1 are taken before anything has passed the pipeline from the other port: one is read, one is queued.
    let answers = bench.answers();
    let lines: Vec<u64> = answers.iter().map(|(_, line)| *line).collect();
    assert_eq!(lines, [0, 1, 10, 2, 11, 3]);
    let times: Vec<u64> = answers.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [127_000, 227_000, 327_000, 427_000, 527_000, 627_000]);
    // Each port's head waits until the medium has room for it: read 1 no time at all, read 10 as long as read 1 is
    // queued, then each two reads long.
    let stats = bench.device.counters();
    assert_eq!((stats.read_queue_full, stats.read_queue_full_ps), (5, 99_000 + 3 * 200_000));
}

#[test]
fn a_port_whose_answers_cannot_leave_does_not_hold_up_the_other() {
    let config = PmConfig { read_queue_entries: 2, read_ns: 10.0, ..pm::tests::nvm(AckAt::Queue) };
    let mut bench = two_ports(MediumConfig::Pm(config), 1);
    bench.returns_credits = false;
    for line in 0..8 {
        bench.arrives_at(PORTS[0], line * 50, read(line));
    }
    bench.run();
    assert_eq!(
        bench.device.waiting(),
        ["port 0: 5 m2s_req wait for room in the medium", "port 0: 2 s2m_drs wait for credits"]
    );
    bench.messages.clear();
    bench.returns_credits = true;
    for line in 20..28 {
        bench.arrives_at(PORTS[1], 1000 + line * 50, read(line));
    }
    let answered: Vec<u64> = bench.answers().iter().map(|(_, line)| *line).collect();
    assert_eq!(answered, (20..28).collect::<Vec<_>>());
    let credit = Event::Credit { port: PORTS[0], class: MessageClass::S2mDrs };
    bench.handle(Time::from_ps(9_000_000), credit);
    let mut answered: Vec<u64> = bench.answers().iter().map(|(_, line)| *line).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..8).collect::<Vec<_>>());
    assert!(bench.device.is_idle());
}

#[test]
fn each_port_has_its_own_credits_and_counters() {
    let mut bench = two_ports(pm(AckAt::Queue), 8);
    bench.arrives_at(PORTS[0], 0, write(0, 1));
    bench.arrives_at(PORTS[1], 0, write(1, 1));
    bench.arrives_at(PORTS[1], 3, write(2, 1));
    let credits = bench.run().into_iter().filter(|(_, reached)| matches!(reached, Reached::Credit(_)));
    // Two places in the queue; the third write has to wait until the first one is on the medium.
    assert_eq!(credits.map(|(time, _)| time).collect::<Vec<_>>(), [16_000, 16_000, 216_000]);
    let stats = bench.device.stats(Time::NEVER);
    let sent = |port: &str| stats.get(&format!("{port}.messages")).map_or(0, StatsNode::total);
    assert_eq!(["port0", "port1"].map(sent), [1, 2]);
    assert_eq!(bench.device.counters().write_queue_full_ps, 197_000);
}

#[test]
fn a_power_cut_restores_the_credits_of_every_port() {
    let mut bench = two_ports(pm(AckAt::Media), 1);
    bench.returns_credits = false;
    for (port, line) in [(0, 0), (1, 1), (0, 2), (1, 3)] {
        bench.arrives_at(PORTS[port], 0, read(line));
    }
    bench.run();
    assert!(!bench.device.is_idle());
    bench.queue.clear();
    bench.device.power_fail();
    assert!(bench.device.is_idle());
    bench.returns_credits = true;
    bench.messages.clear();
    bench.ports.clear();
    bench.arrives_at(PORTS[1], 5000, read(9));
    assert_eq!(bench.answers(), [(5_127_000, 9)]);
    assert_eq!(bench.ports, [PORTS[1]]);
}
