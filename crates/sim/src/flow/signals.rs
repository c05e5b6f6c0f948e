//! What resources would say of their load: which part of what they sent met a full link behind them.
//!
//! A device marks its answers where its own queue is full, or where its egress port has no credits, and a switch's
//! egress port is backpressured likewise: both because something on the way to where the line goes holds more than its
//! buffers.

use std::collections::HashMap;

use super::network::Network;
use crate::config::Machine;
use crate::config::topology::{DeviceId, EdgeId};
use crate::device::MediumConfig;
use crate::transport::{Place, Resource, Way};
use fencepost_kernel::line::LINE_BYTES;
use fencepost_kernel::message::MessageClass;

#[derive(Clone, Copy, Debug)]
struct Signal {
    is_device: bool,
    /// What may wait here before it holds up what is in front.
    room_bytes: f64,
    is_full: bool,
    bytes: f64,
    bytes_held_up: f64,
}

/// Of all resources, since the last interval.
#[derive(Clone, Debug)]
pub struct Signals {
    of: Vec<Signal>,
    numbers: HashMap<Place, usize>,
}

impl Signals {
    /// Of resources by number.
    pub fn new(machine: &Machine, resources: &[Resource]) -> Signals {
        let topology = machine.topology();
        let moderate = machine.transport.load.moderate;
        let room_lines = |place: Place| match place {
            Place::Link { link, is_downstream } => topology.link_config(EdgeId(link)).map_or(0.0, |config| {
                let class = if is_downstream { MessageClass::M2sRwd } else { MessageClass::S2mDrs };
                f64::from(config.credits.of(class))
            }),
            Place::Device(device) => match topology.device_config(DeviceId(device)) {
                MediumConfig::Dram(dram) | MediumConfig::BackedDram(dram) => {
                    moderate * f64::from(dram.read_queue_entries) * f64::from(dram.channels)
                }
                MediumConfig::Pm(pm) => moderate * f64::from(pm.write_queue_entries),
            },
        };
        let signal = |resource: &Resource| Signal {
            is_device: matches!(resource.place, Place::Device(_)),
            room_bytes: room_lines(resource.place) * LINE_BYTES as f64,
            is_full: false,
            bytes: 0.0,
            bytes_held_up: 0.0,
        };
        let numbers = resources.iter().enumerate().map(|(number, resource)| (resource.place, number));
        Signals { of: resources.iter().map(signal).collect(), numbers: numbers.collect() }
    }

    /// A step begins, with these waits.
    pub fn begin_step(&mut self, network: &Network) {
        for (signal, pipe) in self.of.iter_mut().zip(&network.pipes) {
            signal.is_full = pipe.wait_ns > 0.0 && pipe.queued_bytes() > signal.room_bytes;
        }
    }

    /// So many bytes go that way.
    pub fn moved(&mut self, way: &Way, bytes: f64) {
        let mut is_held_up = false;
        let mut pass = |number: usize| {
            let signal = &mut self.of[number];
            // A device's own queue is a reason too.
            is_held_up |= signal.is_device && signal.is_full;
            signal.bytes += bytes;
            signal.bytes_held_up += if is_held_up { bytes } else { 0.0 };
            is_held_up |= signal.is_full;
        };
        // Paths go from the host to the device; what holds a line up lies before it on its way.
        if way.writes {
            way.path.iter().rev().for_each(|number| pass(*number));
        } else {
            way.path.iter().for_each(|number| pass(*number));
        }
    }

    /// The part of what was sent there that met something full.
    pub fn congested(&self, place: Place) -> f64 {
        let signal = &self.of[self.numbers[&place]];
        if signal.bytes > 0.0 { signal.bytes_held_up / signal.bytes } else { 0.0 }
    }

    /// An interval begins.
    pub fn clear(&mut self) {
        for signal in &mut self.of {
            (signal.bytes, signal.bytes_held_up) = (0.0, 0.0);
        }
    }
}
