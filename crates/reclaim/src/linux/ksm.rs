//! ksm: pages that hold the same become one (mm/ksm.c). A page is looked for in the tree of shared pages; then its
//! checksum says whether it has changed since the last scan; then it is looked for among the others of this scan.
//!
//! Trees are balanced: a search compares as a binary search does.

use std::cmp::Ordering;

use super::memory::{Job, Memory};
use super::preset::Preset;
use crate::page::{Bytes, LINES, lines_compared};

const YOUNG: u8 = 3; // should_skip_rmap_item: from this age on

/// A page that is shared.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// A page that holds what it holds.
    like: u32,
    version: u32,
    number: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Item {
    checksum: Option<u64>,
    age: u8,
    skips: u8,
}

/// What ksmd knows.
#[derive(Clone, Debug)]
pub struct Ksm {
    preset: &'static Preset,
    items: Vec<Item>,
    /// Which pages it may look at, in the order of their addresses.
    pages: Vec<u32>,
    cursor: usize,
    stable: Vec<Node>,
    /// Pages of this scan, with what their version was.
    unstable: Vec<(u32, u32)>,
    numbers: u32,
    /// Whole scans.
    pub scans: u64,
}

/// Pages with what they held at first.
pub type Contents<'a> = &'a [Option<&'a Bytes>];

impl Ksm {
    /// For these pages, in this order.
    #[must_use]
    pub fn new(preset: &'static Preset, pages: Vec<u32>) -> Self {
        let items = vec![Item::default(); pages.iter().max().map_or(0, |&last| last as usize + 1)];
        Self { preset, items, pages, cursor: 0, stable: Vec::new(), unstable: Vec::new(), numbers: 0, scans: 0 }
    }

    /// Looks at the next page that is there (`cmp_and_merge_page`), whatever becomes of it.
    pub fn scan(&mut self, memory: &mut Memory, contents: Contents<'_>, jobs: &mut Vec<Job>) {
        let Some(page) = (0..self.pages.len()).map(|_| self.next()).find(|&page| memory.is_mapped(page)) else {
            return;
        };
        if memory.is_shared(page) || self.may_skip(page) {
            return;
        }
        self.stable.retain(|node| memory.sharers(node.number) > 0);
        let version = memory.version(page);
        let of_node = |node: &Node| (node.like, node.version);
        let (place, same) = search(&self.stable, of_node, (page, version), contents, jobs);
        if same {
            let has_room = |node: &&Node| {
                let is_same = compare(of_node(node), (page, version), contents).0 == Ordering::Equal;
                is_same && memory.sharers(node.number) < self.preset.ksm_sharers_max
            };
            if let Some(number) = self.stable[place..].iter().find(has_room).map(|node| node.number) {
                memory.join(page, number);
                return;
            }
        }
        jobs.push(Job::Hash { page });
        let original = contents[page as usize].map_or(0, |bytes| xxhash_rust::xxh64::xxh64(bytes, 0));
        let checksum = original.wrapping_add(u64::from(version));
        if self.items[page as usize].checksum.replace(checksum) != Some(checksum) {
            return;
        }
        self.unstable.retain(|&(page, version)| memory.is_private(page) && memory.version(page) == version);
        let (place, same) = search(&self.unstable, |&of| of, (page, version), contents, jobs);
        if !same {
            self.unstable.insert(place, (page, version));
            return;
        }
        let (other, _) = self.unstable.remove(place);
        let node = Node { like: page, version, number: self.numbers };
        self.numbers += 1;
        memory.share(other, node.number);
        memory.join(page, node.number);
        let at =
            self.stable.partition_point(|node| compare(of_node(node), (page, version), contents).0 == Ordering::Less);
        self.stable.insert(at, node);
    }

    fn next(&mut self) -> u32 {
        if self.cursor == self.pages.len() {
            self.cursor = 0;
            self.scans += 1;
            self.unstable.clear();
        }
        self.cursor += 1;
        self.pages[self.cursor - 1]
    }

    /// Smart scan: what has not been merged for a while is looked at less often.
    fn may_skip(&mut self, page: u32) -> bool {
        if !self.preset.ksm_smart_scan {
            return false;
        }
        let item = &mut self.items[page as usize];
        let age = item.age;
        item.age = age.saturating_add(1);
        if age < YOUNG {
            return false;
        }
        if item.skips == 0 {
            item.skips = match age {
                ..=3 => 1,
                4..=5 => 2,
                6..=8 => 4,
                _ => 8,
            };
            return false;
        }
        item.skips -= 1;
        true
    }
}

/// What two pages hold, compared: which comes first, and how many lines that took. What a page holds that has been
/// written is known to be its own only: it differs from all others behind what they had in common.
fn compare(one: (u32, u32), other: (u32, u32), contents: Contents<'_>) -> (Ordering, u32) {
    let bytes = |page: u32| contents[page as usize];
    let (Some(left), Some(right)) = (bytes(one.0), bytes(other.0)) else {
        return (one.cmp(&other), 1);
    };
    let lines = lines_compared(left, right);
    let as_written = || match (one.1, other.1) {
        (0, 0) => Ordering::Equal,
        _ => one.cmp(&other),
    };
    (left.cmp(right).then_with(as_written), lines)
}

/// Where a page is, or belongs, in a tree, and whether one that is the same is there.
fn search<T>(
    tree: &[T],
    of: impl Fn(&T) -> (u32, u32),
    page: (u32, u32),
    contents: Contents<'_>,
    jobs: &mut Vec<Job>,
) -> (usize, bool) {
    let mut is_found = false;
    let place = tree.partition_point(|node| {
        if is_found {
            // The search has ended; equal ones lie to the left.
            return compare(of(node), page, contents).0 == Ordering::Less;
        }
        let (order, lines) = compare(of(node), page, contents);
        jobs.push(Job::Compare { page: page.0, with: of(node).0, lines: lines.min(LINES) });
        is_found = order == Ordering::Equal;
        order == Ordering::Less
    });
    (place, is_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::memory::{Limit, Touched};
    use crate::linux::preset::{LINUX_6_2, LINUX_6_8};
    use crate::page::{Codec, Facts, PAGE};

    fn memory(contents: Contents<'_>) -> Memory {
        let limit = Limit { pages: 10_000, has_zswap: false, keeps_whole: false, pool_in_limit: true };
        let facts = contents.iter().map(|bytes| bytes.map(|bytes| Facts::of(bytes, Codec::Lz4))).collect();
        Memory::new(&LINUX_6_2, limit, (0..contents.len() as u64).collect(), facts, |_| true)
    }

    fn of_all(preset: &'static Preset, pages: u32) -> Ksm {
        Ksm::new(preset, (0..pages).collect())
    }

    fn scan_all(ksm: &mut Ksm, memory: &mut Memory, contents: Contents<'_>) -> Vec<Job> {
        let mut jobs = Vec::new();
        contents.iter().for_each(|_| ksm.scan(memory, contents, &mut jobs));
        jobs
    }

    fn hashes(jobs: &[Job]) -> usize {
        jobs.iter().filter(|job| matches!(job, Job::Hash { .. })).count()
    }

    #[test]
    fn the_second_scan_merges_what_has_not_changed() {
        let (same, other) = ([1; PAGE], [2; PAGE]);
        let contents = [Some(&same), Some(&other), Some(&same), Some(&same)];
        let (mut memory, mut ksm) = (memory(&contents), of_all(&LINUX_6_2, 4));
        let first = scan_all(&mut ksm, &mut memory, &contents);
        assert_eq!((hashes(&first), first.len(), memory.counts.merged), (4, 4, 0));
        let second = scan_all(&mut ksm, &mut memory, &contents);
        // Page 2 meets page 0 in the unstable tree, page 3 both in the stable one: it is not hashed.
        assert_eq!((hashes(&second), memory.counts.merged, memory.frames()), (3, 3, 2));
        assert!(memory.is_consistent());
    }

    #[test]
    fn a_page_that_is_written_between_scans_is_only_hashed() {
        let same = [1; PAGE];
        let contents = [Some(&same); 2];
        let (mut memory, mut ksm) = (memory(&contents), of_all(&LINUX_6_2, 2));
        for _ in 0..4 {
            scan_all(&mut ksm, &mut memory, &contents);
            assert_eq!(memory.touch(0, true, &mut Vec::new()), Touched::Present);
        }
        assert_eq!(memory.counts.merged, 0);
    }

    #[test]
    fn no_more_than_256_share_a_page() {
        let same = [1; PAGE];
        let contents = vec![Some(&same); 600];
        let (mut memory, mut ksm) = (memory(&contents), of_all(&LINUX_6_2, 600));
        scan_all(&mut ksm, &mut memory, &contents);
        scan_all(&mut ksm, &mut memory, &contents);
        assert_eq!([0, 1, 2].map(|number| memory.sharers(number)), [256, 256, 88]);
        assert_eq!(memory.frames(), 3);
    }

    #[test]
    fn smart_scan_skips_one_two_four_and_then_eight() {
        let bytes = [1; PAGE];
        let contents = [Some(&bytes)];
        let (mut memory, mut ksm) = (memory(&contents), of_all(&LINUX_6_8, 1));
        let looked: Vec<usize> = (0..30).filter(|_| !scan_all(&mut ksm, &mut memory, &contents).is_empty()).collect();
        assert_eq!(looked, [0, 1, 2, 3, 5, 8, 13, 22]);
    }
}
