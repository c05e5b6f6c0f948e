use proptest::prelude::*;

use super::*;
use crate::linux::preset::{LINUX_6_2, LINUX_6_8};

fn facts(compressed: u32) -> Facts {
    Facts { same_filled: None, compressed, class: Class::Half, checksum: 0 }
}

/// `pages` pages that compress to half, in memory for 400.
fn memory(pages: u32, has_zswap: bool) -> Memory {
    let limit = Limit { pages: 400, has_zswap, keeps_whole: false, pool_in_limit: true };
    Memory::new(&LINUX_6_2, limit, (0..u64::from(pages)).collect(), vec![Some(facts(1900)); pages as usize], |_| true)
}

fn settle(memory: &mut Memory) -> Vec<Job> {
    let mut jobs = Vec::new();
    while memory.is_below_high() && memory.kswapd(&mut jobs) {}
    jobs
}

/// What was done to the contents of pages.
fn work(jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter().filter(|job| !matches!(job, Job::Unmap { .. })).collect()
}

#[test]
fn kswapd_frees_up_to_the_high_mark() {
    let mut memory = memory(380, true);
    assert_eq!(memory.marks, Watermarks { min: 40, low: 50, high: 60 });
    assert!(memory.is_low());
    let jobs = work(settle(&mut memory));
    // Two compressed pages take one: to have 40 more pages free, 80 have to go.
    assert_eq!((jobs.len(), memory.free(), memory.pool_pages(), memory.frames()), (80, 60, 40, 300));
}

#[test]
fn without_zswap_pages_go_to_the_swap_device() {
    let mut memory = memory(380, false);
    let jobs = settle(&mut memory);
    assert_eq!(jobs.len(), 80);
    assert_eq!(jobs[..2], [Job::Unmap { page: 0 }, Job::SwapWrite { page: 0 }]);
    let mut jobs = Vec::new();
    assert_eq!(memory.touch(0, false, &mut jobs), Touched::Major);
    assert_eq!(jobs, [Job::SwapRead { page: 0 }]);
}

#[test]
fn a_fault_decompresses_and_the_next_one_beside_it_reads_ahead() {
    let mut memory = memory(380, true);
    settle(&mut memory);
    let mut jobs = Vec::new();
    assert_eq!(memory.touch(10, false, &mut jobs), Touched::Major);
    assert_eq!(jobs.len(), 1, "nothing says yet that its neighbours are wanted");
    jobs.clear();
    assert_eq!(memory.touch(11, false, &mut jobs), Touched::Major);
    assert_eq!(jobs.len(), 2);
    assert_eq!(memory.touch(12, false, &mut jobs), Touched::Minor, "it was read ahead");
    assert_eq!(memory.touch(12, false, &mut jobs), Touched::Present);
    assert_eq!((memory.counts.read_ahead, memory.counts.read_ahead_hits), (1, 1));
}

#[test]
fn readahead_grows_with_hits_to_eight_and_shrinks_by_half() {
    let mut window = Window::default();
    let mut sizes = Vec::new();
    for (fault, hits) in [(100, 0), (101, 1), (200, 3), (300, 7), (400, 0), (500, 0), (600, 0)] {
        window.hits = hits;
        sizes.push(window.next(fault, 8).1);
    }
    assert_eq!(sizes, [1, 4, 8, 8, 4, 2, 1]);
}

#[test]
fn below_min_the_faulting_task_reclaims_a_batch() {
    let mut memory = memory(361, false);
    let mut jobs = Vec::new();
    assert!(memory.kswapd(&mut jobs));
    assert_eq!(memory.free(), i64::from(memory.marks.min));
    jobs.clear();
    memory.touch(0, false, &mut jobs);
    let writes = jobs.iter().filter(|job| matches!(job, Job::SwapWrite { .. })).count();
    assert_eq!((writes, memory.counts.direct_reclaims), (32, 1));
}

#[test]
fn a_page_that_was_only_read_is_dropped_and_not_compressed_again_in_6_2() {
    let mut memory = memory(380, true);
    settle(&mut memory);
    let mut jobs = Vec::new();
    memory.touch(0, false, &mut jobs);
    while memory.counts.reclaimed_clean == 0 {
        assert!(memory.kswapd(&mut jobs));
    }
    assert!(!jobs.iter().skip(1).any(|job| matches!(job, Job::Compress { page: 0, .. })));
    assert!(jobs.contains(&Job::Unmap { page: 0 }), "it is unmapped all the same");
    assert!(memory.is_consistent());
}

#[test]
fn a_write_to_a_shared_page_copies_it() {
    let mut memory = memory(3, false);
    memory.share(0, 0);
    memory.join(1, 0);
    assert_eq!((memory.frames(), memory.sharers(0), memory.shared()), (2, 2, (2, 1)));
    let mut jobs = Vec::new();
    assert_eq!(memory.touch(0, false, &mut jobs), Touched::Present);
    assert_eq!(memory.touch(0, true, &mut jobs), Touched::Minor);
    assert_eq!((jobs, memory.frames()), (vec![Job::Copy { page: 0 }], 3));
    memory.touch(1, true, &mut Vec::new());
    assert_eq!((memory.frames(), memory.shared()), (3, (0, 0)), "nobody has the shared page");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_touched_pages_and_memory_add_up(
        touches in prop::collection::vec((0u32..600, any::<bool>()), 1..2000),
        has_zswap: bool, pool_in_limit: bool, is_new: bool, sizes in prop::collection::vec(1u32..4200, 600),
    ) {
        let preset = if is_new { &LINUX_6_8 } else { &LINUX_6_2 };
        let limit = Limit { pages: 400, has_zswap, keeps_whole: false, pool_in_limit };
        let known = sizes.iter().map(|&size| Some(facts(size))).collect();
        let mut memory = Memory::new(preset, limit, (0..600).collect(), known, |page| page < 500);
        settle(&mut memory);
        for (page, writes) in touches {
            let mut jobs = Vec::new();
            memory.touch(page, writes, &mut jobs);
            if memory.is_low() {
                settle(&mut memory);
            }
            prop_assert!(memory.is_consistent());
            prop_assert!(memory.free() >= 0, "{}", memory.free());
            prop_assert_eq!(memory.touch(page, false, &mut jobs), Touched::Present);
        }
    }
}

#[test]
fn an_expander_takes_what_does_not_compress() {
    let limit = Limit { pages: 400, has_zswap: true, keeps_whole: true, pool_in_limit: false };
    let mut memory = Memory::new(&LINUX_6_2, limit, (0..380).collect(), vec![Some(facts(4096)); 380], |_| true);
    let jobs = work(settle(&mut memory));
    assert!(jobs.iter().all(|job| matches!(job, Job::Compress { .. })));
    assert_eq!((jobs.len(), memory.free(), memory.pool_pages()), (40, 60, 0));
}
