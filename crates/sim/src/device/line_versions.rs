//! What a medium holds: the version of each line.

use fencepost_kernel::line::Version;
use fencepost_kernel::sparse_table::SparseTable;

/// The version of each line of a device, by the line's number in the device. Lines never written have version 0.
#[derive(Clone, Debug, Default)]
pub struct LineVersions {
    versions: SparseTable<Version>,
    /// How many writes brought an older version than was there, where that is let happen.
    older_writes: Option<u64>,
}

impl LineVersions {
    /// The version of line `device_line`.
    pub fn get(&self, device_line: u64) -> Version {
        self.versions.get(device_line)
    }

    /// Line `device_line` now has `version`.
    ///
    /// # Panics
    /// If the line has a newer version already, a write went past a later one: unless [`Self::take_older_writes`] was
    /// called.
    pub fn set(&mut self, device_line: u64, version: Version) {
        let takes_older = self.older_writes.is_some();
        let held = self.versions.get_mut(device_line);
        assert!(
            version >= *held || takes_older,
            "line {device_line} of a device goes back from {held:?} to {version:?}"
        );
        *held = version;
    }

    /// From now on a write of an older version replaces a newer one, as on a real medium, and is counted: for machines
    /// that say they are unsafe.
    pub fn take_older_writes(&mut self) {
        self.older_writes = Some(0);
    }

    /// A write of `version` comes, where `newest` gives what the device has of the line, queued or on its medium.
    #[inline]
    pub fn check_write(&mut self, version: Version, newest: Version) {
        match &mut self.older_writes {
            Some(count) => *count += u64::from(version < newest),
            None => debug_assert!(version >= newest, "a write overtook an earlier one to its line"),
        }
    }

    /// Whether writes have to be checked; otherwise only to find bugs.
    #[inline]
    pub fn checks_writes(&self) -> bool {
        self.older_writes.is_some() || cfg!(debug_assertions)
    }

    /// How many writes brought an older version, if they are taken.
    pub fn older_writes(&self) -> Option<u64> {
        self.older_writes
    }

    /// Line `device_line` now has `version`, whatever it had: for volatile media, of which hosts keep no account while
    /// they only warm caches.
    pub fn overwrite(&mut self, device_line: u64, version: Version) {
        *self.versions.get_mut(device_line) = version;
    }

    /// All content is lost.
    pub fn clear(&mut self) {
        self.versions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsafe_machine_takes_older_versions_and_counts_them() {
        let mut versions = LineVersions::default();
        versions.take_older_writes();
        for version in [2, 1, 1, 3] {
            versions.check_write(Version(version), versions.get(5));
            versions.set(5, Version(version));
        }
        assert_eq!((versions.get(5), versions.older_writes()), (Version(3), Some(1)));
    }

    #[test]
    fn a_version_follows_the_last_one_of_32_bits() {
        let mut versions = LineVersions::default();
        versions.set(5, Version(u32::MAX.into()));
        versions.set(5, Version(1 << 32));
        assert_eq!(versions.get(5), Version(1 << 32));
    }

    #[test]
    #[should_panic(expected = "goes back")]
    fn an_older_version_never_replaces_a_newer_one() {
        let mut versions = LineVersions::default();
        versions.set(5, Version(2));
        versions.set(5, Version(1));
    }
}
