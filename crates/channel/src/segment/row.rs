//! The row of a paced thread.

use fencepost_pacing::{Bandwidth, Claim, Weight};

use super::DEVICES_MAX;
use super::place::Place;
use super::sequence::Sequenced;
use super::words::Words;

const CLAIMS_AT: usize = 19;
const VALUES: usize = CLAIMS_AT + 2 * DEVICES_MAX;
const LINE_WORDS: usize = 8;

/// What a thread says of itself. Times are nanoseconds, bandwidths bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// The thread's process.
    pub process: u32,
    /// When the thread was started, in the kernel's ticks: its number may be another's later.
    pub started_ticks: u64,
    /// Which rule of the configuration it falls under.
    pub rule: u32,
    /// The devices on its path, as bits.
    pub devices: u32,
    /// Changes in every window.
    pub heartbeat: u64,
    /// Its part relative to others'.
    pub weight: f64,
    /// What it got, averaged.
    pub rate: f64,
    /// What it would take unpaced, averaged.
    pub demand: f64,
    /// What it has: its grant, as far as it demands it; zero without a grant.
    pub share: f64,
    /// All bytes that it used.
    pub bytes: u64,
    /// All bytes that it would have used unpaced.
    pub demanded_bytes: u64,
    /// The sum of its shares.
    pub granted_bytes: u64,
    /// For how long it ran, pauses included; not while it was silent.
    pub running_ns: u64,
    /// Of that, paused.
    pub paused_ns: u64,
    /// Until when it is known to run: the end of its last window, and of the pause after it.
    pub until_ns: u64,
    /// Processor time of the handlers.
    pub handler_ns: u64,
    /// Processor time of the thread, handlers included.
    pub processor_ns: u64,
    /// Where the bytes come from: `Source` as a number.
    pub source: u32,
    /// What calls the handler: `Trigger` as a number.
    pub trigger: u32,
    /// The thread's name, as the kernel has it.
    pub name: [u64; 2],
    /// What it claims of each device on its path, by the device's number: what it got, and what it demands.
    pub claims: [(f64, f64); DEVICES_MAX],
}

impl Row {
    /// How many words a row has, with its place.
    pub const WORDS: usize = 6 * LINE_WORDS;

    /// Whose row it is.
    pub fn place(words: Words<'_>) -> Place<'_> {
        Place::new(words)
    }

    /// Only the thread itself may write its row.
    pub fn publish(&self, words: Words<'_>) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut values = [0; VALUES];
        values[..CLAIMS_AT].copy_from_slice(&[
            pair(self.process, self.rule),
            self.started_ticks,
            pair(self.devices, self.source),
            self.heartbeat,
            self.weight.to_bits(),
            self.rate.to_bits(),
            self.demand.to_bits(),
            self.share.to_bits(),
            self.bytes,
            self.demanded_bytes,
            self.granted_bytes,
            self.running_ns,
            self.paused_ns,
            self.until_ns,
            self.handler_ns,
            self.processor_ns,
            u64::from(self.trigger),
            self.name[0],
            self.name[1],
        ]);
        for (device, (rate, demand)) in self.claims.into_iter().enumerate() {
            values[CLAIMS_AT + 2 * device] = rate.to_bits();
            values[CLAIMS_AT + 2 * device + 1] = demand.to_bits();
        }
        record(words).write(&values);
    }

    /// The row, if it can be read.
    pub fn read(words: Words<'_>) -> Option<Row> {
        let values: [u64; VALUES] = record(words).read()?;
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let number = |at: usize| f64::from_bits(values[at]);
        Some(Row {
            process: low(values[0]),
            rule: high(values[0]),
            started_ticks: values[1],
            devices: low(values[2]),
            source: high(values[2]),
            heartbeat: values[3],
            weight: number(4),
            rate: number(5),
            demand: number(6),
            share: number(7),
            bytes: values[8],
            demanded_bytes: values[9],
            granted_bytes: values[10],
            running_ns: values[11],
            paused_ns: values[12],
            until_ns: values[13],
            handler_ns: values[14],
            processor_ns: values[15],
            trigger: low(values[16]),
            name: [values[17], values[18]],
            claims: std::array::from_fn(|device| (number(CLAIMS_AT + 2 * device), number(CLAIMS_AT + 2 * device + 1))),
        })
    }

    /// This row and another one of the same channel as if they were one.
    pub fn plus(&self, other: &Row) -> Row {
        Row {
            rate: self.rate + other.rate,
            demand: self.demand + other.demand,
            share: self.share + other.share,
            bytes: self.bytes.saturating_add(other.bytes),
            demanded_bytes: self.demanded_bytes.saturating_add(other.demanded_bytes),
            granted_bytes: self.granted_bytes.saturating_add(other.granted_bytes),
            running_ns: self.running_ns.saturating_add(other.running_ns),
            paused_ns: self.paused_ns.saturating_add(other.paused_ns),
            handler_ns: self.handler_ns.saturating_add(other.handler_ns),
            processor_ns: self.processor_ns.saturating_add(other.processor_ns),
            source: self.source.max(other.source),
            ..*other
        }
    }

    /// The row of a thread that has ended or is silent: it gets nothing, and has left its share to others.
    pub fn without_averages(&self) -> Row {
        Row { rate: 0.0, demand: 0.0, share: 0.0, ..*self }
    }

    /// The row of a thread that goes on in another channel: what it did so far stays with this one.
    pub fn without_sums(&self) -> Row {
        Row {
            bytes: 0,
            demanded_bytes: 0,
            granted_bytes: 0,
            running_ns: 0,
            paused_ns: 0,
            handler_ns: 0,
            processor_ns: 0,
            source: 0,
            ..*self
        }
    }

    /// What it claims of a device. Its weight is the configuration's, not what another process says.
    pub fn claim(&self, device: usize, weight: Weight) -> Claim {
        let (rate, demand) = self.claims[device];
        Claim { weight, rate: Bandwidth::new(rate), demand: Bandwidth::new(demand) }
    }
}

fn record(words: Words<'_>) -> Sequenced<'_> {
    Sequenced::new(words.part(LINE_WORDS, Row::WORDS - LINE_WORDS))
}
