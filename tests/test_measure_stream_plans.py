"""Where `fencepost measure stream` puts threads and arrays on machines that are not at hand, and
what it says that they lack."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import machine_trees
from fencepost._core import InputError
from fencepost.measure.stream import memories, program, study, threads
from fencepost.measure.stream.document import Settings, plan
from fencepost.measure.stream.memories import Lacking, Place
from fencepost.measure.stream.point import Point
from fencepost.measure.topology import nodes
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.tree import Tree

ALL = list(range(16))
APP_DIRECT = Point(mode="app-direct", access="d_rw")


@pytest.fixture
def far(tmp_path: Path) -> Topology:
    return Topology(Tree(machine_trees.far_memories(tmp_path / "far")))


@pytest.fixture
def small(tmp_path: Path) -> Topology:
    return Topology(Tree(machine_trees.plain(tmp_path / "plain")))


# Where threads go


@pytest.mark.parametrize(
    ("affinity", "smt", "processors"),
    [
        ("close", False, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("spread", False, [0, 4, 1, 5, 2, 6, 3, 7]),
        ("close", True, [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]),
        ("spread", True, [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]),
    ],
)
def test_threads_take_processors_in_order(
    far: Topology, affinity: str, smt: bool, processors: list[int]
) -> None:
    point = Point(sockets=(0, 1), affinity=affinity, smt=smt)
    assert threads.order(far, ALL, point) == processors


def test_only_processors_that_are_allowed_are_taken(far: Topology) -> None:
    point = Point(sockets=(0, 1), affinity="spread", threads=3)
    assert threads.pinned(far, [2, 3, 5], point) == [2, 5, 3]
    with pytest.raises(InputError, match=r"socket 0-1 has 3 processors without SMT siblings; of "):
        threads.pinned(far, [2, 3, 5], point.with_threads(4))
    with pytest.raises(InputError, match=r"socket 1 has 8 processors$"):
        threads.pinned(far, ALL, Point(sockets=(1,), threads=9, smt=True))


def test_smt_needs_siblings_that_may_be_used(far: Topology, small: Topology) -> None:
    both = Point(sockets=(0, 1), smt=True)
    threads.check_siblings(far, ALL, both)
    threads.check_siblings(far, [0, 8], both)
    threads.check_siblings(far, [0], replace(both, smt=False))
    with pytest.raises(InputError, match=r"^--smt: this process may use no second hardware thread"):
        threads.check_siblings(far, [0, 1], both)
    for number in range(8):
        (small.tree.root / nodes.CPUS / f"cpu{number}/topology/thread_siblings_list").unlink()
    alone = Topology(small.tree)
    with pytest.raises(InputError, match=r"cores of socket 0 have no second hardware threads"):
        threads.check_siblings(alone, ALL, Point(smt=True))


def test_a_sweep_names_numbers_of_threads() -> None:
    assert threads.counts("1-N", 4) == [1, 2, 3, 4]
    assert threads.counts("1,2,N", 8) == [1, 2, 8]
    assert threads.counts("2,1-2,N", 2) == [2, 1]
    for wrong in ("", "0", "0-2", "many", "4-", "2N", "1-99999999999"):
        with pytest.raises(InputError, match=r"numbers from 1 on"):
            threads.counts(wrong, 4)


# Where arrays lie


@pytest.mark.parametrize(
    ("memory", "socket", "place"),
    [
        ("local", 0, Place((0,))),
        ("local", 1, Place((1,))),
        ("remote", 0, Place((1,))),
        ("remote", 1, Place((0,))),
        ("cxl", 0, Place((3,))),
        ("hbm", 0, Place((2,))),
        ("first-touch", 0, Place(())),
        ("interleave", 0, Place((0, 1), True)),
        ("interleave:0,3", 0, Place((0, 3), True)),
        ("node:4", 0, Place((4,))),
    ],
)
def test_memories_are_nodes(far: Topology, memory: str, socket: int, place: Place) -> None:
    assert memories.place(far, Point(memory=memory, sockets=(socket,))) == place


def test_a_socket_of_several_nodes_has_its_memory_on_all_of_them(far: Topology) -> None:
    """As where a processor is divided into clusters, each with memory of its own."""
    for number, own in ((0, "0-1,8-9"), (4, "2-3,10-11")):
        (far.tree.root / nodes.NODES / f"node{number}" / "cpulist").write_text(f"{own}\n")
    again = Topology(far.tree)
    assert memories.place(again, Point(memory="local")) == Place((0, 4), True)
    assert memories.place(again, Point(memory="remote", sockets=(1,))) == Place((0, 4), True)
    assert memories.place(again, Point(memory="local", sockets=(1,))) == Place((1,))


def test_no_pool_lies_where_its_threads_touch_it_first(far: Topology) -> None:
    with pytest.raises(memories.Lacking, match="one thread allocates a pool"):
        memories.place(far, replace(APP_DIRECT, memory="first-touch"))


def test_app_direct_takes_a_dax_file_system_where_there_is_one(far: Topology) -> None:
    near = Place((), False, Path("/mnt/near pm"))
    assert memories.place(far, replace(APP_DIRECT, memory="pmem")) == near
    assert memories.place(far, replace(APP_DIRECT, memory="cxl")) == Place((3,))
    assert memories.place(far, APP_DIRECT, Path("/x")) == Place((), False, Path("/x"))
    region = far.tree.root / machine_trees.NVDIMM / "region0" / "target_node"
    region.write_text("1\n")  # as a kernel does that sets ordinary memory aside by `memmap=`
    again = Topology(far.tree)
    assert memories.place(again, replace(APP_DIRECT, memory="remote")) == near


@pytest.mark.parametrize("memory", ["remote", "cxl", "hbm", "pmem", "interleave"])
def test_what_the_machine_lacks_is_named(small: Topology, memory: str) -> None:
    with pytest.raises(Lacking, match=rf"^{memory}: "):
        memories.place(small, Point(memory=memory))


@pytest.mark.parametrize("memory", ["near", "node:", "node:1,2", "node:9", "interleave:0,9"])
def test_a_memory_that_is_none_is_refused(far: Topology, memory: str) -> None:
    with pytest.raises(InputError, match=rf"^--memory {memory}: "):
        memories.place(far, Point(memory=memory))


def test_nodes_that_a_cpuset_does_not_allow_are_refused() -> None:
    memories.check_allowed(Place((0, 1)), [0, 1, 2])
    memories.check_allowed(Place((3,)), None)
    with pytest.raises(InputError, match=r"node 3 is not allowed: this process's cpuset has the n"):
        memories.check_allowed(Place((3,)), [0, 1, 2])


def test_memory_is_what_node_machine_and_cgroups_leave(far: Topology) -> None:
    assert memories.available_bytes(far, Place((3,))) == machine_trees.CXL_BYTES // 2
    assert memories.available_bytes(far, Place((0, 3), True)) == machine_trees.CXL_BYTES
    assert memories.available_bytes(far, Place(())) == 100000000 * 1024
    tree = machine_trees.MachineTree(far.tree.root)
    tree.file("proc/self/cgroup", "0::/above/own")
    tree.file("sys/fs/cgroup/above/memory.max", 3000)
    tree.file("sys/fs/cgroup/above/memory.current", 1000)
    tree.file("sys/fs/cgroup/above/own/memory.max", "max")
    tree.file("sys/fs/cgroup/above/own/memory.current", 900)
    assert memories.available_bytes(far, Place((3,))) == 2000
    tree.file("proc/self/cgroup", "4:memory:/own\n3:cpuset:/")
    tree.file("sys/fs/cgroup/memory/own/memory.limit_in_bytes", 500)
    tree.file("sys/fs/cgroup/memory/own/memory.usage_in_bytes", 100)
    assert memories.available_bytes(far, Place((3,))) == 400


def test_arrays_are_as_long_as_stream_wants_or_as_fit(far: Topology) -> None:
    assert memories.cache_bytes(far) == 2 * (32 << 20)  # of each socket once
    on_dram = [(Point(), Place((0,)))]
    assert memories.default_elements(far, on_dram) == 100_000_000
    on_both = [*on_dram, (Point(), Place((3,)))]
    assert memories.default_elements(far, on_both) == 100_000_000
    shutil.rmtree(far.tree.root / nodes.NODES / "node3")
    machine_trees.MachineTree(far.tree.root).node(3, "", 0, 2 << 30, "10")
    shorter = memories.default_elements(Topology(far.tree), on_both)
    # 1 GiB is free there: half of it, without what a pool has beside the arrays.
    assert shorter == ((1 << 29) - (64 << 20)) // 24 // 8 * 8
    with pytest.raises(
        InputError, match=r"--elements 100000000: three arrays take 2\.40 GB, and 1"
    ):
        memories.check_fits(Topology(far.tree), 100_000_000, Point(), Place((3,)))


# What is planned


@pytest.fixture
def everything_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "allowed_processors", lambda: ALL)
    there = {"libnuma": None, "libpmemobj": None, "libpmemobj_version": "1"}
    monkeypatch.setattr(program, "about", lambda _: there)


def every_count(_: Point, most: int) -> list[int]:
    return list(range(1, most + 1))


@pytest.mark.usefixtures("everything_allowed")
def test_the_study_has_its_groups(far: Topology) -> None:
    found = plan(far, Settings(), list(study.points([0, 1])), every_count, is_study=True)
    assert found.skipped == []
    sizes = {group: sum(p.point.group == group for p in found.placed) for group in study.GROUPS}
    assert sizes == {"1a": 4, "1b": 12, "1c": 48, "2a": 12, "2b": 32}
    assert len({placed.point.name for placed in found.placed}) == 108
    for placed in found.placed:
        point = placed.point
        is_pool = point.group is not None and point.group.startswith("1")
        assert (point.mode, point.access) == (
            ("app-direct", "d_rw") if is_pool else ("memory", "pointer")
        )
        assert not point.first_touch and not point.smt and point.persist == "none"
    [widest] = [
        p
        for p in found.placed
        if p.point.name.startswith("1c: app-direct cxl, sockets 0+1, 8 threads spread")
    ]
    assert widest.processors == [0, 4, 1, 5, 2, 6, 3, 7] and widest.place == Place((3,))


@pytest.mark.usefixtures("everything_allowed")
def test_the_study_skips_what_a_machine_lacks_and_says_so(small: Topology) -> None:
    found = plan(small, Settings(), list(study.points([0])), every_count, is_study=True)
    assert {placed.point.group for placed in found.placed} == {"1a"}
    reasons = {one["name"][:2]: one["reason"] for one in found.skipped}
    assert any(one["reason"].startswith("cxl: no node is CXL memory") for one in found.skipped)
    assert reasons["1c"] == reasons["2b"]
    assert reasons["2b"] == "the machine has one socket whose processors can be used"
    both = [one["name"] for one in found.skipped if one["name"].startswith(("1c", "2b"))]
    assert all("sockets 0+1" in name for name in both)
    assert any("the pool is a file in memory on node 0" in note for note in found.notes)


@pytest.mark.usefixtures("everything_allowed")
def test_of_the_study_more_threads_than_a_socket_has_are_skipped(far: Topology) -> None:
    points = list(study.points([0, 1]))
    found = plan(far, Settings(), points, lambda *_: [1, 8], is_study=True)
    assert {p.point.group for p in found.placed if p.point.threads == 8} == {"1c", "2b"}
    skipped = [one for one in found.skipped if "8 threads" in one["name"]]
    assert {one["name"][:2] for one in skipped} == {"1a", "1b", "2a"}
    assert {one["reason"] for one in skipped} == {"its sockets have 4 processors for this process"}
    with pytest.raises(InputError, match="--threads 8: socket 0 has 4 processors"):
        plan(far, Settings(), [(Point(), None)], lambda *_: [8], is_study=False)


@pytest.mark.usefixtures("everything_allowed")
def test_a_machine_without_numa_is_measured_unbound_and_says_so(small: Topology) -> None:
    (small.tree.root / nodes.NODES).rename(small.tree.root / "gone")
    found = plan(small, Settings(), [(Point(), None)], every_count, is_study=False)
    assert found.placed[0].place == Place(())
    assert "memory is not bound to a node: the kernel shows none" in found.notes


def test_without_libnuma_only_a_machine_of_one_node_is_measured(
    small: Topology, far: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "allowed_processors", lambda: ALL)
    lacks = {"libnuma": "not found", "libpmemobj": "not found", "libpmemobj_version": None}
    monkeypatch.setattr(program, "about", lambda _: lacks)
    found = plan(small, Settings(), [(Point(), None)], every_count, is_study=False)
    assert found.placed[0].place == Place(())
    assert "memory is not bound to the only node: not found" in found.notes
    for point, name in ((Point(), "libnuma"), (APP_DIRECT, "libpmemobj")):
        with pytest.raises(InputError, match=rf"needs {name}: not found \(Debian: {name}"):
            plan(far, Settings(), [(point, None)], every_count, is_study=False)
    points = list(study.points([0]))
    with pytest.raises(InputError, match="there is nothing to measure on this machine"):
        plan(small, Settings(), points, every_count, is_study=True)


@pytest.mark.usefixtures("everything_allowed")
def test_short_arrays_are_said_to_be(small: Topology) -> None:
    for elements, is_short in ((4096, True), (4 * (32 << 20) // 8, False)):
        settings = Settings(elements=elements)
        found = plan(small, settings, [(Point(), None)], every_count, is_study=False)
        assert any("4 times the last-level caches" in note for note in found.notes) == is_short
