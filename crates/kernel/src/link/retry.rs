//! Link-level retry: what an error of the wire costs.
//!
//! Go-back-N (CXL 3.1, 4.2.8, for 68-byte flits; the standard NAK of PCIe 6.0, 4.2.3.4, for 256-byte flits; recalled):
//! a receiver that finds a flit wrong drops it and all behind it and asks for a retry; the sender sends that flit
//! again, and all that followed it, as they were. It keeps flits until they are acknowledged, and stops when it has no
//! place to keep another one.
//!
//! Simplified: a request for a retry does not wait for a flit that is under way in the other direction, and takes no
//! bandwidth there; acknowledgements go back with the next flit and never wait for one; what is sent between an error
//! and the request's arrival cannot have an error that matters, since it is dropped anyway.

use super::config::LinkConfig;
use crate::time::{Duration, Time};

/// Errors of one direction of a link, and the flits that are kept for them.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    flit_time: Duration,
    /// From the start of a flit that arrives wrong until the request for a retry reaches the sender.
    until_request: Duration,
    /// From there until the flit is on its way again.
    until_replay: Duration,
    /// From the start of a flit that arrives well until its acknowledgement reaches the sender.
    until_acknowledged: Duration,
    /// A random number below this is an error.
    threshold: u64,
    random: u64,
    /// When the last request for a retry reaches the sender. What it sends before is in vain.
    request_arrives: Time,
    /// When the places of the retry buffer get free, in the order in which flits take them.
    places: Vec<Time>,
    next_place: usize,
    pub crc_errors: u64,
    /// Flits whose first transmission was in vain.
    pub replayed_flits: u64,
    /// Time that the link lost: from each transmission that failed to the next of that flit, in ps.
    pub retry_ps: u64,
    /// Time that flits waited for a place in the retry buffer, in ps.
    pub buffer_wait_ps: u64,
}

impl Retry {
    /// Nothing for a link that needs none: it has no errors, and its buffer is never full.
    pub fn new(config: &LinkConfig) -> Option<Retry> {
        let (flit_time, latency) = (config.flit_time(), Duration::from_ns(config.latency_ns));
        let (request, announcement) = config.flit_format.retry_handshake_flits();
        let until_acknowledged = (flit_time + latency) * 2;
        let never_fills = flit_time * u64::from(config.retry_buffer_flits) >= until_acknowledged;
        if flit_time == Duration::ZERO || config.bit_error_rate == 0.0 && never_fills {
            return None;
        }
        Some(Retry {
            flit_time,
            until_request: flit_time * (1 + request) + latency * 2,
            until_replay: flit_time * announcement,
            until_acknowledged,
            threshold: (config.flit_format.retry_probability(config.bit_error_rate) * 2f64.powi(64)) as u64,
            random: 0,
            request_arrives: Time::ZERO,
            places: vec![Time::ZERO; usize::from(config.retry_buffer_flits)],
            next_place: 0,
            crc_errors: 0,
            replayed_flits: 0,
            retry_ps: 0,
            buffer_wait_ps: 0,
        })
    }

    /// Makes the errors those of one link and no other.
    pub fn seed(&mut self, seed: u64) {
        self.random = seed;
    }

    /// Time that the link lost so far, in ps.
    pub fn lost_ps(&self) -> u64 {
        self.retry_ps
    }

    /// A flit could start at `start`, and the transmission of the one before it that got through started at `before`.
    /// Gives when it does start, and when the transmission of it starts that gets through.
    pub fn carry(&mut self, start: Time, before: Time) -> (Time, Time) {
        let not_before = if before == Time::ZERO { start } else { before + self.flit_time };
        let mut begins = start;
        if begins >= self.request_arrives {
            // The sender knows: what is new goes after what is sent again.
            begins = begins.max(not_before);
        }
        let place = &mut self.places[self.next_place];
        if *place > begins {
            self.buffer_wait_ps += place.since(begins).as_ps();
            begins = *place;
        }
        let mut delivered = begins.max(not_before);
        while self.next_random() < self.threshold {
            self.crc_errors += 1;
            self.request_arrives = delivered + self.until_request;
            let again = self.request_arrives + self.until_replay;
            self.retry_ps += again.since(delivered).as_ps();
            delivered = again;
        }
        self.replayed_flits += u64::from(delivered > begins);
        self.places[self.next_place] = delivered + self.until_acknowledged;
        self.next_place = (self.next_place + 1) % self.places.len();
        (begins, delivered)
    }

    /// Power is gone: nothing is kept.
    pub fn power_fail(&mut self) {
        self.places.fill(Time::ZERO);
        self.request_arrives = Time::ZERO;
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
