//! The representative of all states that behave alike, against an exploration without it.

use std::collections::HashSet;

use super::super::expand::Expander;
use super::super::packing::Packer;
use super::*;
use crate::exploration::explore::explore_and_keep;
use crate::exploration::{StateIndex, Words};

/// The representatives of all states that are found when nothing is taken together.
fn orbits(bounds: &Bounds) -> HashSet<Words<2>> {
    let model = sound(Bounds { symmetry: false, ..bounds.clone() }).unwrap();
    let expander = Expander::new(&model);
    let means = Means { memory_max: u64::MAX, threads: 0 };
    let (_, visited) = explore_and_keep::<_, 2>(&expander, means, &mut |_| ControlFlow::Continue(()));
    let canonical = Packer::new(model.sizes(), true);
    let states = (0..visited.len()).map(|index| expander.packer().unpack(visited.get(index as StateIndex)));
    states.map(|world| canonical.pack(&world)).collect()
}

#[test]
fn the_symmetries_lose_no_state_and_make_up_none() {
    let some = ["RdShared", "RdOwn", "DirtyEvict", "RdCurr", "WOWrInv", "CacheFlushed"];
    let bounds =
        [with_requests(2, 1, &some), of_sizes(1, 2, 1), Bounds { lines: 2, ..with_requests(1, 1, &some[..3]) }];
    for bounds in bounds {
        assert_eq!(orbits(&bounds).len() as u64, proved(bounds.clone())[0], "{bounds:?}");
    }
}

#[test]
fn packing_loses_nothing() {
    let model = sound(Bounds { symmetry: false, ..of_sizes(2, 1, 1) }).unwrap();
    let expander = Expander::new(&model);
    let means = Means { memory_max: 1 << 24, threads: 0 };
    let (_, visited) = explore_and_keep::<_, 2>(&expander, means, &mut |_| ControlFlow::Continue(()));
    assert!(visited.len() > 100_000);
    for index in 0..visited.len() {
        let words = visited.get(index as StateIndex);
        assert_eq!(expander.packer().pack(&expander.packer().unpack::<2>(words)), *words);
    }
}
