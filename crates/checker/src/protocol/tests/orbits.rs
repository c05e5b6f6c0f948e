//! How many orbits of interchangeable slots, hosts and addresses there are, counted without canonical forms: everything
//! is explored with nothing taken together, and the least of all states that a state becomes when they change places
//! names its orbit. The exploration with canonical forms has to find the same orbits. One that takes a state for
//! another that is not alike loses what only that one leads to, or makes up a state.

use std::collections::HashSet;

use super::super::action::Ways;
use super::super::bounds::{INPUTS, Reductions, SLOTS};
use super::super::canonical::{permute_addresses, permute_hosts, permute_slots};
use super::super::packing::Packer;
use super::super::world::{ADDRESSES_MAX, HOSTS_MAX, World};
use super::*;
use crate::exploration::Words;

pub(super) type State<const B: usize> = World<B, SLOTS, INPUTS>;

/// Slots, hosts and addresses, each alone, and all of them.
const SYMMETRIES: [Reductions; 4] = [
    Reductions { slots: true, ..Reductions::NONE },
    Reductions { hosts: true, ..Reductions::NONE },
    Reductions { addresses: true, ..Reductions::NONE },
    Reductions { slots: true, hosts: true, addresses: true, ..Reductions::NONE },
];

/// Everything that is reached by the actions of `acting`, as `naming` makes it canonical.
pub(super) fn reached<const B: usize>(acting: &Explored, naming: &Explored) -> HashSet<State<B>> {
    let mut first = acting.initial::<B>();
    naming.make_canonical(&mut first);
    let mut all = HashSet::from([first]);
    let mut waiting = vec![first];
    let mut ways = Ways::default();
    while let Some(world) = waiting.pop() {
        ways.clear();
        acting.each_next(&world, &mut ways);
        for way in ways.iter_mut() {
            naming.make_canonical(&mut way.next);
            if all.insert(way.next) {
                waiting.push(way.next);
            }
        }
    }
    all
}

/// All orders of the first `count` of `N`.
fn orders<const N: usize>(count: usize) -> Vec<[usize; N]> {
    let mut orders = vec![std::array::from_fn(|at| at)];
    for last in 1..count {
        let longer = |order: &[usize; N]| {
            let order = *order;
            (0..=last).map(move |with| {
                let mut order = order;
                order.swap(last, with);
                order
            })
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

/// The least of all states that `world` becomes when what `symmetry` says is interchangeable changes places in every
/// way.
fn least<const B: usize>(plain: &Explored, symmetry: Reductions, world: &State<B>) -> Words<12> {
    let bounds = plain.bounds;
    let alike =
        |order: &[usize; HOSTS_MAX]| (0..usize::from(bounds.hosts)).all(|host| plain.are_alike(host, order[host]));
    let count = |is_on: bool, number: usize| if is_on { number } else { 1 };
    let host_orders = orders::<HOSTS_MAX>(count(symmetry.hosts, bounds.hosts.into()));
    let address_orders = orders::<ADDRESSES_MAX>(count(symmetry.addresses, bounds.addresses.into()));
    let slots = world.buffers.first().map_or(1, |state| state.slots().len());
    let slot_orders = orders::<SLOTS>(count(symmetry.slots, slots));
    let packer = Packer::new(plain);
    let (mut least, mut ways) = (None, vec![*world]);
    for buffer in 0..B {
        ways = each_way(&ways, &slot_orders, |way, order| permute_slots(way, buffer, order));
    }
    let host_orders: Vec<_> = host_orders.into_iter().filter(alike).collect();
    ways = each_way(&ways, &host_orders, permute_hosts);
    for way in &mut each_way(&ways, &address_orders, permute_addresses) {
        plain.make_canonical(way);
        let words = packer.pack(way).unwrap();
        least = Some(least.map_or(words, |known: Words<12>| known.min(words)));
    }
    least.unwrap()
}

fn each_way<T: Clone, O>(ways: &[T], orders: &[O], permute: impl Fn(&mut T, &O)) -> Vec<T> {
    let permuted = |way: &T, order: &O| {
        let mut way = way.clone();
        permute(&mut way, order);
        way
    };
    ways.iter().flat_map(|way| orders.iter().map(|order| permuted(way, order)).collect::<Vec<_>>()).collect()
}

/// The numbers of states that the symmetry is not used on, and of orbits among them: as many as the exploration with it
/// finds representatives. In larger bounds a tie between addresses may leave an orbit two.
fn counted<const B: usize>(bounds: Bounds, symmetry: Reductions) -> [usize; 2] {
    let within = |reductions: Reductions| sound(Bounds { reductions, ..bounds }).unwrap();
    let (plain, reduced) = (within(Reductions::NONE), within(symmetry));
    // Where slots are interchangeable each that is free may be the next, also when they are told apart.
    let acting = within(Reductions { slots: symmetry.slots, ..Reductions::NONE });
    let all = reached::<B>(&acting, &plain);
    let representatives = reached::<B>(&reduced, &reduced);
    assert_eq!(proved(reduced.bounds)[0], representatives.len() as u64);
    let orbits = |states: &HashSet<State<B>>| -> HashSet<Words<12>> {
        states.iter().map(|world| least(&plain, symmetry, world)).collect()
    };
    let there = orbits(&all);
    assert!(there == orbits(&representatives), "{bounds:?} {symmetry:?}: other orbits than without it");
    for world in &all {
        let mut representative = *world;
        reduced.make_canonical(&mut representative);
        // All numberings of hosts and addresses are reached, but not all of free slots: the first of those that nothing
        // tells apart is taken.
        assert!(symmetry.slots || all.contains(&representative), "{symmetry:?} makes {representative:#?} up");
        let is_of_the_orbit = least(&plain, symmetry, &representative) == least(&plain, symmetry, world);
        assert!(is_of_the_orbit, "{symmetry:?} takes {representative:#?} for {world:#?}");
    }
    assert_eq!(representatives.len(), there.len(), "{bounds:?} {symmetry:?}");
    [all.len(), there.len()]
}

/// For slots, hosts, addresses, and all of them.
fn each_counted<const B: usize>(bounds: Bounds) -> [[usize; 2]; 4] {
    SYMMETRIES.map(|symmetry| counted::<B>(bounds, symmetry))
}

/// Two hosts, two addresses, one entry; a write each.
fn twofold(scheme: Scheme) -> Bounds {
    Bounds { scheme, entries: 1, addresses: 2, hosts: 2, writes: 1, reads: 0, crashes: 0, ..Bounds::default() }
}

#[test]
fn one_switch() {
    let nopb = each_counted::<0>(Bounds { reads: 1, ..twofold(Scheme::Nopb) });
    assert_eq!(nopb, [[3918, 3918], [3918, 1979], [3918, 1967], [3918, 1007]]);
    let pb = each_counted::<1>(twofold(Scheme::Pb));
    assert_eq!(pb, [[677, 675], [609, 340], [609, 312], [677, 199]]);
    let pb_rf = each_counted::<1>(Bounds { entries: 2, ..twofold(Scheme::PbRf) });
    assert_eq!(pb_rf, [[405, 329], [405, 316], [405, 206], [405, 124]]);
}

#[test]
fn one_switch_that_keeps_what_is_clean() {
    let counts = each_counted::<1>(twofold(Scheme::PbAdaptive));
    assert_eq!(counts, [[889, 859], [889, 536], [889, 445], [889, 254]]);
}

#[test]
fn writes_of_half_a_line_and_a_power_cut() {
    let bounds = Bounds { crashes: 1, addresses: 1, entries: 2, partial_writes: true, ..twofold(Scheme::Pb) };
    let counts = each_counted::<1>(bounds);
    assert_eq!(counts, [[4269, 3314], [3337, 2229], [3337, 3337], [4269, 2086]]);
}

#[test]
fn a_pm_that_fails_and_a_power_cut() {
    let counts = each_counted::<1>(Bounds { addresses: 1, crashes: 1, failures: 1, ..twofold(Scheme::Pb) });
    assert_eq!(counts, [[1658, 1650], [1474, 874], [1474, 1474], [1658, 990]]);
}

#[test]
fn two_switches() {
    let chain = each_counted::<2>(Bounds { topology: Topology::Chain, hosts: 1, writes: 2, ..twofold(Scheme::Pb) });
    assert_eq!(chain, [[2006, 1992], [1868, 1868], [1868, 940], [2006, 1002]]);
    let shared =
        each_counted::<1>(Bounds { topology: Topology::Shared, hosts: 3, addresses: 1, ..twofold(Scheme::Pb) });
    assert_eq!(shared, [[2582, 2550], [2080, 1174], [2080, 2080], [2582, 1455]]);
}
