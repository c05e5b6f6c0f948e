//! Reads and writes without time: how warming leaves devices and persist buffers.

use super::System;
use crate::host::Host;
use fencepost_kernel::line::{LineAddress, Version};

impl System {
    /// Moves the lines written during warming to the devices. If a persist buffer on the way still holds the line from
    /// an earlier region, the first such buffer takes it instead.
    pub fn absorb_warm_writes(&mut self) {
        for (host, line, version) in self.take_warm_writes() {
            self.preload(host, line, version);
        }
    }

    /// The same between the intervals of a sample, where persist buffers should hold what a detailed run would have
    /// left in them: the most recent lines, a few times as many as the buffers have entries, pass through the buffers.
    pub fn absorb_sampled_writes(&mut self) {
        /// Lines per buffer entry that pass through a buffer; after that many, its content no longer depends on older
        /// lines.
        const ROUNDS: usize = 4;
        let writes = self.take_warm_writes();
        let buffers = self.switches().filter_map(|(_, switch)| switch.persist_buffer());
        let recent = buffers.map(|buffer| buffer.entries() * ROUNDS).max().unwrap_or(0);
        let (old, recent) = writes.split_at(writes.len().saturating_sub(recent));
        for &(host, line, version) in old {
            self.preload(host, line, version);
        }
        for &(host, line, version) in recent {
            self.write_functionally(host, line, version);
        }
    }

    fn take_warm_writes(&mut self) -> Vec<(usize, LineAddress, Version)> {
        let of_host = |(host, of): (usize, &mut Host)| {
            of.take_warm_writes().into_iter().map(move |(line, version)| (host, line, version)).collect::<Vec<_>>()
        };
        self.hosts_mut().enumerate().flat_map(of_host).collect()
    }

    fn preload(&mut self, host: usize, line: LineAddress, version: Version) {
        let device = self.device_of(line);
        let points = self.persist_points[host][device.0 as usize].clone();
        if !points.into_iter().any(|switch| self.switch_mut(switch).preload(line, version)) {
            self.preload_device(line, version);
        }
    }

    /// Writes a line through the persist buffers on its way to its device, without time: each buffer takes what the
    /// previous one drains.
    fn write_functionally(&mut self, host: usize, line: LineAddress, version: Version) {
        let now = self.now;
        let device = self.device_of(line);
        let mut writes = vec![(line, version)];
        for switch in self.persist_points[host][device.0 as usize].clone() {
            let switch = self.switch_mut(switch);
            let drained = |(line, version)| switch.write_functionally(line, version, now).unwrap_or_default();
            writes = writes.into_iter().flat_map(drained).collect();
        }
        for (line, version) in writes {
            self.preload_device(line, version);
        }
    }

    fn preload_device(&mut self, line: LineAddress, version: Version) {
        let device = self.devices[self.device_of(line).0 as usize];
        if let Some(device) = self.components[device.0 as usize].memory_mut() {
            device.preload(line, version);
        }
    }
}
