//! What a segment says at a moment, for people and programs.

use std::fmt::Write;
use std::time::Duration;

use fencepost_pacing::Grant;

use crate::segment::place::Phase;
use crate::segment::{Row, Segment, Source};
use crate::system;
use crate::trigger::Trigger;

/// The state of a segment.
pub struct State {
    /// The channels, in the order of the rules.
    pub channels: Vec<ChannelState>,
    /// The threads that are paced.
    pub threads: Vec<ThreadState>,
    /// What is granted of each device, by its name.
    pub devices: Vec<(String, f64, Option<Grant>)>,
    /// The processes that keep the segment.
    pub keepers: Vec<u32>,
    /// Threads that found no row, and programs that could not be paced.
    pub unpaced: (u64, u64),
    /// Tells its configuration from others.
    pub fingerprint: u64,
    /// Whether pacing has ended.
    pub is_stopped: bool,
    /// The time on the clock that never jumps.
    pub now: Duration,
}

/// A channel: all threads that one rule is for.
pub struct ChannelState {
    /// Its name.
    pub name: String,
    /// The weight of each of its threads.
    pub weight: f64,
    /// Sums over its threads, those that have ended too.
    pub sums: Row,
    /// How many threads it has, and how many have ended.
    pub threads: (u64, u64),
    /// For how long any of its threads ran.
    pub running: Duration,
}

/// A thread.
pub struct ThreadState {
    /// Its channel.
    pub channel: String,
    /// Its number.
    pub thread: u32,
    /// Its row.
    pub row: Row,
}

impl State {
    /// What the segment says now.
    pub fn read(segment: Segment<'_>) -> State {
        let (now, silence_max) = (system::now(), segment.timing().silence_max);
        let read = |words| {
            let holder = Row::place(words).holder();
            let row = matches!(holder.phase, Phase::Live | Phase::Closed).then(|| Row::read(words)).flatten()?;
            let is_live = holder.phase == Phase::Live && system::exists(holder.thread);
            let is_running = is_live && now <= Duration::from_nanos(row.until_ns) + silence_max;
            let row = if is_running { row } else { row.without_averages() };
            (row.devices != 0).then_some((holder.thread, is_live, row))
        };
        let rows: Vec<_> = segment.own_rows().filter_map(|index| read(segment.row(index))).collect();
        let channels: Vec<ChannelState> = (0..segment.rule_count())
            .map(|rule| {
                let (ended, count) = segment.totals(rule).sums();
                let own = rows.iter().filter(|(.., row)| row.rule as usize == rule);
                let (mut sums, mut threads, mut count) = (ended, 0, count);
                for (_, is_live, row) in own {
                    sums = sums.plus(row);
                    threads += u64::from(*is_live);
                    count += u64::from(!is_live);
                }
                let [name, ..] = segment.rule_texts(rule);
                let weight = segment.rule_weight(rule).get();
                let running = segment.totals(rule).running(now);
                ChannelState { name: name.to_string(), weight, sums, threads: (threads, count), running }
            })
            .collect();
        let live = rows.iter().filter(|(_, is_live, _)| *is_live);
        let threads = live.map(|(thread, _, row)| {
            let channel = channels.get(row.rule as usize).map_or(String::new(), |channel| channel.name.clone());
            ThreadState { channel, thread: *thread, row: *row }
        });
        let device = |at| {
            let device = segment.device(at);
            (device.name, device.capacity.bytes_per_second(), segment.grant(at))
        };
        State {
            threads: threads.collect(),
            devices: (0..segment.device_count()).map(device).collect(),
            keepers: keepers(segment),
            unpaced: segment.unpaced(),
            fingerprint: segment.fingerprint(),
            is_stopped: segment.is_stopped(),
            now,
            channels,
        }
    }

    /// As one object of JSON. Times are seconds, bandwidths bytes per second.
    pub fn json(&self) -> String {
        let mut text = String::from("{");
        let _ = write!(text, "\"now\": {}, \"is_stopped\": {}", self.now.as_secs_f64(), self.is_stopped);
        let _ = write!(text, ", \"fingerprint\": {}", self.fingerprint);
        let _ = write!(text, ", \"unpaced_threads\": {}, \"unpaced_programs\": {}", self.unpaced.0, self.unpaced.1);
        let keepers: Vec<String> = self.keepers.iter().map(u32::to_string).collect();
        let _ = write!(text, ", \"keepers\": [{}]", keepers.join(", "));
        let devices: Vec<String> = self.devices.iter().map(device_json).collect();
        let _ = write!(text, ", \"devices\": [{}]", devices.join(", "));
        let channels: Vec<String> = self.channels.iter().map(channel_json).collect();
        let _ = write!(text, ", \"channels\": [{}]", channels.join(", "));
        let threads: Vec<String> = self.threads.iter().map(thread_json).collect();
        let _ = write!(text, ", \"threads\": [{}]", threads.join(", "));
        text.push('}');
        text
    }
}

fn keepers(segment: Segment<'_>) -> Vec<u32> {
    let holders = segment.own_candidates().map(|at| segment.candidate(at).place().holder());
    let alive = holders.filter(|holder| holder.phase == Phase::Live && system::exists(holder.thread));
    alive.map(|holder| holder.thread).collect()
}

fn device_json((name, capacity, grant): &(String, f64, Option<Grant>)) -> String {
    let share = grant.map_or("null".to_string(), |grant| number(grant.share.bytes_per_second()));
    let epoch = grant.map_or(0, |grant| grant.epoch);
    let number_made = grant.map_or(0, |grant| grant.number);
    format!(
        "{{\"name\": {}, \"capacity\": {}, \"share\": {share}, \"epoch\": {epoch}, \"number\": {number_made}}}",
        quoted(name),
        number(*capacity)
    )
}

fn channel_json(channel: &ChannelState) -> String {
    let ChannelState { name, weight, sums, threads, running } = channel;
    format!(
        "{{\"name\": {}, \"weight\": {}, \"threads\": {}, \"ended\": {}, \"seconds\": {}, {}}}",
        quoted(name),
        number(*weight),
        threads.0,
        threads.1,
        running.as_secs_f64(),
        sums_json(sums)
    )
}

fn thread_json(thread: &ThreadState) -> String {
    let ThreadState { channel, thread: number_of, row } = thread;
    format!(
        "{{\"channel\": {}, \"process\": {}, \"thread\": {number_of}, \"name\": {}, \"trigger\": {}, \
         \"heartbeat\": {}, {}}}",
        quoted(channel),
        row.process,
        quoted(&name_of(row.name)),
        quoted(Trigger::of(row.trigger).name()),
        row.heartbeat,
        sums_json(row)
    )
}

fn sums_json(row: &Row) -> String {
    let seconds = |nanoseconds: u64| number(Duration::from_nanos(nanoseconds).as_secs_f64());
    let source = Source::of(row.source).map_or("", Source::name);
    format!(
        "\"source\": {}, \"bytes\": {}, \"demanded_bytes\": {}, \"granted_bytes\": {}, \"rate\": {}, \
         \"demand\": {}, \"share\": {}, \"running\": {}, \"paused\": {}, \"handler\": {}, \"processor\": {}",
        quoted(source),
        row.bytes,
        row.demanded_bytes,
        row.granted_bytes,
        number(row.rate),
        number(row.demand),
        number(row.share),
        seconds(row.running_ns),
        seconds(row.paused_ns),
        seconds(row.handler_ns),
        seconds(row.processor_ns)
    )
}

/// JSON has no infinity.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "null".to_string() }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn name_of(words: [u64; 2]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
