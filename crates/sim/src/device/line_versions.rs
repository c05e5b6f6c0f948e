//! What a medium holds: the version of each line.

use std::sync::Arc;

use crate::message::Version;

/// Lines of a leaf; it holds the versions of 256 KiB of memory.
const LEAF_LINES: usize = 4096;

/// The version of each line of a device, by the line's number in the device. Lines never written have version 0 and take no room.
///
/// A clone shares its leaves with the original until one of them writes: a snapshot of a large memory costs little.
#[derive(Clone, Debug, Default)]
pub struct LineVersions {
    leaves: Vec<Option<Arc<[Version; LEAF_LINES]>>>,
}

impl LineVersions {
    /// The version of line `device_line`.
    pub fn get(&self, device_line: u64) -> Version {
        let (leaf, line) = position(device_line);
        self.leaves.get(leaf).and_then(Option::as_ref).map_or(Version(0), |leaf| leaf[line])
    }

    /// Line `device_line` now has `version`.
    ///
    /// # Panics
    /// If the line has a newer version already: a write went past a later one.
    pub fn set(&mut self, device_line: u64, version: Version) {
        let held = self.get(device_line);
        assert!(version >= held, "line {device_line} of a device goes back from {held:?} to {version:?}");
        self.overwrite(device_line, version);
    }

    /// Line `device_line` now has `version`, whatever it had: for volatile media, of which hosts keep no account while they only warm caches.
    pub fn overwrite(&mut self, device_line: u64, version: Version) {
        let (leaf, line) = position(device_line);
        if self.leaves.len() <= leaf {
            self.leaves.resize(leaf + 1, None);
        }
        let leaf = self.leaves[leaf].get_or_insert_with(|| Arc::new([Version(0); LEAF_LINES]));
        Arc::make_mut(leaf)[line] = version;
    }

    /// All content is lost.
    pub fn clear(&mut self) {
        self.leaves.clear();
    }
}

fn position(device_line: u64) -> (usize, usize) {
    ((device_line / LEAF_LINES as u64) as usize, (device_line % LEAF_LINES as u64) as usize)
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
    #[should_panic(expected = "goes back")]
    fn an_older_version_never_replaces_a_newer_one() {
        let mut versions = LineVersions::default();
        versions.set(5, Version(2));
        versions.set(5, Version(1));
    }
}
