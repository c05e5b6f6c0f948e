//! Accelerators: what they need, and what is said where it is missing.

use fencepost_sim::switch::Scheme;

use crate::resolve;

fn with(changes: &str) -> Result<(), String> {
    let text = format!("extends = \"agilex-type2\"\ndescription = \"a test\"\n{changes}\n");
    resolve(&text, &[]).map(drop)
}

#[test]
fn the_machine_of_the_study_is_sound() {
    with("").expect("it ships");
    with("[fabric.bias]\ntype2 = \"device\"").expect("its memory may be in device bias");
}

#[test]
fn no_switch_carries_cxl_cache() {
    let behind = "[switch]\n[fabric]\nswitches = [\"a\"]\nedges = [\"host0 -> type3\", \"host0 -> a\", \"a -> type2\"]";
    let error = resolve(&format!("extends = \"agilex-type2\"\ndescription = \"a test\"\n{behind}\n"), &[])
        .expect_err("it cannot be");
    assert!(
        error.contains("mine.toml:6: fabric.edges: type2 lies behind a, and no switch carries CXL.cache; connect it to a host directly"),
        "{error}"
    );
}

#[test]
fn bias_is_of_memory_that_an_accelerator_has() {
    let error = with("[fabric.bias]\ntype3 = \"device\"").expect_err("it cannot be");
    assert_eq!(
        error,
        "mine.toml:4: fabric.bias.type3: \"type3\" is no accelerator, and has no memory with bias; the nearest is \"type2\""
    );
}

#[test]
fn an_accelerator_has_memory_and_an_engine() {
    let bare = "extends = \"fpga-expander\"\ndescription = \"a test\"\n[fabric]\nexpanders = []\naccelerators = [\"acc0\"]\nedges = [\"host0 -> acc0\"]\n";
    let error = resolve(bare, &[]).expect_err("it cannot be");
    for said in [
        "mine.toml:5: fabric.accelerators: an accelerator needs the table [accelerator]: the memory that it has",
        "mine.toml:5: fabric.accelerators: an accelerator needs the table [type2]: its coherence engine",
        "the link `host0 -> acc0` does not carry CXL.cache, which acc0 speaks: `d2h_request_credits` is missing in [link]",
    ] {
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn an_accelerator_has_one_link_of_its_own() {
    let error = with("[fabric]\nedges = [\"host0 -> type3\"]\nlocal_edges = [\"host0 -> type2\"]").expect_err("no");
    assert!(error.contains("mine.toml:5: fabric.local_edges: type2 needs a CXL link; a local edge is none"), "{error}");
    let hosts = "[fabric]\nhosts = [\"host0\", \"host1\"]\nedges = [\"host0 -> type3\", \"host0 -> type2\", \"host1 -> type2\"]";
    let error = with(hosts).expect_err("no");
    assert!(
        error.contains("mine.toml:5: fabric.edges: type2 is connected 2 times; the coherence engine has one port"),
        "{error}"
    );
}

#[test]
fn an_accelerator_has_room_for_what_its_requests_bring() {
    let error = with("[link]\nh2d_response_credits = 8").expect_err("it cannot be");
    assert!(
        error.contains(
            "`h2d_response_credits` is 8, and a device has room for the responses to all of its requests: 256"
        ),
        "{error}"
    );
}

const SNOOPING: &str =
    "[fabric.bias]\ntype2 = \"back_invalidate\"\n[type2.snoop_filter]\nsize_kib = 64\nways = 4\n[link]\n";
const CREDITS: &str = "back_invalidate_snoop_credits = 8\nback_invalidate_response_credits = 8\n";

#[test]
fn a_device_that_snoops_its_host_has_a_filter_flits_of_256_bytes_and_credits() {
    with(&format!("{SNOOPING}{CREDITS}flit_format = \"256_byte\"")).expect("nothing is missing");
    for (changes, said) in [
        (
            format!("[fabric.bias]\ntype2 = \"back_invalidate\"\n[link]\n{CREDITS}flit_format = \"256_byte\""),
            "fabric.bias.type2: type2 snoops its host, and needs a filter: [type2.snoop_filter] is missing",
        ),
        (
            format!("{SNOOPING}{CREDITS}"),
            "type2 snoops its host, which flits of 68 bytes do not carry: give `host0 -> type2` a link.flit_format of 256 bytes",
        ),
        (
            format!("{SNOOPING}flit_format = \"256_byte\""),
            "type2 snoops its host, and the link `host0 -> type2` carries no such snoops: \
             `back_invalidate_snoop_credits` is missing in [link]",
        ),
    ] {
        let error = with(&changes).expect_err("it cannot be");
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_battery_makes_the_memory_of_accelerators_pm_behind_that_of_pm_devices() {
    let pm = "devices = [\"pm0\"]\nedges = [\"host0 -> pm0\", \"host0 -> type3\", \"host0 -> type2\"]";
    let text = format!(
        "extends = \"agilex-type2-pm\"\ndescription = \"a test\"\n[pm]\nmedium = \"battery_backed_dram\"\ncapacity_mib = 1024\n\
         [fabric]\n{pm}\n"
    );
    let machine = resolve(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let topology = machine.topology();
    let ranges: Vec<(&str, bool)> = topology.ranges.iter().map(|range| (range.name.as_str(), range.is_pm())).collect();
    assert_eq!(ranges, [("pm0", true), ("type2", true), ("type3", false)]);
    let text = "extends = \"agilex-type2-pm\"\ndescription = \"a test\"\n[type2]\nmedium = \"dram\"\n";
    let machine = resolve(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert!(machine.topology().ranges.iter().all(|range| !range.is_pm()), "the default keeps nothing");
}

#[test]
fn a_device_that_keeps_its_caches_is_not_modelled() {
    let error = with("[type2]\nmedium = \"persistent_caches\"").expect_err("it cannot be");
    assert!(error.contains("type2.medium"), "{error}");
    assert!(error.contains("dram") && error.contains("battery_backed_dram"), "{error}");
}

#[test]
fn no_persist_buffer_is_on_the_way_to_an_accelerator() {
    let text = "extends = \"agilex-type2-pm\"\ndescription = \"a test\"\n";
    let machine = resolve(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let error = machine.topology().check_scheme(Scheme::PbRf).expect_err("it has no switch");
    assert!(error.contains("needs a switch to hold the persist buffer, and this machine has none"), "{error}");
}
