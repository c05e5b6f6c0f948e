//! The bytes that a thread moves, by hardware counters: each counts an event that stands for so many bytes.
//!
//! A program may close all files, or give a counter's number to another one. So what is read is looked at first, and a
//! counter that is gone is opened again; what happened between is not counted.

use crate::perf::{self, Attributes};
use crate::system_call;

/// Events that are added up, at most: processors have two registers for accesses by where they were answered.
pub const EVENTS_MAX: usize = 4;

/// An event of `perf_event_open`, and the bytes that it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Whose event it is: `type` of `perf_event_attr`.
    pub kind: u32,
    /// `config` of it.
    pub config: u64,
    /// `config1` of it.
    pub config_1: u64,
    /// Bytes that each stands for.
    pub bytes: u64,
}

impl Event {
    /// As the kernel wants it, but for when it overflows.
    pub fn attributes(self) -> Attributes {
        Attributes { kind: self.kind, config: self.config, config_1: self.config_1, ..Attributes::default() }
    }
}

/// All events that count bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    events: [Event; EVENTS_MAX],
    count: usize,
}

impl Events {
    /// From `kind:config:config1:bytes`, with commas between events. `None` for anything else.
    pub fn parse(text: &str) -> Option<Events> {
        let mut found = Events::default();
        for one in text.split(',') {
            let mut fields = one.split(':').map(number);
            let mut next = || fields.next().flatten();
            let kind = u32::try_from(next()?).ok()?;
            let event = Event { kind, config: next()?, config_1: next()?, bytes: next()? };
            if event.bytes == 0 || fields.next().is_some() || found.count == EVENTS_MAX {
                return None;
            }
            found.events[found.count] = event;
            found.count += 1;
        }
        Some(found)
    }

    /// The first of them, and how many of it stand for so many bytes, one at least.
    pub fn first(&self, bytes: f64) -> Option<(Event, u64)> {
        let event = *self.as_slice().first()?;
        Some((event, ((bytes / event.bytes as f64) as u64).max(1)))
    }

    fn as_slice(&self) -> &[Event] {
        &self.events[..self.count]
    }
}

/// Decimal, or hexadecimal behind `0x`.
fn number(text: &str) -> Option<u64> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

/// Counters of the calling thread, one for each event.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    opened: [Option<Opened>; EVENTS_MAX],
    events: Events,
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    file: libc::c_int,
    /// Tells it from whatever else may have its file's number.
    id: u64,
    last: Reading,
}

/// What the kernel gives for a counter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

const TOTAL_TIME_ENABLED: u64 = 1;
const TOTAL_TIME_RUNNING: u64 = 2;
/// `PERF_EVENT_IOC_ID`.
const IOCTL_ID: libc::c_ulong = 0x8008_2407;
/// Where the numbers of files begin that programs rarely have.
const FILE_LEAST: libc::c_int = 512;

impl Counters {
    /// `None` where the kernel does not count all of these.
    pub fn open(events: Events) -> Option<Counters> {
        let mut counters = Counters { opened: [None; EVENTS_MAX], events };
        for (at, event) in events.as_slice().iter().enumerate() {
            counters.opened[at] = Opened::new(*event);
            if counters.opened[at].is_none() {
                counters.close();
                return None;
            }
        }
        Some(counters)
    }

    /// Bytes since the last call.
    pub fn bytes(&mut self) -> u64 {
        let mut bytes = 0;
        for (opened, event) in self.opened.iter_mut().zip(self.events.as_slice()) {
            match opened.as_mut().and_then(Opened::counted) {
                Some(counted) => bytes += (counted * event.bytes as f64) as u64,
                None => *opened = Opened::new(*event),
            }
        }
        bytes
    }

    /// Ends counting, also in a child that was forked: it has the files too.
    pub fn close(self) {
        for opened in self.opened.into_iter().flatten() {
            if id_of(opened.file) == Some(opened.id) {
                // SAFETY: the file is ours.
                unsafe { system_call!(libc::SYS_close, opened.file) };
            }
        }
    }
}

impl Opened {
    fn new(event: Event) -> Option<Opened> {
        let low = perf::open(Attributes {
            read_format: TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING,
            flags: perf::OF_THE_PROGRAM,
            ..event.attributes()
        })?;
        // SAFETY: the file is ours; a copy of it with a higher number takes its place.
        let high = unsafe { system_call!(libc::SYS_fcntl, low, libc::F_DUPFD_CLOEXEC, FILE_LEAST) };
        let file = match libc::c_int::try_from(high) {
            Ok(high) if high >= 0 => {
                // SAFETY: as above.
                unsafe { system_call!(libc::SYS_close, low) };
                high
            }
            // Few files are allowed.
            _ => low,
        };
        let mut opened = Opened { file, id: id_of(file)?, last: Reading::default() };
        opened.last = opened.read()?;
        Some(opened)
    }

    /// Events since the last look. Where several programs want the same register, the kernel lets each count for a part
    /// of the time, for which the rest is taken to be alike. `None` if the counter is gone.
    fn counted(&mut self) -> Option<f64> {
        let (before, now) = (self.last, self.read()?);
        self.last = now;
        let count = now.count.saturating_sub(before.count) as f64;
        let enabled = now.enabled_ns.saturating_sub(before.enabled_ns) as f64;
        let running = now.running_ns.saturating_sub(before.running_ns) as f64;
        Some(if running > 0.0 { count * (enabled / running).max(1.0) } else { count })
    }

    fn read(&self) -> Option<Reading> {
        if id_of(self.file) != Some(self.id) {
            return None;
        }
        let mut reading = Reading::default();
        // SAFETY: it is as long as the call says.
        let length = unsafe { system_call!(libc::SYS_read, self.file, (&raw mut reading), size_of::<Reading>()) };
        (usize::try_from(length) == Ok(size_of::<Reading>())).then_some(reading)
    }
}

/// The number by which the kernel knows a counter; `None` for any other file.
fn id_of(file: libc::c_int) -> Option<u64> {
    let mut id = 0u64;
    // SAFETY: of a counter, the kernel writes a number there; other files refuse a call of this number.
    (unsafe { system_call!(libc::SYS_ioctl, file, IOCTL_ID, &raw mut id) } == 0).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page faults, which every kernel counts; each is the first touch of a page.
    const PAGE_FAULTS: &str = "1:2:0:4096";
    const PAGES: usize = 500;

    /// Of shared memory, which no huge pages back.
    fn touch_pages() {
        let (bytes, kind) = (PAGES * 4096, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, written within its length, and unmapped.
        unsafe {
            let memory = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_WRITE, kind, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            for page in 0..PAGES {
                memory.cast::<u8>().add(page * 4096).write_volatile(1);
            }
            libc::munmap(memory, bytes);
        }
    }

    #[test]
    fn events_are_read_as_they_are_written() {
        let event = Event { kind: 4, config: 0x12a, config_1: 0x7_03c0_4477, bytes: 64 };
        let events = Events::parse("4:0x12a:0x703c04477:64").unwrap();
        assert_eq!(events.as_slice(), [event]);
        let wrong = ["", "4:1:2", "4:1:2:0", "4:1:2:64:9", "x:1:2:64", "-1:1:2:64", "4:1:2:64,"];
        assert!(wrong.iter().all(|text| Events::parse(text).is_none()));
        let many = ["4:1:2:64"; EVENTS_MAX + 1];
        assert!(Events::parse(&many[..EVENTS_MAX].join(",")).is_some() && Events::parse(&many.join(",")).is_none());
    }

    #[test]
    fn bytes_are_events_since_the_last_look_and_none_are_lost_or_told_twice() {
        let Some(mut counters) = Counters::open(Events::parse(PAGE_FAULTS).unwrap()) else { return };
        counters.bytes();
        touch_pages();
        let touched = counters.bytes();
        assert!(touched >= (PAGES * 4096) as u64, "{touched}");
        assert!(counters.bytes() < touched / 4);
        counters.close();
    }

    #[test]
    fn a_counter_whose_file_is_gone_is_opened_again_and_other_files_are_left_alone() {
        let Some(mut counters) = Counters::open(Events::parse(PAGE_FAULTS).unwrap()) else { return };
        let file = counters.opened[0].unwrap().file;
        let mut pipe = [0; 2];
        // SAFETY: the numbers of files are ours.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            assert_eq!(libc::write(pipe[1], b"x".as_ptr().cast(), 1), 1);
            assert_eq!(libc::dup2(pipe[0], file), file);
        }
        assert_eq!(counters.bytes(), 0);
        touch_pages();
        assert!(counters.bytes() >= (PAGES * 4096) as u64);
        let mut byte = 0u8;
        // SAFETY: as above.
        unsafe { assert_eq!((libc::read(file, (&raw mut byte).cast(), 1), byte), (1, b'x')) };
        counters.close();
        // SAFETY: as above; `close` has left the pipe open.
        unsafe { assert_eq!((libc::close(file), libc::close(pipe[0]), libc::close(pipe[1])), (0, 0, 0)) };
    }

    #[test]
    fn an_event_that_the_kernel_does_not_know_is_refused() {
        assert!(Counters::open(Events::parse("1:2:0:4096,1:999:0:64").unwrap()).is_none());
    }
}
