//! Regions of interest: process-wide, and all that is timed if there are any.

use crate::kernel::Time;
use crate::record::Marker;

/// A region has begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionBoundary {
    /// Whether it is the beginning.
    pub begins: bool,
    /// When.
    pub time: Time,
}

/// Whether time counts, and what has just changed that.
#[derive(Clone, Debug)]
pub struct Regions {
    is_warming: bool,
    has_regions: bool,
    boundary: Option<RegionBoundary>,
}

impl Regions {
    /// A program with or without regions. One that has any warms up until the first begins.
    pub fn new(has_regions: bool) -> Regions {
        Regions { is_warming: has_regions, has_regions, boundary: None }
    }

    /// Whether what is executed now only warms caches.
    pub fn is_warming(&self) -> bool {
        self.is_warming
    }

    /// A marker of the program was executed.
    pub fn marker(&mut self, code: u16, time: Time) {
        match Marker(code) {
            Marker::ROI_BEGIN => self.set(true, time),
            Marker::ROI_END => self.set(false, time),
            _ => {}
        }
    }

    /// A region begins or ends; nothing happens if it has already.
    pub fn set(&mut self, begins: bool, time: Time) {
        if self.has_regions && self.is_warming == begins {
            self.is_warming = !begins;
            self.boundary = Some(RegionBoundary { begins, time });
        }
    }

    /// Whether something has changed that nobody has taken notice of.
    pub fn has_boundary(&self) -> bool {
        self.boundary.is_some()
    }

    /// What has changed since the last call.
    pub fn take_boundary(&mut self) -> Option<RegionBoundary> {
        self.boundary.take()
    }
}
