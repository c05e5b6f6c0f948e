"""`fencepost prove coherence`: counts, mutants, stories, and what it refuses."""

import json

import pytest

SMALL = ["--devices", 2, "--cores", 0]
COUNTS = "58129 states, 191710 transitions, depth 37"


def test_a_proof_prints_its_counts_and_writes_them(fencepost, tmp_path):
    done = fencepost("prove", "coherence", *SMALL, "--json", "p.json", check=True)
    first, last = done.stdout.splitlines()
    shown = "2 devices with 2 transactions each, 0 cores, 1 line of host memory, all requests"
    assert first == f"{shown}: {COUNTS}"
    assert last.startswith(f"proved: {COUNTS}, ")
    document = json.loads((tmp_path / "p.json").read_text())
    assert [document[key] for key in ("states", "transitions", "depth")] == [58129, 191710, 37]
    assert document["counterexample"] is None and document["seconds"] > 0


def test_the_number_of_processors_changes_no_count(fencepost):
    for jobs in (1, 3):
        done = fencepost("prove", "coherence", *SMALL, "--jobs", jobs, check=True)
        assert done.stdout.splitlines()[-1].startswith(f"proved: {COUNTS}, ")


def test_every_mutant_is_killed(fencepost, tmp_path):
    done = fencepost("prove", "coherence", "--mutant", "all", "--json", "m.json", check=True)
    document = json.loads((tmp_path / "m.json").read_text())
    names = [mutant["name"] for mutant in document["mutants"]]
    assert len(names) >= 15 and len(set(names)) == len(names)
    assert done.stdout.splitlines()[-1] == f"killed {len(names)} of {len(names)}"
    of_progress = [m for m in document["mutants"] if m["predicate"] == "progress"]
    assert len(of_progress) >= 3
    for mutant in document["mutants"]:
        assert mutant["counterexample"]["predicate"] == mutant["predicate"]


def test_a_story_is_told(fencepost):
    done = fencepost("prove", "coherence", "--mutant", "snoop-passes-go", check=True)
    assert "   1. device 0 requests RdShared\n      [device 0 I, waits: RdShared; " in done.stdout
    assert "      breaks `single_writer`: while a device or core may write" in done.stdout
    assert done.stdout.splitlines()[-1] == "killed 1 of 1"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["coherence", "--devices", 9], "devices: 9 cannot be explored; it can be 1 to 3"),
        (
            ["coherence", "--request", "RdOwm"],
            "there is no request `RdOwm`; did you mean `RdOwn`? ",
        ),
        (["coherence", "--mutant", "nil"], "there is no mutant `nil`; there are: all, "),
        (["coherence", "--mutant", "all", "--cores", 1], "a mutant has bounds of its own"),
        (["coherence", "--litmus", "sbb"], "there is no litmus test `sbb`; "),
        (["coherence", "--litmus", "sb", "--cores", 1], "a litmus test has bounds of its own"),
        (["--entries", 1, "coherence"], "--entries: options stand behind `coherence`"),
    ],
)
def test_what_is_refused_is_said(fencepost_here, arguments, said):
    done = fencepost_here("prove", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_too_little_memory_proves_nothing(fencepost):
    done = fencepost("prove", "coherence", "--memory-gib", 0.001)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("not proved: ")


def test_all_is_listed(fencepost):
    shown = fencepost("prove", "coherence", "--list", check=True).stdout
    assert "single_writer" in shown and "snoop-passes-go" in shown


def test_litmus_tests_across_devices_and_cores(fencepost, tmp_path):
    done = fencepost("prove", "coherence", "--litmus", "all", "--json", "l.json", check=True)
    document = json.loads((tmp_path / "l.json").read_text())
    tests = {test["name"]: test for test in document["litmus"]}
    assert document["hold"] == document["of"] == len(tests)
    assert done.stdout.splitlines()[-1] == f"{len(tests)} of {len(tests)} hold"
    usual = {"mp-device", "sb", "lb", "2+2w", "corr-device", "wrc-barrier", "iriw-barrier"}
    assert usual <= set(tests)
    for test in tests.values():
        outcomes = test["outcomes"]
        assert not [outcome for outcome in test["forbidden"] if outcome in outcomes]
        assert all(outcome in outcomes for outcome in test["relaxed"])
        # Whatever makes a test forbid something is needed: without it, that comes back.
        for broken in test["broken"]:
            assert broken["reaches"] or not test["forbidden"]
        has_barrier = any("barrier" in thread["does"] for thread in test["threads"])
        assert has_barrier == ("barriers-do-not-wait" in [one["name"] for one in test["broken"]])
    [agents] = [{thread["by"] for thread in tests["iriw-barrier"]["threads"]}]
    assert agents == {"device 0", "device 1", "core 0", "core 1"}


def test_one_litmus_test_is_told(fencepost):
    done = fencepost("prove", "coherence", "--litmus", "sb-barrier", check=True)
    told = done.stdout.splitlines()
    threads = "device 0: write x = 1; barrier; read y || core 0: write y = 1; read x"
    assert told[0] == f"sb-barrier: {threads}"
    assert told[1].endswith(": 01 10 11")
    assert "      00 is forbidden, and never reached" in told
    assert "      barriers-do-not-wait: 00 is reached" in told
    assert told[-1] == "1 of 1 hold"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "counts"),
    [
        ("--devices 2 --cores 2", "2614460 states, 14286042 transitions, depth 39"),
        (
            "--devices 1 --cores 1 --lines 2 --transactions 1",
            "2342696 states, 12842189 transitions, depth 54",
        ),
        pytest.param(
            "--devices 1 --cores 1 --lines 2 --transactions 2",
            "18145492 states, 115606467 transitions, depth 55",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "--devices 1 --cores 2 --lines 2 --transactions 1",
            "35261861 states, 248360667 transitions, depth 59",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_larger_bounds(fencepost, bounds, counts):
    done = fencepost("prove", "coherence", *bounds.split(), check=True, timeout=1200)
    assert done.stdout.splitlines()[-1].startswith(f"proved: {counts}, ")


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("bias", "196 states, 479 transitions, depth 11"),
        ("back-invalidate", "316 states, 679 transitions, depth 12"),
    ],
)
def test_device_memory(fencepost, kind, counts):
    done = fencepost("prove", "coherence", "--device-memory", kind, check=True)
    assert done.stdout.splitlines()[0] == f"a line of device memory, {kind}: {counts}"


@pytest.mark.parametrize(
    "bound",
    [
        ["--devices", 1],
        ["--devices", 2],
        ["--cores", 1],
        ["--lines", 1],
        ["--transactions", 2],
        ["--request", "RdOwn"],
        ["--without-symmetry"],
    ],
)
def test_device_memory_has_bounds_of_its_own(fencepost_here, bound):
    done = fencepost_here("prove", "coherence", "--device-memory", "bias", *bound)
    assert done.returncode == 2 and f": leave {bound[0]} out" in done.stderr
    assert "one device" in done.stderr and done.stdout == ""


def test_every_bound_that_is_not_explored_is_named(fencepost_here):
    bounds = ["--devices", 2, "--cores", 1]
    done = fencepost_here("prove", "coherence", "--device-memory", "bias", *bounds)
    assert done.returncode == 2 and "leave --devices, --cores out" in done.stderr


def test_kinds_of_device_memory_are_two(fencepost_here):
    done = fencepost_here("prove", "coherence", "--device-memory", "hdm")
    assert done.returncode == 2 and "it has to be bias or back-invalidate" in done.stderr
