"""What the tests of AArch64 programs share: the recorder's tests, with another compiler."""

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "recorder"))

from recorder_programs import Recorder  # noqa: E402 (its folder is on the path from here on)

COMPILER = "aarch64-linux-gnu-gcc"
WRONG_OPTIONS = 2
REFUSED = "cannot be used for recording"
NEEDED = {"qemu-aarch64": "qemu-user", COMPILER: "gcc-aarch64-linux-gnu"}


@pytest.fixture(scope="session")
def refusal(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """Why nothing can be recorded here: tools are missing, or the launcher, which tries the QEMU at
    hand on a program of its own, refuses it."""
    missing = [package for tool, package in NEEDED.items() if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} missing; type: make setup"
    recorder = Recorder(tmp_path_factory.mktemp("tried"), COMPILER, HERE)
    tried = recorder.record(recorder.compile("computes", "-static", "-lm"))
    is_refused = tried.returncode == WRONG_OPTIONS and REFUSED in tried.stderr
    return tried.stderr.strip() if is_refused else None


@pytest.fixture
def recorder(tmp_path: Path, refusal: str | None) -> Recorder:
    """The recorder's launcher and the cross compiler in an empty folder."""
    if refusal is not None:
        pytest.skip(refusal)
    return Recorder(tmp_path, COMPILER, HERE)
