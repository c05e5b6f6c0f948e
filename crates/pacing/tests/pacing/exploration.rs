//! Within small bounds, every order in which participants fall silent, die, restart and lose their owner: none exceeds
//! its share, and none stops the others.

use fencepost_pacing::Law;

use crate::world::{World, ideal};

const CAPACITY: f64 = 16e9;
/// Of the capacity, what all get together at most: each that comes back is allowed `w / (W + w)` of it until the owner
/// counts it, where `W` is the weight of those that are counted; two that come back to nobody take it twice.
const EXCESS_MAX: f64 = 2.01;
const THREADS: [(f64, f64); 2] = [(1.0, 30e9), (2.0, 30e9)];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Runs,
    IsSilent,
    Dies,
    Restarts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum OwnerDeed {
    Decides,
    IsAbsent,
    IsReplaced,
}

const DEEDS: [Deed; 4] = [Deed::Runs, Deed::IsSilent, Deed::Dies, Deed::Restarts];
const OWNER_DEEDS: [OwnerDeed; 3] = [OwnerDeed::Decides, OwnerDeed::IsAbsent, OwnerDeed::IsReplaced];

fn step(
    world: &mut World,
    current: &mut [usize; 2],
    deeds: [Deed; 2],
    owner: OwnerDeed,
    story: &[([Deed; 2], OwnerDeed)],
) {
    let mut silent = Vec::new();
    for (at, deed) in deeds.into_iter().enumerate() {
        match deed {
            Deed::Runs => {}
            Deed::IsSilent => silent.push(current[at]),
            Deed::Dies => world.threads[current[at]].is_alive = false,
            Deed::Restarts => {
                world.threads[current[at]].is_alive = false;
                current[at] = world.start(THREADS[at].0, THREADS[at].1);
            }
        }
    }
    for _ in 0..world.windows_per_interval() {
        world.window(&silent);
        let all: f64 = world.threads.iter().filter_map(|thread| thread.windows.last()).sum();
        let most = EXCESS_MAX * CAPACITY * world.timing.window.as_secs_f64();
        assert!(all <= most, "together {:.2} of the capacity after {story:?}", all / most * EXCESS_MAX);
    }
    match owner {
        OwnerDeed::Decides => world.decide(0.0),
        OwnerDeed::IsAbsent => {}
        OwnerDeed::IsReplaced => {
            world.replace_owner();
            world.decide(0.0);
        }
    }
}

/// From here on nothing more happens: who lives gets its weighted share.
fn check_recovery(mut world: World, current: [usize; 2], story: &[([Deed; 2], OwnerDeed)]) {
    for _ in 0..60 {
        world.interval(&[]);
    }
    let live: Vec<usize> = (0..2).filter(|&at| world.threads[current[at]].is_alive).collect();
    let channels: Vec<(f64, f64)> = live.iter().map(|&at| THREADS[at]).collect();
    for (&at, expected) in live.iter().zip(ideal(CAPACITY, &channels)) {
        let got = world.rate(current[at], 50);
        assert!((got / expected - 1.0).abs() < 0.03, "thread {at} gets {got} and not {expected} after {story:?}");
    }
}

fn explore(world: &World, current: [usize; 2], depth: usize, story: &mut Vec<([Deed; 2], OwnerDeed)>) -> usize {
    if story.len() == depth {
        check_recovery(world.clone(), current, story);
        return 1;
    }
    let mut stories = 0;
    for one in DEEDS {
        for other in DEEDS {
            for owner in OWNER_DEEDS {
                let (mut next, mut next_current) = (world.clone(), current);
                step(&mut next, &mut next_current, [one, other], owner, story);
                story.push(([one, other], owner));
                stories += explore(&next, next_current, depth, story);
                story.pop();
            }
        }
    }
    stories
}

fn explore_all(depth: u32) {
    for law in [Law::Iterative, Law::WaterFilling] {
        let mut world = World::new(law, CAPACITY);
        let current = THREADS.map(|(weight, demand)| world.start(weight, demand));
        // Nobody is paused before the first grant.
        (0..20).for_each(|_| world.interval(&[]));
        assert_eq!(explore(&world, current, depth as usize, &mut Vec::new()), 48usize.pow(depth));
    }
}

#[test]
fn whatever_happens_to_participants_the_others_get_their_shares() {
    explore_all(2);
}

#[test]
#[ignore = "takes minutes; make slow-tests"]
fn whatever_happens_in_three_intervals_the_others_get_their_shares() {
    explore_all(3);
}

/// A restarted channel is held to the share that fits all, so restarting often gains nothing.
#[test]
fn restarting_again_and_again_gains_nothing() {
    let mut world = World::new(Law::Iterative, CAPACITY);
    (0..2).for_each(|_| {
        world.start(1.0, 30e9);
    });
    for _ in 0..100 {
        world.interval(&[]);
    }
    let mut current = 0;
    let mut moved = 0.0;
    let windows = 50 * world.windows_per_interval();
    for _ in 0..50 {
        world.threads[current].is_alive = false;
        current = world.start(1.0, 30e9);
        world.interval(&[]);
        moved += world.threads[current].windows.iter().sum::<f64>();
    }
    let rate = moved / (windows as f64 * world.timing.window.as_secs_f64());
    assert!(rate <= CAPACITY / 2.0, "{rate}");
}
