//! What lies where in a segment. Here is the one place that knows.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fencepost_pacing::{Bandwidth, Grant, Law, Timing, Weight};

use super::grants::Candidate;
use super::place::{Holder, Place};
use super::row::Row;
use super::settings::{HOSTS_MAX, PROCESSOR_WORDS, RULES_MAX, Settings, Source, TEXT_BYTES};
use super::totals::Totals;
use super::words::{Word, Words};
use super::{DEVICES_MAX, Device, Rule};

const LINE_WORDS: usize = 8;
const TEXT_WORDS: usize = TEXT_BYTES / 8;

/// "FPCHAN" and the version of this layout.
const MAGIC: u64 = 0x0002_4e41_4843_5046;

const HEADER_WORDS: usize = 64;
const DEVICE_WORDS: usize = 16;
const RULE_WORDS: usize = 64;

const DEVICES_AT: usize = HEADER_WORDS;
const RULES_AT: usize = DEVICES_AT + DEVICES_MAX * DEVICE_WORDS;
const HOSTS_AT: usize = RULES_AT + RULES_MAX * RULE_WORDS;

/// Rows of a host.
pub const ROWS: usize = 1024;
/// Candidates of a host.
pub const CANDIDATES: usize = 4;

const TOTALS_WORDS: usize = RULES_MAX * Totals::WORDS;
const CANDIDATES_WORDS: usize = CANDIDATES * Candidate::WORDS;
const HOST_WORDS: usize = TOTALS_WORDS + CANDIDATES_WORDS + ROWS * Row::WORDS;

/// Words of the header.
mod at {
    pub const MAGIC: usize = 0;
    pub const HOSTS: usize = 1;
    pub const FINGERPRINT: usize = 2;
    pub const WINDOW_NS: usize = 3;
    pub const INTERVAL_NS: usize = 4;
    pub const GRANT_LIFETIME_NS: usize = 5;
    pub const SILENCE_MAX_NS: usize = 6;
    pub const PAUSE_MAX_NS: usize = 7;
    pub const QUANTUM_NS: usize = 8;
    pub const CHARGE: usize = 9;
    pub const SOURCE: usize = 10;
    pub const LAW: usize = 11;
    pub const DEVICES: usize = 12;
    pub const RULES: usize = 13;
    // Words that change have lines of their own.
    pub const IS_STOPPED: usize = 16;
    pub const UNPACED_THREADS: usize = 24;
    pub const UNPACED_PROGRAMS: usize = 25;
}

/// Why words are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// They begin otherwise, or are of another version.
    NotASegment,
    /// There are fewer or more than it has.
    Size,
    /// It has no such host.
    Host,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            SegmentError::NotASegment => "no segment of this version of Fencepost",
            SegmentError::Size => "a segment that is cut short, or has been added to",
            SegmentError::Host => "the segment has no such host",
        })
    }
}

impl std::error::Error for SegmentError {}

/// A segment as one host sees it.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    words: Words<'a>,
    host: usize,
    hosts: usize,
}

impl<'a> Segment<'a> {
    /// How many words a segment of so many hosts has.
    pub fn words(hosts: usize) -> usize {
        HOSTS_AT + hosts * HOST_WORDS
    }

    /// Makes a segment of words that are all zero.
    pub fn create(words: Words<'a>, settings: &Settings) {
        let set = |at: usize, value: u64| words.word(at).store(value, Ordering::Relaxed);
        let time = |at: usize, time: Duration| set(at, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let text = |at: usize, text: &str| {
            for (word, bytes) in text.as_bytes().chunks(8).enumerate() {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                set(at + word, u64::from_le_bytes(padded));
            }
        };
        set(at::HOSTS, settings.hosts as u64);
        set(at::FINGERPRINT, settings.fingerprint);
        time(at::WINDOW_NS, settings.window);
        time(at::INTERVAL_NS, settings.interval);
        time(at::GRANT_LIFETIME_NS, settings.grant_lifetime);
        time(at::SILENCE_MAX_NS, settings.silence_max);
        time(at::PAUSE_MAX_NS, settings.pause_max);
        time(at::QUANTUM_NS, settings.quantum);
        set(at::CHARGE, settings.charge.bytes_per_second().to_bits());
        set(at::SOURCE, settings.source as u64);
        set(at::LAW, u64::from(settings.law == Law::WaterFilling));
        set(at::DEVICES, settings.devices.len() as u64);
        set(at::RULES, settings.rules.len() as u64);
        for (index, device) in settings.devices.iter().enumerate() {
            let first = DEVICES_AT + index * DEVICE_WORDS;
            text(first, &device.name);
            set(first + TEXT_WORDS, device.capacity.bytes_per_second().to_bits());
        }
        for (index, rule) in settings.rules.iter().enumerate() {
            let first = RULES_AT + index * RULE_WORDS;
            text(first, &rule.name);
            text(first + TEXT_WORDS, &rule.program);
            text(first + 2 * TEXT_WORDS, &rule.thread);
            let numbers = first + 3 * TEXT_WORDS;
            set(numbers, rule.weight.to_bits());
            set(numbers + 1, u64::from(rule.devices));
            set(numbers + 2, rule.node.map_or(0, |node| u64::from(node) + 1));
            for (word, processors) in rule.processors.iter().enumerate() {
                set(numbers + 3 + word, *processors);
            }
        }
        // Last: whoever finds it finds the rest.
        words.publish();
        words.store(at::MAGIC, MAGIC);
    }

    /// The segment that these words are, as the host of this number sees it.
    pub fn open(words: Words<'a>, host: usize) -> Result<Segment<'a>, SegmentError> {
        if words.len() < HEADER_WORDS || words.load(at::MAGIC) != MAGIC {
            return Err(SegmentError::NotASegment);
        }
        let hosts = words.load(at::HOSTS) as usize;
        if !(1..=HOSTS_MAX).contains(&hosts) || words.len() != Segment::words(hosts) {
            return Err(SegmentError::Size);
        }
        if host >= hosts {
            return Err(SegmentError::Host);
        }
        Ok(Segment { words, host, hosts })
    }

    fn number(self, at: usize) -> u64 {
        self.words.word(at).load(Ordering::Relaxed)
    }

    fn time(self, at: usize) -> Duration {
        Duration::from_nanos(self.number(at))
    }

    /// Tells one configuration from another.
    pub fn fingerprint(self) -> u64 {
        self.number(at::FINGERPRINT)
    }

    /// The time constants of channels.
    pub fn timing(self) -> Timing {
        Timing {
            window: self.time(at::WINDOW_NS),
            interval: self.time(at::INTERVAL_NS),
            grant_lifetime: self.time(at::GRANT_LIFETIME_NS),
            silence_max: self.time(at::SILENCE_MAX_NS),
            pause_max: self.pause_max(),
            // What a pause cannot repay is not owed for longer: the thread may be stopped very late once.
            debt_max: self.pause_max(),
        }
    }

    /// The longest pause at a time.
    pub fn pause_max(self) -> Duration {
        self.time(at::PAUSE_MAX_NS)
    }

    /// Processor time between two calls of a thread's handler.
    pub fn quantum(self) -> Duration {
        self.time(at::QUANTUM_NS)
    }

    /// Bytes that are charged for a second of processor time.
    pub fn charge(self) -> Bandwidth {
        Bandwidth::new(f64::from_bits(self.number(at::CHARGE)))
    }

    /// Where bytes come from if the program does not say how many it used.
    pub fn source(self) -> Source {
        Source::of(self.number(at::SOURCE) as u32).unwrap_or(Source::Reported)
    }

    /// How shares are computed.
    pub fn law(self) -> Law {
        if self.number(at::LAW) == 1 { Law::WaterFilling } else { Law::Iterative }
    }

    /// Whether pacing has ended: programs run on unpaced, and what keeps the segment ends.
    pub fn is_stopped(self) -> bool {
        self.words.part(at::IS_STOPPED, LINE_WORDS).load(0) != 0
    }

    /// Ends pacing.
    pub fn stop(self) {
        self.words.part(at::IS_STOPPED, LINE_WORDS).store(0, 1);
    }

    /// A thread found no row, and runs unpaced.
    pub fn count_unpaced_thread(self) {
        self.words.word(at::UNPACED_THREADS).fetch_add(1, Ordering::Relaxed);
    }

    /// A paced program has become one that cannot be paced.
    pub fn count_unpaced_program(self) {
        self.words.word(at::UNPACED_PROGRAMS).fetch_add(1, Ordering::Relaxed);
    }

    /// Threads that found no row, and programs that could not be paced.
    pub fn unpaced(self) -> (u64, u64) {
        (self.number(at::UNPACED_THREADS), self.number(at::UNPACED_PROGRAMS))
    }

    /// How many devices there are.
    pub fn device_count(self) -> usize {
        (self.number(at::DEVICES) as usize).min(DEVICES_MAX)
    }

    /// How many rules there are.
    pub fn rule_count(self) -> usize {
        (self.number(at::RULES) as usize).min(RULES_MAX)
    }

    /// The device of this number.
    pub fn device(self, index: usize) -> Device {
        let first = DEVICES_AT + index * DEVICE_WORDS;
        Device { name: self.text(first).to_string(), capacity: self.capacity(index) }
    }

    /// What the device of this number can carry.
    pub fn capacity(self, index: usize) -> Bandwidth {
        Bandwidth::new(f64::from_bits(self.number(DEVICES_AT + index * DEVICE_WORDS + TEXT_WORDS)))
    }

    /// The rule of this number.
    pub fn rule(self, index: usize) -> Rule {
        let first = RULES_AT + index * RULE_WORDS;
        Rule {
            name: self.text(first).to_string(),
            program: self.text(first + TEXT_WORDS).to_string(),
            thread: self.text(first + 2 * TEXT_WORDS).to_string(),
            weight: self.rule_weight(index).get(),
            devices: self.rule_devices(index),
            node: self.rule_node(index),
            processors: self.rule_processors(index),
        }
    }

    /// The weight of a rule's threads.
    pub fn rule_weight(self, index: usize) -> Weight {
        Weight::new(f64::from_bits(self.rule_number(index, 0))).unwrap_or(Weight::ONE)
    }

    /// The devices on a rule's path, as bits.
    pub fn rule_devices(self, index: usize) -> u32 {
        self.rule_number(index, 1) as u32
    }

    /// The node that a rule binds memory to.
    pub fn rule_node(self, index: usize) -> Option<u32> {
        (self.rule_number(index, 2) as u32).checked_sub(1)
    }

    /// The processors that a rule binds threads to.
    pub fn rule_processors(self, index: usize) -> [u64; PROCESSOR_WORDS] {
        std::array::from_fn(|word| self.rule_number(index, 3 + word))
    }

    fn rule_number(self, index: usize, at: usize) -> u64 {
        self.number(RULES_AT + index * RULE_WORDS + 3 * TEXT_WORDS + at)
    }

    /// The name of a rule, and its patterns of programs and threads, without allocating.
    pub fn rule_texts(self, index: usize) -> [Text; 3] {
        std::array::from_fn(|text| self.text(RULES_AT + index * RULE_WORDS + text * TEXT_WORDS))
    }

    fn text(self, first: usize) -> Text {
        let mut bytes = [0; TEXT_BYTES];
        for (word, chunk) in bytes.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.number(first + word).to_le_bytes());
        }
        Text(bytes)
    }

    fn host_at(self, host: usize) -> usize {
        HOSTS_AT + host * HOST_WORDS
    }

    /// What threads of a rule used that have ended, on this host, and when any of its threads ran.
    pub fn totals(self, rule: usize) -> Totals<'a> {
        Totals::new(self.words.part(self.host_at(self.host) + rule * Totals::WORDS, Totals::WORDS))
    }

    /// All candidates, those of the first host first.
    pub fn candidates(self) -> impl Iterator<Item = Candidate<'a>> {
        (0..self.hosts * CANDIDATES).map(move |index| self.candidate(index))
    }

    /// The candidate of this number.
    pub fn candidate(self, index: usize) -> Candidate<'a> {
        let first = self.host_at(index / CANDIDATES) + TOTALS_WORDS + index % CANDIDATES * Candidate::WORDS;
        Candidate::new(self.words.part(first, Candidate::WORDS))
    }

    /// The numbers of this host's candidates.
    pub fn own_candidates(self) -> std::ops::Range<usize> {
        self.host * CANDIDATES..(self.host + 1) * CANDIDATES
    }

    /// How many candidates there are.
    pub fn candidate_count(self) -> usize {
        self.hosts * CANDIDATES
    }

    /// All rows, those of the first host first.
    pub fn rows(self) -> impl Iterator<Item = Words<'a>> {
        (0..self.hosts * ROWS).map(move |index| self.row(index))
    }

    /// The row of this number.
    pub fn row(self, index: usize) -> Words<'a> {
        let rows = self.host_at(index / ROWS) + TOTALS_WORDS + CANDIDATES_WORDS;
        self.words.part(rows + index % ROWS * Row::WORDS, Row::WORDS)
    }

    /// The numbers of this host's rows.
    pub fn own_rows(self) -> std::ops::Range<usize> {
        self.host * ROWS..(self.host + 1) * ROWS
    }

    /// The newest grant of `device`.
    pub fn grant(self, device: usize) -> Option<Grant> {
        Candidate::newest(self.candidates(), device).map(|granted| granted.grant)
    }

    /// The devices of a path that is given as bits, by their numbers.
    pub fn path(self, devices: u32) -> impl Iterator<Item = usize> {
        (0..self.device_count()).filter(move |at| devices >> at & 1 == 1)
    }

    /// The newest grants of the devices on a path, in its order, and how many they are.
    pub fn path_grants(self, devices: u32) -> ([Option<Grant>; DEVICES_MAX], usize) {
        let mut grants = [None; DEVICES_MAX];
        let mut count = 0;
        for device in self.path(devices) {
            grants[count] = self.grant(device);
            count += 1;
        }
        (grants, count)
    }

    /// What the path of these devices can carry at most.
    pub fn path_capacity(self, devices: u32) -> Bandwidth {
        self.path(devices).map(|at| self.capacity(at)).reduce(Bandwidth::min).unwrap_or(Bandwidth::ZERO)
    }

    /// Takes a row of this host for `thread`, the first that is free from `hint` on.
    pub fn take_row(self, thread: u32, hint: usize) -> Option<(usize, Holder)> {
        let rows = self.own_rows();
        (0..ROWS).find_map(|step| {
            let index = rows.start + (hint + step) % ROWS;
            Row::place(self.row(index)).take(thread).map(|holder| (index, holder))
        })
    }

    /// Keeps the totals of a row whose thread will not write it again, and frees it. Does nothing if another does.
    pub fn reap_row(self, index: usize, holder: Holder, thread: u32) {
        let place: Place<'a> = Row::place(self.row(index));
        let Some(mine) = place.reap(holder, thread) else { return };
        if let Some(row) = Row::read(self.row(index)).filter(|row| (row.rule as usize) < self.rule_count()) {
            self.totals(row.rule as usize).add(&row);
        }
        // The next holder's row is empty until it writes it.
        Row::default().publish(self.row(index));
        place.free(mine);
    }

    /// The words, for whoever has to know where they are.
    pub fn all(self) -> &'a [Word] {
        self.words.all()
    }
}

/// A text of a segment, without allocating.
#[derive(Clone, Copy)]
pub struct Text([u8; TEXT_BYTES]);

impl Text {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(TEXT_BYTES);
        &self.0[..end]
    }
}

impl fmt::Display for Text {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}
