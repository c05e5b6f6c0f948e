//! Fabrics of every shape, and those that cannot be.

use fencepost_kernel::address_map::PM_BASE;
use fencepost_kernel::line::LineAddress;
use fencepost_sim::config::Machine;
use fencepost_sim::config::topology::{DecoderEntry, DeviceId, EdgeId, HostId, SwitchId, Topology};
use fencepost_sim::switch::Scheme;

use super::changed;

pub(super) const MIB: u64 = 1 << 20;

fn list(names: &[&str]) -> String {
    format!("{names:?}")
}

/// `pcs-table1` with this fabric: `hosts` in line 4, `switches`, `devices` and `edges` in the three lines that follow,
/// then `more`.
pub(super) fn fabric(
    hosts: &[&str],
    switches: &[&str],
    devices: &[&str],
    edges: &[&str],
    more: &str,
) -> Result<Machine, String> {
    let (hosts, switches, devices, edges) = (list(hosts), list(switches), list(devices), list(edges));
    changed(&format!("[fabric]\nhosts = {hosts}\nswitches = {switches}\ndevices = {devices}\nedges = {edges}\n{more}"))
}

pub(super) fn sound(hosts: &[&str], switches: &[&str], devices: &[&str], edges: &[&str], more: &str) -> Machine {
    fabric(hosts, switches, devices, edges, more).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(hosts: &[&str], switches: &[&str], devices: &[&str], edges: &[&str]) -> String {
    fabric(hosts, switches, devices, edges, "").expect_err("it cannot be")
}

/// The routes of all hosts as text.
fn routes(topology: &Topology) -> Vec<String> {
    let mut routes = Vec::new();
    for host in &topology.hosts {
        for route in &host.routes {
            let mut names = vec![host.name.as_str()];
            names.extend(route.edges.iter().map(|edge| topology.name(topology.edge(*edge).to)));
            routes.push(names.join(" -> "));
        }
    }
    routes
}

#[test]
fn a_chain_a_tree_and_a_direct_device_are_the_same_kind_of_file() {
    let edges = ["host0 -> a", "a -> b", "a -> c", "b -> pm0", "b -> pm1", "c -> pm2", "host0 -> pm3"];
    let machine = sound(&["host0"], &["a", "b", "c"], &["pm0", "pm1", "pm2", "pm3"], &edges, "");
    let topology = machine.topology();
    assert_eq!(
        routes(topology),
        ["host0 -> a -> b -> pm0", "host0 -> a -> b -> pm1", "host0 -> a -> c -> pm2", "host0 -> pm3"]
    );
    assert_eq!(topology.hosts[0].edges, [EdgeId(0), EdgeId(6)]);
    assert_eq!(topology.switches[0].upstream, [EdgeId(0)]);
    assert_eq!(topology.switches[0].downstream, [EdgeId(1), EdgeId(2)]);
    assert_eq!(topology.downstream_edge(SwitchId(0), DeviceId(2)), Some(EdgeId(2)));
    assert_eq!(topology.downstream_edge(SwitchId(1), DeviceId(2)), None);
    assert_eq!(topology.persist_points(DeviceId(0)), [SwitchId(0)]);
    assert_eq!(topology.persist_points(DeviceId(3)), []);
}

#[test]
fn devices_lie_one_after_the_other_above_the_base_of_pm() {
    let edges = ["host0 -> a", "a -> pm0", "a -> pm1"];
    let machine = sound(&["host0"], &["a"], &["pm0", "pm1"], &edges, "[fabric.pm.pm0]\ncapacity_mib = 512\n");
    let topology = machine.topology();
    let ranges: Vec<(u64, u64)> = topology.ranges.iter().map(|range| (range.base - PM_BASE, range.bytes)).collect();
    assert_eq!(ranges, [(0, 512 * MIB), (512 * MIB, 6144 * MIB)]);
    let entry = |index: usize, edge| DecoderEntry {
        base: topology.ranges[index].base,
        bytes: topology.ranges[index].bytes,
        granularity_bytes: 16 << 10,
        edges: vec![edge],
    };
    assert_eq!(topology.hosts[0].decoders, [entry(0, EdgeId(0)), entry(1, EdgeId(0))]);
    assert_eq!(topology.switches[0].decoders, [entry(0, EdgeId(1)), entry(1, EdgeId(2))]);
    assert_eq!(topology.device_config(DeviceId(0)).capacity_bytes(), 512 << 20);
}

#[test]
fn interleaved_devices_share_a_range_and_every_decoder_deals_its_part_of_the_way_out() {
    let edges = ["host0 -> a", "host0 -> b", "a -> pm0", "a -> pm1", "b -> pm2", "b -> pm3"];
    let devices = ["pm0", "pm1", "pm2", "pm3"];
    let set = |order: &str| format!("[fabric.interleave.pool]\ndevices = {order}\ngranularity_bytes = 1024\n");
    let machine = sound(&["host0"], &["a", "b"], &devices, &edges, &set(r#"["pm0", "pm2", "pm1", "pm3"]"#));
    let topology = machine.topology();
    assert_eq!(topology.ranges.len(), 1);
    let range = &topology.ranges[0];
    assert_eq!((range.base, range.bytes), (PM_BASE, 4 * 6144 * MIB));
    assert_eq!(range.targets, [DeviceId(0), DeviceId(2), DeviceId(1), DeviceId(3)]);
    assert_eq!(range.interleave.way(LineAddress::containing(PM_BASE + 2048)), 2);
    let dealt = |entries: &[DecoderEntry]| (entries[0].granularity_bytes, entries[0].edges.clone());
    assert_eq!(
        dealt(&topology.hosts[0].decoders),
        (1024, vec![EdgeId(0), EdgeId(1)]),
        "blocks alternate between switches"
    );
    assert_eq!(
        dealt(&topology.switches[0].decoders),
        (2048, vec![EdgeId(2), EdgeId(3)]),
        "every other block is its own"
    );
    assert_eq!(dealt(&topology.switches[1].decoders), (2048, vec![EdgeId(4), EdgeId(5)]));

    let machine = sound(&["host0"], &["a", "b"], &devices, &edges, &set(r#"["pm0", "pm1", "pm2", "pm3"]"#));
    let topology = machine.topology();
    assert_eq!(dealt(&topology.hosts[0].decoders), (2048, vec![EdgeId(0), EdgeId(1)]), "two blocks to each switch");
    assert_eq!(dealt(&topology.switches[0].decoders), (1024, vec![EdgeId(2), EdgeId(3)]));

    let error = fabric(&["host0"], &["a", "b"], &devices, &edges, &set(r#"["pm0", "pm2", "pm3", "pm1"]"#)).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:9: fabric.interleave.pool.devices: no HDM decoder of host0 can send the blocks on in this order; list devices behind the \
         same port at equal distances, or make granularity_bytes smaller"
    );
}

#[test]
fn a_set_has_a_name_of_its_own() {
    let named = |name: &str| {
        let more = format!("[fabric.interleave.{name}]\ndevices = [\"pm0\", \"pm1\"]\ngranularity_bytes = 256\n");
        let edges = ["host0 -> switch0", "switch0 -> pm0", "switch0 -> pm1"];
        fabric(&["host0"], &["switch0"], &["pm0", "pm1"], &edges, &more).map(|_| ())
    };
    assert_eq!(named("pool"), Ok(()));
    let own_dram = "mine.toml:8: fabric.interleave.dram0: \"dram0\" is the name of each host's own DRAM";
    assert_eq!(named("dram0"), Err(own_dram.to_owned()));
    assert_eq!(named("pm1"), Err("mine.toml:8: fabric.interleave.pm1: the name \"pm1\" is given twice".to_owned()));
}

#[test]
fn sets_that_cannot_be_interleaved_are_refused() {
    let cases = [
        (
            r#"["pm0", "pm1", "pm2"]"#,
            256,
            "mine.toml:9: fabric.interleave.pool.devices: 3 devices cannot be interleaved; 2, 4, 8 or 16 can",
        ),
        (
            r#"["pm0", "pm9"]"#,
            256,
            "mine.toml:9: fabric.interleave.pool.devices: \"pm9\" is not in fabric.devices, nor in fabric.expanders",
        ),
        (
            r#"["pm0", "pm0"]"#,
            256,
            "mine.toml:9: fabric.interleave.pool.devices: pm0 has its place in an interleaved range already",
        ),
        (
            r#"["pm0", "pm1"]"#,
            384,
            "mine.toml:10: fabric.interleave.pool.granularity_bytes: 384 is not a power of two from 256 to 16384",
        ),
        (
            r#"["pm0", "pm1"]"#,
            128,
            "mine.toml:10: fabric.interleave.pool.granularity_bytes: 128 is out of range: 256 to 16384 is allowed",
        ),
        (r#"["pm0", "pm2"]"#, 256, "mine.toml:9: fabric.interleave.pool.devices: pm0 and pm2 differ in capacity_mib"),
    ];
    for (devices, granularity, expected) in cases {
        let more = format!(
            "[fabric.interleave.pool]\ndevices = {devices}\ngranularity_bytes = {granularity}\n[fabric.pm.pm2]\ncapacity_mib = 256\n"
        );
        let edges = ["host0 -> a", "a -> pm0", "a -> pm1", "a -> pm2"];
        let error = fabric(&["host0"], &["a"], &["pm0", "pm1", "pm2"], &edges, &more).unwrap_err();
        assert_eq!(error, expected);
    }
}

#[test]
fn the_persist_point_is_the_first_switch_that_all_hosts_pass() {
    let edges = ["host0 -> a", "host1 -> b", "a -> c", "b -> c", "c -> d", "d -> pm0", "a -> pm1"];
    let machine = sound(&["host0", "host1"], &["a", "b", "c", "d"], &["pm0", "pm1"], &edges, "");
    let topology = machine.topology();
    assert_eq!(topology.persist_points(DeviceId(0)), [SwitchId(2)], "a and b are passed by one host each");
    assert_eq!(topology.persist_points(DeviceId(1)), [SwitchId(0)], "only host0 reaches it");
    assert!(topology.route(HostId(1), DeviceId(1)).is_none());
    assert_eq!(topology.check_scheme(Scheme::Pb), Ok(()));
    assert_eq!(topology.hosts[1].decoders.len(), 1);
}

/// Two hosts, each behind a leaf below one root; host0 has pm1 for itself at its leaf.
fn two_leaves(more: &str) -> Result<Machine, String> {
    let edges = ["host0 -> a", "host1 -> b", "a -> c", "b -> c", "c -> d", "d -> pm0", "a -> pm1"];
    fabric(&["host0", "host1"], &["a", "b", "c", "d"], &["pm0", "pm1"], &edges, more)
}

#[test]
fn persist_points_are_those_that_are_named_in_the_order_of_the_way() {
    let machine = two_leaves("persist_points = [\"d\", \"a\", \"b\"]\npm_sharing = \"private\"\n").unwrap();
    let topology = machine.topology();
    let points = |device| topology.persist_points(DeviceId(device));
    let on_route = |host, device| topology.switches_passed(HostId(host), DeviceId(device), &points(device));
    assert_eq!(on_route(0, 0), [SwitchId(0), SwitchId(3)]);
    assert_eq!(on_route(1, 0), [SwitchId(1), SwitchId(3)]);
    assert_eq!(on_route(0, 1), [SwitchId(0)]);
    assert_eq!(on_route(1, 1), [], "host1 does not reach it");
    assert_eq!(topology.check_scheme(Scheme::Pb), Ok(()));
    let chain = ["host0 -> a", "a -> b", "b -> c", "c -> pm0"];
    for (point, expected) in [("a", 0), ("b", 1), ("c", 2)] {
        let more = format!("persist_points = [{point:?}]\n");
        let machine = sound(&["host0"], &["a", "b", "c"], &["pm0"], &chain, &more);
        assert_eq!(machine.topology().persist_points(DeviceId(0)), [SwitchId(expected)]);
    }
}

#[test]
fn persist_points_that_cannot_be_or_are_unsafe_are_refused_with_the_reason() {
    let refusal = |more: &str| two_leaves(more).expect_err("it cannot be");
    let points = |points: &str| refusal(&format!("persist_points = {points}\n"));
    assert_eq!(points(r#"["c", "e"]"#), "mine.toml:8: fabric.persist_points: \"e\" is not in fabric.switches");
    assert_eq!(points(r#"["a", "c", "c"]"#), "mine.toml:8: fabric.persist_points: c is named twice");
    assert!(points("[]").ends_with("fabric.persist_points: an empty list accepts no persist; name switches, or leave the key out for the first switch that all hosts pass"));
    assert_eq!(
        points(r#"["c"]"#),
        "mine.toml:8: fabric.persist_points: `host0 -> a -> pm1` passes none of them: no switch would accept those persists"
    );
    // host1 would go past what host0 has in its leaf.
    assert_eq!(
        points(r#"["a", "c"]"#),
        "mine.toml:8: fabric.persist_points: a cannot accept persists to pm0: `host1 -> b -> c -> d -> pm0` does not pass it, so host1 would \
         read stale data; if no host accesses another's PM, say pm_sharing = \"private\""
    );
    for sharing in ["private", "shared_unsafe"] {
        assert!(two_leaves(&format!("persist_points = [\"a\", \"c\"]\npm_sharing = {sharing:?}\n")).is_ok());
    }
    assert_eq!(
        refusal("pm_sharing = \"shared_unsafe\"\n"),
        "mine.toml:8: fabric.pm_sharing: \"shared_unsafe\" needs fabric.persist_points: without that key all hosts pass the persist point, and \
         nothing is unsafe"
    );
    let safe = fabric(
        &["host0"],
        &["a"],
        &["pm0"],
        &["host0 -> a", "a -> pm0"],
        "persist_points = [\"a\"]\npm_sharing = \"shared_unsafe\"\n",
    );
    assert!(safe.unwrap_err().contains("\"shared_unsafe\" is not so: all hosts pass every persist point"));
    let edges = ["host0 -> a", "a -> pm0", "host0 -> b", "b -> mem0"];
    let more = "expanders = [\"mem0\"]\npersist_points = [\"a\", \"b\"]\n";
    let error = fabric(&["host0"], &["a", "b"], &["pm0"], &edges, more).unwrap_err();
    assert_eq!(error, "mine.toml:9: fabric.persist_points: b cannot be a persist point: it leads to no PM device");
}

#[test]
fn each_host_has_an_equal_part_of_the_pm_that_it_reaches() {
    let edges = ["host0 -> a", "host1 -> a", "host2 -> a", "a -> pm0", "host1 -> pm1", "host2 -> pm1", "host1 -> pm2"];
    let machine = sound(&["host0", "host1", "host2"], &["a"], &["pm0", "pm1", "pm2"], &edges, "");
    let topology = machine.topology();
    let bytes = 6144 * MIB;
    let third = bytes / 3;
    let own = |host| -> Vec<_> {
        let ranges = topology.frames_of(HostId(host)).into_iter();
        ranges.map(|range| (range.start - PM_BASE, range.end - PM_BASE)).collect()
    };
    assert_eq!(own(0), [(0, third)]);
    assert_eq!(own(1), [(third, 2 * third), (bytes, bytes + bytes / 2), (2 * bytes, 3 * bytes)]);
    assert_eq!(own(2), [(2 * third, bytes), (bytes + bytes / 2, 2 * bytes)]);
    let alone = sound(&["host0"], &["a"], &["pm0"], &["host0 -> a", "a -> pm0"], "");
    let [whole] = &alone.topology().frames_of(HostId(0))[..] else { panic!("there is one range") };
    assert_eq!(*whole, PM_BASE..PM_BASE + bytes);
    let uneven = sound(
        &["host0", "host1", "host2"],
        &["a"],
        &["pm0"],
        &["host0 -> a", "host1 -> a", "host2 -> a", "a -> pm0"],
        "[fabric.pm.pm0]\ncapacity_mib = 256\n",
    );
    let frames: Vec<_> = (0..3).flat_map(|host| uneven.topology().frames_of(HostId(host))).collect();
    assert!(frames.iter().all(|range| range.start % 4096 == 0 && range.end % 4096 == 0));
    assert!(frames.windows(2).all(|pair| pair[0].end == pair[1].start), "{frames:?}");
}

#[test]
fn hosts_that_share_no_switch_on_their_way_to_a_device_have_no_persist_point() {
    let edges = ["host0 -> a", "host1 -> b", "a -> pm0", "b -> pm0"];
    let machine = sound(&["host0", "host1"], &["a", "b"], &["pm0"], &edges, "");
    assert_eq!(machine.topology().persist_points(DeviceId(0)), []);
    assert_eq!(
        machine.topology().check_scheme(Scheme::PbRf).unwrap_err(),
        "scheme pb_rf needs a switch that every route to a PM device passes: the routes to pm0 (host0 -> a -> pm0; host1 -> b -> pm0) share no \
         switch, and a host that does not pass the persist point would read stale data"
    );
    assert_eq!(machine.topology().check_scheme(Scheme::Nopb), Ok(()));
}

#[test]
fn a_device_beside_the_switch_has_no_persist_point() {
    let machine =
        sound(&["host0"], &["a"], &["pm0", "pm1"], &["host0 -> a", "a -> pm0"], "local_edges = [\"host0 -> pm1\"]");
    assert_eq!(
        machine.topology().check_scheme(Scheme::Pb).unwrap_err(),
        "scheme pb needs a switch that every route to a PM device passes: host0 reaches pm1 without passing a switch"
    );
}

#[test]
fn a_switch_without_a_persist_buffer_cannot_be_the_persist_point() {
    let text = super::shipped("pcs-table1").expect("it is shipped").text;
    let start = text.find("[switch.persist_buffer]").expect("it has one");
    let end = text.find("[dram]").expect("it has DRAM");
    let text = format!("{}{}", &text[..start], &text[end..]);
    let machine = super::resolve(&text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        machine.topology().check_scheme(Scheme::Pb).unwrap_err(),
        "scheme pb needs a persist buffer in switch0, where persists to pm0 are accepted: the machine has no [switch.persist_buffer]"
    );
}

#[test]
fn loops_are_refused_where_they_close() {
    let error =
        refused(&["host0"], &["a", "b", "c"], &["pm0"], &["host0 -> a", "a -> b", "b -> c", "c -> a", "c -> pm0"]);
    assert_eq!(error, "mine.toml:7: fabric.edges: switches form a loop: a -> b -> c -> a");
    let error = refused(
        &["host0", "host1", "host2"],
        &["a", "b", "c"],
        &["pm0"],
        &["host0 -> a", "host1 -> b", "host2 -> c", "a -> b", "b -> c", "c -> a", "c -> pm0"],
    );
    assert!(error.starts_with("mine.toml:7: fabric.edges: switches form a loop: a -> b -> c -> a\n"), "{error}");
}

/// Two leaves with a host and a device each, and the switch between them.
const LEAVES: [&str; 8] = [
    "host0 -> leaf0",
    "host1 -> leaf1",
    "leaf0 -> root",
    "root -> leaf0",
    "leaf1 -> root",
    "root -> leaf1",
    "leaf0 -> pm0",
    "leaf1 -> pm1",
];

#[test]
fn hosts_and_devices_may_be_at_the_same_leaves() {
    let machine = sound(&["host0", "host1"], &["leaf0", "leaf1", "root"], &["pm0", "pm1"], &LEAVES, "");
    let topology = machine.topology();
    assert_eq!(
        routes(topology),
        [
            "host0 -> leaf0 -> pm0",
            "host0 -> leaf0 -> root -> leaf1 -> pm1",
            "host1 -> leaf1 -> root -> leaf0 -> pm0",
            "host1 -> leaf1 -> pm1"
        ]
    );
    // Each device's persists are accepted at its leaf, which both hosts pass.
    assert_eq!(topology.persist_points(DeviceId(0)), [SwitchId(0)]);
    assert_eq!(topology.persist_points(DeviceId(1)), [SwitchId(1)]);
    let links: Vec<u32> = (0..8).map(|edge| topology.link_of(EdgeId(edge)).0).collect();
    assert_eq!(links, [0, 1, 2, 2, 4, 4, 6, 7], "opposite edges are one link");
}

#[test]
fn a_link_has_one_description_for_both_of_its_directions() {
    let more = "[fabric.link.\"root -> leaf0\"]\nlatency_ns = 3\n";
    let error = fabric(&["host0", "host1"], &["leaf0", "leaf1", "root"], &["pm0", "pm1"], &LEAVES, more).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:8: fabric.link.\"root -> leaf0\": that is the link `leaf0 -> root` in its other direction; say it there"
    );
}

#[test]
fn two_routes_to_one_device_are_refused() {
    let error = refused(&["host0"], &["a", "b"], &["pm0"], &["host0 -> a", "host0 -> b", "a -> pm0", "b -> pm0"]);
    assert_eq!(
        error,
        "mine.toml:7: fabric.edges: two routes lead to pm0: `host0 -> a -> pm0` and `host0 -> b -> pm0`; there may be only one"
    );
}

#[test]
fn what_is_not_connected_is_named() {
    let error = refused(
        &["host0", "host1"],
        &["a", "b", "c"],
        &["pm0", "pm1"],
        &["host0 -> a", "host0 -> c", "a -> pm0", "b -> pm1"],
    );
    assert_eq!(
        error,
        "mine.toml:4: fabric.hosts: host1 reaches no device; add an edge that starts at it\n\
         mine.toml:5: fabric.switches: c leads to no device; add an edge that starts at it\n\
         mine.toml:5: fabric.switches: no host reaches b; add an edge that ends at it\n\
         mine.toml:6: fabric.devices: no host reaches pm1; add an edge that ends at it"
    );
}

#[test]
fn a_link_that_is_needed_in_both_directions_is_named() {
    let error = refused(&["host0"], &["leaf", "root"], &["pm0"], &["host0 -> leaf", "leaf -> root", "leaf -> pm0"]);
    assert_eq!(
        error,
        "mine.toml:5: fabric.switches: root leads to no device; add an edge that starts at it, for example \
         `root -> leaf` if `leaf -> root` is used in both directions"
    );
    let error = refused(&["host0"], &["leaf", "root"], &["pm0"], &["host0 -> leaf", "root -> leaf", "leaf -> pm0"]);
    assert_eq!(
        error,
        "mine.toml:5: fabric.switches: no host reaches root; add an edge that ends at it, for example \
         `leaf -> root` if `root -> leaf` is used in both directions"
    );
}

#[test]
fn edges_that_cannot_be_are_refused() {
    let cases = [
        ("host0 - pm0", "\"host0 - pm0\" is not an edge; an edge is written \"FROM -> TO\""),
        ("host0 -> pm0 -> pm1", "\"host0 -> pm0 -> pm1\" is not an edge; an edge is written \"FROM -> TO\""),
        ("host0 -> swich0", "there is no host, switch or device \"swich0\"; the nearest is \"switch0\""),
        ("switch0 -> host0", "`switch0 -> host0` cannot be: edges lead from hosts to devices, so none ends at a host"),
        ("pm0 -> switch0", "`pm0 -> switch0` cannot be: edges lead from hosts to devices, so none starts at a device"),
        ("host0->switch0", "`host0 -> switch0` is connected twice"),
    ];
    for (edge, expected) in cases {
        let error = refused(&["host0"], &["switch0"], &["pm0"], &["host0 -> switch0", edge, "switch0 -> pm0"]);
        assert_eq!(error, format!("mine.toml:7: fabric.edges: {expected}"));
    }
}

#[test]
fn each_edge_of_a_list_over_several_lines_has_its_own_line() {
    let error = changed("[fabric]\nedges = [\n  \"host0 -> switch0\",\n  \"switch0 -> pm1\",\n]").unwrap_err();
    assert_eq!(error, "mine.toml:6: fabric.edges: there is no host, switch or device \"pm1\"; the nearest is \"pm0\"");
}

#[test]
fn names_are_names_and_given_once() {
    let error = refused(&["host0"], &["host0", "2nd"], &["pm0"], &["host0 -> pm0"]);
    assert_eq!(
        error,
        "mine.toml:5: fabric.switches: \"2nd\" is not a name: a letter, then letters, digits and `_`\n\
         mine.toml:5: fabric.switches: the name \"host0\" is given twice"
    );
    let error = refused(&["host0"], &["switch0"], &["dram0"], &["host0 -> switch0", "switch0 -> dram0"]);
    assert_eq!(error, "mine.toml:6: fabric.devices: \"dram0\" is the name of each host's own DRAM");
    let error = refused(&[], &[], &[], &[]);
    assert_eq!(error, "mine.toml:4: fabric.hosts: a machine needs a host, for example \"host0\"");
}

#[test]
fn local_devices_have_no_other_edge() {
    let more = "local_edges = [\"host0 -> pm0\"]";
    let error = fabric(&["host0"], &["a"], &["pm0"], &["host0 -> a", "a -> pm0"], more).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:8: fabric.local_edges: `host0 -> pm0` cannot be beside `a -> pm0`: a local device has no port but the one on its host's \
         controller"
    );
    let error = fabric(&["host0"], &["a"], &["pm0"], &["a -> pm0"], "local_edges = [\"host0 -> a\"]").unwrap_err();
    assert_eq!(
        error,
        "mine.toml:8: fabric.local_edges: `host0 -> a` cannot be: a local edge leads from a host to a device"
    );
}

#[test]
fn overrides_of_what_is_not_there_are_refused() {
    let more = "[fabric.switch.b]\npipeline_stage_ns = 1.0\n[fabric.link.\"host0 -> b\"]\nlatency_ns = 1.0\n[fabric.pm.pm1]\nbanks = 3\n";
    let error = fabric(&["host0"], &["a"], &["pm0"], &["host0 -> a", "a -> pm0"], more).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:8: fabric.switch.b: \"b\" is not in fabric.switches\n\
         mine.toml:10: fabric.link.\"host0 -> b\": \"host0 -> b\" is not in fabric.edges; the nearest is \"host0 -> a\"\n\
         mine.toml:12: fabric.pm.pm1: \"pm1\" is not in fabric.devices; the nearest is \"pm0\""
    );
}

#[test]
fn overrides_are_checked_like_the_tables_they_override() {
    let more = "[fabric.switch.a]\npipeline_stage = 1.0\n[fabric.switch.a.persist_buffer]\ndrain_preset = 0.9\n[fabric.pm.pm0]\nbanks = 0\n";
    let error = fabric(&["host0"], &["a"], &["pm0"], &["host0 -> a", "a -> pm0"], more).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:9: fabric.switch.a.pipeline_stage: there is no such key; the nearest is `pipeline_stage_ns`\n\
         mine.toml:13: fabric.pm.pm0.banks: 0 is out of range: 1 to 1024 is allowed"
    );
    let more = "[fabric.switch.a.persist_buffer]\ndrain_preset = 0.9\n[fabric.pm.pm0]\ncapacity_mib = 300\n";
    let error = fabric(&["host0"], &["a"], &["pm0"], &["host0 -> a", "a -> pm0"], more).unwrap_err();
    assert_eq!(
        error,
        "mine.toml:9: fabric.switch.a.persist_buffer.drain_preset: 0.9 is more than drain_threshold (0.8)\n\
         mine.toml:11: fabric.pm.pm0.capacity_mib: 300 is not a multiple of 256, which address decoders need"
    );
}

#[test]
fn a_fabric_needs_the_tables_that_describe_it() {
    let text = super::shipped("pcs-table1").expect("it is shipped").text;
    let start = text.find("[link]").expect("it has links");
    let end = text.find("[switch]").expect("it has switches");
    let text = format!("{}{}", &text[..start], &text[end..]);
    let edges = 1 + text.lines().position(|line| line.starts_with("edges")).expect("it has edges");
    assert_eq!(
        super::resolve(&text, &[]).unwrap_err(),
        format!("mine.toml:{edges}: fabric.edges: the table [link], which describes them, is missing")
    );
}

#[test]
fn a_thousand_hosts_in_a_tree_of_switches_are_one_file() {
    let hosts: Vec<String> = (0..1024).map(|host| format!("host{host}")).collect();
    let switches: Vec<String> =
        std::iter::once("root".to_owned()).chain((0..32).map(|leaf| format!("leaf{leaf}"))).collect();
    let mut edges: Vec<String> = (0..1024).map(|host| format!("host{host} -> leaf{}", host / 32)).collect();
    edges.extend((0..32).map(|leaf| format!("leaf{leaf} -> root")));
    edges.push("root -> pm0".to_owned());
    let borrowed = |names: &[String]| list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let text = format!(
        "[fabric]\nhosts = {}\nswitches = {}\ndevices = [\"pm0\"]\nedges = {}\n",
        borrowed(&hosts),
        borrowed(&switches),
        borrowed(&edges)
    );
    let machine = changed(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(machine.topology().persist_points(DeviceId(0)), [SwitchId(0)], "the root");
    assert_eq!(machine.topology().route(HostId(1023), DeviceId(0)).map(|route| route.switches.len()), Some(2));
}
