//! Where the time of a request went.

use crate::time::{Duration, Time};

/// Where a request's time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// In the core and on the way to the last-level cache: from a load's issue, or the turn of a store or flush, until
    /// the last level has been looked up.
    Core,
    /// In the last-level cache, from there until it leaves: waiting for an MSHR, for a write buffer, for a copy of
    /// another core, or for an earlier write of the line to leave.
    Cache,
    /// In the host bridge: decoding, ordering, its queues.
    HostBridge,
    /// Waiting for credits or for the link to become free.
    LinkWait,
    /// On the link: serialisation and flight.
    Link,
    /// In the stages of a switch's pipeline.
    SwitchPipeline,
    /// Waiting in a switch for its turn, blocked or not.
    Arbitration,
    /// Waiting for a persist buffer: for room in its input, for its controller, or parked until an entry is free.
    PersistBufferWait,
    /// Served by a persist buffer's controller.
    PersistBufferAccess,
    /// In the device, before its medium was asked.
    DeviceQueue,
    /// The medium itself.
    Media,
}

impl Stage {
    /// How many stages there are.
    pub const COUNT: usize = 11;
    /// All of them, in the order of the variants.
    pub const ALL: [Stage; Self::COUNT] = [
        Self::Core,
        Self::Cache,
        Self::HostBridge,
        Self::LinkWait,
        Self::Link,
        Self::SwitchPipeline,
        Self::Arbitration,
        Self::PersistBufferWait,
        Self::PersistBufferAccess,
        Self::DeviceQueue,
        Self::Media,
    ];
    /// The names in statistics, in the order of the variants.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "core",
        "cache",
        "host_bridge",
        "link_wait",
        "link",
        "switch_pipeline",
        "arbitration",
        "pb_wait",
        "pb_access",
        "device_queue",
        "media",
    ];
}

/// A request's time so far, divided among stages. Whoever holds the request charges the time since the last charge to
/// one stage, so that the parts sum exactly to the whole.
///
/// A message holds it by a pointer: it is as large as all else of a message together, and moves from queue to queue
/// with it.
#[derive(Clone, Debug)]
pub struct LatencyStack(Box<Charges>);

#[derive(Clone, Debug)]
struct Charges {
    parts_ps: [u64; Stage::COUNT],
    start: Time,
    until: Time,
}

impl LatencyStack {
    /// An empty stack of a request that starts at `start`.
    #[inline]
    pub fn starting(start: Time) -> LatencyStack {
        LatencyStack(Box::new(Charges { parts_ps: [0; Stage::COUNT], start, until: start }))
    }

    /// Charges the time from the last charge until `until` to `stage`. `until` may lie in the future, if the holder
    /// knows already.
    #[inline]
    pub fn charge(&mut self, stage: Stage, until: Time) {
        let charges = &mut *self.0;
        debug_assert!(until >= charges.until, "time is charged twice");
        charges.parts_ps[stage as usize] += until.since(charges.until).as_ps();
        charges.until = until;
    }

    /// When the request started.
    #[inline]
    pub fn start(&self) -> Time {
        self.0.start
    }

    /// The time up to which everything is charged.
    #[inline]
    pub fn charged_until(&self) -> Time {
        self.0.until
    }

    /// The whole, from the start to the last charge.
    #[inline]
    pub fn total(&self) -> Duration {
        self.0.until.since(self.0.start)
    }

    /// The time charged to each stage, in picoseconds, in the order of [`Stage::NAMES`].
    #[inline]
    pub fn parts_ps(&self) -> &[u64; Stage::COUNT] {
        &self.0.parts_ps
    }

    /// The whole without the time charged to `stages`.
    pub fn total_without(&self, stages: &[Stage]) -> Duration {
        let parts: u64 = stages.iter().map(|&stage| self.0.parts_ps[stage as usize]).sum();
        Duration::from_ps(self.total().as_ps() - parts)
    }
}
