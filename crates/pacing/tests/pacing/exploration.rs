//! Within small bounds, every order in which participants fall silent, die and restart, and in which their owner is
//! absent, is replaced, and comes back without knowing that it was: none exceeds its share, and none stops the others.

use fencepost_pacing::{Grant, Law};

use crate::world::{World, ideal};

const CAPACITY: f64 = 16e9;
const THREADS: [(f64, f64); 2] = [(1.0, 30e9), (2.0, 30e9)];

/// What the counted channels use together beyond the capacity at most while the law follows a change, in parts of it.
/// Water-filling knows what a channel will take when it goes on after a break; the iterative law sees that its average
/// rate has fallen, gives that to others, and takes it back within about K.
fn lag(law: Law) -> f64 {
    match law {
        Law::Iterative => 0.35,
        Law::WaterFilling => 1e-6,
    }
}

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
    /// The owner that was replaced publishes over the grants of its successor.
    PublishesAfterItsTerm,
}

const DEEDS: [Deed; 4] = [Deed::Runs, Deed::IsSilent, Deed::Dies, Deed::Restarts];
const OWNER_DEEDS: [OwnerDeed; 4] =
    [OwnerDeed::Decides, OwnerDeed::IsAbsent, OwnerDeed::IsReplaced, OwnerDeed::PublishesAfterItsTerm];
/// For how many intervals it lasts. The longer time outlasts the lifetimes of grants and rows.
const LENGTHS: [usize; 2] = [1, 4];

#[derive(Clone, Copy, Debug)]
struct Step {
    deeds: [Deed; 2],
    owner: OwnerDeed,
    intervals: usize,
}

fn all_steps() -> Vec<Step> {
    let mut all = Vec::new();
    for one in DEEDS {
        for other in DEEDS {
            for owner in OWNER_DEEDS {
                all.extend(LENGTHS.map(|intervals| Step { deeds: [one, other], owner, intervals }));
            }
        }
    }
    all
}

/// How often the exploration has come to what it is meant to reach.
#[derive(Debug, Default)]
struct Reached {
    stories: usize,
    /// Windows in which a channel fell back to the share that fits all.
    fallbacks: usize,
    /// Channels that woke after their rows had expired.
    expired: usize,
    /// Grants of an owner whose term was over, on top of its successor's.
    after_term: usize,
}

/// What all may use together in the next window: the counted ones fit, and each other one has `w / (W + w)`.
fn bound(world: &World, silent: &[usize], grant: Grant) -> f64 {
    let runs = |at: &usize| world.threads[*at].is_alive && !silent.contains(at);
    let is_counted = |at: &usize| {
        let thread = &world.threads[*at];
        let slept = world.timing.window * (world.windows - thread.ended) as u32;
        slept <= world.timing.silence_max && grant.number >= thread.counted_from
    };
    let (counted, others): (Vec<usize>, Vec<usize>) = (0..2).filter(runs).partition(is_counted);
    let part = |at: &usize| world.threads[*at].weight / (grant.weight + world.threads[*at].weight);
    (if counted.is_empty() { 0.0 } else { 1.0 + lag(world.devices[0].law) }) + others.iter().map(part).sum::<f64>()
}

fn play(world: &mut World, seen: &mut Grant, step: Step, reached: &mut Reached, story: &[Step]) {
    let mut silent = Vec::new();
    for (at, deed) in step.deeds.into_iter().enumerate() {
        match deed {
            Deed::Runs => {}
            Deed::IsSilent => silent.push(at),
            Deed::Dies => world.threads[at].is_alive = false,
            Deed::Restarts => world.restart(at),
        }
    }
    if matches!(step.owner, OwnerDeed::IsReplaced | OwnerDeed::PublishesAfterItsTerm) {
        world.devices[0].replace_owner(&world.timing.clone());
    }
    for _ in 0..step.intervals {
        for _ in 0..world.windows_per_interval() {
            // A channel takes in a grant when its window ends, one that wakes before it runs.
            let latest = world.devices[0].grant(None).unwrap();
            let most = bound(world, &silent, latest).max(bound(world, &silent, *seen));
            *seen = latest;
            for at in 0..2 {
                let thread = &world.threads[at];
                let has_expired = world.devices[0].seat.members.has_expired(thread.id);
                reached.expired += usize::from(thread.is_alive && !silent.contains(&at) && has_expired);
            }
            world.window(&silent);
            let all: f64 = world.threads.iter().filter_map(|thread| thread.windows.last()).sum();
            let all = all / (CAPACITY * world.timing.window.as_secs_f64());
            assert!(all <= most, "together {all:.3} of the capacity, not {most:.3}, after {story:?}");
            reached.fallbacks += usize::from(world.windows_without_grant() > world.grant_lifetime_windows());
        }
        if step.owner != OwnerDeed::IsAbsent {
            world.decide(0.0);
        }
        if step.owner == OwnerDeed::PublishesAfterItsTerm {
            world.deposed_owner_publishes();
            reached.after_term += 1;
        }
    }
}

/// From here on nothing more happens: who lives gets its weighted share.
fn check_recovery(mut world: World, story: &[Step]) {
    let live: Vec<usize> = (0..2).filter(|&at| world.threads[at].is_alive).collect();
    let channels: Vec<(f64, f64)> = live.iter().map(|&at| THREADS[at]).collect();
    let expected = ideal(CAPACITY, &channels);
    let mut got = Vec::new();
    for interval in 0..60 {
        world.interval(&[]);
        if interval < 10 {
            continue;
        }
        got = live.iter().map(|&at| world.rate(at, 50)).collect();
        if got.iter().zip(&expected).all(|(got, expected)| (got / expected - 1.0).abs() < 0.03) {
            return;
        }
    }
    assert!(live.is_empty(), "threads {live:?} get {got:?} and not {expected:?} after {story:?}");
}

fn explore(world: &World, seen: Grant, depth: usize, story: &mut Vec<Step>, reached: &mut Reached) {
    if story.len() == depth {
        check_recovery(world.clone(), story);
        reached.stories += 1;
        return;
    }
    for step in all_steps() {
        let (mut next, mut next_seen) = (world.clone(), seen);
        story.push(step);
        play(&mut next, &mut next_seen, step, reached, story);
        explore(&next, next_seen, depth, story, reached);
        story.pop();
    }
}

fn explore_all(depth: u32) {
    for law in [Law::Iterative, Law::WaterFilling] {
        let mut world = World::new(law, CAPACITY);
        for (weight, demand) in THREADS {
            world.start(weight, demand);
        }
        // Nobody is paused before the first grant.
        (0..20).for_each(|_| world.interval(&[]));
        let mut reached = Reached::default();
        let seen = world.devices[0].grant(None).unwrap();
        explore(&world, seen, depth as usize, &mut Vec::new(), &mut reached);
        assert_eq!(reached.stories, all_steps().len().pow(depth));
        assert!(reached.fallbacks > 0 && reached.expired > 0 && reached.after_term > 0, "{reached:?}");
    }
}

#[test]
fn whatever_happens_to_participants_the_others_get_their_shares() {
    explore_all(2);
}

#[test]
#[ignore = "takes minutes; make slow-tests"]
fn whatever_happens_in_three_steps_the_others_get_their_shares() {
    explore_all(3);
}

/// Restarts thread 0 in each of 100 intervals: bytes per second of both.
fn with_restarts(mut restart: impl FnMut(&mut World)) -> [f64; 2] {
    let mut world = World::new(Law::Iterative, CAPACITY);
    (0..2).for_each(|_| {
        world.start(1.0, 30e9);
    });
    (0..100).for_each(|_| world.interval(&[]));
    for _ in 0..100 {
        restart(&mut world);
        world.interval(&[]);
    }
    let windows = 100 * world.windows_per_interval();
    let of_all: f64 = (0..world.threads.len()).map(|at| world.rate(at, windows)).sum();
    let victim = world.rate(1, windows);
    [of_all - victim, victim]
}

/// A restarted channel is held to the share that fits all, so restarting often gains nothing and costs the others
/// nothing.
#[test]
fn restarting_again_and_again_gains_nothing_and_costs_nobody() {
    let [restarted, victim] = with_restarts(|world| world.restart(0));
    assert!(restarted <= CAPACITY / 2.0 && victim >= CAPACITY / 2.0, "{restarted} {victim}");
}

/// In a new slot each time, the rows that it leaves behind are counted until they expire: there are three of its rows
/// at any time.
#[test]
fn restarting_in_new_slots_costs_the_others_what_the_rows_left_behind_claim() {
    let mut current = 0;
    let [restarted, victim] = with_restarts(|world| {
        world.threads[current].is_alive = false;
        current = world.start(1.0, 30e9);
    });
    assert!(restarted <= CAPACITY / 2.0, "{restarted}");
    assert!((CAPACITY / 4.0..CAPACITY / 2.0).contains(&victim), "{victim}");
}
