//! Acting on all hosts at once: waits, and boundaries of regions of interest.

use super::System;
use super::component::AnyComponent;
use crate::host::{Host, RegionBoundary, SocketPlan};
use fencepost_kernel::{ComponentId, Context};

impl System {
    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().map(|id| match &self.components[id.0 as usize] {
            AnyComponent::Host(host) => host.as_ref(),
            _ => unreachable!("only hosts are listed"),
        })
    }

    /// The names of the hosts.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|id| self.names[id.0 as usize].as_str())
    }

    /// What lies where in the hosts that have several sockets.
    pub fn socket_plans(&self) -> Vec<(ComponentId, SocketPlan)> {
        self.hosts.iter().zip(self.hosts()).filter_map(|(id, host)| Some((*id, host.socket_plan()?))).collect()
    }

    /// The hosts.
    pub fn hosts_mut(&mut self) -> impl Iterator<Item = &mut Host> {
        self.components.iter_mut().filter_map(|component| match component {
            AnyComponent::Host(host) => Some(host.as_mut()),
            _ => None,
        })
    }

    /// The boundary of a region of interest that a host has just crossed, with the host's number.
    #[inline]
    pub fn take_region_boundary(&mut self) -> Option<(usize, RegionBoundary)> {
        let components = &mut self.components;
        self.hosts.iter().enumerate().find_map(|(number, id)| match &mut components[id.0 as usize] {
            AnyComponent::Host(host) => host.take_region_boundary().map(|boundary| (number, boundary)),
            _ => None,
        })
    }

    /// Ends one wait, when no event is left and programs have not ended; says whether there was one.
    pub fn unblock(&mut self) -> bool {
        self.any_host(Host::unblock)
    }

    /// The same where hosts meet at the boundaries of regions: a host waiting at a boundary needs no wake.
    pub fn unblock_within_regions(&mut self) -> bool {
        self.any_host(|host, context| !host.is_at_boundary() && host.unblock(context))
    }

    /// Lets hosts whose region has ended go on; says whether there was one.
    pub fn leave_regions(&mut self) -> bool {
        self.all_hosts(Host::leave_region)
    }

    /// Starts the regions of hosts that wait for each other; says whether there was one.
    pub fn begin_regions(&mut self) -> bool {
        self.all_hosts(Host::begin_region)
    }

    /// Lets hosts act in turn until one had something to do; says whether one had.
    fn any_host(&mut self, mut act: impl FnMut(&mut Host, &mut Context<'_>) -> bool) -> bool {
        self.hosts.clone().into_iter().any(|id| self.with_host(id, &mut act))
    }

    /// Lets every host act; says whether one had something to do.
    pub(super) fn all_hosts(&mut self, mut act: impl FnMut(&mut Host, &mut Context<'_>) -> bool) -> bool {
        let acted: Vec<bool> = self.hosts.clone().into_iter().map(|id| self.with_host(id, &mut act)).collect();
        acted.contains(&true)
    }

    pub(super) fn with_host<R>(&mut self, id: ComponentId, act: impl FnOnce(&mut Host, &mut Context<'_>) -> R) -> R {
        let mut context = Context::new(self.now, id, &mut self.queue, &self.wires);
        match &mut self.components[id.0 as usize] {
            AnyComponent::Host(host) => act(host, &mut context),
            _ => unreachable!("only hosts are listed"),
        }
    }
}
