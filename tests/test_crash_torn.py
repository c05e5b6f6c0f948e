"""What a power cut leaves of one store, or of several that nothing orders, and what a platform
promises of it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line_of
from installed import Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "torn.c"

Explored = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture(params=["-O0", "-O2"])
def explore(fencepost: Fencepost, tmp_path: Path, request) -> Callable[..., Explored]:
    """Explores one kind of record on a machine with these settings."""
    build = ["gcc", request.param, "-g", "-w", "-o", "torn", str(PROGRAM)]
    subprocess.run(build, cwd=tmp_path, check=True)

    def run(kind: str, *options: str) -> Explored:
        check = ["--pm", "file:pool", "--check", f"./torn {{image}} {kind} check", "--out", "found"]
        done = fencepost("crash", "pcs-table1", *check, *options, "--", "./torn", "pool", kind)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def only(result: dict[str, Any]) -> tuple[str, int, int]:
    [violation] = result["violations"]

    def line(store: dict[str, Any]) -> int:
        source = store["source"]
        found: int = source["frames"][source["program_frame"]]["line"]
        return found

    return violation["fault"], line(violation["lost"]), line(violation["durable"])


@pytest.mark.parametrize("kind", ["inside", "two_lines"])
def test_a_store_of_16_bytes_is_torn_in_a_line_and_between_two(explore, kind):
    done, result = explore(kind)
    assert done.returncode == 1, done.stdout + done.stderr
    at = line_of(PROGRAM, "set pair")
    assert only(result) == ("torn", at, at)
    assert result["unexplained"] == []
    assert "align it, give it a checksum, or keep two copies" in done.stdout
    assert ("platform.atomicity_bytes=16 rules out" in done.stdout) == (kind == "inside")


def test_a_wider_store_that_the_platform_keeps_whole_is_not_torn(explore):
    done, result = explore("inside", "--set", "platform.atomicity_bytes=16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["platform"]["atomicity_bytes"] == 16
    assert "stores whole in 16 aligned bytes (--set)" in done.stdout


def test_non_temporal_stores_to_one_line_are_ordered_by_a_fence_alone(explore):
    done, result = explore("streamed")
    assert done.returncode == 1, done.stdout + done.stderr
    assert only(result) == (
        "missing_fence",
        line_of(PROGRAM, "stream data"),
        line_of(PROGRAM, "stream valid"),
    )
    assert "a fence behind the non-temporal store at" in done.stdout


def test_non_temporal_stores_with_a_fence_between_them_are_not_accused(explore):
    done, _ = explore("ordered")
    assert done.returncode == 0, done.stdout + done.stderr


def test_caches_that_persist_keep_stores_and_not_what_waits_to_be_combined(explore):
    caches = ("--set", "platform.persistence=caches")
    done, result = explore("late", *caches)
    assert done.returncode == 1, done.stdout + done.stderr
    assert only(result) == (
        "missing_fence",
        line_of(PROGRAM, "unfenced data"),
        line_of(PROGRAM, "published"),
    )
    assert result["platform"]["persistence"] == "caches"
    assert "persistence caches (--set), stores whole in 8 aligned bytes (default)" in done.stdout
