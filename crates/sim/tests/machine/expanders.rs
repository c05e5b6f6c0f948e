//! Devices with DRAM: memory expanders, and PM whose DRAM has a battery.

use fencepost_kernel::address_map::{EXPANDER_BASE, PM_BASE};
use fencepost_sim::config::topology::{DeviceId, HostId};
use fencepost_sim::device::{DramConfig, MediumConfig};
use fencepost_sim::switch::Scheme;

use super::fabrics::{MIB, fabric, sound};

#[test]
fn expanders_have_the_keys_of_dram_unless_they_have_their_own() {
    let edges = ["host0 -> a", "a -> pm0", "a -> mem0", "a -> mem1"];
    let more = "expanders = [\"mem0\", \"mem1\"]\n[expander]\nranks = 1\ncapacity_mib = 1024\n[fabric.expander.mem1]\nranks = 4\n";
    let machine = sound(&["host0"], &["a"], &["pm0"], &edges, more);
    let topology = machine.topology();
    let dram = |index| match topology.device_config(DeviceId(index)) {
        MediumConfig::Dram(dram) => dram.clone(),
        other => panic!("an expander has DRAM and no battery, not {other:?}"),
    };
    assert_eq!((dram(1).ranks, dram(2).ranks), (1, 4));
    assert_eq!((dram(1).capacity_mib, dram(2).capacity_mib), (1024, 1024));
    assert_eq!(dram(1), DramConfig { ranks: 1, capacity_mib: 1024, ..machine.dram.clone() });
    assert!(topology.is_pm(DeviceId(0)) && !topology.is_pm(DeviceId(1)));
}

#[test]
fn pm_may_be_dram_with_a_battery_as_the_expander_table_describes_it() {
    let edges = ["host0 -> a", "a -> pm0", "a -> pm1"];
    let more = "[expander]\nranks = 1\ncapacity_mib = 1024\n[fabric.pm.pm1]\nmedium = \"battery_backed_dram\"\n";
    let machine = sound(&["host0"], &["a"], &["pm0", "pm1"], &edges, more);
    let topology = machine.topology();
    assert!(topology.is_pm(DeviceId(0)) && topology.is_pm(DeviceId(1)));
    assert!(matches!(topology.device_config(DeviceId(0)), MediumConfig::Pm(_)));
    let backed = DramConfig { ranks: 1, capacity_mib: 1024, ..machine.dram.clone() };
    assert_eq!(*topology.device_config(DeviceId(1)), MediumConfig::BackedDram(backed));
    assert_eq!(topology.ranges[1].bytes, 1 << 30);
}

#[test]
fn expanders_lie_above_all_pm_and_are_no_frames_of_it() {
    let edges = ["host0 -> a", "host1 -> a", "a -> pm0", "a -> mem0", "a -> mem1"];
    let more = "expanders = [\"mem0\", \"mem1\"]\n[fabric.interleave.pool]\ndevices = [\"mem0\", \"mem1\"]\ngranularity_bytes = 256\n";
    let machine = sound(&["host0", "host1"], &["a"], &["pm0"], &edges, more);
    let topology = machine.topology();
    let ranges: Vec<(u64, usize)> = topology.ranges.iter().map(|range| (range.base, range.targets.len())).collect();
    assert_eq!(ranges, [(PM_BASE, 1), (EXPANDER_BASE, 2)]);
    let second_half = |base: u64, bytes: u64| vec![(base + bytes / 2, base + bytes)];
    let ends =
        |frames: Vec<std::ops::Range<u64>>| frames.iter().map(|frame| (frame.start, frame.end)).collect::<Vec<_>>();
    assert_eq!(ends(topology.frames_of(HostId(1))), second_half(PM_BASE, 6144 * MIB));
    assert_eq!(ends(topology.expander_frames_of(HostId(1))), second_half(EXPANDER_BASE, 2 * 16384 * MIB));
}

#[test]
fn only_pm_needs_a_persist_point() {
    let edges = ["host0 -> a", "a -> pm0", "host0 -> mem0"];
    let direct = sound(&["host0"], &["a"], &["pm0"], &edges, "expanders = [\"mem0\"]\n");
    assert_eq!(
        direct.topology().check_scheme(Scheme::PbRf),
        Ok(()),
        "mem0 is reached without a switch, but holds no PM"
    );
}

#[test]
fn expanders_that_cannot_be_are_refused() {
    let with = |more: &str| {
        let edges = ["host0 -> a", "a -> pm0", "a -> mem0"];
        fabric(&["host0"], &["a"], &["pm0"], &edges, more).expect_err("it cannot be")
    };
    let mixed =
        "expanders = [\"mem0\"]\n[fabric.interleave.pool]\ndevices = [\"pm0\", \"mem0\"]\ngranularity_bytes = 256\n";
    assert_eq!(
        with(mixed),
        "mine.toml:10: fabric.interleave.pool.devices: pm0 and mem0 are not both PM, nor both expanders"
    );
    assert_eq!(
        with("expanders = [\"mem0\"]\n[fabric.expander.mem1]\nranks = 1\n"),
        "mine.toml:9: fabric.expander.mem1: \"mem1\" is not in fabric.expanders; the nearest is \"mem0\""
    );
    assert_eq!(
        with("expanders = [\"mem0\"]\n[expander]\ncapacity_mib = 300\n"),
        "mine.toml:10: expander.capacity_mib: 300 is not a multiple of 256, which address decoders need"
    );
    assert_eq!(
        with("expanders = [\"mem0\"]\n[expander]\nrank = 2\n"),
        "mine.toml:10: expander.rank: there is no such key; the nearest is `ranks`"
    );
    assert_eq!(
        with("expanders = [\"mem0\", \"pm0\"]\n"),
        "mine.toml:8: fabric.expanders: the name \"pm0\" is given twice"
    );
}
