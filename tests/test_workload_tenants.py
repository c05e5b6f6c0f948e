"""`tenants`: the transport study's own programs check themselves, and find what is wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build" / "workloads" / "memchannel" / "tenants"


def tenants(*words: str, program: Path = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ["mica-A:3:200:4K"],
        ["mica-D:3:1000:4K"],
        ["mica-F:4:500:100"],
        ["silo-A:4:2000:1000"],
        ["silo-B:4:2000:1000"],
        ["silo-D:4:3000:1000"],
        ["silo-F:8:2000:4"],
        ["bwaves:3:30:9"],
        ["roms:3:40:9"],
        ["bc:2:900:8"],
        ["bc:1:30:8"],
        ["pr:3:100:8"],
        ["pr:3:7:10"],
        ["stream:2:40:4"],
        ["blocks:2:40:4"],
        ["-s", "50", "-n", "40", "silo-C:2:100:1000", "mica-C:3:50:5000", "stream:1:10:4"],
    ],
)
def test_what_tenants_leave_is_right(words: list[str]) -> None:
    done = tenants(*words)
    assert done.stdout.splitlines()[-1] == "right"
    assert done.returncode == 0


def test_the_same_sources_are_reached_and_every_request_is_answered() -> None:
    assert "bc: 2 sources done" in tenants("bc:2:900:8").stdout
    answered = tenants("mica-C:2:100:4K").stdout
    assert "mica: 1599 requests found, 1 missed" in answered  # a full bucket lost one
    assert "silo: 4000 committed" in tenants("silo-F:4:1000:1000").stdout


@pytest.fixture(scope="module")
def broken() -> Path:
    subprocess.run(["make", "-s", "-C", ROOT / "workloads" / "memchannel", "broken"], check=True)
    return PROGRAM.parent / "broken"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "tenant"),
    [
        ("UPDATE_LOST", "mica-A:2:200:4K"),
        ("UPDATE_LOST", "silo-A:2:500:1000"),
        ("VALUE_TORN", "mica-F:2:100:1000"),
        ("VALUE_TORN", "silo-F:2:100:1000"),
        ("KEY_LEFT_OUT", "silo-C:1:100:1000"),
        ("NO_VALIDATION", "silo-F:8:1000000:4"),
        ("ROW_SHIFTED", "bwaves:1:9:8"),
        ("ROW_SHIFTED", "roms:2:20:8"),
        ("EDGE_LEFT_OUT", "bc:1:200:7"),
        ("EDGE_LEFT_OUT", "pr:1:20:7"),
        ("WORD_LEFT_OUT", "stream:1:4:4"),
        ("WORD_LEFT_OUT", "blocks:2:4:4"),
    ],
)
def test_a_mistake_is_found(broken: Path, mistake: str, tenant: str) -> None:
    done = tenants(tenant, program=broken / f"tenants-{mistake}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "wrong")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "1 to 4 tenants"),
        (["mice:1:1:8"], "there is no tenant 'mice'"),
        (["mica:1:1:8"], "take a workload"),
        (["mica-E:1:1:8"], "take a workload"),
        (["bc-A:1:1:8"], "take a workload"),
        (["bc:1:1"], "a tenant is NAME:THREADS:UNITS:SIZE"),
        (["bc:1:1:25"], "at most 2^24 vertices"),
        (["bwaves:9:1:8"], "a plane for each thread"),
        (["-s", "5", "stream:1:5:4"], "fewer than -s and -n ask for"),
    ],
)
def test_wrong_arguments_are_named(words: list[str], said: str) -> None:
    done = tenants(*words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
