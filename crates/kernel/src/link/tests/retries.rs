//! Errors on the wire.

use super::*;

fn with_errors(format: FlitFormat, bit_error_rate: f64) -> LinkConfig {
    LinkConfig { bit_error_rate, ..link(format, 4096) }
}

/// The times at which reads arrive, one offered every `every` ps.
fn arrivals(bench: &mut Bench, count: u64, every: u64) -> Vec<u64> {
    (0..count).for_each(|number| bench.offer(number * every, read(number * every)));
    bench.arrivals().iter().map(|arrival| arrival.0).collect()
}

#[test]
fn a_flit_that_arrives_wrong_is_sent_again_with_all_behind_it() {
    let mut bench = bench_of(&with_errors(FlitFormat::Bytes68, 1e-4));
    let arrivals = arrivals(&mut bench, 200, 2_000);
    let first = arrivals.iter().zip(0..).position(|(&at, number)| at != number * 2_000 + 6_000).expect("an error");
    // 1 ns of flit, 5 ns of flight, 6 ns of RETRY.Frame and RETRY.Req, 5 ns of flight, 6 ns of RETRY.Frame and
    // RETRY.Ack.
    let due = first as u64 * 2_000 + 6_000 + 23_000;
    assert_eq!(arrivals[first], due);
    // Ten of them had been sent, one flit each, when the request came after 17 ns; they follow without a gap, then the
    // flits since.
    assert_eq!(
        arrivals[first + 1..first + 9],
        std::array::from_fn::<_, 8, _>(|behind| due + 1_000 * (behind as u64 + 1))
    );
    assert!(arrivals.is_sorted());
    assert!(bench.counter("replayed_flits") >= 9);
    assert_eq!(bench.counter("retry_ps"), bench.counter("crc_errors") * 23_000);
}

#[test]
fn with_256_bytes_a_nak_goes_with_the_next_flit() {
    let mut bench = bench_of(&with_errors(FlitFormat::Bytes256, 3e-4));
    let arrivals = arrivals(&mut bench, 200, 20_000);
    let first = arrivals.iter().zip(0..).position(|(&at, number)| at != number * 20_000 + 6_000).expect("an error");
    assert_eq!(arrivals[first], first as u64 * 20_000 + 6_000 + 12_000, "a flit, the flight, a flit, the flight");
    assert_eq!(arrivals[first + 1], (first as u64 + 1) * 20_000 + 6_000, "the link has caught up");
}

#[test]
fn links_have_errors_of_their_own_and_each_the_same_ones_again() {
    let errors = |port: u16| {
        let mut wires = Wires::default();
        wires.connect((SENDER, PortId(port)), (ComponentId(1), PORT));
        let transmitter = Transmitter::new(PortId(port), &with_errors(FlitFormat::Bytes68, 1e-4));
        let mut bench = Bench { queue: EventQueue::default(), wires, transmitter };
        arrivals(&mut bench, 500, 2_000)
    };
    assert_eq!(errors(0), errors(0));
    assert_ne!(errors(0), errors(1));
}

#[test]
fn a_full_retry_buffer_stops_the_sender() {
    let config = LinkConfig { retry_buffer_flits: 8, ..link(FlitFormat::Bytes68, 4096) };
    let mut bench = bench_of(&config);
    let arrivals = arrivals(&mut bench, 40, 0);
    // Two reads a flit; 8 flits, and the ninth when the first is acknowledged after 12 ns: 6 there, 6 back.
    assert_eq!(arrivals[14..18], [13_000, 13_000, 18_000, 18_000]);
    assert_eq!(arrivals[30..34], [25_000, 25_000, 30_000, 30_000]);
    assert_eq!(bench.counter("retry_buffer_wait_ps"), 2 * 4_000);
}

#[test]
fn without_errors_nothing_is_kept() {
    assert_eq!(bench(4).transmitter.stats(Time::ZERO).counter("crc_errors"), 0);
}
