"""The commands that pages show: they are understood, and those that are short run to their end."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import typer
from typer.exceptions import TyperException
from typer.main import get_command

import tidy
from fencepost.cli import application
from fencepost.cli.invocation import Invocation, split
from installed import FENCEPOST, ROOT

PAGES = tidy.pages()

# What takes minutes, needs a quiet machine, or is run by its own tests (test_readme.py,
# test_studies*.py, test_measure*.py, test_calibrate.py, test_latency.py, test_streams.py).
NOT_RUN = re.compile(
    r"\b(reproduce|validate|calibrate|measure|bench|latency)\b"
    r"|prove coherence --devices|prove coherence --device-memory|-- xz\b|\$|\bmake\b|tests\.waits"
)
# What ends with 1 by what it finds.
FINDS = re.compile(r"^fencepost (hazard|crash|prove|litmus)\b")

# Pages whose commands need nothing but what `make setup` leaves, and take seconds.
SELF_CONTAINED = (
    "explain",
    "machine-models",
    "placement",
    "results",
    "sampling",
    "studies",
    "timeline",
    "whatif",
)

# Records that pages name as the reader's own.
RECORDS = ("fft", "a", "b", "queue", "program")


def blocks(page: Path) -> list[list[str]]:
    """The commands of each block of shell, without comments, a continued one as one."""
    fences = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [_commands(fence.replace("\\\n", " ").splitlines()) for fence in fences]


def _commands(lines: Iterable[str]) -> list[str]:
    """A quotation goes on in the next line."""
    found: list[str] = []
    begun = ""
    for line in lines:
        begun = f"{begun}\n{line}" if begun else _bare(line)
        try:
            shlex.split(begun)
        except ValueError:
            continue
        if begun:
            found.append(begun)
        begun = ""
    assert not begun, f"a quotation has no end: {begun}"
    return found


def _bare(line: str) -> str:
    return re.sub(r"(^|\s)#\s.*$", "", line.removeprefix("$ ")).strip()


def _own(line: str) -> list[str] | None:
    """The arguments of `fencepost`, if it is that; up to a pipe or a file."""
    words = shlex.split(line)
    if not words or words[0] not in ("fencepost", ".venv/bin/fencepost"):
        return None
    ends = [at for at, word in enumerate(words) if word in ("|", ">", "&&", ";", "&")]
    return words[1 : min(ends, default=len(words))]


CASES = [
    pytest.param(own, id=f"{page.name}: {' '.join(own)[:60]}")
    for page in PAGES
    for block in blocks(page)
    for line in block
    if (own := _own(line)) is not None
]


def test_there_are_examples() -> None:
    assert len(CASES) > 30


@pytest.mark.parametrize("arguments", CASES)
def test_an_example_is_understood(arguments: list[str]) -> None:
    """By the command line itself: commands, options and kinds of values."""
    application.load([])
    _understand(arguments)


def _understand(arguments: list[str]) -> None:
    own, program = split(list(arguments))
    command = get_command(application.app)
    context: typer.Context | None = None
    name = "fencepost"
    while True:
        context = command.make_context(name, list(own), parent=context, obj=Invocation(program))
        left = [*getattr(context, "_protected_args", []), *context.args]
        if not hasattr(command, "commands") or not left:
            return
        name, command, own = command.resolve_command(context, left)


@pytest.mark.parametrize(
    "arguments", [["compares", "x"], ["compare", "--shceme", "x"], ["run", "m", "-j", "some"]]
)
def test_a_mistyped_example_is_not_understood(arguments: list[str]) -> None:
    application.load([])
    with pytest.raises(TyperException):
        _understand(arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_short_examples_run(name: str, tmp_path: Path, fft_record: Path) -> None:
    """In the order of the page, in a folder that looks like a clone in which `make setup` ran."""
    for folder in ("build", "machines", "workloads", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for record in RECORDS:
        shutil.copy(fft_record, tmp_path / f"{record}.fencepost")
    path = f"{FENCEPOST.parent}:/usr/local/bin:/usr/bin:/bin"
    page = ROOT / "docs" / f"{name}.md"
    run = [line for block in blocks(page) for line in block if not NOT_RUN.search(line)]
    assert run
    for line in run:
        own = line.replace(".venv/bin/fencepost", "fencepost")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", own],
            check=False,
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        ends = (0, 1) if FINDS.search(own) else (0,)
        assert done.returncode in ends, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
