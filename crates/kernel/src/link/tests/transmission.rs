//! Messages that find credits or do not, and where their time goes.

use super::*;

#[test]
fn a_read_takes_one_flit_time_and_the_flight() {
    let mut bench = bench(4);
    bench.offer(0, read(0));
    assert_eq!(bench.arrivals(), [(6_000, MessageClass::M2sReq)]);
}

#[test]
fn a_flit_is_closed_once_it_has_started() {
    let mut bench = bench(4);
    bench.offer(0, read(0));
    bench.offer(1, read(1));
    assert_eq!(bench.arrivals(), [(6_000, MessageClass::M2sReq), (7_000, MessageClass::M2sReq)]);
}

#[test]
fn without_a_credit_a_message_waits_and_other_classes_pass_it() {
    let mut bench = bench(1);
    bench.offer(0, write(0));
    bench.offer(0, write(0));
    bench.offer(0, read(0));
    assert_eq!(bench.arrivals().len(), 2);
    bench.at(50_000, |transmitter, context| {
        transmitter.credit_returned(MessageClass::M2sRwd, context);
    });
    assert_eq!(bench.arrivals(), [(57_000, MessageClass::M2sRwd)]);
    assert_eq!(bench.transmitter.counters().credit_wait_ps[1], 50_000);
    assert!(!bench.transmitter.is_idle());
}

#[test]
fn the_latency_stack_holds_wait_and_flight() {
    let mut bench = bench(8);
    bench.offer(0, write(0));
    bench.offer(500, write(500));
    bench.queue.pop();
    let Some((arrival, _, Event::Arrival { message, .. })) = bench.queue.pop() else { panic!("two were sent") };
    let parts = message.stack.parts_ps();
    assert_eq!(
        parts[Stage::LinkWait as usize],
        500,
        "the header goes into slot 0 of the second flit, which starts at 1000"
    );
    assert_eq!(message.stack.total(), arrival.since(Time::from_ps(500)));
}
