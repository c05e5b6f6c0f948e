"""`fencepost measure topology`, on machines that are not at hand and on the one that is."""

import json
from pathlib import Path

import pytest

import machine_trees
from fencepost.measure.topology import text
from fencepost.measure.topology.document import Topology, document
from fencepost.measure.topology.nodes import Node
from fencepost.measure.topology.tree import Tree, as_list, listed
from installed import Fencepost
from machine_trees import CXL_BYTES, DRAM_BYTES, HBM_BYTES, NODE, MachineTree


def topology(root: Path) -> Topology:
    return Topology(Tree(root))


@pytest.fixture
def far(tmp_path: Path) -> Topology:
    return topology(machine_trees.far_memories(tmp_path))


def test_each_node_has_its_kind_and_the_reason(far: Topology) -> None:
    kinds = {node.number: (node.kind, node.kind_because) for node in far.nodes}
    assert kinds == {
        0: ("DRAM", "it has processors"),
        1: ("DRAM", "it has processors"),
        2: ("HBM", "the firmware says it is read 3.5 times as fast as DRAM"),
        3: ("CXL", "its addresses are those of CXL devices"),
        4: ("unknown", "it has no processors, and nothing says what it is"),
    }


def test_a_node_whose_addresses_are_not_shown_is_what_its_dax_device_was(tmp_path: Path) -> None:
    root = machine_trees.far_memories(tmp_path)
    for link in (root / NODE / "node3").glob("memory*"):
        link.unlink()
    [cxl] = topology(root).of_kind("CXL")
    assert (cxl.number, cxl.kind_because) == (3, "it was dax0.0")


def test_a_dax_device_that_is_no_memory_of_a_node_names_none(tmp_path: Path) -> None:
    root = machine_trees.far_memories(tmp_path)
    for link in (root / NODE / "node3").glob("memory*"):
        link.unlink()
    dax = (root / "sys/bus/dax/devices/dax0.0").resolve()
    (dax / "driver").unlink()
    MachineTree(root).link(str(dax.relative_to(root) / "driver"), "sys/bus/dax/drivers/device_dax")
    assert topology(root).of_kind("CXL") == []


def test_only_what_a_root_decodes_is_a_window(tmp_path: Path) -> None:
    root = machine_trees.far_memories(tmp_path)
    (root / "sys/bus/cxl/devices/decoder0.0").unlink()  # that of the host bridge is left
    (root / "sys/bus/dax/devices/dax0.0").unlink()
    assert topology(root).of_kind("CXL") == []


def test_far_memory_that_is_a_little_faster_is_not_taken_for_hbm(tmp_path: Path) -> None:
    root = machine_trees.far_memories(tmp_path)
    MachineTree(root).bandwidth(2, 300000)
    assert topology(root).of_kind("HBM") == []


def test_sockets_have_cores_processors_and_nodes(far: Topology) -> None:
    found = document(far)["topology"]["sockets"]
    assert [socket["cores"] for socket in found] == [4, 4]
    assert found[1]["processors"] == [4, 5, 6, 7, 12, 13, 14, 15]
    assert [socket["nodes"] for socket in found] == [[0], [1]]
    assert {p.number for p in far.processors if p.sibling == 1} == set(range(8, 16))


def test_the_cxl_tree_leads_from_the_root_to_the_device(far: Topology) -> None:
    above = {port.name: port.above for port in far.cxl_ports}
    assert above == {"root0": None, "port1": "root0", "port2": "port1", "endpoint3": "port2"}
    memories = {memory.name: memory for memory in far.cxl_memories}
    assert memories["mem0"].endpoint == "endpoint3" and memories["mem1"].endpoint is None
    assert (memories["mem0"].node, memories["mem1"].node) == (0, None)
    lines = list(text.lines(document(far)))
    assert "      CXL endpoint3: mem0, 16.0 GiB volatile, next to node 0" in lines
    assert "CXL mem1, 16.0 GiB volatile, which no port reaches" in lines
    assert lines.index("CXL root0") < lines.index("  CXL port1 (0000:0c:00.0)")


def test_files_of_persistent_memory_have_the_node_of_their_region(far: Topology) -> None:
    [mount] = far.mounts
    assert (mount.folder, mount.node, mount.kind) == ("/mnt/near pm", 5, "PMem")


def test_dax_devices_say_what_is_behind_them(far: Topology) -> None:
    [device] = far.dax
    assert (device.name, device.bytes, device.node) == ("dax0.0", CXL_BYTES, 3)
    assert (device.driver, device.behind) == ("kmem", "CXL")


def test_results_are_sizes_and_distances(far: Topology) -> None:
    found = {one["name"]: (one["value"], one["unit"]) for one in document(far)["results"]}
    assert found["node 0: memory"] == (DRAM_BYTES, "bytes")
    assert found["node 2: memory"] == (HBM_BYTES, "bytes")
    assert found["node 0 to node 3"] == (14, "distance")
    assert found["node 3 to node 1"] == (24, "distance")


def test_what_is_missing_is_said(far: Topology, tmp_path: Path) -> None:
    assert document(far)["platform"]["missing"] == ["PMem memory: no node is any"]
    small = document(topology(machine_trees.plain(tmp_path / "plain")))["platform"]["missing"]
    for lack in ("a second socket", "HBM memory", "CXL memory", "a DAX device", "a DAX file"):
        assert any(lack in said for said in small), small


def test_a_kernel_without_numa_has_one_node_with_everything(tmp_path: Path) -> None:
    root = machine_trees.plain(tmp_path)
    (root / NODE).rename(tmp_path / "gone")
    found = topology(root)
    assert not found.has_numa
    assert found.nodes == [
        Node(
            number=0,
            processors=list(range(8)),
            bytes=DRAM_BYTES,
            free_bytes=30000000 * 1024,
            distances={0: 10},
            kind="DRAM",
            kind_because="it has processors",
        )
    ]
    assert "NUMA: the kernel shows no nodes" in document(found)["platform"]["missing"]


@pytest.mark.parametrize(
    ("text_of_list", "numbers"),
    [("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), ("a-b", []), ("1-", []), ("3-1", [])],
)
def test_lists_of_the_kernel_are_read(text_of_list: str, numbers: list[int]) -> None:
    assert listed(text_of_list) == numbers


def test_lists_are_written_as_the_kernel_does() -> None:
    assert as_list([8, 0, 1, 2]) == "0-2,8" and as_list([]) == "none"


def test_the_command_shows_this_machine(fencepost: Fencepost, tmp_path: Path) -> None:
    done = fencepost("measure", "topology", "--json", "t.json", check=True)
    found = json.loads((tmp_path / "t.json").read_text())
    assert set(found) == {"provenance", "platform", "results", "topology"}
    assert all(
        {"name", "value", "unit", "half_width", "repetitions"} == set(one)
        for one in found["results"]
    )
    assert found["platform"]["allowed_processors"]
    assert "socket 0: " in done.stdout and "node 0: DRAM" in done.stdout
    assert "this process may use processors" in done.stdout


def test_the_command_shows_another_machine(fencepost: Fencepost, tmp_path: Path) -> None:
    machine_trees.far_memories(tmp_path / "copy")
    done = fencepost("measure", "topology", "--root", "copy", check=True)
    assert done.stdout.startswith("Made Up 9000, ") and "Linux 6.6.0" in done.stdout
    assert "node 3: CXL" in done.stdout and "this process" not in done.stdout


def test_a_folder_that_is_no_machine_is_refused(fencepost: Fencepost) -> None:
    done = fencepost("measure", "topology", "--root", "/nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fencepost: /nowhere: no processors and no memory are shown there\n"
