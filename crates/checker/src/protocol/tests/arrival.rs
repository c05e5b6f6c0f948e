//! The reduction `arrival` against the model with the hosts' own links: what is on these is taken back to before it was
//! issued, and then the reduction has to reach every state. What a read has to see is left out of the comparison (the
//! reduction asks for what was promised when it arrived, which is at least what was promised when it set out), and so
//! are the predicates on actions.

use std::collections::HashSet;

use super::super::bounds::Reductions;
use super::super::world::{ReadPlace, WritePlace};
use super::orbits::{State, reached};
use super::*;

/// What is reached, as far as the reduction has it: requests on the hosts' links are not issued yet.
fn without_links<const B: usize>(bounds: Bounds, reductions: Reductions) -> HashSet<State<B>> {
    let model = sound(Bounds { reductions, ..bounds }).unwrap();
    let plain = sound(Bounds { reductions: Reductions::NONE, ..bounds }).unwrap();
    let taken_back = |mut world: State<B>| {
        for (number, host) in world.hosts.iter_mut().enumerate().take(bounds.hosts.into()) {
            let first = (!reductions.arrival).then(|| model.hops_of(number));
            for write in &mut host.writes {
                if matches!(write, WritePlace::Travelling { hops, .. } if Some(*hops) == first) {
                    *write = WritePlace::None;
                    host.writes_left += 1;
                }
            }
            if matches!(host.read, ReadPlace::Travelling { hops } if Some(hops) == first) {
                (host.read, host.read_line) = (ReadPlace::None, 0);
                host.reads_left += 1;
            }
            // A version that is there anyway: versions are ranks.
            let any = world.memory[usize::from(host.read_line)];
            host.read_floor = if host.read == ReadPlace::None { [0; 2] } else { any };
        }
        plain.make_canonical(&mut world);
        world
    };
    reached::<B>(&model, &model).into_iter().map(taken_back).collect()
}

/// The states themselves, and those after a power cut with hosts that have less left to issue: it takes what is on a
/// link, which the reduction leaves to be issued after it.
fn with_less_left<const B: usize>(states: &HashSet<State<B>>, bounds: Bounds) -> HashSet<State<B>> {
    let mut all = states.clone();
    let mut waiting: Vec<State<B>> = all.iter().copied().filter(|world| world.crashes_left < bounds.crashes).collect();
    while let Some(world) = waiting.pop() {
        for host in 0..usize::from(bounds.hosts) {
            let mut fewer = [world; 2];
            fewer[0].hosts[host].writes_left = world.hosts[host].writes_left.saturating_sub(1);
            fewer[1].hosts[host].reads_left = world.hosts[host].reads_left.saturating_sub(1);
            waiting.extend(fewer.into_iter().filter(|fewer| all.insert(*fewer)));
        }
    }
    all
}

/// With one read a host the reduction has no states of its own either; with more, one may also be overtaken that would
/// have set out too late for that.
fn compared<const B: usize>(bounds: Bounds) {
    let with = without_links::<B>(bounds, Reductions { arrival: true, ..Reductions::NONE });
    let without = without_links::<B>(bounds, Reductions::NONE);
    let possible = with_less_left(&with, bounds);
    let left_out = without.difference(&possible).next();
    assert!(left_out.is_none(), "{bounds:?}: left out: {left_out:#?}");
    let made_up = with.difference(&without).next();
    assert!(bounds.reads > 1 || made_up.is_none(), "{bounds:?}: only with the reduction: {made_up:#?}");
}

/// One address, one entry; a read each.
fn with_reads(scheme: Scheme, hosts: u8, writes: u8, crashes: u8) -> Bounds {
    Bounds { scheme, entries: 1, addresses: 1, hosts, writes, reads: 1, crashes, duplicates: 0, ..Bounds::default() }
}

#[test]
fn one_host_whose_write_overtakes_its_read() {
    for crashes in [0, 1] {
        compared::<0>(with_reads(Scheme::Nopb, 1, 2, crashes));
        compared::<0>(Bounds { reads: 2, ..with_reads(Scheme::Nopb, 1, 2, crashes) });
        for scheme in [Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive] {
            compared::<1>(with_reads(scheme, 1, 2, crashes));
        }
        compared::<1>(Bounds { partial_writes: true, ..with_reads(Scheme::Pb, 1, 2, crashes) });
        compared::<1>(Bounds { addresses: 2, reads: 2, ..with_reads(Scheme::Pb, 1, 2, crashes) });
    }
    compared::<1>(Bounds { failures: 1, ..with_reads(Scheme::Pb, 1, 2, 1) });
}

#[test]
fn two_hosts() {
    for crashes in [0, 1] {
        compared::<0>(with_reads(Scheme::Nopb, 2, 1, crashes));
        compared::<1>(with_reads(Scheme::Pb, 2, 1, crashes));
    }
    compared::<1>(with_reads(Scheme::PbRf, 2, 1, 0));
}

#[test]
fn two_switches() {
    let at = |topology, bounds| Bounds { topology, ..bounds };
    for crashes in [0, 1] {
        compared::<0>(at(Topology::Chain, with_reads(Scheme::Nopb, 2, 1, crashes)));
        compared::<2>(at(Topology::Chain, with_reads(Scheme::Pb, 1, 2, crashes)));
        compared::<0>(at(Topology::Shared, with_reads(Scheme::Nopb, 2, 1, crashes)));
        compared::<1>(at(Topology::Shared, with_reads(Scheme::Pb, 2, 1, crashes)));
    }
}
