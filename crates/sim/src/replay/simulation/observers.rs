//! What a replay can be told to log or to leave out, before its first step.

use std::sync::Arc;

use super::regions::RegionStart;
use super::{HostProgram, Simulation};
use crate::host::Host;
use fencepost_kernel::time::Time;
use fencepost_record::RecordError;

impl Simulation {
    /// Starts logging what the hosts are promised about PM.
    pub fn log_persists(&mut self) {
        self.system.hosts_mut().for_each(Host::log_persists);
    }

    /// Starts logging which versions of PM lines loads observe and stores make; [`Host::observations`] has the log.
    pub fn log_observations(&mut self) {
        self.system.hosts_mut().for_each(Host::log_observations);
    }

    /// Starts logging which store makes which version of a PM line; [`Host::stores`] has the log.
    pub fn log_stores(&mut self) {
        self.system.hosts_mut().for_each(Host::log_stores);
    }

    /// Starts counting which instructions persist and which fences wait for them, over the time that is measured;
    /// [`Host::persist_sites`] has the counts. To be called before the first step. `has_source` says of each host of
    /// which blocks source lines are known.
    pub fn log_sites(&mut self, has_source: impl IntoIterator<Item = Arc<[bool]>>) {
        let counts = self.region_start.is_some();
        for (host, has_source) in self.system.hosts_mut().zip(has_source) {
            host.log_sites(has_source);
            host.count_sites(counts);
        }
    }

    /// Times everything, whatever regions of interest the programs mark; to be called before the first step.
    pub fn ignore_regions(&mut self) {
        self.system.hosts_mut().for_each(Host::ignore_regions);
        self.has_regions = false;
        self.hosts_meet = false;
        self.region_start = Some(RegionStart::noticed_now(&mut self.system, Time::ZERO));
    }

    /// Makes synchronisation happen in its recorded order; to be called before the first step, with the program of each
    /// host.
    ///
    /// # Errors
    /// If a record cannot be read.
    pub fn keep_recorded_order(&mut self, programs: &[HostProgram]) -> Result<(), RecordError> {
        for (host, HostProgram { program, .. }) in self.system.hosts_mut().zip(programs) {
            host.keep_recorded_order(&program.record)?;
        }
        Ok(())
    }
}
