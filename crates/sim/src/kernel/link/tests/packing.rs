//! Which flits messages get.

use super::*;

/// Flits and slots that the messages take when all are there at once.
fn flits(format: FlitFormat, messages: impl IntoIterator<Item = Message>) -> (u64, u64) {
    let mut bench = bench_of(&link(format, 4096));
    messages.into_iter().for_each(|message| bench.offer(0, message));
    (bench.transmitter.flits(), bench.transmitter.counters().slots)
}

fn times(count: usize, message: Message) -> impl Iterator<Item = Message> {
    std::iter::repeat_n(message, count)
}

#[test]
fn a_write_takes_five_slots_and_so_two_flits() {
    let mut bench = bench(4);
    bench.offer(0, write(0));
    assert_eq!(bench.arrivals(), [(7_000, MessageClass::M2sRwd)]);
    assert_eq!(flits(FlitFormat::Bytes68, [write(0)]), (2, 5));
}

#[test]
fn four_writes_back_to_back_fill_five_flits_of_which_the_last_is_all_data() {
    let mut bench = bench(8);
    times(4, write(0)).for_each(|message| bench.offer(0, message));
    let class = MessageClass::M2sRwd;
    assert_eq!(bench.arrivals(), [(7_000, class), (8_000, class), (9_000, class), (10_000, class)]);
    assert_eq!(bench.transmitter.flits(), 5);
    bench.offer(0, read(0));
    assert_eq!(bench.arrivals(), [(11_000, MessageClass::M2sReq)], "an all-data flit has no place for a header");
}

#[test]
fn byte_enables_take_a_slot() {
    assert_eq!(flits(FlitFormat::Bytes68, times(4, partial_write(0))), (6, 24));
}

#[test]
fn a_flit_of_68_bytes_takes_two_requests_or_two_completions() {
    assert_eq!(flits(FlitFormat::Bytes68, times(8, read(0))), (4, 8));
    assert_eq!(flits(FlitFormat::Bytes68, times(8, completion(0))), (4, 4));
}

#[test]
fn headers_of_data_share_a_slot_while_their_flit_is_waiting() {
    assert_eq!(flits(FlitFormat::Bytes68, times(8, data(0))), (9, 36), "eight lines in nine flits");
    let mut bench = bench(4);
    bench.offer(0, data(0));
    bench.offer(1, data(1));
    assert_eq!(bench.counter("slots"), 10, "the first flit had started");
}

#[test]
fn a_completion_shares_the_slot_of_a_header_of_data() {
    assert_eq!(flits(FlitFormat::Bytes68, [data(0), completion(0)]), (2, 5));
    assert_eq!(flits(FlitFormat::Bytes68, [data(0), completion(0), completion(0)]), (2, 6), "H takes one of each");
}

#[test]
fn rolled_over_data_leave_slot_0_to_a_header() {
    let mut bench = bench(4);
    bench.offer(0, write(0));
    bench.offer(1_000, read(1_000));
    assert_eq!(bench.arrivals(), [(7_000, MessageClass::M2sRwd), (7_000, MessageClass::M2sReq)]);
}

#[test]
fn three_writes_fill_a_flit_of_256_bytes() {
    assert_eq!(flits(FlitFormat::Bytes256, times(3, write(0))), (1, 15));
    assert_eq!(flits(FlitFormat::Bytes256, times(30, write(0))), (10, 150));
}

#[test]
fn a_group_of_128_bytes_takes_four_requests_or_six_completions() {
    assert_eq!(flits(FlitFormat::Bytes256, times(8, read(0))).0, 1);
    assert_eq!(flits(FlitFormat::Bytes256, times(9, read(0))).0, 2);
    assert_eq!(flits(FlitFormat::Bytes256, times(12, completion(0))).0, 1);
    assert_eq!(flits(FlitFormat::Bytes256, times(13, completion(0))).0, 2);
}

#[test]
fn the_first_half_of_a_latency_optimised_flit_arrives_earlier() {
    let arrival = |format, message: Message| {
        let mut bench = bench_of(&link(format, 4));
        bench.offer(0, message);
        bench.arrivals()[0].0
    };
    assert_eq!(arrival(FlitFormat::Bytes256, read(0)), 6_000);
    assert_eq!(arrival(FlitFormat::LatencyOptimised256, read(0)), 5_500);
    assert_eq!(arrival(FlitFormat::LatencyOptimised256, write(0)), 5_500, "slots 0 to 4");
    let mut bench = bench_of(&link(FlitFormat::LatencyOptimised256, 4));
    times(2, write(0)).for_each(|message| bench.offer(0, message));
    let arrivals: Vec<u64> = bench.arrivals().iter().map(|arrival| arrival.0).collect();
    assert_eq!(arrivals, [5_500, 6_000], "the second write's data end in slot 10");
}

#[test]
fn a_message_goes_into_a_later_quarter_of_a_256_byte_flit_under_way() {
    let mut bench = bench_of(&link(FlitFormat::Bytes256, 4));
    bench.offer(0, read(0));
    bench.offer(600, read(600));
    bench.offer(751, read(751));
    let arrivals: Vec<u64> = bench.arrivals().iter().map(|arrival| arrival.0).collect();
    assert_eq!(arrivals, [6_000, 6_000, 7_000], "the last quarter is packed at 750");
    assert_eq!(bench.transmitter.flits(), 2);
}
