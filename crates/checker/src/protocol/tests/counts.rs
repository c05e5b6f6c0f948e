//! How many states, transitions and how much depth there are within small bounds, exactly. `fencepost prove` counts
//! larger ones.

use super::*;
use crate::exploration::EndedEarly;

#[test]
fn one_address_and_one_host_at_one_switch() {
    let counts = Scheme::ALL.map(|scheme| proved(tiny(scheme, Topology::Single)));
    assert_eq!(counts, [[63, 121, 8], [1452, 3202, 27], [403, 654, 21], [1483, 3090, 26]]);
}

#[test]
fn two_switches_in_a_chain() {
    let counts = Scheme::ALL.map(|scheme| proved(tiny(scheme, Topology::Chain)));
    assert_eq!(counts, [[112, 230, 11], [16851, 47126, 59], [280, 426, 22], [17621, 47551, 55]]);
}

#[test]
fn two_switches_that_share_a_persist_point() {
    let counts = Scheme::ALL.map(|scheme| proved(tiny(scheme, Topology::Shared)));
    assert_eq!(counts, [[5408, 19893, 19], [149352, 512776, 54], [32578, 86034, 34], [146363, 460766, 48]]);
}

#[test]
fn two_addresses_and_two_hosts() {
    let counts = Scheme::ALL.map(|scheme| proved(small(scheme)));
    assert_eq!(counts, [[717, 2768, 10], [11638, 37895, 29], [4812, 14242, 25], [13620, 41749, 29]]);
}

#[test]
fn two_acknowledgements_in_the_input() {
    let counts = [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive]
        .map(|scheme| proved(Bounds { acknowledgement_inputs: 2, ..small(scheme) }));
    assert_eq!(counts, [[12586, 41412, 29], [4890, 14510, 25], [14593, 45238, 29]]);
}

#[test]
fn reads_that_are_served_in_turn() {
    let counts = [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive]
        .map(|scheme| proved(Bounds { reads_in_turn: true, ..tiny(scheme, Topology::Single) }));
    assert_eq!(counts, [[1462, 3215, 28], [421, 677, 21], [1501, 3113, 27]]);
}

#[test]
fn writes_of_half_a_line() {
    let counts = [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive]
        .map(|scheme| proved(Bounds { entries: 2, partial_writes: true, ..tiny(scheme, Topology::Single) }));
    assert_eq!(counts, [[6276, 13593, 28], [2084, 3716, 28], [6936, 14756, 28]]);
}

#[test]
fn without_room_for_the_next_states_it_ends_and_nothing_is_proved() {
    let model = sound(small(Scheme::Pb)).unwrap();
    // Enough for 65,536 states and their table until it has to grow at 6,144.
    let tight = prove(&model, Means { memory_max: 2_500_000, threads: 0 }, &mut |_| ControlFlow::Continue(()));
    assert_eq!((tight.ended_early, tight.counterexample), (Some(EndedEarly::OutOfMemory), None));
    assert!((6000..6144).contains(&tight.progress.states) && tight.progress.bytes <= 2_500_000, "{:?}", tight.progress);
    let ample = prove(&model, Means { memory_max: 3_000_000, threads: 0 }, &mut |_| ControlFlow::Continue(()));
    assert_eq!((ample.ended_early, ample.progress.states), (None, 11638));
}

#[test]
fn bounds_that_cannot_be_explored_are_refused_with_what_could_be() {
    let error = |bounds: Bounds| sound(bounds).unwrap_err();
    assert_eq!(error(Bounds { entries: 5, ..Bounds::default() }), "entries: 5 is not 1 to 4");
    assert_eq!(error(Bounds { inputs: 4, ..Bounds::default() }), "inputs: 4 is not 1 to 3");
    assert_eq!(
        error(Bounds { inputs: 3, acknowledgement_inputs: 2, ..Bounds::default() }),
        "inputs and acknowledgement inputs: 5 are more than 4 together"
    );
    assert_eq!(error(Bounds { addresses: 0, ..Bounds::default() }), "addresses: 0 is not 1 to 4");
    assert_eq!(error(Bounds { preset: 2, ..Bounds::default() }), "preset: 2 is not 0 to 1");
    let lonely = Bounds { topology: Topology::Shared, hosts: 1, ..Bounds::default() };
    assert_eq!(error(lonely), "the shared topology needs 2 hosts or more");
}
