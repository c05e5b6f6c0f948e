//! What the streams of a traffic generator are to do.

use serde::{Deserialize, Serialize};

use fencepost_kernel::line::LINE_BYTES;

/// The largest request, in bytes.
pub const REQUEST_BYTES_MAX: u32 = 16_384;

/// The last-level cache as the memory of a stream.
pub const LAST_LEVEL: &str = "llc";

/// The most requests of a stream that can be under way at a time.
pub const OUTSTANDING_MAX: u32 = 65_536;

/// One stream of requests: a thread, a core's prefetcher, or a device that reads and writes the host's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamConfig {
    /// Which memory it goes to: `dram`, the host's own; `pm`, `expander` or `accelerator`, all devices of that kind
    /// that the host reaches; or one of them by its name, as `dram0`; or [`LAST_LEVEL`], the host's last-level cache,
    /// where its lines stay.
    pub memory: String,
    /// In which order.
    pub pattern: Pattern,
    /// How much of that memory it goes over, in bytes; each stream of a host has a part of its own, unless `shared_by`
    /// says otherwise.
    pub footprint_bytes: u64,
    /// Size of a request, in bytes: a multiple of 64 up to [`REQUEST_BYTES_MAX`]. A request is complete when its last
    /// line is.
    pub request_bytes: u32,
    /// Of so many requests plus `writes` ...
    pub reads: u32,
    /// ... so many are writes.
    pub writes: u32,
    /// Requests under way at a time.
    pub outstanding: u32,
    /// Lines under way at a time, of all its requests together (the line fill buffers of a core, for example); no limit
    /// if absent.
    #[serde(default)]
    pub lines_outstanding: Option<u32>,
    /// Time from the start of a request to the start of the next one at least, in ns.
    #[serde(default)]
    pub inject_delay_ns: f64,
    /// By how much each inject delay is longer at most, all alike, in ns: without it, requests that each wait for the
    /// one before fall into step with what happens at regular times, such as refreshes.
    #[serde(default)]
    pub inject_jitter_ns: f64,
    /// Whether a request can begin only when the one before it is complete, as when a pointer chain is followed:
    /// `outstanding` has to be 1, and `inject_delay_ns` counts from completion.
    #[serde(default)]
    pub dependent: bool,
    /// Whose lines they are. Streams that share them read and write keys, each of one request's size: only one puts a
    /// key at a time, and the others wait until its persist is complete.
    #[serde(default)]
    pub shared_by: SharedBy,
    /// Whether the host's caches keep the lines that it got or put, so that a get finds them there, whatever another
    /// host has put since; for streams that share their lines, and whose footprint the caches hold.
    #[serde(default)]
    pub caches: bool,
    /// Whether a write is preceded by a read of the same place, as when a program changes what it finds; the read is
    /// counted besides.
    #[serde(default)]
    pub modifies: bool,
    /// Its part relative to others', where a transport shares links and devices out.
    #[serde(default = "one")]
    pub weight: f64,
    /// The group among which a transport divides, by its number; none is what all share.
    #[serde(default)]
    pub group: Option<usize>,
    /// The part of the bytes that it moves which is counted: 0.25 for one that says a quarter, 4 for one that says four
    /// times as much.
    #[serde(default = "one")]
    pub counted_part: f64,
    /// Whether its host dies where it ends, so that nobody says any more that it is silent.
    #[serde(default)]
    pub dies: bool,
    /// When it begins, in ns from the start of the simulation.
    #[serde(default)]
    pub begin_ns: f64,
    /// From then on it begins no request, in ns from the start; it goes on for ever if absent.
    #[serde(default)]
    pub end_ns: Option<f64>,
    /// Requests after which the stream ends; it never does if absent.
    #[serde(default)]
    pub requests: Option<u64>,
}

/// In which order a stream goes over its footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Each request goes to any place of it, all alike.
    Random,
    /// Each request goes to the place after the one before, from a place on that the seed gives; after the last place
    /// comes the first.
    Sequential,
    /// Each request goes to any place, but some are much more popular: Zipf's law with the exponent 0.99, as the
    /// workloads of YCSB have it.
    Zipfian,
    /// Writes go to one place after the other, whichever stream of those that share their lines they come from; reads
    /// to those that were written last most of all, by the same law: YCSB's "latest".
    Latest,
}

/// Whose the lines of a stream are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedBy {
    /// Its own.
    #[default]
    Stream,
    /// Those of all streams of its host that say so.
    Host,
    /// Those of all such streams of all hosts: of the whole memory, not of the host's part.
    Hosts,
}

fn one() -> f64 {
    1.0
}

impl StreamConfig {
    /// Lines of a request.
    pub fn lines_per_request(&self) -> u32 {
        self.request_bytes / LINE_BYTES as u32
    }

    /// Whether these numbers make a stream.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let line = LINE_BYTES as u32;
        if self.request_bytes == 0 || !self.request_bytes.is_multiple_of(line) || self.request_bytes > REQUEST_BYTES_MAX
        {
            return Err(format!(
                "a request of {} bytes cannot be: a multiple of {line} up to {REQUEST_BYTES_MAX} can",
                self.request_bytes
            ));
        }
        if self.reads == 0 && self.writes == 0 {
            return Err("a stream needs reads or writes".to_owned());
        }
        if !(1..=OUTSTANDING_MAX).contains(&self.outstanding) {
            return Err(format!("{} requests outstanding cannot be: 1 to {OUTSTANDING_MAX} can", self.outstanding));
        }
        if self.lines_outstanding == Some(0) {
            return Err("a stream needs at least one line outstanding".to_owned());
        }
        if self.dependent && self.outstanding != 1 {
            return Err(format!("a dependent stream has 1 request outstanding, not {}", self.outstanding));
        }
        for (what, ns) in [("delay", self.inject_delay_ns), ("jitter", self.inject_jitter_ns)] {
            if !(0.0..=1e9).contains(&ns) {
                return Err(format!("an inject {what} of {ns} ns cannot be: 0 to 10^9 can"));
            }
        }
        if !(0.0..=1e12).contains(&self.begin_ns)
            || self.end_ns.is_some_and(|end| !(self.begin_ns..=1e12).contains(&end))
        {
            return Err("a stream begins between 0 and 10^12 ns, and ends after that".to_owned());
        }
        if !(1e-6..=1e6).contains(&self.weight) {
            return Err(format!("a weight of {} cannot be: 10^-6 to 10^6 can", self.weight));
        }
        if !(0.0..=1e6).contains(&self.counted_part) {
            return Err(format!("a counted part of {} cannot be: 0 to 10^6 can", self.counted_part));
        }
        if self.dies && self.end_ns.is_none() {
            return Err("a stream whose host dies needs the time when it ends".to_owned());
        }
        if self.caches && self.shared_by == SharedBy::Stream {
            return Err("a stream with lines of its own has no copies to lose track of: `caches` is for \
                        `shared_by` host or hosts"
                .to_owned());
        }
        if self.footprint_bytes < u64::from(self.request_bytes) {
            return Err(format!(
                "a footprint of {} bytes holds no request of {}",
                self.footprint_bytes, self.request_bytes
            ));
        }
        Ok(())
    }
}
