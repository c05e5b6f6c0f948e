//! Acting on accelerators and on the host's side of CXL.cache.

use super::System;
use super::component::AnyComponent;
use crate::coherent_host::CoherentHost;
use crate::config::topology::{DeviceId, HostId};
use crate::device::type2::Accelerator;
use fencepost_kernel::Context;

impl System {
    /// An accelerator.
    ///
    /// # Panics
    /// If that device is none.
    pub fn accelerator(&self, device: DeviceId) -> &Accelerator {
        match &self.components[self.devices[device.0 as usize].0 as usize] {
            AnyComponent::Accelerator(accelerator) => accelerator,
            _ => unreachable!("{device:?} is no accelerator"),
        }
    }

    /// Lets an accelerator act.
    ///
    /// # Panics
    /// If that device is none.
    pub fn with_accelerator<R>(
        &mut self,
        device: DeviceId,
        act: impl FnOnce(&mut Accelerator, &mut Context<'_>) -> R,
    ) -> R {
        let id = self.devices[device.0 as usize];
        let mut context = Context::new(self.now, id, &mut self.queue, &self.wires);
        match &mut self.components[id.0 as usize] {
            AnyComponent::Accelerator(accelerator) => act(accelerator, &mut context),
            _ => unreachable!("{device:?} is no accelerator"),
        }
    }

    /// The host's side of CXL.cache.
    ///
    /// # Panics
    /// If the system was not made with it.
    pub fn coherent_host(&self, host: HostId) -> &CoherentHost {
        match &self.components[self.coherent_hosts[host.0 as usize].0 as usize] {
            AnyComponent::CoherentHost(host) => host,
            _ => unreachable!("only such hosts are listed"),
        }
    }

    /// Lets the host's side of CXL.cache act.
    ///
    /// # Panics
    /// If the system was not made with it.
    pub fn with_coherent_host<R>(
        &mut self,
        host: HostId,
        act: impl FnOnce(&mut CoherentHost, &mut Context<'_>) -> R,
    ) -> R {
        let id = self.coherent_hosts[host.0 as usize];
        let mut context = Context::new(self.now, id, &mut self.queue, &self.wires);
        match &mut self.components[id.0 as usize] {
            AnyComponent::CoherentHost(host) => act(host, &mut context),
            _ => unreachable!("only such hosts are listed"),
        }
    }
}
