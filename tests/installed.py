"""What `make setup` built, as the tests run it."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# What the fixture of this name gives (conftest.py).
Fencepost = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[1]
FENCEPOST = Path(sys.executable).with_name("fencepost")
INCLUDE = ROOT / "python" / "fencepost" / "include"
WORKLOADS = ROOT / "build" / "workloads"

# A small FFT, nearly all of it inside its region of interest.
FFT = [WORKLOADS / "fft", "-m8", "-p2", "-r20", "--persist-level", "coarse"]


def on_terminal(columns: int, command: Sequence[object], folder: Path | None = None) -> str:
    """What a command prints on a terminal of that width, without its colours."""
    line = f"stty cols {columns} rows 50; {shlex.join(map(str, command))}"
    # The line editor that Python loads sets COLUMNS, which would overrule the terminal's width.
    outside = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
    }
    environment = outside | {"TERM": "xterm", "SHELL": "/bin/sh"}
    done = subprocess.run(
        ["script", "-qec", line, "/dev/null"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.sub(r"\x1b\[[\d;]*m", "", done.stdout).replace("\r", "")


def in_the_background(command: list[str]) -> list[str]:
    """As a shell without job control starts it behind `&`: with interrupts ignored."""
    return ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
