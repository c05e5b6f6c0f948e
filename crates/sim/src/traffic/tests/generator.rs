//! What leaves a generator, and when, before a memory that answers each line after a fixed time.

use super::super::{Footprint, Generator, StreamConfig};
use super::reads;
use crate::traffic::Pattern;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Message, Stage};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::{Duration, Time};
use fencepost_kernel::{Component, ComponentId, Context, Event, EventQueue, PortId, Wires};

const GENERATOR: ComponentId = ComponentId(0);
const BRIDGE: ComponentId = ComponentId(1);
const CACHES_PS: u64 = 1_000;
const MEMORY_PS: u64 = 100_000;
const FIRST_LINE: u64 = 4096;

struct Bench {
    queue: EventQueue,
    wires: Wires,
    generator: Generator,
    now: Time,
    /// Requests with the time at which each reached the bridge.
    sent: Vec<(u64, Message)>,
    /// The most lines that were under way at a time.
    lines_max: usize,
    lines: usize,
}

impl Bench {
    fn new(streams: &[StreamConfig], seed: u64) -> Bench {
        let mut first = FIRST_LINE;
        let mut footprint = |stream: &StreamConfig| {
            let lines = stream.footprint_bytes / 64;
            first += lines;
            Footprint::contiguous(LineAddress(first - lines), lines)
        };
        let streams: Vec<_> = streams.iter().map(|stream| (stream.clone(), footprint(stream))).collect();
        let mut wires = Wires::default();
        wires.connect((GENERATOR, PortId(0)), (BRIDGE, PortId(0)));
        let mut bench = Bench {
            queue: EventQueue::default(),
            wires,
            generator: Generator::new(&streams, Duration::from_ps(CACHES_PS), None, seed),
            now: Time::ZERO,
            sent: Vec::new(),
            lines_max: 0,
            lines: 0,
        };
        bench.generator.start(&mut Context::new(Time::ZERO, GENERATOR, &mut bench.queue, &bench.wires));
        bench
    }

    /// Until `count` requests have reached the bridge, or nothing happens any more. Memory takes [`MEMORY_PS`] for each
    /// line.
    fn run(mut self, count: usize) -> Bench {
        while self.sent.len() < count {
            let Some((time, target, event)) = self.queue.pop() else { break };
            self.now = time;
            match event {
                Event::Arrival { message, .. } if target == BRIDGE => self.serve(time, message),
                event => {
                    self.lines -= usize::from(matches!(event, Event::Arrival { .. }));
                    let mut context = Context::new(time, GENERATOR, &mut self.queue, &self.wires);
                    self.generator.handle(event, &mut context);
                }
            }
        }
        self
    }

    fn serve(&mut self, time: Time, message: Message) {
        self.sent.push((time.as_ps(), message.clone()));
        self.lines += 1;
        self.lines_max = self.lines_max.max(self.lines);
        let answered = time + Duration::from_ps(MEMORY_PS);
        let mut answer = message.answer(Version(0));
        answer.stack.charge(Stage::Media, answered);
        Context::new(time, BRIDGE, &mut self.queue, &self.wires).send(PortId(0), answer, answered);
    }

    fn times(&self) -> Vec<u64> {
        self.sent.iter().map(|(time, _)| *time).collect()
    }

    fn lines(&self) -> Vec<u64> {
        self.sent.iter().map(|(_, message)| message.line.0 - FIRST_LINE).collect()
    }

    fn stream(&self, number: usize) -> StatsNode {
        self.generator.stats(self.now).get(&format!("stream{number}")).expect("there is such a stream").clone()
    }
}

fn latencies_ps(stream: &StatsNode, direction: &str) -> (u64, u64) {
    match stream.get(&format!("{direction}.latency")) {
        Some(StatsNode::Histogram(latency)) => (latency.count(), latency.sum().as_ps()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_next_request_leaves_when_the_one_before_it_is_complete() {
    let bench = Bench::new(&[reads()], 1).run(3);
    assert_eq!(bench.times(), [1_000, 102_000, 203_000]);
    let (count, sum) = latencies_ps(&bench.stream(0), "reads");
    assert_eq!((count, sum), (2, 2 * (CACHES_PS + MEMORY_PS)));
    assert_eq!(bench.stream(0).counter("reads.parts_ps.cache"), 2 * CACHES_PS);
    assert_eq!(bench.stream(0).counter("reads.parts_ps.media"), 2 * MEMORY_PS);
}

#[test]
fn as_many_requests_are_under_way_as_the_stream_says_and_not_one_more() {
    let bench = Bench::new(&[StreamConfig { outstanding: 7, ..reads() }], 1).run(700);
    assert_eq!(bench.lines_max, 7);
    assert_eq!(bench.times()[..7], [1_000; 7]);
    assert_eq!(bench.times()[7..14], [102_000; 7]);
}

#[test]
fn requests_keep_the_inject_delay_between_their_starts_where_there_is_room() {
    let bench = Bench::new(&[StreamConfig { outstanding: 16, inject_delay_ns: 30.0, ..reads() }], 1).run(10);
    let times = bench.times();
    assert!((1_000..31_000).contains(&times[0]), "the first begins within a delay, not at {}", times[0]);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 30_000), "{times:?}");
}

#[test]
fn where_there_is_no_room_the_inject_delay_does_not_add_to_the_wait() {
    let bench = Bench::new(&[StreamConfig { outstanding: 2, inject_delay_ns: 30.0, ..reads() }], 1).run(5);
    let first = bench.times()[0];
    let after: Vec<u64> = bench.times().iter().map(|time| time - first).collect();
    assert_eq!(after, [0, 30_000, 101_000, 131_000, 202_000]);
}

#[test]
fn a_dependent_stream_counts_its_delay_from_completion() {
    let stream = StreamConfig { dependent: true, inject_delay_ns: 30.0, ..reads() };
    let times = Bench::new(&[stream], 1).run(3).times();
    assert_eq!([times[1] - times[0], times[2] - times[1]], [131_000, 131_000]);
}

#[test]
fn jitter_makes_each_delay_longer_by_up_to_as_much() {
    let stream = StreamConfig { dependent: true, inject_delay_ns: 30.0, inject_jitter_ns: 40.0, ..reads() };
    let times = Bench::new(&[stream], 1).run(400).times();
    let delays: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0] - CACHES_PS - MEMORY_PS).collect();
    assert!(delays.iter().all(|delay| (30_000..=70_000).contains(delay)));
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!((48_000..52_000).contains(&mean), "{mean} ps is not about the middle");
}

#[test]
fn a_request_of_many_lines_is_complete_with_its_last_one() {
    let stream = StreamConfig { request_bytes: 4096, lines_outstanding: Some(16), ..reads() };
    let bench = Bench::new(&[stream], 1).run(65);
    assert_eq!(bench.lines_max, 16);
    let times = bench.times();
    assert_eq!((times[15], times[16], times[63]), (1_000, 102_000, 304_000));
    assert_eq!(times[64], 405_000, "the next request begins when the last line of this one has come");
    let stream = bench.stream(0);
    assert_eq!(latencies_ps(&stream, "reads"), (1, 404_000));
    assert_eq!(stream.counter("reads.bytes"), 4096);
    assert_eq!(stream.counter("reads.parts_ps.cache"), 303_000 + CACHES_PS, "waiting for a place is cache time");
    let lines = bench.lines();
    assert!(lines.windows(2).take(63).all(|pair| pair[1] == pair[0] + 1) && lines[0].is_multiple_of(64), "{lines:?}");
}

#[test]
fn reads_and_writes_are_mixed_evenly_and_versions_of_writes_only_grow() {
    let stream = StreamConfig { reads: 2, writes: 1, outstanding: 3, ..reads() };
    let bench = Bench::new(&[stream], 1).run(600);
    let is_write: Vec<bool> = bench.sent.iter().map(|(_, message)| message.is_write()).collect();
    assert!(is_write.chunks(3).all(|three| three.iter().filter(|is_write| **is_write).count() == 1));
    let versions: Vec<u64> =
        bench.sent.iter().filter(|(_, message)| message.is_write()).map(|(_, message)| message.version.0).collect();
    assert_eq!(versions, (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_sequential_stream_goes_round_its_footprint_and_a_random_one_stays_inside() {
    let stream = StreamConfig { footprint_bytes: 8 * 64, ..reads() };
    let lines = Bench::new(std::slice::from_ref(&stream), 3).run(17).lines();
    assert!(lines.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 8), "{lines:?}");
    let stream = StreamConfig { pattern: Pattern::Random, request_bytes: 128, ..stream };
    let lines = Bench::new(&[stream], 3).run(400).lines();
    let mut places: Vec<u64> = lines.iter().copied().step_by(2).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places, [0, 2, 4, 6], "requests begin at multiples of their size");
}

#[test]
fn streams_go_on_beside_each_other_and_are_counted_apart() {
    let slow = StreamConfig { dependent: true, ..reads() };
    let fast = StreamConfig { outstanding: 4, writes: 1, reads: 0, ..reads() };
    let bench = Bench::new(&[slow, fast], 5).run(50);
    assert_eq!(bench.stream(0).counter("reads.requests"), 9);
    assert_eq!(bench.stream(1).counter("writes.requests"), 36);
    assert_eq!(bench.stream(1).counter("reads.requests"), 0);
}

#[test]
fn a_stream_ends_after_its_requests() {
    let bench = Bench::new(&[StreamConfig { requests: Some(5), outstanding: 2, ..reads() }], 1).run(usize::MAX);
    assert_eq!(bench.sent.len(), 5);
    assert!(bench.generator.is_finished() && bench.generator.is_idle());
}

#[test]
fn equal_seeds_give_equal_traffic_and_others_do_not() {
    let stream = StreamConfig { pattern: Pattern::Random, inject_delay_ns: 10.0, outstanding: 4, ..reads() };
    let traffic = |seed| {
        let bench = Bench::new(&[stream.clone(), stream.clone()], seed).run(200);
        (bench.times(), bench.lines())
    };
    assert_eq!(traffic(11), traffic(11));
    assert_ne!(traffic(11), traffic(12));
}
