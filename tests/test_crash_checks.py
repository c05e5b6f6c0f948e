"""A check that looks at nothing passes everything: it is split as a shell splits it, and probed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core
from fencepost._core import InputError
from fencepost.crash import platform, words
from installed import Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "torn.c"


@pytest.mark.parametrize(
    "command",
    [
        r"""sh -c "./log \"\$1\" check" sh image""",
        r'''a "\`b\`" "c\d" "e\\f"''',
        r"""'a\b'"c"d e\ f "" g''h""",
        'a "b\\\nc" d\\\ne',
        "  a\tb \n c ",
    ],
)
def test_a_command_is_split_as_a_shell_splits_it(command):
    printed = subprocess.run(
        ["sh", "-c", "printf '%s\\0' " + command.replace("\n c", " c")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert words.split(command) == printed.stdout.split("\0")[:-1]


@pytest.mark.parametrize("command", ["a 'b", 'a "b', "a\\"])
def test_a_quotation_that_is_not_closed_is_refused(command):
    with pytest.raises(ValueError, match=r"No (closing quotation|escaped character)"):
        words.split(command)


Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture
def explore(fencepost: Fencepost, tmp_path: Path) -> Explore:
    """Explores a correct program with a check."""
    build = ["gcc", "-O1", "-g", "-w", "-o", "torn", str(PROGRAM)]
    subprocess.run(build, cwd=tmp_path, check=True)

    def run(check: str, *options: str, pm: str = "file:pool"):
        own = ["--pm", pm, "--check", check, "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./torn", "pool", "ordered")
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip().splitlines()[-1]


def test_a_check_that_looks_at_nothing_is_warned_of_in_the_last_line(explore):
    done, result = explore("true {image}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert last_line(done).startswith("crash: no violation in ")
    assert "warning: the check did not open the image" in last_line(done)
    assert "accepts an image of zeros, and one without what was flushed last" in last_line(done)
    assert len(result["check_doubts"]) == 2


def test_a_check_that_prints_an_error_and_exits_0_is_warned_of(explore):
    done, _ = explore('sh -c "./torn \\"\\$1\\" ordered check; echo error: no log" sh {image}')
    assert "the check prints 'error', and its exit status is 0" in last_line(done)
    assert "did not open" not in last_line(done)


def test_a_check_that_refuses_zeros_is_not_warned_of(explore):
    done, result = explore("./torn {image} ordered check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["check_doubts"] == [] and "warning" not in done.stdout


def test_a_pool_size_that_cuts_off_what_was_stored_is_refused(explore):
    done, _ = explore("./torn {image} ordered check", "--pool-size", "16")
    assert done.returncode == 2
    assert "--pool-size 16: too small" in done.stderr


@pytest.mark.parametrize("pm", ["file:./pool", "file:link", "file:./po*"])
def test_a_pool_is_named_as_a_shell_would_find_it(explore, tmp_path, pm):
    (tmp_path / "link").symlink_to("pool")
    done, result = explore("./torn {image} ordered check", pm=pm)
    assert done.returncode == 0, done.stdout + done.stderr
    assert result["pool"]["path"] == str(tmp_path / "pool")


def test_a_pool_that_is_not_mapped_is_refused_with_those_that_are(explore, tmp_path):
    done, _ = explore("./torn {image} ordered check", pm="file:wal")
    assert done.returncode == 2
    assert f"it mapped {tmp_path / 'pool'} (" in done.stderr
    assert "written by calls, not mapped" in done.stderr


def test_every_table_of_a_machine_is_obeyed_or_refused():
    schema = json.loads(_core.machine_schema())
    tables = set(schema["properties"]) - {"description", "extends"}
    assert tables == {*platform.USED, *platform.UNUSED}


@pytest.mark.parametrize("table", platform.UNUSED)
def test_a_setting_of_a_table_that_no_power_cut_asks_for_is_refused(table):
    with pytest.raises(InputError, match=f"--set {table}.key=1: "):
        platform.check({}, "a machine", "nopb", [f"{table}.key=1"])


def test_a_key_that_no_power_cut_asks_for_is_refused(explore):
    done, _ = explore("./torn {image} ordered check", "--set", "hold_up.energy_uj=5")
    assert done.returncode == 2 and "platform.persistence" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--set", "platform.persistence=controller"),
        ("--scheme", "nopb", "--set", "platform.persistence=persist_buffer"),
    ],
)
def test_a_promise_that_the_scheme_does_not_give_is_refused(explore, options):
    done, _ = explore("./torn {image} ordered check", *options)
    assert done.returncode == 2 and "platform.persistence" in done.stderr


def test_where_nothing_is_promised_everything_is_in_doubt_until_the_end(explore):
    _, result = explore("./torn {image} ordered check", "--set", "platform.persistence=none")
    assert result["platform"]["persistence"] == "none"
    assert result["instants"] == 1, "no promise takes a version away"
