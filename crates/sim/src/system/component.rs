//! Every kind of component there is, as one enum: events reach components without a virtual call.

use crate::coherent_host::CoherentHost;
use crate::device::Device;
use crate::device::type2::Accelerator;
use crate::host::Host;
use crate::host_bridge::HostBridge;
use crate::switch::Switch;
use crate::traffic::{Generator, Keys};
use fencepost_kernel::{Component, Context, Event};

/// A component of any kind.
#[derive(Clone)]
pub enum AnyComponent {
    /// Cores and caches.
    Host(Box<Host>),
    /// Synthetic traffic in place of a host's cores and caches.
    Generator(Box<Generator>),
    /// The way from a host's caches to its memory ports.
    HostBridge(Box<HostBridge>),
    /// A CXL switch.
    Switch(Box<Switch>),
    /// A memory device: a host's DRAM, a PM device, a memory expander.
    Device(Box<Device>),
    /// A Type-2 device.
    Accelerator(Box<Accelerator>),
    /// The host's side of CXL.cache, in place of a host's cores and caches.
    CoherentHost(Box<CoherentHost>),
    /// Breaks the component contract, for tests of the livelock watch.
    #[cfg(test)]
    Broken(super::broken::Broken),
}

impl AnyComponent {
    pub(super) fn component(&self) -> &dyn Component {
        match self {
            AnyComponent::Host(host) => host.as_ref(),
            AnyComponent::Generator(generator) => generator.as_ref(),
            AnyComponent::HostBridge(bridge) => bridge.as_ref(),
            AnyComponent::Switch(switch) => switch.as_ref(),
            AnyComponent::Device(device) => device.as_ref(),
            AnyComponent::Accelerator(accelerator) => accelerator.as_ref(),
            AnyComponent::CoherentHost(host) => host.as_ref(),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken,
        }
    }

    pub(super) fn component_mut(&mut self) -> &mut dyn Component {
        match self {
            AnyComponent::Host(host) => host.as_mut(),
            AnyComponent::Generator(generator) => generator.as_mut(),
            AnyComponent::HostBridge(bridge) => bridge.as_mut(),
            AnyComponent::Switch(switch) => switch.as_mut(),
            AnyComponent::Device(device) => device.as_mut(),
            AnyComponent::Accelerator(accelerator) => accelerator.as_mut(),
            AnyComponent::CoherentHost(host) => host.as_mut(),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken,
        }
    }

    /// The memory device that it is, or has.
    pub(super) fn memory(&self) -> Option<&Device> {
        match self {
            AnyComponent::Device(device) => Some(device),
            AnyComponent::Accelerator(accelerator) => Some(accelerator.memory()),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn memory_mut(&mut self) -> Option<&mut Device> {
        match self {
            AnyComponent::Device(device) => Some(device),
            AnyComponent::Accelerator(accelerator) => Some(accelerator.memory_mut()),
            _ => None,
        }
    }

    /// `keys` are shared by all traffic generators.
    #[inline]
    pub(super) fn handle(&mut self, event: Event, keys: &mut Keys, context: &mut Context<'_>) {
        match self {
            AnyComponent::Host(host) => host.handle(event, context),
            AnyComponent::Generator(generator) => generator.handle_with(event, keys, context),
            AnyComponent::HostBridge(bridge) => bridge.handle(event, context),
            AnyComponent::Switch(switch) => switch.handle(event, context),
            AnyComponent::Device(device) => device.handle(event, context),
            AnyComponent::Accelerator(accelerator) => accelerator.handle(event, context),
            AnyComponent::CoherentHost(host) => host.handle(event, context),
            #[cfg(test)]
            AnyComponent::Broken(broken) => broken.handle(event, context),
        }
    }
}
