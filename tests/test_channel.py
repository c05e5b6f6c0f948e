"""`fencepost channel run`: processes of this machine share an emulated pool.

Rates are compared with each other and never with a clock: a loaded machine slows all of them.
"""

import json
import subprocess
from pathlib import Path

import pytest

from installed import ROOT, Fencepost

CHANNEL = ROOT / "build" / "channel"
SOURCES = ROOT / "tests" / "channel"
FLAGS = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]

WEIGHTS = """
[[channel]]
name = "gold"
weight = 3

[[channel]]
name = "silver"
weight = 1
"""


def build(folder: Path, name: str, *, reports: bool = False) -> Path:
    """A program of tests/channel; one that reports is linked with the library."""
    source = next(SOURCES.glob(f"{name}.c*"))
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    linked = [f"-I{CHANNEL}/include", f"-L{CHANNEL}", "-lfencepost_channel"] if reports else []
    subprocess.run([compiler, *flags, source, "-o", folder / name, *linked], check=True)
    return folder / name


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stream"), "stream", reports=True)


def segments() -> list[Path]:
    return sorted(Path("/dev/shm").glob("fencepost-channel-*"))


def test_two_processes_are_paced_by_weight(
    fencepost: Fencepost, stream: Path, tmp_path: Path
) -> None:
    programs = "".join(
        f'[[program]]\ncommand = ["{stream}", "2", "1", "{name}:1"]\n'
        for name in ("gold", "silver")
    )
    (tmp_path / "channels.toml").write_text(WEIGHTS + programs)
    run = fencepost(
        *("channel", "run", "--config", "channels.toml"),
        *("--emulate", "0.5", "--json", "out.json"),
        check=True,
    )
    measured = dict(line.split()[:2] for line in run.stdout.splitlines())
    gold, silver = int(measured["gold"]), int(measured["silver"])
    assert gold / silver == pytest.approx(3, rel=0.1)
    document = json.loads((tmp_path / "out.json").read_text())
    rows = {row["name"]: row for row in document["channels"]}
    assert rows["gold"]["source"] == rows["silver"]["source"] == "reported"
    assert rows["gold"]["weight"] == 3
    # Never more than the pool carries, but for what was under way while each of them began alone.
    assert sum(row["rate"] for row in rows.values()) < 0.5e9 * 1.1
    assert all(row["paused_seconds"] > 0 for row in (rows["gold"], rows["silver"]))
