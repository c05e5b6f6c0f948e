//! Regions of interest: process-wide, and all that is timed if there are any.
//!
//! Hosts that share a fabric time their regions together: one that comes to the beginning of a region waits there until
//! all others have come to the beginning of one or to their end, so that no host has the fabric to itself while others
//! still warm up. See `replay/simulation/`.

use super::Host;
use fencepost_kernel::Context;
use fencepost_kernel::time::Time;
use fencepost_record::Marker;

/// A region has begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionBoundary {
    /// Whether it is the beginning.
    pub begins: bool,
    /// Whether the region before it ends there, without anything coming to rest.
    pub follows_another: bool,
    /// When.
    pub time: Time,
}

/// Whether time counts, and what has just changed that.
#[derive(Clone, Debug)]
pub struct Regions {
    is_warming: bool,
    has_regions: bool,
    /// Whether a region has ended and what it left under way has not come to rest.
    is_settling: bool,
    /// Whether a region begins only when those of other hosts do.
    meets_others: bool,
    /// Whether a region is to begin as soon as those of other hosts do.
    is_waiting: bool,
    boundary: Option<RegionBoundary>,
}

impl Regions {
    /// A program with or without regions. One that has any warms up until the first begins.
    pub fn new(has_regions: bool) -> Regions {
        Regions {
            is_warming: has_regions,
            has_regions,
            is_settling: false,
            meets_others: false,
            is_waiting: false,
            boundary: None,
        }
    }

    /// From now on regions begin together with those of other hosts. A program without any is one region as a whole.
    pub fn meet_others(&mut self) {
        self.meets_others = true;
        self.is_waiting = !self.has_regions;
        self.is_warming = true;
        self.has_regions = true;
    }

    /// Whether what is executed now only warms caches.
    pub fn is_warming(&self) -> bool {
        self.is_warming
    }

    /// Whether warming has to wait. What takes no time must not meet what does: a drain or a prefetch that is still
    /// under way would bring back an older version of a line.
    pub fn is_settling(&self) -> bool {
        self.is_settling
    }

    /// What is under way comes to rest before anything goes on that takes no time.
    pub fn settle_first(&mut self) {
        self.is_settling = true;
    }

    /// Ends the wait for traffic to come to rest; says whether there was one.
    pub fn settle(&mut self) -> bool {
        std::mem::take(&mut self.is_settling)
    }

    /// Whether a region waits for those of other hosts to begin; nothing of the program goes on until then.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// The region that waits begins.
    pub fn begin(&mut self) {
        debug_assert!(self.is_waiting);
        self.is_waiting = false;
        self.is_warming = false;
        self.is_settling = false;
    }

    /// A marker of the program was executed.
    pub fn marker(&mut self, code: u16, time: Time) {
        match Marker(code) {
            Marker::ROI_BEGIN => self.set(true, time),
            Marker::ROI_END => self.set(false, time),
            Marker::ROI_NEXT if self.is_timing_alone() => {
                self.boundary = Some(RegionBoundary { begins: true, follows_another: true, time });
            }
            _ => {}
        }
    }

    /// A region begins or ends; nothing happens if it has already.
    pub fn set(&mut self, begins: bool, time: Time) {
        if begins && self.meets_others {
            self.is_waiting = self.is_warming;
        } else if self.has_regions && self.is_warming == begins {
            self.is_warming = !begins;
            self.is_settling = !begins;
            self.boundary = Some(RegionBoundary { begins, follows_another: false, time });
        }
    }

    /// Whether a region is timed, and no other host's with it.
    fn is_timing_alone(&self) -> bool {
        self.has_regions && !self.is_warming && !self.meets_others
    }

    /// Whether there is a boundary that was not taken yet.
    pub fn has_boundary(&self) -> bool {
        self.boundary.is_some()
    }

    /// What has changed since the last call.
    pub fn take_boundary(&mut self) -> Option<RegionBoundary> {
        self.boundary.take()
    }
}

impl Host {
    /// Lets cores that wait at the boundary of a region go on at `cycle`.
    pub(super) fn resume_held(&mut self, cycle: u64, context: &mut Context<'_>) {
        for core in 0..self.socket.cores.len() {
            if std::mem::take(&mut self.socket.states[core].is_held) {
                self.socket.cores[core].resume_at(cycle);
                self.schedule_run(core, cycle, context);
            }
        }
    }

    /// The boundary of a region of interest that was crossed since the last call.
    pub fn take_region_boundary(&mut self) -> Option<RegionBoundary> {
        self.process.regions.take_boundary()
    }

    /// Makes regions of interest begin together with those of other hosts; to be called before the start.
    pub fn meet_others(&mut self) {
        self.process.regions.meet_others();
    }

    /// Whether it waits at the boundary of a region, for other hosts or for traffic under way.
    pub fn is_at_boundary(&self) -> bool {
        self.process.regions.is_waiting() || self.process.regions.is_settling()
    }

    /// Whether a region is to begin here with those of other hosts.
    pub fn waits_to_begin(&self) -> bool {
        self.is_powered() && self.process.regions.is_waiting()
    }

    /// Goes on behind a region, when nothing is under way anywhere, if this host waits for that; says whether it did.
    pub fn leave_region(&mut self, context: &mut Context<'_>) -> bool {
        let has_settled = self.is_powered() && !self.process.regions.is_waiting() && self.process.regions.settle();
        if has_settled {
            self.resume_held(self.cycle(context.now()), context);
        }
        has_settled
    }

    /// Begins the region of this host, together with those of all others, if it waits for that; says whether it did.
    pub fn begin_region(&mut self, context: &mut Context<'_>) -> bool {
        let begins = self.waits_to_begin();
        if begins {
            self.process.regions.begin();
            self.resume_held(self.cycle(context.now()), context);
        }
        begins
    }

    /// Times everything, whatever regions of interest the program marks; to be called before the start.
    pub fn ignore_regions(&mut self) {
        self.process.regions = Regions::new(false);
    }
}
