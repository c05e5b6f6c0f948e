"""Shells complete command lines, and only the modules of the command that is typed are imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost import machines
from installed import FENCEPOST

PATH = f"{FENCEPOST.parent}:{os.environ['PATH']}"
# As bash calls it where a tab is typed behind these words.
TAB = """
source <(fencepost --show-completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_fencepost_completion fencepost
printf '%s\\n' "${COMPREPLY[@]}"
"""
LOADED = """
import sys
from fencepost import cli
cli.import_command([])
print(*sorted(name for name in sys.modules if name.startswith("fencepost.cli.")))
"""


def offered(*words: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", TAB, "bash", "fencepost", *words],
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], ["compare"]),
        (["compare", "--sch"], ["--schemes"]),
        (["run", "pcs-table1", "fft.fencepost", "--sch"], ["--scheme"]),
        (["machine", "sho"], ["show"]),
        (["machine", "show", "agilex-type2-"], ["agilex-type2-pm"]),
        (["measure", "to"], ["topology"]),
        (["crash", "own.toml"], []),  # files, which bash offers where nothing is said
        (["record", "--", "ls", "--va"], []),
    ],
)
def test_what_is_offered(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


@pytest.mark.few(2)
@pytest.mark.parametrize("command", ["run", "compare", "explain", "whatif", "latency", "power"])
def test_machines_are_offered(command: str) -> None:
    wanted = [name for name in machines.names() if name.startswith("pcs-")]
    assert len(wanted) > 2
    assert offered(command, "pcs-") == wanted


@pytest.mark.parametrize("name", ["COMP_WORDS", "_TYPER_COMPLETE_ARGS"])
def test_only_the_command_that_is_typed_is_imported(name: str) -> None:
    asked = {"_FENCEPOST_COMPLETE": "complete_bash", name: "fencepost hazard --"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fencepost.cli.hazard" in done.stdout.split()
    assert "fencepost.cli.reproduce" not in done.stdout.split()


def test_it_is_installed_for_the_shell_one_types_in(tmp_path: Path) -> None:
    command = ["bash", "-c", "fencepost --install-completion; exit $?"]
    environment = {"HOME": str(tmp_path), "PATH": PATH}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bash completion installed in ")
    [script] = (tmp_path / ".bash_completions").iterdir()
    assert str(script) in (tmp_path / ".bashrc").read_text()
