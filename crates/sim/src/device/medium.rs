//! What the controller of a device has behind it.
//!
//! A medium takes requests while it has room, does what can be done now, and says when it wants to be asked again.
//! Answers come back as [`Completion`]s, with the time at which they are ready; nothing here knows of links, credits or
//! events.

use super::block_pm::BlockPm;
use super::dram::{Dram, DramChannels, DramConfig};
use super::pm::{Pm, PmConfig};
use crate::host_bridge::Interleave;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::message::{Message, MessageClass, mem};
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;
use fencepost_kernel::trace::MediaWrite;

/// The configuration of a medium.
#[derive(Clone, Debug, PartialEq)]
pub enum MediumConfig {
    /// One or several channels of DRAM.
    Dram(DramConfig),
    /// The same with a battery: persistent, queues included.
    BackedDram(DramConfig),
    /// A persistent medium.
    Pm(PmConfig),
}

impl MediumConfig {
    /// Whether its content outlives a power cut.
    pub fn is_persistent(&self) -> bool {
        !matches!(self, MediumConfig::Dram(_))
    }

    /// The configuration of its DRAM; none of a medium of other cells.
    pub fn dram(&self) -> Option<&DramConfig> {
        match self {
            MediumConfig::Dram(config) | MediumConfig::BackedDram(config) => Some(config),
            MediumConfig::Pm(_) => None,
        }
    }

    /// Time in the controller's pipeline, one way, in ns.
    pub fn controller_latency_ns(&self) -> f64 {
        match self {
            MediumConfig::Dram(config) | MediumConfig::BackedDram(config) => config.controller_latency_ns,
            MediumConfig::Pm(config) => config.controller_latency_ns,
        }
    }

    /// The same on the way out of answers that a queue gives.
    pub fn queue_answer_ns(&self) -> f64 {
        match self {
            MediumConfig::Dram(config) | MediumConfig::BackedDram(config) => config.queue_answer_ns,
            MediumConfig::Pm(config) => config.queue_answer_ns,
        }
    }

    /// Size of the memory, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        let capacity_mib = match self {
            MediumConfig::Dram(config) | MediumConfig::BackedDram(config) => config.capacity_mib,
            MediumConfig::Pm(config) => config.capacity_mib,
        };
        capacity_mib << 20
    }
}

/// An answer of a medium.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The answer; its time is charged until `at`.
    pub answer: Message,
    /// When it is ready.
    pub at: Time,
    /// Whether a queue gave it, and not the memory cells.
    pub is_from_queue: bool,
}

/// The memory behind a controller.
#[derive(Clone, Debug)]
pub enum Medium {
    /// A channel of DRAM.
    Dram(Box<Dram>),
    /// Several channels of DRAM.
    DramChannels(Box<DramChannels>),
    /// A persistent medium that is accessed line by line.
    Pm(Box<Pm>),
    /// A persistent medium that is accessed in blocks of several lines.
    BlockPm(Box<BlockPm>),
}

impl Medium {
    /// A medium like `config`, whose lines are those of one way of `interleave`.
    pub fn new(config: &MediumConfig, interleave: Interleave) -> Medium {
        match config {
            MediumConfig::Dram(config) => Medium::dram(config, interleave, false),
            MediumConfig::BackedDram(config) => Medium::dram(config, interleave, true),
            MediumConfig::Pm(config) => match &config.block {
                None => Medium::Pm(Box::new(Pm::new(config, interleave))),
                Some(block) => Medium::BlockPm(Box::new(BlockPm::new(config, block, interleave))),
            },
        }
    }

    fn dram(config: &DramConfig, interleave: Interleave, is_backed: bool) -> Medium {
        match config.channels {
            1 => Medium::Dram(Box::new(Dram::new(config, interleave, is_backed))),
            _ => Medium::DramChannels(Box::new(DramChannels::new(config, interleave, is_backed))),
        }
    }

    /// When a request that has passed the controller at `time` can enter: at the next edge of the medium's clock, if it
    /// has one.
    pub fn entry_time(&self, time: Time) -> Time {
        match self {
            Medium::Dram(dram) => dram.entry_time(time),
            Medium::DramChannels(dram) => dram.entry_time(time),
            Medium::Pm(_) | Medium::BlockPm(_) => time,
        }
    }

    /// How many requests of the class `class` can be queued.
    pub fn queue_entries(&self, class: MessageClass) -> usize {
        match self {
            Medium::Dram(dram) => dram.queue_entries(class),
            Medium::DramChannels(dram) => dram.queue_entries(class),
            Medium::Pm(pm) => pm.queue_entries(class),
            Medium::BlockPm(pm) => pm.queue_entries(class),
        }
    }

    /// Whether there is room for `request`.
    pub fn has_room(&self, request: &Message) -> bool {
        match self {
            Medium::Dram(dram) => dram.has_room(request),
            Medium::DramChannels(dram) => dram.has_room(request),
            Medium::Pm(pm) => pm.has_room(request),
            Medium::BlockPm(pm) => pm.has_room(request),
        }
    }

    /// How many channels it has, each with queues of its own.
    pub fn channels(&self) -> u32 {
        match self {
            Medium::DramChannels(dram) => dram.channels(),
            Medium::Dram(_) | Medium::Pm(_) | Medium::BlockPm(_) => 1,
        }
    }

    /// The channel of `line`.
    pub fn channel(&self, line: LineAddress) -> usize {
        match self {
            Medium::DramChannels(dram) => dram.channel(line),
            Medium::Dram(_) | Medium::Pm(_) | Medium::BlockPm(_) => 0,
        }
    }

    /// Takes `request`, for which there is room. What is answered at once is added to `completions`.
    pub fn accept(&mut self, request: Message, now: Time, completions: &mut Vec<Completion>) {
        match self {
            Medium::Dram(dram) => dram.accept(request, now, completions),
            Medium::DramChannels(dram) => dram.accept(request, now, completions),
            Medium::Pm(pm) => pm.accept(request, now, completions),
            Medium::BlockPm(pm) => pm.accept(request, now, completions),
        }
    }

    /// Does all that can be done at `now`; gives the time at which there is more to do, [`Time::NEVER`] if there is
    /// nothing.
    pub fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) -> Time {
        match self {
            Medium::Dram(dram) => dram.advance(now, completions),
            Medium::DramChannels(dram) => dram.advance(now, completions),
            Medium::Pm(pm) => pm.advance(now, completions),
            Medium::BlockPm(pm) => pm.advance(now, completions),
        }
    }

    /// Writes `version` of `line` before time starts.
    pub fn preload(&mut self, line: LineAddress, version: Version) {
        match self {
            Medium::Dram(dram) => dram.preload(line, version),
            Medium::DramChannels(dram) => dram.preload(line, version),
            Medium::Pm(pm) => pm.preload(line, version),
            Medium::BlockPm(pm) => pm.preload(line, version),
        }
    }

    /// Writes of older versions replace newer ones from now on, and are counted; see `LineVersions::take_older_writes`.
    pub fn take_older_writes(&mut self) {
        match self {
            Medium::Dram(dram) => dram.take_older_writes(),
            Medium::DramChannels(dram) => dram.take_older_writes(),
            Medium::Pm(pm) => pm.take_older_writes(),
            Medium::BlockPm(pm) => pm.take_older_writes(),
        }
    }

    /// The bank of `line`.
    pub fn bank_of(&self, line: LineAddress) -> u32 {
        match self {
            Medium::Dram(dram) => dram.bank_of(line),
            Medium::DramChannels(dram) => dram.bank_of(line),
            Medium::Pm(pm) => pm.bank_of(line),
            Medium::BlockPm(pm) => pm.bank_of(line),
        }
    }

    /// The lines of persistent cells that have been written since this was last asked; from the first time on they are
    /// taken down.
    pub fn take_written(&mut self) -> Vec<MediaWrite> {
        match self {
            Medium::Dram(_) | Medium::DramChannels(_) => Vec::new(),
            Medium::Pm(pm) => pm.take_written(),
            Medium::BlockPm(pm) => pm.take_written(),
        }
    }

    /// Places in use in the queue of reads and in that of writes.
    pub fn gauges(&self) -> [u64; 2] {
        match self {
            Medium::Dram(dram) => dram.gauges(),
            Medium::DramChannels(dram) => dram.gauges(),
            Medium::Pm(pm) => pm.gauges(),
            Medium::BlockPm(pm) => pm.gauges(),
        }
    }

    /// Which part of its fullest queue is filled.
    pub fn filled(&self) -> f64 {
        let part =
            |(level, (class, _)): (u64, (MessageClass, MessageClass))| level as f64 / self.queue_entries(class) as f64;
        self.gauges().into_iter().zip(mem::REQUEST_CLASSES).map(part).fold(0.0, f64::max)
    }

    /// Power is gone.
    pub fn power_fail(&mut self) {
        match self {
            Medium::Dram(dram) => dram.power_fail(),
            Medium::DramChannels(dram) => dram.power_fail(),
            Medium::Pm(pm) => pm.power_fail(),
            Medium::BlockPm(pm) => pm.power_fail(),
        }
    }

    /// The version of `line` that a power cut now would leave; none if the medium is volatile.
    pub fn durable_version(&self, line: LineAddress) -> Option<Version> {
        match self {
            Medium::Dram(dram) => dram.durable_version(line),
            Medium::DramChannels(dram) => dram.durable_version(line),
            Medium::Pm(pm) => Some(pm.durable_version(line)),
            Medium::BlockPm(pm) => Some(pm.durable_version(line)),
        }
    }

    /// Whether nothing is queued or under way.
    pub fn is_idle(&self) -> bool {
        match self {
            Medium::Dram(dram) => dram.is_idle(),
            Medium::DramChannels(dram) => dram.is_idle(),
            Medium::Pm(pm) => pm.is_idle(),
            Medium::BlockPm(pm) => pm.is_idle(),
        }
    }

    /// Lines in the write queue and those being written, as long as there are some that may not stay in the queue. None
    /// of DRAM: it keeps nothing, or a battery keeps its queue with it.
    pub fn unwritten_lines(&self) -> usize {
        match self {
            Medium::Dram(_) | Medium::DramChannels(_) => 0,
            Medium::Pm(pm) => pm.unwritten_lines(),
            Medium::BlockPm(pm) => pm.unwritten_lines(),
        }
    }

    /// What is queued, one line each, for the deadlock report.
    pub fn waiting(&self) -> Vec<String> {
        match self {
            Medium::Dram(dram) => dram.waiting(),
            Medium::DramChannels(dram) => dram.waiting(),
            Medium::Pm(pm) => pm.waiting(),
            Medium::BlockPm(pm) => pm.waiting(),
        }
    }

    /// The name of the medium's node, and everything it counted up to `now`.
    pub fn stats(&self, now: Time) -> (&'static str, StatsNode) {
        match self {
            Medium::Dram(dram) => ("dram", dram.stats(now)),
            Medium::DramChannels(dram) => ("dram", dram.stats(now)),
            Medium::Pm(pm) => ("pm", pm.stats(now)),
            Medium::BlockPm(pm) => ("pm", pm.stats(now)),
        }
    }
}
