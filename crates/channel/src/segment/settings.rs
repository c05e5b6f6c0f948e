//! What a segment is made with. The launcher has read it from `channels.toml` and checked it; the keeper that makes
//! the segment gets it as lines of fields with a tab between them, and checks what would break the segment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fencepost_pacing::{Bandwidth, Law, Weight};

use super::DEVICES_MAX;

/// Bytes of a name or pattern, at most.
pub const TEXT_BYTES: usize = 64;
/// Words of the set of processors that a rule binds threads to.
pub const PROCESSOR_WORDS: usize = 16;
/// Rules of a segment, at most.
pub const RULES_MAX: usize = 64;
/// Hosts of a segment, at most.
pub const HOSTS_MAX: usize = 16;

/// Where the number of bytes that a thread used comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The program says so: exact if it is honest.
    Reported = 1,
    /// A fixed rate for each second of processor time: for an emulated pool, where nothing can be counted.
    Charged = 2,
    /// A hardware counter.
    Counter = 3,
    /// Memory bandwidth monitoring of resctrl.
    Mbm = 4,
}

impl Source {
    const ALL: [(&'static str, Source); 4] = [
        ("reported", Source::Reported),
        ("charged", Source::Charged),
        ("counter", Source::Counter),
        ("mbm", Source::Mbm),
    ];

    /// By its number.
    pub fn of(number: u32) -> Option<Source> {
        Source::ALL.iter().map(|(_, source)| *source).find(|source| *source as u32 == number)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Source::ALL.iter().find(|(_, source)| *source == self).map_or("", |(name, _)| name)
    }
}

/// A device of the pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What it can carry.
    pub capacity: Bandwidth,
}

/// Which threads get which channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The channel's name.
    pub name: String,
    /// A pattern of the program's file name; empty: no program's threads get it but by its name.
    pub program: String,
    /// A pattern of the thread's name.
    pub thread: String,
    /// The part of each of its threads, relative to others'.
    pub weight: f64,
    /// The devices on its path, as bits.
    pub devices: u32,
    /// The node that its memory is bound to.
    pub node: Option<u32>,
    /// The processors that its threads are bound to, as bits; none for all.
    pub processors: [u64; PROCESSOR_WORDS],
}

/// What a segment is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The scheduling window, `T_W`.
    pub window: Duration,
    /// The owner's interval, `K`.
    pub interval: Duration,
    /// After so long without a new grant the owner counts as silent.
    pub grant_lifetime: Duration,
    /// After so long without a window a channel's share goes to others.
    pub silence_max: Duration,
    /// The longest pause at a time.
    pub pause_max: Duration,
    /// Processor time between two calls of a thread's handler.
    pub quantum: Duration,
    /// Hosts that share the segment.
    pub hosts: usize,
    /// Where bytes come from if the program does not say how many it used.
    pub source: Source,
    /// Bytes that are charged for a second of processor time, where they are.
    pub charge: Bandwidth,
    /// How shares are computed.
    pub law: Law,
    /// Tells one configuration from another.
    pub fingerprint: u64,
    /// The devices.
    pub devices: Vec<Device>,
    /// The rules; the first that matches counts.
    pub rules: Vec<Rule>,
}

/// Why settings are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The line, from 1; 0 for all of them together.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(to, "settings: {}", self.what)
        } else {
            write!(to, "settings, line {}: {}", self.line, self.what)
        }
    }
}

impl std::error::Error for SettingsError {}

impl Default for Settings {
    /// Windows of 10 ms: within one, a thread may use later what it could not use at first, and a busy machine may wake
    /// it some milliseconds late. A thread is paused within its window, too, so bursts are shorter than that. Handlers
    /// that are called each 200 µs of processor time take about 1 % of it.
    fn default() -> Settings {
        Settings {
            window: Duration::from_millis(10),
            interval: Duration::from_millis(20),
            grant_lifetime: Duration::from_millis(200),
            silence_max: Duration::from_millis(300),
            pause_max: Duration::from_millis(100),
            quantum: Duration::from_micros(200),
            hosts: 1,
            source: Source::Reported,
            charge: Bandwidth::ZERO,
            law: Law::WaterFilling,
            fingerprint: 0,
            devices: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl FromStr for Settings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        for (at, line) in text.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            settings.line(&fields).map_err(|what| SettingsError { line: at + 1, what })?;
        }
        settings.check().map_err(|what| SettingsError { line: 0, what })?;
        Ok(settings)
    }
}

impl Settings {
    fn line(&mut self, fields: &[&str]) -> Result<(), String> {
        match fields {
            ["window_ns", value] => self.window = time(value)?,
            ["interval_ns", value] => self.interval = time(value)?,
            ["grant_lifetime_ns", value] => self.grant_lifetime = time(value)?,
            ["silence_max_ns", value] => self.silence_max = time(value)?,
            ["pause_max_ns", value] => self.pause_max = time(value)?,
            ["quantum_ns", value] => self.quantum = time(value)?,
            ["hosts", value] => self.hosts = number(value)?,
            ["charge", value] => self.charge = bandwidth(value)?,
            ["fingerprint", value] => self.fingerprint = number(value)?,
            ["source", value] => {
                let found = Source::ALL.iter().find(|(name, _)| name == value);
                self.source = found.ok_or_else(|| format!("{value}: no source of bandwidth"))?.1;
            }
            ["law", "iterative"] => self.law = Law::Iterative,
            ["law", "waterfill"] => self.law = Law::WaterFilling,
            ["device", name, capacity] => {
                self.devices.push(Device { name: text(name)?, capacity: bandwidth(capacity)? });
            }
            ["rule", name, program, thread, weight, devices, node, processors] => self.rules.push(Rule {
                name: text(name)?,
                program: pattern(program)?,
                thread: pattern(thread)?,
                weight: number(weight)?,
                devices: number(devices)?,
                node: if *node == "-" { None } else { Some(number(node)?) },
                processors: set(processors)?,
            }),
            _ => return Err(format!("{}: no such setting", fields.join(" "))),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let within = |what: &str, count: usize, most: usize| {
            if (1..=most).contains(&count) { Ok(()) } else { Err(format!("{count} {what}; 1 to {most} can be")) }
        };
        within("devices", self.devices.len(), DEVICES_MAX)?;
        within("rules", self.rules.len(), RULES_MAX)?;
        within("hosts", self.hosts, HOSTS_MAX)?;
        if let Some(device) = self.devices.iter().find(|device| device.capacity.is_zero()) {
            return Err(format!("{}: a device carries more than nothing", device.name));
        }
        if let Some(rule) = self.rules.iter().find(|rule| Weight::new(rule.weight).is_err()) {
            return Err(format!("{}: a weight is from {} to {}", rule.name, Weight::LEAST, Weight::MOST));
        }
        let all = (1u32 << self.devices.len()) - 1;
        if let Some(rule) = self.rules.iter().find(|rule| rule.devices == 0 || rule.devices & !all != 0) {
            return Err(format!("{}: its path has devices that are not there, or none", rule.name));
        }
        Ok(())
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text}: no such number"))
}

fn time(text: &str) -> Result<Duration, String> {
    let nanoseconds = number(text)?;
    if nanoseconds == 0 { Err("a time is above zero".to_string()) } else { Ok(Duration::from_nanos(nanoseconds)) }
}

fn bandwidth(value: &str) -> Result<Bandwidth, String> {
    let bytes_per_second: f64 = number(value)?;
    let is_one = bytes_per_second.is_finite() && bytes_per_second >= 0.0;
    if is_one { Ok(Bandwidth::new(bytes_per_second)) } else { Err(format!("{value}: no bandwidth")) }
}

/// An empty one matches no program: threads get such a channel by its name only.
fn pattern(value: &str) -> Result<String, String> {
    if value.is_empty() { Ok(String::new()) } else { text(value) }
}

fn text(value: &str) -> Result<String, String> {
    let fits = (1..=TEXT_BYTES).contains(&value.len());
    if fits { Ok(value.to_string()) } else { Err(format!("{value}: 1 to {TEXT_BYTES} bytes are needed")) }
}

/// Numbers with commas between them; `-` for none.
fn set(value: &str) -> Result<[u64; PROCESSOR_WORDS], String> {
    let mut words = [0; PROCESSOR_WORDS];
    if value == "-" {
        return Ok(words);
    }
    for one in value.split(',') {
        let processor: usize = number(one)?;
        let word = words.get_mut(processor / 64).ok_or_else(|| format!("{processor}: no such processor"))?;
        *word |= 1 << (processor % 64);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "window_ns\t2000000\ncharge\t1e9\nsource\tcharged\ndevice\tpool\t4e9\n\
        rule\tgold\tredis*\t*\t4\t1\t-\t0,65\n";

    #[test]
    fn lines_become_settings() {
        let settings: Settings = LINES.parse().unwrap();
        assert_eq!(settings.window, Duration::from_millis(2));
        assert_eq!(settings.source, Source::Charged);
        assert_eq!(settings.devices, [Device { name: "pool".to_string(), capacity: Bandwidth::new(4e9) }]);
        assert_eq!(settings.rules[0].processors[..3], [1, 2, 0]);
        assert_eq!(settings.rules[0].node, None);
    }

    #[test]
    fn what_would_break_a_segment_is_refused_with_its_line() {
        let refused = |text: &str| text.parse::<Settings>().unwrap_err().to_string();
        assert_eq!(refused("window_ns\t0\n"), "settings, line 1: a time is above zero");
        assert_eq!(refused("device\tpool\t-1\n"), "settings, line 1: -1: no bandwidth");
        assert_eq!(refused("device\tpool\t1\n"), "settings: 0 rules; 1 to 64 can be");
        let rule = |weight: &str, devices: &str| format!("device\tp\t1\nrule\ta\t*\t*\t{weight}\t{devices}\t-\t-\n");
        assert_eq!(refused(&rule("0", "1")), "settings: a: a weight is from 0.000001 to 1000000");
        assert_eq!(refused(&rule("nan", "1")), "settings: a: a weight is from 0.000001 to 1000000");
        assert_eq!(refused(&rule("1", "2")), "settings: a: its path has devices that are not there, or none");
        assert_eq!(refused("color\tred\n"), "settings, line 1: color red: no such setting");
    }
}
