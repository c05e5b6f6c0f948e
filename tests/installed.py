"""What `make setup` built, as the tests run it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# What the fixture of this name gives (conftest.py).
Fencepost = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[1]
FENCEPOST = Path(sys.executable).with_name("fencepost")
WORKLOADS = ROOT / "build" / "workloads"

# A small FFT, nearly all of it inside its region of interest.
FFT = [WORKLOADS / "fft", "-m8", "-p2", "-r20", "--persist-level", "coarse"]
