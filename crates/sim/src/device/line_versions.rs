//! What a medium holds: the version of each line.

use std::sync::Arc;

use crate::message::Version;

/// Lines of a leaf; it holds the versions of 4 KiB of memory.
const LEAF_LINES: usize = 64;
/// Leaves of a branch; it stands for 2 MiB of memory.
const BRANCH_LEAVES: usize = 512;

type Leaf = [Version; LEAF_LINES];
type Branch = [Option<Arc<Leaf>>; BRANCH_LEAVES];

/// The version of each line of a device, by the line's number in the device. Lines never written have version 0 and take no room.
///
/// A tree of two levels below its root. A clone shares branches and leaves with the original until one of them writes there: a snapshot of a large
/// memory costs little.
#[derive(Clone, Debug, Default)]
pub struct LineVersions {
    branches: Vec<Option<Arc<Branch>>>,
    /// How many writes brought an older version than was there, where that is let happen.
    older_writes: Option<u64>,
}

impl LineVersions {
    /// The version of line `device_line`.
    pub fn get(&self, device_line: u64) -> Version {
        let (branch, leaf, line) = position(device_line);
        let branch = self.branches.get(branch).and_then(Option::as_ref);
        branch.and_then(|branch| branch[leaf].as_ref()).map_or(Version(0), |leaf| leaf[line])
    }

    /// Line `device_line` now has `version`.
    ///
    /// # Panics
    /// If the line has a newer version already, a write went past a later one: unless [`Self::take_older_writes`] was called.
    pub fn set(&mut self, device_line: u64, version: Version) {
        let takes_older = self.older_writes.is_some();
        let held = self.place(device_line);
        assert!(
            version >= *held || takes_older,
            "line {device_line} of a device goes back from {held:?} to {version:?}"
        );
        *held = version;
    }

    /// From now on a write of an older version replaces a newer one, as on a real medium, and is counted: for machines that say they are unsafe.
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

    /// Line `device_line` now has `version`, whatever it had: for volatile media, of which hosts keep no account while they only warm caches.
    pub fn overwrite(&mut self, device_line: u64, version: Version) {
        *self.place(device_line) = version;
    }

    /// All content is lost.
    pub fn clear(&mut self) {
        self.branches.clear();
    }

    fn place(&mut self, device_line: u64) -> &mut Version {
        let (branch, leaf, line) = position(device_line);
        if self.branches.len() <= branch {
            self.branches.resize(branch + 1, None);
        }
        let branch = self.branches[branch].get_or_insert_with(|| Arc::new([const { None }; BRANCH_LEAVES]));
        let leaf = Arc::make_mut(branch)[leaf].get_or_insert_with(|| Arc::new([Version(0); LEAF_LINES]));
        &mut Arc::make_mut(leaf)[line]
    }
}

fn position(device_line: u64) -> (usize, usize, usize) {
    let (leaf, line) = (device_line / LEAF_LINES as u64, device_line % LEAF_LINES as u64);
    ((leaf / BRANCH_LEAVES as u64) as usize, (leaf % BRANCH_LEAVES as u64) as usize, line as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_version_and_others_stay_as_they_were() {
        let mut versions = LineVersions::default();
        versions.set(10_000, Version(3));
        versions.set(10_001, Version(1));
        assert_eq!([9_999, 10_000, 10_001].map(|line| versions.get(line).0), [0, 3, 1]);
        assert_eq!(versions.get(u64::MAX), Version(0));
    }

    #[test]
    fn a_snapshot_does_not_change_with_the_original() {
        let mut versions = LineVersions::default();
        versions.set(5, Version(1));
        let snapshot = versions.clone();
        versions.set(5, Version(2));
        assert_eq!((snapshot.get(5), versions.get(5)), (Version(1), Version(2)));
    }

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
    #[should_panic(expected = "goes back")]
    fn an_older_version_never_replaces_a_newer_one() {
        let mut versions = LineVersions::default();
        versions.set(5, Version(2));
        versions.set(5, Version(1));
    }
}
