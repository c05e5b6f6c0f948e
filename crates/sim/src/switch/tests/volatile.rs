//! The router alone: what a switch without a persist buffer does.

use super::*;

fn volatile(hosts: u16, devices: u16, credits: u16) -> Bench {
    Bench::new(&config(16), hosts, devices, credits, Role::Volatile)
}

fn part(message: &Message, stage: Stage) -> u64 {
    message.stack.parts_ps()[stage as usize]
}

#[test]
fn an_unhindered_message_takes_four_stages_and_the_link() {
    let mut bench = volatile(1, 1, 4);
    bench.arrive(1_000, 0, write(7, 1, 0, 1_000));
    bench.run();
    // 4 x 2 ns, two flits, 5 ns of flight.
    assert_eq!(bench.arrivals(Opcode::MemWr), [(1_000 + 8_000 + 2_000 + 5_000, 1, 0)]);
    let message = &bench.got[0].message;
    assert_eq!(part(message, Stage::SwitchPipeline), 8_000);
    assert_eq!(part(message, Stage::Arbitration), 0);
    assert_eq!(message.stack.total(), Duration::from_ps(15_000));
}

#[test]
fn the_place_in_the_ingress_buffer_is_given_back_after_allocation() {
    let mut bench = volatile(1, 1, 4);
    bench.arrive(0, 0, read(7, 0, 0));
    bench.run();
    assert_eq!(bench.credits, [(6_000 + 6_000, 0, MessageClass::M2sReq)], "three stages, a flit and its flight");
}

#[test]
fn answers_find_their_host_by_the_tag_and_get_their_own_tag_back() {
    let mut bench = volatile(3, 2, 8);
    bench.devices_answer_after(50);
    for host in 0..3 {
        bench.arrive(0, host, read(line_of(u64::from(host) % 2, 4), 7, 0));
        bench.arrive(0, host, write(line_of(u64::from(host) % 2, 5), 1, 7, 0));
    }
    bench.run();
    for opcode in [Opcode::MemData, Opcode::Cmp] {
        let mut answers: Vec<(u16, u32)> = bench.arrivals(opcode).iter().map(|(_, by, tag)| (*by, *tag)).collect();
        answers.sort_unstable();
        assert_eq!(answers, [(0, 7), (1, 7), (2, 7)]);
    }
    assert!(bench.switch.is_idle());
}

#[test]
fn every_request_is_renamed_so_that_equal_tags_of_two_hosts_differ_below() {
    let mut bench = volatile(2, 1, 8);
    bench.arrive(0, 0, read(1, 42, 0));
    bench.arrive(0, 1, read(2, 42, 0));
    bench.run();
    let tags: Vec<u32> = bench.arrivals(Opcode::MemRd).iter().map(|(_, _, tag)| *tag).collect();
    assert_eq!(tags.len(), 2);
    assert_ne!(tags[0], tags[1]);
    assert!(!bench.switch.is_idle(), "two requests have no answer");
    assert_eq!(bench.switch.waiting(), ["2 requests wait for the answers of devices"]);
}

#[test]
fn an_answer_is_routed_whatever_address_it_carries() {
    let mut bench = volatile(2, 1, 8);
    bench.arrive(0, 1, write(1, 1, 9, 0));
    bench.run();
    let mut answer = bench.got[0].message.clone().answer(Version(1));
    answer.line = LineAddress(u64::MAX / 64);
    bench.arrive(100_000, 2, answer);
    bench.run();
    assert_eq!(bench.arrivals(Opcode::Cmp).iter().map(|(_, by, tag)| (*by, *tag)).collect::<Vec<_>>(), [(1, 9)]);
}

#[test]
fn ports_that_compete_for_one_are_served_in_turn() {
    let mut bench = volatile(3, 1, 64);
    for request in 0..30 {
        for host in 0..3 {
            bench.arrive(0, host, read(request, 100 * u32::from(host) + request as u32, 0));
        }
    }
    bench.run();
    let order: Vec<PortId> = bench
        .arrivals(Opcode::MemRd)
        .iter()
        .map(|(_, _, tag)| match bench.switch.outstanding.requester(Tag(*tag)) {
            Requester::Neighbour { port, .. } => port,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(order.len(), 90);
    for round in order.chunks(3) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [PortId(0), PortId(1), PortId(2)], "each once in every round");
    }
}

#[test]
fn large_messages_take_more_of_a_shared_link_than_small_ones_in_turn_with_them() {
    let mut bench = volatile(2, 1, 64);
    for request in 0..40 {
        bench.arrive(0, 0, read(request, 0, 0));
        bench.arrive(0, 1, write(request, 1, 1, 0));
    }
    bench.run();
    let last = |opcode| bench.arrivals(opcode).last().unwrap().0;
    // One read and one write in turn are six slots; the reads end with the 40th turn, not after 10 flits.
    assert!(last(Opcode::MemRd).abs_diff(last(Opcode::MemWr)) <= 2_000);
    assert!(last(Opcode::MemRd) > 13_000 + 50_000);
}

#[test]
fn a_message_without_credit_waits_in_its_ingress_buffer_and_stalls_are_counted() {
    let mut bench = volatile(1, 1, 2);
    bench.neighbours[1].takes = false;
    for request in 0..2 {
        bench.arrive(0, 0, write(request, 1, 0, 0));
    }
    bench.arrive(0, 0, read(5, 0, 0));
    bench.run();
    bench.arrive(100_000, 0, write(3, 1, 0, 100_000));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::MemWr).len(), 2, "two credits");
    assert_eq!(bench.arrivals(Opcode::MemRd).len(), 1, "another class has credits of its own");
    assert_eq!(bench.switch.waiting()[0], "port 0: 1 m2s_rwd, the first (0xc0) waits for a credit at port 1");
    bench.queue.push(Time::from_ps(300_000), SWITCH, Event::Credit { port: PortId(1), class: MessageClass::M2sRwd });
    bench.run();
    // From the credit on: allocation and traversal, two flits, flight.
    let arrivals = bench.arrivals(Opcode::MemWr);
    assert_eq!(arrivals[2].0, 300_000 + 4_000 + 2_000 + 5_000);
    assert_eq!(part(&bench.got.last().unwrap().message, Stage::Arbitration), 300_000 - 104_000);
    let stats = bench.switch.stats(bench.now);
    assert_eq!(stats.counter("port1.credit_stalls.m2s_rwd"), 1);
    assert_eq!(stats.counter("port1.credit_stall_ps.m2s_rwd"), 300_000 - 104_000);
    // The first two writes wait for the crossbar: one slot of the read, and five more of each other.
    assert_eq!(stats.counter("arbitration_wait_ps"), 300_000 - 104_000 + 125 + 750);
}

#[test]
fn a_blocked_head_blocks_what_stands_behind_it_for_a_free_port() {
    let mut bench = volatile(1, 2, 2);
    bench.neighbours[1].takes = false;
    let blocked = line_of(0, 0);
    let free = line_of(1, 0);
    bench.arrive(0, 0, write(blocked, 1, 0, 0));
    bench.arrive(0, 0, write(blocked + 1, 1, 0, 0));
    bench.run();
    bench.arrive(50_000, 0, write(blocked + 2, 1, 0, 50_000));
    bench.arrive(60_000, 0, write(free, 1, 0, 60_000));
    bench.run();
    assert!(bench.arrivals(Opcode::MemWr).iter().all(|(_, by, _)| *by == 1), "the last one cannot pass");
    bench.queue.push(Time::from_ps(200_000), SWITCH, Event::Credit { port: PortId(1), class: MessageClass::M2sRwd });
    bench.run();
    let last = bench.got.last().unwrap();
    // The crossbar's input is free again after the five slots of the one before.
    assert_eq!((last.ps, last.by), (200_000 + 625 + 4_000 + 2_000 + 5_000, 2));
    assert_eq!(bench.switch.counters().head_of_line_messages, 1);
    assert_eq!(bench.switch.counters().head_of_line_ps, 200_000 - 64_000);
}

#[test]
fn another_class_passes_a_blocked_head_of_the_same_port() {
    let mut bench = volatile(1, 1, 1);
    bench.neighbours[1].takes = false;
    bench.arrive(0, 0, write(0, 1, 0, 0));
    bench.run();
    bench.arrive(50_000, 0, write(1, 1, 0, 50_000));
    bench.arrive(60_000, 0, read(2, 0, 60_000));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::MemRd), [(60_000 + 8_000 + 1_000 + 5_000, 1, 1)]);
    assert_eq!(bench.arrivals(Opcode::MemWr).len(), 1);
}

#[test]
fn the_crossbar_takes_one_message_at_a_time_from_an_input() {
    let slow = SwitchConfig { crossbar_flit_ns: 4.0, ..config(16) };
    let mut bench = Bench::new(&slow, 1, 2, 8, Role::Volatile);
    bench.arrive(0, 0, write(line_of(0, 0), 1, 0, 0));
    bench.arrive(0, 0, write(line_of(1, 0), 1, 0, 0));
    bench.run();
    let times: Vec<(u64, u16)> = bench.arrivals(Opcode::MemWr).iter().map(|(ps, by, _)| (*ps, *by)).collect();
    assert_eq!(times, [(15_000, 1), (20_000, 2)], "five slots of 1 ns later");
}

#[test]
fn the_ports_that_take_from_one_input_do_so_in_turn() {
    let slow = SwitchConfig { crossbar_flit_ns: 16.0, ..config(16) };
    for first in [0, 1] {
        let mut bench = Bench::new(&slow, 1, 2, 64, Role::Volatile);
        for request in 0..40 {
            bench.arrive(0, 0, write(line_of(first, request), 1, 0, 0));
            bench.arrive(0, 0, read(line_of(1 - first, request), 0, 0));
        }
        bench.run();
        let order: Vec<bool> = bench.got.iter().map(|got| got.message.is_write()).collect();
        assert_eq!(order.len(), 80);
        assert!(order[1..].windows(2).all(|two| two[0] != two[1]), "{order:?}");
    }
}

#[test]
fn one_whose_input_is_busy_whenever_its_output_is_free_is_passed_over_once() {
    let slow = SwitchConfig { crossbar_flit_ns: 16.0, ..config(16) };
    let mut bench = Bench::new(&slow, 2, 2, 64, Role::Volatile);
    for request in 0..60 {
        bench.arrive(0, 0, read(line_of(0, request), 0, 0));
    }
    for request in 0..40 {
        bench.arrive(1_000, 1, write(line_of(1, request), 1, 0, 1_000));
    }
    // Each read takes the input of port 0 for 4 ns, each write the output to the second device for 20.
    let single = line_of(1, 40);
    bench.arrive(6_000, 0, write(single, 1, 0, 6_000));
    bench.run();
    assert_eq!((bench.arrivals(Opcode::MemWr).len(), bench.arrivals(Opcode::MemRd).len()), (41, 60));
    // One crosses when it comes, and one before it.
    assert_eq!(bench.writes_before(single), 2);
}

#[test]
fn several_whose_inputs_are_busy_are_each_passed_over_once() {
    let slow = SwitchConfig { crossbar_flit_ns: 16.0, ..config(16) };
    let mut bench = Bench::new(&slow, 3, 3, 64, Role::Volatile);
    for request in 0..60 {
        bench.arrive(0, 0, read(line_of(0, request), 0, 0));
        bench.arrive(0, 1, read(line_of(1, request), 0, 0));
    }
    for request in 0..40 {
        bench.arrive(1_000, 2, write(line_of(2, request), 1, 0, 1_000));
    }
    let singles = [line_of(2, 40), line_of(2, 41)];
    for (host, single) in (0..).zip(singles) {
        bench.arrive(6_000, host, write(single, 1, 0, 6_000));
    }
    bench.run();
    assert_eq!((bench.arrivals(Opcode::MemWr).len(), bench.arrivals(Opcode::MemRd).len()), (42, 120));
    let before = singles.map(|single| bench.writes_before(single));
    // One before each, and one that crosses when it comes; the first of the two goes before the second.
    assert_eq!(before, [2, 3]);
}

#[test]
fn a_crossbar_of_the_links_rate_carries_the_links_full_bandwidth() {
    let equal = SwitchConfig { crossbar_flit_ns: 1.0, ..config(16) };
    let mut bench = Bench::new(&equal, 1, 1, 64, Role::Volatile);
    for request in 0..60 {
        bench.arrive(0, 0, write(request, 1, 0, 0));
    }
    bench.run();
    // 60 messages of five slots fill 75 flits; they come one by one, so that one more flit has to leave before it is
    // full.
    assert_eq!(bench.switch.port(PortId(1)).transmitter.flits(), 76);
    assert_eq!(bench.got.last().unwrap().ps, 8_000 + 76_000 + 5_000);
}

#[test]
fn a_saturated_link_carries_its_full_bandwidth() {
    let mut bench = volatile(4, 1, 64);
    for request in 0..50 {
        for host in 0..4 {
            bench.arrive(0, host, write(request, 1, 0, 0));
        }
    }
    bench.run();
    // 200 messages of 5 slots are 250 full flits.
    assert_eq!(bench.got.last().unwrap().ps, 8_000 + 250_000 + 5_000);
    assert_eq!(bench.switch.port(PortId(4)).transmitter.flits(), 250);
}

#[test]
fn a_message_costs_two_events_and_its_credits() {
    let mut bench = volatile(1, 1, 64);
    for request in 0..10 {
        bench.arrive(request * 50_000, 0, read(request, 0, request * 50_000));
    }
    bench.run();
    // Taken: the arrival here, the wake when ready, the arrival there, a credit up and a credit from below.
    assert_eq!(bench.queue.taken(), 10 * 5);
}

#[test]
fn messages_that_come_together_share_a_wake() {
    let mut bench = volatile(3, 3, 64);
    for host in 0..3 {
        bench.arrive(0, host, read(line_of(u64::from(host), 0), 0, 0));
    }
    bench.run();
    assert_eq!(bench.queue.taken(), 3 * 4 + 1);
}

#[test]
fn a_power_cut_empties_a_volatile_switch() {
    let mut bench = volatile(2, 1, 2);
    bench.neighbours[2].takes = false;
    for request in 0..2 {
        bench.arrive(0, 0, write(request, 1, 0, 0));
        bench.arrive(0, 1, write(request, 1, 0, 0));
    }
    bench.run();
    assert!(!bench.switch.is_idle());
    bench.cut_power();
    assert!(bench.switch.is_idle());
    assert!(bench.switch.waiting().is_empty());
    bench.got.clear();
    bench.neighbours[2].takes = true;
    bench.recover();
    let now = bench.now.as_ps();
    bench.arrive(now, 0, write(9, 1, 0, now));
    bench.run();
    assert_eq!(bench.arrivals(Opcode::MemWr).len(), 1, "it works as new");
}

#[test]
fn a_clone_goes_on_like_the_original() {
    let mut bench = volatile(4, 2, 4);
    bench.devices_answer_after(30);
    for request in 0..40 {
        bench.now = Time::from_ps(request * 700);
        bench.send((request % 4) as u16, read(line_of(request % 2, request), request as u32, request * 700));
    }
    bench.run_until(20_000);
    let mut copy = bench.clone();
    let log = |bench: &mut Bench| {
        bench.run();
        format!("{:?}", bench.got)
    };
    assert_eq!(log(&mut bench), log(&mut copy));
    assert_eq!(bench.arrivals(Opcode::MemData).len(), 40);
}
