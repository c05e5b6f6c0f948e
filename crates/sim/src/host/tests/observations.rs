//! 9xx: which versions loads observe.

use super::*;
use crate::cache::array::Line;
use crate::cache::observation_log::{Access, Observation};
use fencepost_kernel::line::Version;

/// The accesses so far: whose, how, and which version.
fn observed(bench: &Bench) -> Vec<(usize, Access, u64)> {
    let log = bench.host().observations().expect("it is kept");
    log.observations().iter().map(|seen| (seen.core, seen.access, seen.version.0)).collect()
}

/// One core stores to a line, and another one loads it twice, later.
fn store_and_loads() -> Bench {
    let mut script = threads(1);
    script.run(0, &[store(RBX, RAX, PM)]);
    is_busy(&mut script, 1, 2000);
    script.run(1, &[load(RAX, RBX, PM)]);
    is_busy(&mut script, 1, 1000);
    script.run(1, &[load(RAX, RBX, PM)]);
    let mut bench = Setup::machine(&["core.count=2"]).run(script);
    bench.log_observations();
    bench
}

#[test]
fn h901_a_load_observes_the_version_that_the_last_store_made() {
    let mut bench = store_and_loads();
    bench.end();
    let expected = [
        (0, Access::Brought, 0),
        (0, Access::Store, 1),
        (1, Access::Brought, 1),
        (1, Access::Fill, 1),
        (1, Access::Hit, 1),
    ];
    assert_eq!(observed(&bench), expected);
    assert_eq!(bench.host().observations().expect("it is kept").first_stale(), None);
}

#[test]
fn h902_a_hit_in_a_stale_copy_is_found_out() {
    let mut bench = store_and_loads();
    bench.run_until(1000);
    bench.plant_l1d(1, PM, Line::default());
    bench.end();
    let stale = bench.host().observations().expect("it is kept").first_stale();
    assert!(
        matches!(stale, Some(Observation { core: 1, access: Access::Hit, version: Version(0), .. })),
        "{stale:?} of {:?}",
        observed(&bench)
    );
}

#[test]
fn h903_nothing_is_taken_down_unless_somebody_asks() {
    let mut script = Script::default();
    script.run(0, &[store(RBX, RAX, PM)]);
    assert!(on_cores(1, script).host().observations().is_none());
}
