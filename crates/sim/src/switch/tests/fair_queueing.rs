//! Weighted fair queueing in the switch: who is served when, message by message.

use rustc_hash::FxHashMap;

use super::*;
use fencepost_kernel::message::Flow;

/// A switch that queues fairly, for flows of these weights; others have 1.
fn fair(hosts: u16, devices: u16, weights: &[(u32, f64)]) -> Bench {
    let mut bench = Bench::new(&config(16), hosts, devices, 256, Role::Volatile);
    let weights = weights.iter().map(|(flow, weight)| (Flow(*flow), *weight));
    bench.switch.queue_fairly(weights.collect::<FxHashMap<_, _>>());
    bench
}

/// So many reads of a flow come in at a port at `ps`, of lines of the first device.
fn arrive(bench: &mut Bench, ps: u64, port: u16, flow: u32, count: u64) {
    for line in 0..count {
        let message = Message { flow: Flow(flow), ..read(u64::from(flow) * 1000 + line, 0, ps) };
        bench.arrive(ps, port, message);
    }
}

/// Whose reads came out, in their order.
fn served(bench: &mut Bench) -> Vec<u32> {
    bench.run();
    bench.got.iter().filter(|got| got.message.opcode == Opcode::MemRd).map(|got| got.message.flow.0).collect()
}

fn of(flow: u32, served: &[u32]) -> usize {
    served.iter().filter(|other| **other == flow).count()
}

#[test]
fn w101_one_message_passes_the_queue_of_a_flow_that_sends_many() {
    let mut bench = fair(1, 1, &[]);
    arrive(&mut bench, 0, 0, 1, 20);
    arrive(&mut bench, 0, 0, 2, 1);
    let order = served(&mut bench);
    // The first is on its way when the other comes.
    assert_eq!(order.iter().position(|flow| *flow == 2), Some(1));
    assert_eq!(order.len(), 21);
}

#[test]
fn w102_without_it_the_message_comes_last() {
    let mut bench = Bench::new(&config(16), 1, 1, 256, Role::Volatile);
    arrive(&mut bench, 0, 0, 1, 20);
    arrive(&mut bench, 0, 0, 2, 1);
    assert_eq!(served(&mut bench).iter().position(|flow| *flow == 2), Some(20));
}

#[test]
fn w103_flows_of_two_ports_are_served_by_their_weights() {
    let mut bench = fair(2, 1, &[(2, 3.0)]);
    arrive(&mut bench, 0, 0, 1, 60);
    arrive(&mut bench, 0, 1, 2, 60);
    let order = served(&mut bench);
    for round in [&order[..40], &order[40..80]] {
        assert!(of(2, round).abs_diff(30) <= 1, "{round:?}");
    }
    assert_eq!(order[80..], [1; 40], "what is left when the other has no more");
}

#[test]
fn w104_flows_are_served_in_turn_and_not_ports() {
    let mut bench = fair(2, 1, &[]);
    arrive(&mut bench, 0, 0, 1, 30);
    arrive(&mut bench, 0, 0, 2, 30);
    arrive(&mut bench, 0, 1, 3, 30);
    let order = served(&mut bench);
    for flow in 1..=3 {
        assert!(of(flow, &order[..60]).abs_diff(20) <= 1, "{order:?}");
    }
}

#[test]
fn w105_a_flow_that_comes_late_has_saved_no_more_than_its_way_through_the_pipeline() {
    let mut bench = fair(2, 1, &[]);
    arrive(&mut bench, 0, 0, 1, 200);
    // Eight reads a ns cross the switch, from the third stage on: half of them have when these may.
    arrive(&mut bench, 12_500, 1, 2, 60);
    let order = served(&mut bench);
    let first = order.iter().position(|flow| *flow == 2).expect("it is served");
    assert!((60..120).contains(&first), "{first}");
    // Its tags are those of the time at which it came; 32 reads crossed in the two stages before it could.
    let ahead = order[first..].iter().take_while(|flow| **flow == 2).count();
    assert!(ahead <= 34, "{ahead}");
    let together = &order[first + ahead..][..40];
    assert!(of(2, together).abs_diff(20) <= 1, "{together:?}");
}

#[test]
fn w106_order_within_a_flow_is_kept() {
    let mut bench = fair(2, 1, &[(1, 0.3), (2, 7.0)]);
    arrive(&mut bench, 0, 0, 1, 40);
    arrive(&mut bench, 0, 0, 2, 40);
    arrive(&mut bench, 0, 1, 3, 40);
    bench.run();
    for flow in 1..=3 {
        let of_flow = bench.got.iter().filter(|got| got.message.flow == Flow(flow));
        let lines: Vec<u64> = of_flow.map(|got| got.message.line.0).collect();
        assert!(lines.is_sorted() && lines.len() == 40, "{lines:?}");
    }
}

#[test]
fn w107_an_unhindered_message_takes_no_longer() {
    let mut bench = fair(1, 1, &[]);
    bench.arrive(1_000, 0, write(7, 1, 0, 1_000));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::MemWr), [(1_000 + 8_000 + 2_000 + 5_000, 1, 0)]);
}

#[test]
fn w108_flows_that_write_alternate_whatever_they_write() {
    let mut bench = fair(2, 1, &[]);
    for line in 0..40 {
        let [small, large] = [1, 2].map(Flow);
        bench.arrive(0, 0, Message { flow: small, ..partial_write(line, 1, 1, 0, 0) });
        bench.arrive(0, 1, Message { flow: large, ..write(1000 + line, 1, 0, 0) });
    }
    bench.run();
    // Both are requests with data of as many slots: it is by flows that they alternate.
    let order: Vec<u32> = bench.got.iter().map(|got| got.message.flow.0).collect();
    for pair in order[2..].chunks(2) {
        assert_eq!(of(1, pair), 1, "{order:?}");
    }
}
