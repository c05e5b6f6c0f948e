//! The channel of the calling thread.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencepost_channel_core::meter::{Means, Meter};
use fencepost_channel_core::pacer::{Pacer, Progress};
use fencepost_channel_core::segment::place::{Holder, Phase};
use fencepost_channel_core::segment::{Row, Segment, Source};
use fencepost_channel_core::system::nanoseconds;
use fencepost_channel_core::trigger::{Armed, Trigger, arm, disarm};
use fencepost_channel_core::{system, system_call};

use crate::signal_mask::Blocked;
use crate::{binding, process, rules};

/// Windows between two looks at the thread's name.
const WINDOWS_PER_NAME: u64 = 64;

/// The calling thread's channel, in memory of its own: neither a handler nor the child of a fork may allocate.
pub struct Channel {
    segment: Segment<'static>,
    index: usize,
    holder: Holder,
    row: Row,
    pacer: Pacer,
    armed: Armed,
    meter: Meter,
    reported_before: u64,
    processor_before: Duration,
}

thread_local! {
    /// All bytes that the thread said it used; here, as handlers interrupt whoever adds to it.
    static REPORTED: AtomicU64 = const { AtomicU64::new(0) };
    static CHANNEL: Cell<*mut Channel> = const { Cell::new(ptr::null_mut()) };
}

/// Why a thread has no channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process has no segment.
    NoSegment,
    /// No rule is for the thread, or has that name.
    NoRule,
    /// All rows are taken.
    NoRow,
    /// The kernel has no memory.
    NoMemory,
    /// What it moves cannot be counted.
    NoMeter,
    /// The thread has one already.
    IsOpen,
}

/// Whether the calling thread has a channel.
pub fn is_open() -> bool {
    !CHANNEL.get().is_null()
}

/// What calls the calling thread's handler, if it has a channel.
pub fn trigger() -> Option<Trigger> {
    let channel = CHANNEL.get();
    // SAFETY: as in `of_this_thread`, but for the handler, which may replace the trigger while this reads it: by none.
    (!channel.is_null()).then(|| unsafe { (&raw const (*channel).armed).read_volatile() }.trigger())
}

/// The calling thread used so many bytes more. A handler that interrupts this reads the sum before or after.
pub fn report(bytes: u64) {
    REPORTED.with(|sum| sum.store(sum.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed));
}

fn reported() -> u64 {
    REPORTED.with(|sum| sum.load(Ordering::Relaxed))
}

/// The calling thread's channel, if it has one. Outside of the handler, the trigger's signal has to be blocked while
/// the reference lives.
pub fn of_this_thread() -> Option<&'static mut Channel> {
    let channel = CHANNEL.get();
    // SAFETY: it lies in a mapping that only `close` and `forget` unmap, which forget the pointer first. Only this
    // thread has it, and its handler does not interrupt other users of it, whose signal is blocked.
    unsafe { channel.as_mut() }
}

/// Gives the calling thread a channel: by this rule, or else by the first one that matches.
///
/// The trigger's signal is blocked meanwhile, see [`signal_mask`](crate::signal_mask).
pub fn open(rule: Option<usize>) -> Result<(), Refusal> {
    if is_open() {
        return Err(Refusal::IsOpen);
    }
    let _blocked = Blocked::new();
    let segment = process::segment().ok_or(Refusal::NoSegment)?;
    let name = rules::thread_name();
    let rule = rule.or_else(|| rules::rule_of(segment, name)).ok_or(Refusal::NoRule)?;
    let thread = system::thread();
    let Some((index, holder)) = take_row(segment, thread) else {
        segment.count_unpaced_thread();
        return Err(Refusal::NoRow);
    };
    let refused = |refusal| {
        Row::place(segment.row(index)).close(holder);
        Err(refusal)
    };
    let Some(place) = map_channel() else { return refused(Refusal::NoMemory) };
    let Some(meter) = meter(segment, index, thread) else {
        unmap_memory(place);
        segment.count_unpaced_thread();
        return refused(Refusal::NoMeter);
    };
    let process = system::process();
    let now = system::now();
    let row = Row {
        process,
        started_ticks: system::started_ticks(process, thread),
        devices: segment.rule_devices(rule),
        weight: segment.rule_weight(rule).get(),
        rule: rule as u32,
        name,
        heartbeat: 1,
        until_ns: nanoseconds(now),
        ..Row::default()
    };
    let channel = Channel {
        segment,
        index,
        holder,
        row,
        pacer: pacer(segment, &row, Progress { now, ..Progress::default() }),
        armed: Armed::Nothing,
        meter,
        reported_before: reported(),
        processor_before: system::processor_time(),
    };
    // SAFETY: the mapping is long enough and aligned to pages.
    unsafe { place.write(channel) };
    // SAFETY: as above; nobody else has the pointer yet.
    let channel = unsafe { &mut *place };
    channel.row.publish(segment.row(index));
    binding::bind(segment, rule);
    CHANNEL.set(place);
    let link = segment.path_capacity(channel.row.devices);
    let means = process::means().unwrap_or(Means::Nothing);
    channel.armed = arm(thread, means.quantum(segment.quantum(), link), process::wanted_trigger());
    Ok(())
}

/// Ends the calling thread's channel.
pub fn close() {
    let _blocked = Blocked::new();
    let place = CHANNEL.replace(ptr::null_mut());
    // SAFETY: as in `of_this_thread`.
    let Some(channel) = (unsafe { place.as_mut() }) else { return };
    disarm(channel.armed);
    let progress = channel.progress(system::now(), system::processor_time());
    channel.settle(progress);
    channel.publish(progress.now);
    channel.meter.close();
    Row::place(channel.segment.row(channel.index)).close(channel.holder);
    unmap_channel(place);
}

/// The calling thread is the only one of a process that was forked: its channel is its parent's.
pub fn forget() {
    let place = CHANNEL.replace(ptr::null_mut());
    // SAFETY: as in `of_this_thread`.
    if let Some(channel) = unsafe { place.as_mut() } {
        // The trigger's page is not inherited, timers are not either; files of counters are.
        channel.meter.forget();
        unmap_channel(place);
    }
}

/// Frees the rows that the program had which the calling thread ran before it executed this one.
pub fn reap_own(segment: Segment<'static>) {
    let thread = system::thread();
    for index in segment.own_rows() {
        let holder = Row::place(segment.row(index)).holder();
        if holder.phase == Phase::Live && holder.thread == thread {
            segment.reap_row(index, holder, thread);
        }
    }
}

fn take_row(segment: Segment<'static>, thread: u32) -> Option<(usize, Holder)> {
    let hint = thread as usize;
    segment.take_row(thread, hint).or_else(|| {
        // Threads end faster than the keeper looks.
        for index in segment.own_rows() {
            let holder = Row::place(segment.row(index)).holder();
            if holder.phase == Phase::Closed {
                segment.reap_row(index, holder, thread);
            }
        }
        segment.take_row(thread, hint)
    })
}

/// What counts the calling thread's bytes: nothing, where the program does so itself.
fn meter(segment: Segment<'static>, row: usize, thread: u32) -> Option<Meter> {
    if process::reports() {
        return Some(Meter::Nothing);
    }
    Meter::open(process::means()?, segment.fingerprint(), row, thread)
}

fn pacer(segment: Segment<'static>, row: &Row, now: Progress) -> Pacer {
    let link = segment.path_capacity(row.devices);
    let (found, count) = segment.path_grants(row.devices);
    Pacer::new(segment.timing(), segment.rule_weight(row.rule as usize), link, &found[..count], now)
}

const CHANNEL_BYTES: usize = size_of::<Channel>();

fn map_channel() -> Option<*mut Channel> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel chooses.
    let memory = unsafe { system_call!(libc::SYS_mmap, ptr::null_mut::<u8>(), CHANNEL_BYTES, access, kind, -1, 0) };
    let memory = memory as *mut libc::c_void;
    (memory != libc::MAP_FAILED).then(|| memory.cast())
}

fn unmap_channel(place: *mut Channel) {
    // SAFETY: `open` wrote it, and nobody has the pointer any more.
    unsafe { place.drop_in_place() };
    unmap_memory(place);
}

fn unmap_memory(place: *mut Channel) {
    // SAFETY: `map_channel` made it, and nobody has the pointer any more.
    unsafe { system_call!(libc::SYS_munmap, place, CHANNEL_BYTES) };
}

impl Channel {
    /// Its trigger.
    pub fn armed(&self) -> &Armed {
        &self.armed
    }

    /// Whether pacing has ended; disarms the trigger then.
    pub fn is_stopped(&mut self) -> bool {
        let is_stopped = self.segment.is_stopped();
        if is_stopped {
            disarm(std::mem::replace(&mut self.armed, Armed::Nothing));
        }
        is_stopped
    }

    /// What the thread has done by now.
    pub fn progress(&mut self, now: Duration, processor: Duration) -> Progress {
        let used = processor.saturating_sub(self.processor_before);
        self.processor_before = processor;
        self.row.processor_ns += nanoseconds(used);
        let reported = reported();
        let new = reported.wrapping_sub(self.reported_before);
        self.reported_before = reported;
        let source = if process::reports() { Source::Reported } else { self.segment.source() };
        self.row.source = source as u32;
        let bytes = match source {
            Source::Charged => self.segment.charge().bytes_in(used) as u64,
            Source::Reported => new,
            Source::Counter | Source::Mbm => self.meter.bytes(),
        };
        self.row.bytes = self.row.bytes.saturating_add(bytes);
        Progress { now, bytes: self.row.bytes, processor: Duration::from_nanos(self.row.processor_ns) }
    }

    /// Ends the window if it is over. Returns the pause that has to follow, if there is one.
    pub fn end_window(&mut self, progress: Progress) -> Option<Duration> {
        if !self.pacer.is_over(progress) {
            return None;
        }
        self.row.heartbeat += 1;
        let pause = self.settle(progress);
        self.publish(progress.now + pause);
        if self.row.heartbeat.is_multiple_of(WINDOWS_PER_NAME) {
            self.look_at_name(progress.now);
        }
        (!pause.is_zero()).then_some(pause)
    }

    /// Ends the window. Returns the pause that has to follow.
    fn settle(&mut self, progress: Progress) -> Duration {
        let (grants, count) = self.segment.path_grants(self.row.devices);
        self.pacer.end_window(progress, &grants[..count])
    }

    /// Tells it from any other channel of the segment.
    pub fn identity(&self) -> (usize, Holder) {
        (self.index, self.holder)
    }

    /// The thread was paused for so long.
    pub fn was_paused(&mut self, pause: Duration) {
        self.pacer.was_paused(pause);
    }

    /// The handler took so much processor time.
    pub fn spent(&mut self, time: Duration) {
        self.row.handler_ns += nanoseconds(time);
    }

    /// Right after a window has been published.
    fn look_at_name(&mut self, now: Duration) {
        let name = rules::thread_name();
        if name == self.row.name {
            return;
        }
        self.row.name = name;
        let Some(rule) = rules::rule_of(self.segment, name).filter(|rule| *rule as u32 != self.row.rule) else {
            return;
        };
        binding::bind(self.segment, rule);
        // What it did so far is the channel's in which it did it.
        let done = self.row;
        self.row = done.without_sums();
        self.row.rule = rule as u32;
        self.row.devices = self.segment.rule_devices(rule);
        self.row.weight = self.segment.rule_weight(rule).get();
        self.row.publish(self.segment.row(self.index));
        self.segment.totals(done.rule as usize).add(&done);
        self.pacer = pacer(self.segment, &self.row, Progress { now, ..Progress::default() });
    }

    /// The thread is known to run until then.
    fn publish(&mut self, until: Duration) {
        self.row.rate = self.pacer.rate().bytes_per_second();
        self.row.demand = 0.0;
        for (place, device) in self.segment.path(self.row.devices).enumerate() {
            let claim = self.pacer.claim(place);
            let (rate, demand) = (claim.rate.bytes_per_second(), claim.demand.bytes_per_second());
            self.row.claims[device] = (rate, demand);
            self.row.demand = self.row.demand.max(demand);
        }
        self.row.share = self.pacer.share().bytes_per_second();
        let had = self.pacer.had();
        self.row.demanded_bytes = had.demanded_bytes as u64;
        self.row.granted_bytes = had.granted_bytes as u64;
        self.row.running_ns = nanoseconds(had.running);
        self.row.paused_ns = nanoseconds(had.paused);
        self.row.until_ns = nanoseconds(until);
        self.row.trigger = self.armed.trigger() as u32;
        self.row.publish(self.segment.row(self.index));
        let silence_max = self.segment.timing().silence_max;
        self.segment.totals(self.row.rule as usize).ran(self.pacer.running_since(), until, silence_max);
    }
}
