//! Rules that hold between keys: combinations that no machine can have although each number is in its range.

use std::collections::BTreeMap;

use super::check::Faults;
use super::placement::PlacementConfig;
use super::schema::join;
use super::topology::{HostId, Topology};
use super::tree::Node;
use crate::address_space::{MemoryNode, Placement, PlacementError, Rule};
use crate::cache::config::{CacheConfig, PrefetcherKind};
use crate::core::config::{CoreConfig, TlbConfig};
use crate::device::{DramConfig, PmConfig};
use crate::home_agent::SocketsConfig;
use crate::host_bridge::decoder::HDM_ALIGNMENT;
use fencepost_kernel::address_map::PM_BASE;
use fencepost_kernel::line::LINE_BYTES;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// No first level is larger; HP's PA-8700 had 1.5 MiB for data, the largest there was.
const FIRST_LEVEL_KIB_MAX: u32 = 2 << 10;
/// No level that a core has alone is larger; IBM's Telum II has 36 MiB, the largest there is.
const PRIVATE_LEVEL_KIB_MAX: u32 = 64 << 10;

/// Sockets divide the cores, and a link joins them.
pub(super) fn check_sockets(
    machine: &Node,
    core: Option<&CoreConfig>,
    sockets: Option<SocketsConfig>,
    faults: &mut Faults,
) {
    let Some(SocketsConfig { count, .. }) = sockets else { return };
    let origin = machine.origin_of(&["sockets", "count"]);
    if let Some(cores) = core.map(|core| core.count).filter(|cores| cores % count != 0) {
        let message = format!("{count} sockets cannot have as many cores each: core.count is {cores}");
        faults.add(origin, "sockets.count", message);
    }
    if count > 1 && machine.entry("socket_link").is_none() {
        faults.add(origin, "socket_link", "the table [socket_link] is missing: what joins the sockets of a host");
    }
}

/// The levels and the shape of each.
pub(super) fn check_caches(
    machine: &Node,
    core: Option<&CoreConfig>,
    cache: Option<&BTreeMap<String, CacheConfig>>,
    faults: &mut Faults,
) {
    let Some(cache) = cache else { return };
    let table = machine.origin_of(&["cache"]);
    for level in ["l1i", "l1d", "l2"].iter().filter(|level| !cache.contains_key(**level)) {
        faults.add(
            table,
            "cache",
            format!("the table [cache.{level}] is missing; levels are l1i, l1d, then l2, l3 and so on"),
        );
    }
    let mut expected = 2;
    let last = cache.keys().rfind(|level| level_number(level).is_some_and(|number| number > 1));
    for (level, config) in cache {
        let may_prefetch = level != "l1i" && !config.shared && Some(level) != last;
        if !may_prefetch && config.prefetcher != PrefetcherKind::None {
            let origin = machine.origin_of(&["cache", level, "prefetcher"]);
            let message =
                "only \"none\" can be: l1d can prefetch, and levels between it and the last that are private to a core";
            faults.add(origin, format!("cache.{level}.prefetcher"), message);
        }
    }
    for (level, config) in cache {
        let key = format!("cache.{level}");
        let origin = machine.origin_of(&["cache", level]);
        let lines = u64::from(config.size_kib) * KIB / LINE_BYTES;
        // What all cores share has slices, which a hash chooses.
        let unfit = if config.shared { unfit_division } else { unfit_sets };
        if let Some(message) = unfit(lines, u64::from(config.ways), "lines") {
            fault_at_uppermost(machine, &["cache", level], ["ways", "size_kib"], message, faults);
        }
        if let Some(message) = unfit_size(level, config) {
            let origin = machine.origin_of(&["cache", level, "size_kib"]);
            faults.add(origin, format!("{key}.size_kib"), message);
        }
        match level_number(level) {
            None => {
                let message = format!("{level:?} is no level; levels are l1i, l1d, then l2, l3 and so on up to l9");
                faults.add(origin, key, message);
            }
            Some(1) if config.shared => {
                let origin = machine.origin_of(&["cache", level, "shared"]);
                faults.add(origin, format!("{key}.shared"), "true cannot be: first levels are private to their core");
            }
            Some(1) => {}
            Some(number) if number == expected => expected += 1,
            Some(number) => {
                faults.add(origin, key, format!("there is no l{} between this level and those above", number - 1))
            }
        }
    }
    check_sharing(machine, core, cache, faults);
}

/// Why no machine has a cache of that size there: with one for each core, it would take minutes to make them.
fn unfit_size(level: &str, config: &CacheConfig) -> Option<String> {
    let (kind, size_kib_max) = match level_number(level) {
        Some(1) => ("a first level", FIRST_LEVEL_KIB_MAX),
        _ if !config.shared => ("a level of each core", PRIVATE_LEVEL_KIB_MAX),
        _ => return None,
    };
    let size_kib = config.size_kib;
    (size_kib > size_kib_max).then(|| format!("{size_kib} is out of range: {kind} has at most {size_kib_max} KiB"))
}

/// Below a shared level all levels are shared, and the last one keeps the directory.
fn check_sharing(
    machine: &Node,
    core: Option<&CoreConfig>,
    cache: &BTreeMap<String, CacheConfig>,
    faults: &mut Faults,
) {
    let mut above: Option<(&String, &CacheConfig)> = None;
    for (level, config) in cache.iter().filter(|(level, _)| level_number(level).is_some_and(|number| number > 1)) {
        if let Some((shared, _)) = above.filter(|(_, above)| above.shared && !config.shared) {
            let origin = machine.origin_of(&["cache", level, "shared"]);
            faults.add(
                origin,
                format!("cache.{level}.shared"),
                format!("false cannot be: {shared} above it is shared"),
            );
        }
        above = Some((level, config));
    }
    let Some((last, config)) = above else { return };
    check_snoop_filters(machine, cache, last, faults);
    if !config.shared && core.is_some_and(|core| core.count > 1) {
        let origin = machine.origin_of(&["cache", last, "shared"]);
        let message =
            "false cannot be: with several cores (core.count) the last level is shared, since coherence is kept there";
        faults.add(origin, format!("cache.{last}.shared"), message);
    }
}

/// The directory lies in a last level that is inclusive, or in its snoop filter.
fn check_snoop_filters(machine: &Node, cache: &BTreeMap<String, CacheConfig>, last: &str, faults: &mut Faults) {
    for (level, CacheConfig { snoop_filter, inclusive, .. }) in cache {
        let Some(filter) = snoop_filter else { continue };
        let path = ["cache", level, "snoop_filter"];
        let (entries, ways) = (u64::from(filter.entries), u64::from(filter.ways));
        if let Some(message) = unfit_division(entries, ways, "lines") {
            fault_at_uppermost(machine, &path, ["ways", "entries"], message, faults);
        }
        if level != last || *inclusive {
            let message = "only a last level that is not inclusive has a snoop filter";
            faults.add(machine.origin_of(&path), format!("cache.{level}.snoop_filter"), message);
        }
    }
    let CacheConfig { inclusive, snoop_filter, shared, .. } = &cache[last];
    if *inclusive {
        return;
    }
    let is_above = |level: &str| level_number(level).is_some_and(|number| number > 1) && level != last;
    let mut above = cache.iter().filter(|(level, _)| is_above(level)).peekable();
    let is_below_private = above.peek().is_some() && above.all(|(_, config)| !config.shared);
    let message = if !shared || !is_below_private {
        "false cannot be: it would hold what leaves the level above, for which it is shared and all levels above are private"
    } else if snoop_filter.is_none() {
        "false cannot be without a snoop_filter: the coherence directory lies in the last level"
    } else {
        return;
    };
    faults.add(machine.origin_of(&["cache", last, "inclusive"]), format!("cache.{last}.inclusive"), message);
}

/// 1 for `l1i` and `l1d`, n for `l` and the digit n.
fn level_number(level: &str) -> Option<u32> {
    match level.as_bytes() {
        b"l1i" | b"l1d" => Some(1),
        [b'l', digit @ b'2'..=b'9'] => Some(u32::from(digit - b'0')),
        _ => None,
    }
}

/// The shape of the TLB and of the page walker's cache.
pub(super) fn check_translation(machine: &Node, tlb: Option<&TlbConfig>, faults: &mut Faults) {
    let Some(tlb) = tlb else { return };
    let walk_cache_lines = u64::from(tlb.walk_cache_kib) * KIB / LINE_BYTES;
    let shapes = [
        (["ways", "entries"], u64::from(tlb.entries), tlb.ways, "entries"),
        (["walk_cache_ways", "walk_cache_kib"], walk_cache_lines, tlb.walk_cache_ways, "lines"),
    ];
    for (keys, entries, ways, unit) in shapes {
        if let Some(message) = unfit_sets(entries, u64::from(ways), unit) {
            fault_at_uppermost(machine, &["tlb"], keys, message, faults);
        }
    }
}

/// Notes a fault that two keys of `table` make together at the one that was given last, the first one if both stand in
/// the same layer.
fn fault_at_uppermost(machine: &Node, table: &[&str], keys: [&str; 2], message: String, faults: &mut Faults) {
    let origins = keys.map(|key| machine.origin_of(&[table, &[key]].concat()));
    let uppermost = usize::from(origins[1].source > origins[0].source);
    let path = table.iter().fold(String::new(), |path, step| join(&path, step));
    faults.add(origins[uppermost], join(&path, keys[uppermost]), message);
}

/// Why `entries` make no sets of `ways`.
fn unfit_division(entries: u64, ways: u64, unit: &str) -> Option<String> {
    (!entries.is_multiple_of(ways)).then(|| format!("{entries} {unit} cannot be divided into sets of {ways}"))
}

/// Why `entries` in sets of `ways` make no cache: address bits choose the set.
fn unfit_sets(entries: u64, ways: u64, unit: &str) -> Option<String> {
    if let Some(message) = unfit_division(entries, ways, unit) {
        return Some(message);
    }
    let sets = entries / ways;
    (!sets.is_power_of_two()).then(|| format!("{entries} {unit} in sets of {ways} are {sets} sets, not a power of two"))
}

/// What address decoders can map.
pub(super) fn check_capacities(machine: &Node, dram: Option<&DramConfig>, pm: Option<&PmConfig>, faults: &mut Faults) {
    let mut check = |table: &str, capacity_mib: u64, capacity_mib_max: u64| {
        let above_max = || {
            format!(
                "{capacity_mib} is out of range: 256 to {capacity_mib_max} is allowed; above that address PM begins"
            )
        };
        let message = if capacity_mib > capacity_mib_max { Some(above_max()) } else { unfit_capacity(capacity_mib) };
        if let Some(message) = message {
            faults.add(machine.origin_of(&[table, "capacity_mib"]), format!("{table}.capacity_mib"), message);
        }
    };
    if let Some(dram) = dram {
        check("dram", dram.capacity_mib, PM_BASE / MIB);
    }
    if let Some(pm) = pm {
        check("pm", pm.capacity_mib, u64::MAX);
    }
}

/// Rules that no host could follow, and ranges that contradict each other. Whether other parts do depends on the
/// program.
pub(super) fn check_placement(machine: &Node, placement: &PlacementConfig, topology: &Topology, faults: &mut Faults) {
    let hosts: Vec<Vec<MemoryNode>> =
        (0..topology.hosts.len() as u32).map(|host| topology.nodes_of(HostId(host), PM_BASE)).collect();
    let mut wrong = |part: &str, error: PlacementError| {
        faults.add(machine.origin_of(&["placement", part]), format!("placement.{part}"), error.problem);
    };
    let (mut keys, mut rules) = (Vec::new(), Vec::new());
    for (part, place) in &placement.0 {
        let rule = Rule::of_machine(part, place);
        match rule.and_then(|rule| hosts.iter().try_for_each(|nodes| rule.check(nodes)).map(|()| rule)) {
            Ok(rule) => {
                keys.push(part);
                rules.push(rule);
            }
            Err(error) => wrong(part, error),
        }
    }
    if let Err(error) = hosts.iter().try_for_each(|nodes| Placement::check_ranges(&rules, nodes)) {
        // Two keys may name one range in different ways; the later one is at fault.
        let at_fault = rules.iter().rposition(|rule| rule.as_given() == error.rule);
        wrong(keys[at_fault.expect("it is one of these")], error);
    }
}

/// A capacity that all expanders have of their own; one that they have from `[dram]` has been checked there.
pub(super) fn check_expander_capacity(machine: &Node, faults: &mut Faults) {
    let capacity = machine.at(&["expander"]).entry("capacity_mib").and_then(Node::integer);
    if let Some(message) = capacity.and_then(|capacity| unfit_capacity(u64::try_from(capacity).ok()?)) {
        faults.add(machine.origin_of(&["expander", "capacity_mib"]), "expander.capacity_mib", message);
    }
}

/// Why address decoders cannot map a device of that size.
pub(super) fn unfit_capacity(capacity_mib: u64) -> Option<String> {
    let is_aligned = capacity_mib.is_multiple_of(HDM_ALIGNMENT / MIB);
    (!is_aligned).then(|| format!("{capacity_mib} is not a multiple of 256, which address decoders need"))
}
