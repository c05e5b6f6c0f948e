//! 13xx: which loads and stores wait for memory.

use super::{FIRST_TURN, core, core_with};
use crate::cache::hierarchy::Want;
use crate::core::access_sites::{AccessSite, MemoryKind};
use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, MISS, PM};

const CYCLE_PS: u64 = 250;

fn line(number: u64) -> u64 {
    DRAM + 64 * number
}

/// Runs to the end; gives the sites in the order in which they came up, and the cycle at which it was over.
fn sites(mut bench: Bench) -> (Vec<AccessSite>, u64) {
    bench.log_sites();
    let end = bench.end();
    (bench.host().access_sites().expect("they are asked for").sites().to_vec(), end)
}

fn cycles(site: &AccessSite) -> u64 {
    assert_eq!(site.wait_ps() % CYCLE_PS, 0);
    site.wait_ps() / CYCLE_PS
}

fn lines(site: &AccessSite, kind: MemoryKind) -> u64 {
    site.from_memory(kind)
}

/// What it got from memory, by [`MemoryKind`].
fn from_memory(site: &AccessSite) -> [u64; 3] {
    MemoryKind::ALL.map(|kind| lines(site, kind))
}

#[test]
fn s1301_a_load_waits_for_what_it_takes() {
    let (missing, _) = sites(core(&[load(RAX, RBX, DRAM)]));
    assert_eq!((missing[0].count, cycles(&missing[0]), from_memory(&missing[0])), (1, MISS, [1, 0, 0]));
    let mut bench = core_with(&["cache.l1d.latency_cycles=4"], &[load(RAX, RBX, DRAM)]);
    bench.warm(0, DRAM, Want::Read);
    let (there, _) = sites(bench);
    assert_eq!((there[0].count, cycles(&there[0]), from_memory(&there[0])), (1, 4, [0, 0, 0]));
}

#[test]
fn s1302_what_overlaps_is_charged_to_the_oldest() {
    let (found, _) = sites(core(&[load(RAX, RBX, line(0)), load(RCX, RBX, line(1)), load(RDX, RBX, line(1))]));
    assert_eq!(found.iter().map(cycles).collect::<Vec<_>>(), [MISS, 0, 0]);
    assert_eq!(found.iter().map(|site| lines(site, MemoryKind::Dram)).collect::<Vec<_>>(), [1, 1, 1]);
    let (chain, _) = sites(core(&[load(RAX, RBX, line(0)), load(RAX, RAX, line(1))]));
    assert_eq!(chain.iter().map(cycles).collect::<Vec<_>>(), [MISS, MISS]);
}

#[test]
fn s1303_lines_are_counted_by_where_memory_has_them() {
    let (found, _) = sites(core(&[load(RAX, RBX, PM), load(RCX, RBX, DRAM), nop(), load(RAX, RBX, PM)]));
    let counted = |kind| found.iter().map(|site| lines(site, kind)).collect::<Vec<_>>();
    assert_eq!((counted(MemoryKind::Pm), counted(MemoryKind::Dram)), (vec![1, 0, 1], vec![0, 1, 0]));
    let mut bench = core(&[load(RAX, RBX, DRAM)]);
    let own = bench.line(DRAM);
    bench.warm(0, DRAM, Want::Read);
    bench.forget_l1d(0, own);
    assert_eq!(from_memory(&sites(bench).0[0]), [0, 0, 0], "the second level has it");
}

#[test]
fn s1304_a_store_waits_from_its_turn_until_it_takes_effect() {
    let (found, end) = sites(core_with(&["core.prefetch_for_ownership=false"], &[store(RBX, RCX, PM)]));
    assert_eq!((found[0].key.is_store, found[0].count, from_memory(&found[0])), (true, 1, [0, 1, 0]));
    assert_eq!(cycles(&found[0]), end - FIRST_TURN);
    let (ahead, end) = sites(core(&[store(RBX, RCX, PM)]));
    assert_eq!((cycles(&ahead[0]), from_memory(&ahead[0])), (end - FIRST_TURN, [0, 1, 0]));
}

#[test]
fn s1305_the_parts_of_a_string_instruction_are_one_load_and_one_store() {
    let (found, _) = sites(core(&[nop(), rep_movs(DRAM, DRAM + 4096, 256), nop()]));
    let counted: Vec<_> = found.iter().map(|site| (site.key.micro_op, site.key.is_store, site.count)).collect();
    assert_eq!(counted, [(1, false, 4), (1, true, 4)]);
}

#[test]
fn s1306_nothing_is_counted_while_time_does_not_count() {
    let mut bench = core(&[load(RAX, RBX, DRAM), store(RBX, RCX, PM)]);
    bench.log_sites();
    bench.pause_sites();
    bench.end();
    let found = bench.host().access_sites().expect("they are asked for").sites();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|site| site.count + site.wait_ps() + site.lines.iter().sum::<u64>() == 0));
}

#[test]
fn s1307_sites_count_what_their_core_counts_whether_it_waits_or_not() {
    let whole_and_part =
        [store(RBX, RCX, DRAM), load(RAX, RBX, DRAM), store_4(RBX, RCX, line(1) + 4), load(RAX, RBX, line(1))];
    let over_two_lines = [load(RDX, RBX, line(3) - 4), store(RBX, RCX, line(6) - 4)];
    let mut bench = core(&[whole_and_part.as_slice(), over_two_lines.as_slice()].concat());
    bench.log_sites();
    bench.end();
    let sites = bench.host().access_sites().expect("they are asked for").sites();
    assert_eq!(sites.iter().map(|site| site.count).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 1]);
    let counted =
        |is_store| sites.iter().filter(|site| site.key.is_store == is_store).map(|site| site.count).sum::<u64>();
    let core = bench.core(0);
    assert_eq!((core.forwarded_loads, core.loads, core.stores), (1, 3, 3));
    assert_eq!((counted(false), counted(true)), (core.loads + core.forwarded_loads, core.stores));
}

#[test]
fn s1308_more_stores_than_there_are_places_are_counted() {
    let (found, _) = sites(core_with(&["core.store_queue_entries=4"], &repeated(40, &store(RBX, RCX, PM))));
    assert_eq!(found.iter().map(|site| site.count).sum::<u64>(), 40);
}
