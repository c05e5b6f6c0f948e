//! The state of everything: the host's side, the devices, and the channels between.
//!
//! Of data only this is kept: which halves of a line are the newest. That is all that the properties need, and no rule
//! looks at data. What is stale stays so; a write makes all copies stale but the one that it writes.

use fencepost_sim::device::type2::dcoh::{Transaction, Waits};
use fencepost_sim::device::type2::host_side::{LastLevel, Requester};
use fencepost_sim::device::type2::messages::{
    CacheState, Part, Payload, Pulled, Request, Response, Snoop, SnoopResponse,
};
use fencepost_sim::device::type2::{dcoh, host_side};

use super::bounds::{CORES_MAX, DEVICES_MAX, LINES_MAX};

/// Of each half of a line, whether it is the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fresh(pub u8);

impl Fresh {
    /// Both halves are the newest.
    pub const NEWEST: Fresh = Fresh(3);

    /// These data once something newer has been written elsewhere.
    fn outdated(self, part: Part) -> Fresh {
        Fresh(self.0 & !half_of(part))
    }
}

/// The halves that a part of a line has: some bytes are all those of the first half.
fn half_of(part: Part) -> u8 {
    match part {
        Part::Some => 1,
        Part::Whole => 3,
    }
}

impl Payload for Fresh {
    fn overlaid(self, written: Fresh, part: Part) -> Fresh {
        let half = half_of(part);
        Fresh(self.0 & !half | written.0 & half)
    }
}

/// The channels between the host and a device, as far as they are about one line. None ever holds more than one
/// message, but D2H data: a line that a snoop brings, and one that was pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// D2H request: that of the device's transaction.
    pub request: bool,
    /// D2H response.
    pub snoop_response: Option<SnoopResponse>,
    /// D2H data that a snoop brings.
    pub snooped: Option<Fresh>,
    /// D2H data that were pulled.
    pub pulled: Option<Pulled<Fresh>>,
    /// H2D request.
    pub snoop: Option<Snoop>,
    /// H2D response.
    pub response: Option<Response>,
    /// H2D data.
    pub data: Option<Fresh>,
}

/// A device, as far as it is about one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its coherence engine.
    pub line: dcoh::Line<Fresh>,
    /// What is on its way.
    pub channels: Channels,
}

/// The host's side of a line.
pub type Host = host_side::Line<Fresh, DEVICES_MAX, CORES_MAX>;

/// Everything about one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The host's side.
    pub host: Host,
    /// The devices.
    pub devices: [Device; DEVICES_MAX],
}

/// Everything, between two actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    /// The lines.
    pub lines: [Line; LINES_MAX],
}

impl World {
    /// Only memory holds anything.
    pub fn initial() -> World {
        let device = Device { line: dcoh::Line::new(Fresh(0)), channels: Channels::default() };
        let mut host = Host::new(Fresh::NEWEST);
        host.cores.iter_mut().for_each(|core| core.data = Fresh(0));
        World { lines: [Line { host, devices: [device; DEVICES_MAX] }; LINES_MAX] }
    }
}

impl Line {
    /// A part of the line is written somewhere: what else there is of it is not the newest any longer. Not so what a
    /// `RdCurr` has read, which was the newest when it was read, and what is yet to be written.
    pub fn outdate(&mut self, part: Part) {
        let outdate = |data: &mut Fresh| *data = data.outdated(part);
        let served = self.host.service.map(|service| service.requester);
        let reads_current = served.is_some_and(Requester::reads_current);
        outdate(&mut self.host.memory);
        if let LastLevel::Clean(data) | LastLevel::Dirty(data) = &mut self.host.last_level {
            outdate(data);
        }
        self.host.cores.iter_mut().for_each(|core| outdate(&mut core.data));
        for (number, device) in self.devices.iter_mut().enumerate() {
            outdate(&mut device.line.data);
            let transaction = &mut device.line.transaction;
            if !matches!(transaction, Some(Transaction { request: Request::RdCurr, .. })) {
                if let Some(Transaction { waits: Waits::Go { data }, .. }) = transaction {
                    outdate(data);
                }
                device.channels.data.iter_mut().for_each(outdate);
            }
            if !reads_current {
                device.channels.snooped.iter_mut().for_each(outdate);
            }
            let is_write = matches!(served, Some(Requester::Device(of, request))
                if of == number && request.writes().is_some());
            if !is_write {
                device.channels.pulled.iter_mut().for_each(|pulled| outdate(&mut pulled.data));
            }
        }
    }

    /// What an invalid copy holds is taken to be stale.
    pub fn forget_invalid(&mut self) {
        let at_devices = self.devices.iter_mut().map(|device| (device.line.state, &mut device.line.data));
        let at_cores = self.host.cores.iter_mut().map(|core| (core.state, &mut core.data));
        let invalid = at_devices.chain(at_cores).filter(|(state, _)| *state == CacheState::Invalid);
        invalid.for_each(|(_, data)| *data = Fresh(0));
    }

    /// Whether nothing is under way: no request, no message.
    pub fn is_at_rest(&self) -> bool {
        self.host.service.is_none()
            && self.host.cores.iter().all(|core| core.access.is_none())
            && self
                .devices
                .iter()
                .all(|device| device.line.transaction.is_none() && device.channels == Channels::default())
    }

    /// Whether the line is in caches and memory, and nowhere between: requests may wait to be served.
    pub fn is_settled(&self) -> bool {
        self.host.service.is_none()
            && self.devices.iter().all(|device| {
                let channels = Channels { request: false, ..device.channels };
                let is_unserved = device.line.transaction.is_none_or(|transaction| transaction.waits == Waits::All);
                channels == Channels::default()
                    && is_unserved
                    && device.channels.request == device.line.transaction.is_some()
            })
    }

    /// The state and data of every copy in a device's or core's cache that may be used: one that waits to be given up
    /// may not, and is only kept to be pulled.
    pub fn copies(&self) -> impl Iterator<Item = (CacheState, Fresh)> {
        let is_given_up = |line: &dcoh::Line<Fresh>| line.transaction.is_some_and(|own| own.request.is_eviction());
        let at_devices = self.devices.iter().filter(move |device| !is_given_up(&device.line));
        let at_devices = at_devices.map(|device| (device.line.state, device.line.data));
        at_devices.chain(self.host.cores.iter().map(|core| (core.state, core.data)))
    }

    /// Whether someone has the only copy that is the newest, to be given up or not.
    pub fn is_modified(&self) -> bool {
        let mut at_devices = self.devices.iter().map(|device| device.line.state);
        let mut at_cores = self.host.cores.iter().map(|core| core.state);
        at_devices.any(|state| state == CacheState::Modified) || at_cores.any(|state| state == CacheState::Modified)
    }
}
