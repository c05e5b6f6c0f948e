//! The agent between mock threads: when windows and intervals end, what threads may do, and over which resources they
//! go; then the transport on a whole machine.

use fencepost_pacing::{Hierarchy, Weight};

use super::{Agent, CongestionSignal, Counting, Due, Pace, Place, Thread, Transport, TransportConfig};
use crate::config::topology::{DeviceId, HostId};
use crate::config::{Machine, SourceText};
use crate::device::LoadThresholds;
use crate::switch::Scheme;
use crate::system::pool::{Reached, Resources};
use crate::traffic::{Pattern, SharedBy, StreamConfig};
use crate::traffic_experiment::Experiment;
use fencepost_kernel::message::DevLoad;
use fencepost_kernel::time::{Duration, Time};

/// Two hosts with a x1 link each to a switch, and one PM device behind it.
fn machine(sets: &[&str]) -> Machine {
    let text = include_str!("../../../../machines/pcs-table1.toml").to_owned();
    let fabric = [
        "fabric.hosts=['host0', 'host1']",
        "fabric.edges=['host0 -> switch0', 'host1 -> switch0', 'switch0 -> pm0']",
        "transport.window_us=10",
        "transport.interval_us=20",
        "transport.utilisation=1",
    ];
    let sets: Vec<String> = fabric.iter().chain(sets).map(|&set| set.to_owned()).collect();
    let source = SourceText { name: "two hosts".to_owned(), text };
    Machine::resolve(source, &|_| None, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

const DEVICE: DeviceId = DeviceId(0);

/// The agent of threads that read and write the device, by host and weight.
fn agent(transport: Transport, config: &TransportConfig, machine: &Machine, threads: &[(u32, f64)]) -> Agent {
    let mut resources = Resources::default();
    let reaches = [Reached { device: DEVICE, reads: true, writes: true }];
    let thread = |(host, weight): &(u32, f64)| {
        let ways = resources.ways(machine.topology(), HostId(*host), &reaches);
        Thread::new(Weight::new(*weight).expect("a weight"), ways)
    };
    let threads: Vec<Thread> = threads.iter().map(thread).collect();
    Agent::new(transport, config, resources.found, &Hierarchy::default(), &threads)
}

fn ms(ms: u64) -> Time {
    Time::from_ps(ms * 1_000_000_000)
}

/// Bytes that threads move from `begin` to `end`, each so many in a microsecond in which it may run.
fn moved(agent: &mut Agent, bytes_per_us: &[u64], begin: Time, end: Time) -> Vec<u64> {
    let mut moved = vec![[0u64; 2]; bytes_per_us.len()];
    let mut runs = vec![(Time::ZERO, Time::NEVER); bytes_per_us.len()];
    let mut before = moved.clone();
    while agent.due() <= end {
        let now = agent.due();
        if now <= begin {
            before.clone_from(&moved);
        }
        match agent.next() {
            Due::Window(thread) => {
                let (since, until) = runs[thread];
                moved[thread][0] += bytes_per_us[thread] * until.min(now).since(since).as_ps() / 1_000_000;
                let Pace::Until(until) = agent.end_window(thread, now, &[moved[thread]]) else {
                    panic!("threads are paused, not delayed")
                };
                runs[thread] = (now, until);
            }
            Due::Interval => agent.end_interval(now, |_| 0.0),
        }
    }
    moved.iter().zip(before).map(|(now, before)| now[0] - before[0]).collect()
}

#[test]
fn windows_of_threads_end_at_different_times_and_then_a_window_apart() {
    let machine = machine(&[]);
    let threads = [(0, 1.0); 3];
    let mut agent = agent(Transport::Memchannel, &machine.transport, &machine, &threads);
    let mut ends = vec![Vec::new(); 3];
    while agent.due() <= Time::from_ps(35_000_000) {
        let now = agent.due();
        match agent.next() {
            Due::Window(thread) => {
                ends[thread].push(now.as_ps());
                agent.end_window(thread, now, &[[0, 0]]);
            }
            Due::Interval => {
                assert_eq!(now.as_ps() % 20_000_000, 0, "intervals are 20 us");
                agent.end_interval(now, |_| 0.0);
            }
        }
    }
    assert_eq!(ends[0], [6_180_340, 16_180_340, 26_180_340]);
    let firsts: Vec<u64> = ends.iter().map(|ends| ends[0]).collect();
    assert!(firsts[1] > 1_000_000 && firsts[2].abs_diff(firsts[1]) > 1_000_000, "not synchronised: {firsts:?}");
    assert!(ends.iter().flat_map(|ends| ends.windows(2)).all(|pair| pair[1] - pair[0] == 10_000_000));
}

#[test]
fn a_channel_goes_over_the_direction_of_each_link_that_its_lines_take_and_over_the_device() {
    let machine = machine(&[]);
    let agent = agent(Transport::Memchannel, &machine.transport, &machine, &[(1, 1.0)]);
    let names: Vec<&str> = agent.resources().map(|(resource, _)| resource.name.as_str()).collect();
    assert_eq!(names, ["switch0 -> host1", "pm0 -> switch0", "pm0", "host1 -> switch0", "switch0 -> pm0"]);
    let devices: Vec<Place> = agent
        .resources()
        .map(|(resource, _)| resource.place)
        .filter(|place| *place == Place::Device(DEVICE.0))
        .collect();
    assert_eq!(devices.len(), 1, "reads and writes share the device");
}

#[test]
fn threads_that_would_take_more_than_there_is_get_parts_by_weight() {
    // A flit of 68 bytes has four slots and a line takes five: 64 bytes of 85.
    let machine = machine(&["link.bandwidth_gb_per_s=8.5"]);
    for transport in [Transport::Memchannel, Transport::Waterfill] {
        let threads = [(0, 1.0), (0, 3.0), (0, 1.0)];
        let mut agent = agent(transport, &machine.transport, &machine, &threads);
        let found = moved(&mut agent, &[6400, 6400, 320], ms(2), ms(6));
        // The third asks for a twentieth of 6.4 GB/s; the others divide the rest by weight.
        for (found, expected) in found.iter().zip([0.2375, 0.7125, 0.05]) {
            let part = *found as f64 / (4000.0 * 6400.0);
            assert!((part - expected).abs() < 0.015, "{transport}: {part} is not {expected}");
        }
    }
}

#[test]
fn what_is_below_the_share_is_never_paused() {
    let machine = machine(&["link.bandwidth_gb_per_s=8.5"]);
    let threads = [(0, 1.0), (0, 1.0)];
    let mut agent = agent(Transport::Memchannel, &machine.transport, &machine, &threads);
    let moved = moved(&mut agent, &[1000, 2000], Time::ZERO, ms(2));
    // What they move in the window that has not ended is not counted.
    assert!(moved[0] >= 1000 * 1980 && moved[1] >= 2000 * 1980, "{moved:?}");
    assert!(!agent.has_paused(ms(2)));
}

#[test]
fn written_lines_count_only_where_the_machine_says_so() {
    let written = |counting: &str| {
        let machine = machine(&["link.bandwidth_gb_per_s=8.5", counting]);
        let mut agent = agent(Transport::Waterfill, &machine.transport, &machine, &[(0, 1.0)]);
        let mut bytes = 0;
        while agent.due() <= Time::from_ps(200_000_000) {
            let now = agent.due();
            match agent.next() {
                Due::Window(thread) => {
                    bytes += 64_000;
                    agent.end_window(thread, now, &[[0, bytes]]);
                }
                Due::Interval => agent.end_interval(now, |_| 0.0),
            }
        }
        let down = agent.resources().find(|(resource, _)| resource.name == "switch0 -> pm0").expect("there is one");
        down.1.last().expect("an interval has ended").used
    };
    assert_eq!(written("transport.counting='reads'"), 0.0);
    let counted = written("transport.counting='reads_and_writes'");
    assert!((counted / 6.4e9 - 1.0).abs() < 0.01, "{counted}");
}

#[test]
fn only_the_configured_signal_is_asked_for() {
    let asked = |signal: CongestionSignal| {
        let config = TransportConfig { congestion: signal, ..TransportConfig::default() };
        let machine = machine(&[]);
        let mut agent = agent(Transport::Memchannel, &config, &machine, &[(0, 1.0)]);
        let (mut links, mut devices) = (0, 0);
        agent.end_interval(ms(1), |place| {
            *(if matches!(place, Place::Device(_)) { &mut devices } else { &mut links }) += 1;
            0.0
        });
        (links, devices)
    };
    assert_eq!(asked(CongestionSignal::None), (0, 0));
    assert_eq!(asked(CongestionSignal::DevLoad), (0, 1));
    assert_eq!(asked(CongestionSignal::Backpressure), (4, 0));
    assert_eq!(asked(CongestionSignal::Both), (4, 1));
}

#[test]
fn congestion_lowers_what_is_given_away_and_its_end_raises_it_again() {
    let machine = machine(&["link.bandwidth_gb_per_s=8.5"]);
    let mut agent = agent(Transport::Memchannel, &machine.transport, &machine, &[(0, 1.0)]);
    let estimate = |signal: f64, intervals: u64, agent: &mut Agent, begun: u64| {
        for number in 1..=intervals {
            agent.end_interval(Time::from_ps((begun + number) * 20_000_000), |place| {
                if matches!(place, Place::Device(_)) { signal } else { 0.0 }
            });
        }
        let device = agent.resources().find(|(resource, _)| resource.name == "pm0").expect("there is one");
        device.1.last().expect("an interval has ended").capacity
    };
    let at_first = estimate(0.0, 1, &mut agent, 0);
    let congested = estimate(1.0, 10, &mut agent, 1);
    let relieved = estimate(0.0, 2000, &mut agent, 11);
    assert!(congested < 0.5 * at_first, "{congested} of {at_first}");
    assert_eq!(relieved, at_first);
}

#[test]
fn the_load_of_a_device_is_the_larger_of_its_queue_and_its_egress_port() {
    let thresholds = LoadThresholds::default();
    let internal = [0.0, 0.49, 0.5, 0.8, 0.9, 0.99, 1.0, 1.0].map(|filled| thresholds.internal(filled));
    use DevLoad::{Light, Moderate, Optimal, Severe};
    assert_eq!(internal, [Light, Light, Optimal, Optimal, Moderate, Moderate, Severe, Severe]);
    assert_eq!(
        [0.0, 0.09, 0.1, 0.24, 0.25].map(|part| thresholds.egress(part)),
        [Light, Light, Moderate, Moderate, Severe]
    );
    assert_eq!(Optimal.max(thresholds.egress(0.1)), Moderate);
}

/// A stream that reads PM with so many lines under way.
fn stream(outstanding: u32, weight: f64) -> StreamConfig {
    StreamConfig {
        memory: "pm".to_owned(),
        pattern: Pattern::Random,
        footprint_bytes: 1 << 20,
        request_bytes: 64,
        reads: 1,
        writes: 0,
        outstanding,
        lines_outstanding: None,
        inject_delay_ns: 0.0,
        inject_jitter_ns: 0.0,
        dependent: false,
        shared_by: SharedBy::Stream,
        caches: false,
        modifies: false,
        weight,
        begin_ns: 0.0,
        end_ns: None,
        group: None,
        counted_part: 1.0,
        dies: false,
        requests: None,
    }
}

/// GB/s of each of these streams of the first host, and of each host's together.
fn measured(transport: Transport, streams: [Vec<StreamConfig>; 2], sets: &[&str]) -> (Vec<f64>, [f64; 2]) {
    let slow = [
        "link.bandwidth_gb_per_s=4.25",
        "pm.banks=64",
        "pm.read_queue_entries=64",
        "transport.utilisation=0.9",
        "transport.congestion='none'",
    ];
    let sets: Vec<&str> = slow.iter().chain(sets).copied().collect();
    let experiment = Experiment {
        streams: streams.into(),
        warm_up_ns: 600_000.0,
        measure_ns: 400_000.0,
        transport,
        ..Experiment::default()
    };
    let json = experiment.run(&machine(&sets), Scheme::Nopb).unwrap_or_else(|error| panic!("{error}")).to_json();
    let rates = |host: usize| -> Vec<f64> {
        let streams = json["hosts"][host]["streams"].as_array().expect("a list");
        let rate = |one: &serde_json::Value, kind: &str| one[kind]["bandwidth_gb_per_s"].as_f64().expect("a number");
        streams.iter().map(|one| rate(one, "reads") + rate(one, "writes")).collect()
    };
    (rates(0), [rates(0).iter().sum(), rates(1).iter().sum()])
}

#[test]
fn a_stream_with_few_lines_under_way_gets_more_beside_one_with_many() {
    let streams = || [vec![stream(8, 1.0), stream(64, 1.0)], vec![]];
    let (without, _) = measured(Transport::None, streams(), &[]);
    assert!(without[1] > 5.0 * without[0], "{without:?}");
    // Not as much as the other: what it would take is measured while the other runs, and so too low (published).
    for transport in [Transport::Memchannel, Transport::Waterfill, Transport::Credits] {
        let (with, [all, _]) = measured(transport, streams(), &[]);
        assert!(with[0] > 1.5 * without[0], "{transport}: {with:?} for {without:?}");
        assert!(all > 0.8 * without.iter().sum::<f64>(), "{transport}: {with:?} for {without:?}");
    }
}

#[test]
fn hosts_share_a_device_by_the_weights_of_their_streams() {
    let streams = [vec![stream(64, 1.0)], vec![stream(64, 2.0)]];
    // The device's own link is as slow as those of the hosts.
    let (_, hosts) = measured(Transport::Waterfill, streams, &[]);
    assert!((hosts[1] / hosts[0] - 2.0).abs() < 0.2, "{hosts:?}");
}

#[test]
fn a_switch_that_queues_fairly_serves_streams_alike_whichever_port_they_come_by() {
    // What is written shares the link to the device; of what is read the switch sends to each host what is its own.
    let writes = || StreamConfig { reads: 0, writes: 1, ..stream(16, 1.0) };
    let streams = || [vec![writes()], vec![writes(); 4]];
    // Enough credits that what waits does so in the switch, and not in its host; a medium that keeps up.
    let sets = ["link.request_with_data_credits=128", "pm.write_ns=1", "pm.write_queue_entries=128"];
    let part = |transport| {
        let (_, [one, four]) = measured(transport, streams(), &sets);
        one / (one + four)
    };
    let (in_turn, fairly) = (part(Transport::None), part(Transport::SwitchWfq));
    assert!(in_turn > 0.3, "ports are served in turn, however many streams come by them: {in_turn}");
    assert!((fairly - 0.2).abs() < 0.03, "one of five streams: {fairly}");
}

#[test]
fn without_a_transport_an_experiment_says_nothing_of_one() {
    let experiment = Experiment {
        streams: vec![vec![stream(4, 1.0)], vec![]],
        warm_up_ns: 0.0,
        measure_ns: 50_000.0,
        ..Experiment::default()
    };
    let run = |transport| {
        let experiment = Experiment { transport, ..experiment.clone() };
        experiment.run(&machine(&[]), Scheme::Nopb).unwrap_or_else(|error| panic!("{error}")).to_json()
    };
    assert!(run(Transport::None)["transport"].is_null());
    let transport = &run(Transport::Memchannel)["transport"];
    assert!(transport["control_bytes"].as_u64() > Some(0));
    assert_eq!(
        transport["resources"].as_array().map(Vec::len),
        Some(3),
        "a stream that only reads: two links, a device"
    );
}

#[test]
fn a_name_that_no_transport_has_is_refused_with_those_that_there_are() {
    assert_eq!("waterfill".parse(), Ok(Transport::Waterfill));
    let refused = "fair".parse::<Transport>().expect_err("there is none");
    assert_eq!(refused, "there is no transport `fair`; there are: none, credits, memchannel, waterfill, switch_wfq");
    assert_eq!(Counting::default(), Counting::Reads);
    assert_eq!(TransportConfig::default().interval(), Duration::from_ns(1e6));
}
