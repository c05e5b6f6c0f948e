"""What the tests of AArch64 programs share: the recorder's tests, with another compiler."""

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "recorder"))

from recorder_programs import Recorder  # noqa: E402 (its folder is on the path from here on)

COMPILER = "aarch64-linux-gnu-gcc"
NEEDED = {"qemu-aarch64": "qemu-user", COMPILER: "gcc-aarch64-linux-gnu"}


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """The recorder's launcher and the cross compiler in an empty folder."""
    missing = [package for tool, package in NEEDED.items() if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} missing; type: make setup")
    return Recorder(tmp_path, COMPILER, HERE)
