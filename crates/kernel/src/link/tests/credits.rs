//! Credits on their way back.

use super::*;

const CLASS: MessageClass = MessageClass::M2sRwd;

#[test]
fn on_an_idle_link_a_credit_takes_a_control_flit() {
    let mut bench = bench(4);
    bench.return_credit(10_000, CLASS);
    assert_eq!(bench.counter("control_flits"), 1);
    bench.offer(10_300, completion(10_300));
    assert_eq!(
        bench.under_way().iter().map(|(time, _)| *time).collect::<Vec<_>>(),
        [16_000, 17_000],
        "the completion waits until the control flit has gone"
    );
    assert_eq!(bench.transmitter.flits(), 1);
}

#[test]
fn the_credit_field_of_a_256_byte_flit_costs_no_message_any_time() {
    let mut bench = bench_of(&link(FlitFormat::Bytes256, 4));
    bench.return_credit(10_000, CLASS);
    bench.offer(10_300, completion(10_300));
    assert_eq!(bench.under_way().iter().map(|(time, _)| *time).collect::<Vec<_>>(), [16_000, 16_300]);
}

#[test]
fn a_credit_goes_with_the_next_flit_that_starts() {
    let mut bench = bench(64);
    for _ in 0..8 {
        bench.offer(0, data(0));
    }
    bench.return_credit(3_500, CLASS);
    assert_eq!(bench.credits(), [10_000], "the flit that starts at 4 ns");
    assert_eq!(bench.counter("control_flits"), 0);
}

#[test]
fn a_flit_returns_powers_of_two() {
    let mut bench = bench(64);
    for _ in 0..7 {
        bench.return_credit(0, CLASS);
    }
    bench.return_credit(0, MessageClass::M2sReq);
    assert_eq!(bench.credits(), [6_000, 6_000, 6_000, 6_000, 7_000, 7_000, 7_000, 8_000]);
}

#[test]
fn a_message_of_the_same_instant_takes_the_credit_along() {
    let mut bench = bench(4);
    bench.return_credit(10_000, CLASS);
    bench.offer(10_000, completion(10_000));
    assert_eq!(bench.under_way().iter().map(|(time, _)| *time).collect::<Vec<_>>(), [16_000, 16_000]);
    assert_eq!(bench.counter("control_flits"), 0);
}

#[test]
fn a_message_goes_before_a_control_flit_that_is_arranged_for_later() {
    let mut bench = bench(4);
    bench.at(0, |transmitter, context| transmitter.return_credit(CLASS, &mut context.at(Time::from_ps(3_000))));
    bench.offer(1_000, completion(1_000));
    assert_eq!(bench.arrivals(), [(7_000, MessageClass::S2mNdr)]);
}

#[test]
fn a_control_flit_counts_once_no_message_can_take_its_credits_along() {
    let mut bench = bench(4);
    bench.return_credit(10_000, CLASS);
    let counted = |ps| bench.transmitter.stats(Time::from_ps(ps)).counter("control_flits");
    assert_eq!([9_000, 10_000, 10_001].map(counted), [0, 0, 1]);
}
