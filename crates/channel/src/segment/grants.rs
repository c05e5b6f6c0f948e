//! What the owners of devices publish, and who is the owner.
//!
//! Processes that keep the segment are candidates, each with lines of its own. One that sees no newer grant for a
//! while becomes the owner of all devices with an epoch that is above all that it has seen and that no other candidate
//! can have. Readers take the newest grant of all candidates. So an old owner that wakes up can do no harm: what it
//! writes is older than what its successor wrote, and it finds that out before its next interval. Two owners at once do
//! no harm either: readers follow one of them.

use fencepost_pacing::{Bandwidth, Grant};

use super::DEVICES_MAX;
use super::place::Place;
use super::sequence::Sequenced;
use super::words::Words;

const LINE_WORDS: usize = 8;
const GRANT_WORDS: usize = 5;

/// The lines of a candidate: its place, and a grant for each device.
#[derive(Clone, Copy)]
pub struct Candidate<'a>(Words<'a>);

/// Who made a grant.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    /// The grant.
    pub grant: Grant,
    /// The candidate that made it.
    pub by: usize,
}

impl<'a> Candidate<'a> {
    /// How many words it has.
    pub const WORDS: usize = LINE_WORDS * (1 + DEVICES_MAX);

    /// The candidate whose words these are.
    pub fn new(words: Words<'a>) -> Candidate<'a> {
        Candidate(words)
    }

    /// Which process it is.
    pub fn place(self) -> Place<'a> {
        Place::new(self.0)
    }

    fn line(self, device: usize) -> Sequenced<'a> {
        Sequenced::new(self.0.part(LINE_WORDS * (1 + device), LINE_WORDS))
    }

    /// Publishes what it grants of `device`. Only the candidate itself may do so.
    pub fn publish(self, device: usize, grant: &Grant) {
        let Grant { epoch, number, share, capacity, weight } = grant;
        let bits = |bandwidth: &Bandwidth| bandwidth.bytes_per_second().to_bits();
        self.line(device).write::<GRANT_WORDS>(&[*epoch, *number, bits(share), bits(capacity), weight.to_bits()]);
    }

    /// What it grants of `device`; nothing if it never did, or was killed while it wrote.
    pub fn grant(self, device: usize) -> Option<Grant> {
        let [epoch, number, share, capacity, weight] = self.line(device).read::<GRANT_WORDS>()?;
        let bandwidth = |bits| Bandwidth::new(f64::from_bits(bits));
        let (share, capacity) = (bandwidth(share), bandwidth(capacity));
        (epoch > 0).then(|| Grant { epoch, number, share, capacity, weight: f64::from_bits(weight) })
    }

    /// The newest grant of `device` that any of them made.
    pub fn newest(all: impl Iterator<Item = Candidate<'a>>, device: usize) -> Option<Granted> {
        let grants = all.enumerate().filter_map(|(by, one)| Some(Granted { grant: one.grant(device)?, by }));
        grants.reduce(|best, next| if next.grant.is_newer_than(&best.grant) { next } else { best })
    }

    /// The first epoch above `seen` that is this candidate's, `by` of `count`: no other one has the same.
    pub fn next_epoch(seen: u64, by: usize, count: usize) -> u64 {
        (seen / count as u64 + 1) * count as u64 + by as u64
    }
}
