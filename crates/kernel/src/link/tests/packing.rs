//! Which flits messages get.

use super::*;
use crate::message::{Credits, exchange};

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

fn fetch(ps: u64) -> Message {
    exchange::fetch(LineAddress(1), Tag(0), Time::from_ps(ps))
}

fn swap(ps: u64) -> Message {
    exchange::swap(LineAddress(1), Tag(0), Version(1), Time::from_ps(ps))
}

fn fetched(ps: u64) -> Message {
    exchange::fetched(fetch(ps), Version(1))
}

#[test]
fn another_protocol_is_packed_as_its_classes_say() {
    assert_eq!(flits_of_both(FlitFormat::Bytes68, times(8, fetch(0))), (2, 4), "H takes one, G three, a flit four");
    assert_eq!(flits_of_both(FlitFormat::Bytes68, times(4, swap(0))), (3, 12), "of three slots each");
    assert_eq!(flits_of_both(FlitFormat::Bytes68, times(4, fetched(0))), (5, 20));
    assert_eq!(flits_of_both(FlitFormat::Bytes256, times(14, fetch(0))).0, 1, "seven in each group");
    assert_eq!(flits_of_both(FlitFormat::Bytes256, times(15, fetch(0))).0, 2);
    assert_eq!(flits_of_both(FlitFormat::Bytes256, times(5, swap(0))), (1, 15));
}

#[test]
fn headers_of_two_protocols_share_a_slot_where_a_format_has_both() {
    assert_eq!(flits_of_both(FlitFormat::Bytes68, [completion(0), fetch(0)]), (1, 1));
    assert_eq!(flits_of_both(FlitFormat::Bytes68, [fetch(0), completion(0)]), (1, 1));
    assert_eq!(flits_of_both(FlitFormat::Bytes68, [fetch(0), data(0)]), (2, 6), "a fetch and data do not");
    let downstream = [read(0), fetched(0), read(0)];
    assert_eq!(flits_of_both(FlitFormat::Bytes68, downstream), (2, 6), "G takes an answer and a read");
}

/// The same on a link that carries both protocols.
fn flits_of_both(format: FlitFormat, messages: impl IntoIterator<Item = Message>) -> (u64, u64) {
    let credits = MessageClass::ALL.into_iter().fold(Credits::NONE, |credits, class| credits.with(class, 4096));
    let mut bench = bench_of(&LinkConfig { credits, ..link(format, 0) });
    messages.into_iter().for_each(|message| bench.offer(0, message));
    (bench.transmitter.flits(), bench.transmitter.counters().slots)
}
