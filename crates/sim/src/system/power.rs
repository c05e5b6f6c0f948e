//! Power failure, recovery, and the two phases of a Global Persistent Flush.

use super::System;
use super::component::AnyComponent;
use fencepost_kernel::line::{LineAddress, Version};
use fencepost_kernel::{ComponentId, Context};

impl System {
    /// Cuts the power: everything volatile and everything on the wires is lost.
    pub fn power_fail(&mut self) {
        self.queue.clear();
        for component in &mut self.components {
            component.component_mut().power_fail();
        }
    }

    /// Restores the power: every component starts its recovery. The events of the recovery remain to be handled.
    pub fn recover(&mut self) {
        for id in 0..self.components.len() {
            let mut context = Context::new(self.now, ComponentId(id as u32), &mut self.queue, &self.wires);
            self.components[id].component_mut().recover(&mut context);
        }
    }

    /// Starts phase 1 of a Global Persistent Flush at all hosts.
    pub fn begin_flush_of_hosts(&mut self) {
        self.all_hosts(|host, context| {
            host.begin_global_flush(context);
            true
        });
    }

    /// Starts phase 2 of a Global Persistent Flush at all switches. Devices write out their queues in any case.
    pub fn begin_flush_of_switches(&mut self) {
        for id in 0..self.components.len() {
            let mut context = Context::new(self.now, ComponentId(id as u32), &mut self.queue, &self.wires);
            if let AnyComponent::Switch(switch) = &mut self.components[id] {
                switch.begin_global_flush(&mut context);
            }
        }
    }

    /// The version of a PM line in the persistent domain: that of a persist buffer, else that of the device.
    pub fn durable_version(&self, line: LineAddress) -> Version {
        let buffered = self.components.iter().filter_map(|component| match component {
            AnyComponent::Switch(switch) => switch.durable_version(line),
            _ => None,
        });
        let device = self.devices[self.device_of(line).0 as usize];
        let memory = self.components[device.0 as usize].memory();
        let stored = memory.and_then(|device| device.durable_version(line));
        buffered.chain(stored).max().unwrap_or_default()
    }
}
