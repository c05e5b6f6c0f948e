//! Regions of interest: when they begin and end, over all hosts, and what is counted in them.

use std::time::Instant;

use super::{Interval, Simulation};
use crate::host::{Host, RegionBoundary};
use crate::system::System;
use fencepost_kernel::stats::StatsNode;
use fencepost_kernel::time::Time;

/// Where a region begins.
#[derive(Clone, Debug)]
pub(super) struct RegionStart {
    /// When the first core began it.
    time: Time,
    /// When it was noticed.
    noticed: Time,
    /// Everything counted until then.
    stats: StatsNode,
    /// When that was on the machine that replays.
    clock: Instant,
}

impl RegionStart {
    /// The region began at `time`, which is noticed now.
    pub fn noticed_now(system: &mut System, time: Time) -> RegionStart {
        system.begin_series();
        RegionStart { time, noticed: system.now(), stats: system.stats(), clock: Instant::now() }
    }
}

impl Simulation {
    /// Nothing is under way, and hosts that time their regions together are not at their end. One that waits at no
    /// boundary lacks a wake. If there is none, a region is over; hosts that have left it go on until all have come to
    /// the next one, which then begins. Whether there was anything to do.
    pub(super) fn meet(&mut self) -> bool {
        if self.system.unblock_within_regions() {
            return true;
        }
        self.close_region();
        if self.system.leave_regions() {
            return true;
        }
        if !self.system.hosts().any(Host::waits_to_begin) {
            return false;
        }
        self.system.absorb_warm_writes();
        self.begin_region(self.system.now());
        self.system.begin_regions()
    }

    /// A region of interest may have begun or ended with the last event.
    #[inline]
    pub(super) fn cross_boundaries(&mut self) {
        if !self.has_regions {
            return;
        }
        let Some((host, boundary)) = self.system.take_region_boundary() else { return };
        self.cross(host, &boundary);
    }

    /// A host has crossed a boundary of a region.
    #[cold]
    fn cross(&mut self, host: usize, boundary: &RegionBoundary) {
        if boundary.follows_another {
            self.host_ends[host] = Some(boundary.time);
            self.close_region();
            self.begin_region(boundary.time);
        } else if boundary.begins {
            // Between intervals what was written is still gathered; it is taken over when the next begins.
            if self.sampling.is_none() {
                self.system.absorb_warm_writes();
            }
            self.begin_region(boundary.time);
        } else {
            self.host_ends[host] = Some(boundary.time);
            if !self.hosts_meet {
                self.close_region();
            }
        }
    }

    /// The last event may have brought the host to a position of the plan.
    pub(super) fn follow_sample(&mut self) {
        let Some(boundary) = self.system.hosts_mut().find_map(Host::take_sample_boundary) else { return };
        let sampling = self.sampling.as_deref_mut().expect("a host follows a plan only if there is one");
        if boundary.ends_measuring || boundary.abandons {
            sampling.end(&boundary, &self.system, self.intervals.len());
        }
        if boundary.begins_detail {
            self.system.absorb_sampled_writes();
        }
        if boundary.begins_measuring {
            sampling.begin(&boundary, &self.system);
        }
    }

    /// A region began at `time`, which is noticed now.
    fn begin_region(&mut self, time: Time) {
        self.region_start = Some(RegionStart::noticed_now(&mut self.system, time));
        self.system.hosts_mut().for_each(|host| host.count_sites(true));
    }

    /// The present region is over, if there is one.
    pub(super) fn close_region(&mut self) {
        let hosts = self.host_ends.len();
        let ends = std::mem::replace(&mut self.host_ends, vec![None; hosts]);
        if let Some(start) = self.region_start.take() {
            let host_seconds = start.clock.elapsed().as_secs_f64();
            let stats = self.system.stats().since(&start.stats);
            let counted = self.system.now().since(start.noticed);
            let hosts = self.system.hosts().zip(ends);
            let host_ends: Vec<Time> =
                hosts.map(|(host, end)| end.unwrap_or_else(|| host.finished_at()).max(start.time)).collect();
            let end = host_ends.iter().copied().max().unwrap_or(start.time);
            self.intervals.push(Interval { start: start.time, end, host_ends, counted, stats, host_seconds });
            self.system.hosts_mut().for_each(|host| host.count_sites(false));
        }
    }
}
