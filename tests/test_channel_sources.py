"""Where the bytes of `fencepost channel` come from: what a made-up machine offers and lacks."""

from pathlib import Path

import pytest

import machine_trees
from fencepost.channel import sources


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def processor(model: int) -> str:
    return f"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\n\n"


def test_what_a_machine_lacks_to_count_is_named(tmp_path: Path) -> None:
    def told() -> list[str]:
        return [source.missing for source in sources.examine(tmp_path)]

    assert told() == [
        "the table of events has no processor like this one; name one by [[event]]",
        "no monitoring of bandwidth in /sys/fs/resctrl; mount resctrl there",
    ]
    write(tmp_path / "proc/cpuinfo", processor(143))
    assert told()[0] == (
        "the kernel offers no counters of this SPR; a virtual machine may hide them"
    )
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    assert told()[0] == "the kernel has no perf events"
    write(tmp_path / "proc/sys/kernel/perf_event_paranoid", "1\n")
    assert told()[0] == ""
    features = tmp_path / "sys/fs/resctrl/info/L3_MON/mon_features"
    write(features, "llc_occupancy\n")
    assert told()[1] == "resctrl does not monitor the bytes of memory here"
    write(features, "llc_occupancy\nmbm_total_bytes\n")
    (tmp_path / "sys/fs/resctrl/mon_groups").mkdir()
    assert told()[1] == "resctrl has no last level to monitor"
    (tmp_path / "sys/fs/resctrl/mon_data/mon_L3_01").mkdir(parents=True)
    assert told()[1] == ""
    found = sources.examine(tmp_path)
    assert [sources.choose(name, found).name for name in ("auto", "counter", "mbm")] == [
        *("counter", "counter", "mbm")
    ]
    assert found[1].settings[sources.DOMAINS] == "1"


@pytest.mark.parametrize(
    ("model", "registers"),
    [(173, [0x703C04477]), (143, [0x703004477, 0x700C04477])],
    ids=["one event for all", "one for each socket"],
)
def test_the_table_says_which_events_count_reads_of_cxl_memory(
    tmp_path: Path, model: int, registers: list[int]
) -> None:
    write(tmp_path / "proc/cpuinfo", processor(model))
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    [counter, _] = sources.examine(tmp_path)
    events = ",".join(f"4:{0x012A}:{register}:64" for register in registers)
    assert counter.settings == {sources.EVENTS_SETTING: events}


def test_devices_are_the_nodes_of_cxl_memory_with_the_bandwidth_that_firmware_says(
    tmp_path: Path,
) -> None:
    root = machine_trees.far_memories(tmp_path)
    assert sources.devices(root) == ({"name": "node3", "capacity_gb_per_s": 25.0},)
    machine_trees.MachineTree(root).bandwidth(3, 0)
    assert sources.devices(root) == ()
