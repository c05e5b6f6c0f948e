//! Random walks through configurations that are too large to be explored. A failing walk is shrunk to a short one;
//! proptest keeps the seeds of walks that failed in the crate's `proptest-regressions/` and walks them first the next
//! time.

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestError, TestRng, TestRunner};

use super::super::action::{Action, Way, Ways};
use super::super::model::Model;
use super::super::mutants;
use super::super::predicates::check_state;
use super::super::world::World;
use super::*;
use fencepost_sim::switch::persist_buffer::{Rules, Sound};

const SLOTS: usize = 17;
const INPUTS: usize = 12;

type Large<const B: usize> = World<B, SLOTS, INPUTS>;

fn large() -> impl Strategy<Value = Bounds> {
    let sizes = (1..=16u16, 1..=4u8, 2..=4u8, 1..=4u8, (1..=8u16, 1..=4u16));
    let drains = (prop::sample::select(Scheme::ALL.to_vec()), 0..=16u16, 0..=16u16);
    let kinds = (any::<bool>(), prop::bool::weighted(0.2), prop::sample::select(Topology::ALL.to_vec()));
    (sizes, drains, kinds).prop_map(
        |(
            (entries, addresses, hosts, in_flight, (inputs, acknowledgement_inputs)),
            (scheme, threshold, preset),
            (partial, fails, topology),
        )| {
            Bounds {
                scheme,
                topology,
                entries,
                addresses,
                hosts,
                writes: 7,
                reads: 3,
                in_flight,
                crashes: 3,
                duplicates: 3,
                failures: fails.into(),
                inputs,
                acknowledgement_inputs,
                threshold: threshold.min(entries),
                preset: preset.min(threshold).min(entries),
                partial_writes: partial,
                ..Bounds::default()
            }
        },
    )
}

/// Takes, at each step, the action that the next number chooses; then goes on without power cuts until nothing can
/// happen.
fn walk<const B: usize>(model: &Model<SLOTS, INPUTS>, choices: &[u16]) -> Result<(), String> {
    let mut world: Large<B> = model.initial();
    let mut choices = choices.iter();
    for step in 0.. {
        let mut ways = Ways::default();
        model.each_next(&world, &mut ways);
        let choice = choices.next();
        let open: Vec<&Way<B, SLOTS, INPUTS>> =
            ways.iter().filter(|way| choice.is_some() || !way.action.is_optional()).collect();
        if open.is_empty() {
            return if model.may_end_in(&world) { Ok(()) } else { Err(format!("step {step}: stuck")) };
        }
        let Way { action, next, breaks } = open[usize::from(*choice.unwrap_or(&0)) % open.len()];
        let is_cut = matches!(action, Action::PowerCut { .. });
        if !is_cut && model.work_left(next) >= model.work_left(&world) {
            return Err(format!("step {step}: {action:?} brings nothing nearer"));
        }
        let mut watch = model.watch();
        watch.broken = *breaks;
        check_state(next, model.parameters.as_ref(), model.bounds.addresses, &mut watch);
        if let Some(name) = watch.broken {
            return Err(format!("step {step}: {action:?} breaks {name}"));
        }
        world = *next;
    }
    unreachable!("every walk ends")
}

fn walk_any<R: Rules>(bounds: Bounds, choices: &[u16]) -> Result<(), String> {
    let model: Model<SLOTS, INPUTS> = Model::with_rules::<R>(bounds);
    match model.buffers() {
        0 => walk::<0>(&model, choices),
        1 => walk::<1>(&model, choices),
        _ => walk::<2>(&model, choices),
    }
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..300)
}

proptest! {
    #![proptest_config(Config { cases: 96, ..Config::default() })]

    #[test]
    fn nothing_breaks_on_random_walks_through_large_configurations(bounds in large(), choices in choices()) {
        prop_assert_eq!(walk_any::<Sound>(bounds, &choices), Ok(()));
    }
}

type Failure = TestError<(Bounds, Vec<u16>)>;

/// Walks a protocol that frees entries when they are sent.
fn walk_a_mutant(config: Config) -> Result<(), Failure> {
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner.run(&(large(), choices()), |(bounds, choices)| {
        walk_any::<mutants::FreesWhenSent>(bounds, &choices).map_err(TestCaseError::fail)
    })
}

#[test]
fn a_walk_that_breaks_something_shrinks_to_a_short_one_that_replays() {
    let outcome = walk_a_mutant(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let Err(TestError::Fail(reason, (bounds, choices))) = outcome else { panic!("the mutant survives: {outcome:?}") };
    assert!(choices.len() <= 12, "{} choices are not short", choices.len());
    assert_eq!(walk_any::<mutants::FreesWhenSent>(bounds, &choices), Err(reason.message().to_owned()));
    assert_eq!(walk_any::<Sound>(bounds, &choices), Ok(()));
}

#[test]
fn the_seed_of_a_walk_that_failed_is_kept_and_walked_first() {
    let file = std::env::temp_dir().join(format!("fencepost-walks-{}.txt", std::process::id()));
    let place: &'static str = Box::leak(file.display().to_string().into_boxed_str());
    let walked = |cases: u32| {
        let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(place)) as _);
        // Of no cases a failure would not be shrunk, if it were not said how far.
        let max_shrink_iters = 1_000;
        let source_file = Some(file!());
        walk_a_mutant(Config { cases, failure_persistence, source_file, max_shrink_iters, ..Config::default() })
    };
    assert_eq!(walked(0), Ok(()), "no seed is kept yet, and no other walk is asked for");
    let failed = walked(200);
    let again = walked(0);
    let kept = std::fs::read_to_string(&file);
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(failed, Err(TestError::Fail(..))), "the mutant survives");
    assert_eq!(again, failed, "the seed alone gives the same walk");
    assert_eq!(kept.unwrap().lines().filter(|line| line.starts_with("cc ")).count(), 1);
}
