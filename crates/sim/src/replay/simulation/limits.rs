//! Limits that several hosts share.

use super::Simulation;
use crate::host::Host;

impl Simulation {
    /// Stops all threads if the hosts have sent as many writes to PM as are allowed together.
    pub(super) fn look_at_shared_limit(&mut self) {
        let writes: u64 = self.system.hosts().map(|host| host.pm_writes()).sum();
        if self.shared_pm_writes_limit.is_some_and(|limit| writes >= limit) {
            self.shared_pm_writes_limit = None;
            self.has_reached_shared_pm_writes = true;
            self.system.hosts_mut().for_each(Host::stop_here);
        }
    }

    /// Limits the host that goes on with the next event to the instructions that all are still allowed together.
    pub(super) fn share_instructions(&mut self, limit: u64) {
        let instructions = self.instructions();
        if instructions >= limit {
            self.shared_instructions_limit = None;
            self.system.hosts_mut().for_each(Host::stop_here);
        } else {
            self.system
                .hosts_mut()
                .for_each(|host| host.limit_instructions(host.instructions() + limit - instructions));
        }
    }
}
