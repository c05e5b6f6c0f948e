"""What `--persist` of STREAM calls durable survives every power cut that is explored, and a program
that calls durable what is not is found."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fencepost.measure.stream.program import PROGRAM
from installed import FENCEPOST, ROOT

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/libpmemobj.h").exists(), reason="install libpmemobj-dev, then make setup"
)

# libpmemobj flushes only where it takes the pool for persistent memory.
ENVIRONMENT = {"PMEM_IS_PMEM_FORCE": "1"}

# Of an instant with more combinations of versions than that, a choice is checked.
IMAGES = 4


@pytest.fixture(scope="session")
def broken() -> Path:
    """The folder of the broken variants."""
    subprocess.run(["make", "-s", "-C", ROOT / "workloads" / "stream", "broken"], check=True)
    return PROGRAM.parent / "broken"


def explore(
    folder: Path, binary: Path, persist: str, elements: int, *more: str
) -> subprocess.CompletedProcess[str]:
    """All power cuts of one repetition of the kernels on a pool that was prepared."""
    own = ["--elements", str(elements), "--repetitions", "1", "--persist", persist, *more]
    prepare = [binary, *own, "--pool", "pool", "--prepare"]
    subprocess.run(prepare, check=True, cwd=folder, env=ENVIRONMENT)
    check = " ".join([str(PROGRAM), *own, "--check", "--pool", "{image}"])
    options = ["--pm", "file:pool", "--images", str(IMAGES), "--no-reads", "--check", check]
    command = [FENCEPOST, "crash", "pcs-table1", "-q", *options, "--"]
    return subprocess.run(
        [*command, binary, *own, "--pool", "pool"],
        check=False,
        cwd=folder,
        env=ENVIRONMENT | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
    )


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("persist", "elements", "more"),
    [
        ("kernel", 16, ["--access", "d_rw"]),
        pytest.param("kernel", 32, ["--threads", "2"], marks=SLOW),
        pytest.param("block:8", 16, [], marks=SLOW),
        pytest.param("block:8", 32, ["--threads", "2"], marks=SLOW),
        pytest.param("kernel", 16, ["--stores", "non-temporal"], marks=SLOW),
        pytest.param("transaction:8", 16, [], marks=SLOW),
        pytest.param("transaction:8", 32, ["--threads", "2"], marks=SLOW),
    ],
)
def test_what_is_called_durable_survives(
    tmp_path: Path, persist: str, elements: int, more: list[str]
) -> None:
    done = explore(tmp_path, PROGRAM, persist, elements, *more)
    assert done.returncode == 0, done
    images = re.search(r"crash: no violation in ([\d,]+) images", done.stdout)
    assert images and int(images[1].replace(",", "")) > 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "persist", "elements"),
    [
        ("FLUSH_LEFT_OUT", "kernel", 16),
        pytest.param("FLUSH_LEFT_OUT", "block:8", 16, marks=SLOW),
        pytest.param("CALLED_EARLY", "block:8", 16, marks=SLOW),
        pytest.param("LAST_LINES_LEFT_OUT", "kernel", 32, marks=SLOW),
        pytest.param("NO_SNAPSHOT", "transaction:8", 16, marks=SLOW),
    ],
)
def test_what_is_called_durable_and_is_not_is_found(
    tmp_path: Path, broken: Path, variant: str, persist: str, elements: int
) -> None:
    done = explore(tmp_path, broken / f"stream-{variant}", persist, elements)
    assert done.returncode == 1, done
    assert "violation 1: " in done.stdout and "WRONG: an element" in done.stdout


def test_nothing_is_promised_without_persists(tmp_path: Path) -> None:
    own = ["--elements", "16", "--pool", "pool"]
    prepare = [PROGRAM, *own, "--prepare"]
    subprocess.run(prepare, check=True, cwd=tmp_path, env=ENVIRONMENT)
    checked = subprocess.run(
        [PROGRAM, *own, "--check"], check=True, cwd=tmp_path, capture_output=True, text=True
    )
    assert checked.stdout == "stream: persist=none ok\n"
