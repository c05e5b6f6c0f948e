"""The conjugate-gradient solver: its answer, its going on after a crash, and what a power cut can
leave of the state that it keeps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from installed import FENCEPOST, ROOT

EXIT_CRASHED = 3
KEPT = ("checkpoint", "iteration")


@pytest.fixture(scope="session")
def cg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cg")
    command = ["make", "-s", "-C", str(ROOT / "workloads"), f"BIN={folder}", f"{folder}/cg"]
    subprocess.run(command, check=True)
    return folder / "cg"


def solve(cg: Path, *arguments: object) -> tuple[int, dict[str, str], str]:
    command = [str(part) for part in (cg, *arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    return done.returncode, dict(re.findall(r"(\w+)=(\S+)", done.stdout)), done.stdout + done.stderr


def test_it_converges(cg: Path) -> None:
    """The program itself compares its residual with b - A x."""
    code, said, output = solve(cg, "-n", 64, "-p", 3, "-i", 1000)
    assert code == 0, output
    assert float(said["residual"]) <= 1e-10
    assert 100 < int(said["iterations"]) < 400


def test_what_is_kept_changes_no_bit_of_the_answer(cg: Path) -> None:
    checksums = {
        solve(cg, "-n", 32, "-p", 3, "--persist", persist, "--flush", flush)[1]["checksum"]
        for persist in ("none", *KEPT)
        for flush in ("none", "clflush")
    }
    assert len(checksums) == 1


@pytest.mark.parametrize("persist", KEPT)
@pytest.mark.parametrize("crash_at", [1, 2, 7])
def test_it_goes_on_to_the_same_bits(cg: Path, tmp_path: Path, persist: str, crash_at: int) -> None:
    own = ("-n", 32, "-p", 3, "-i", 40, "-k", 3, "--persist", persist)
    kept = (*own, "--pool", tmp_path / "pool")
    right = solve(cg, *own)[1]["checksum"]
    resumed = 0
    for crash in (crash_at, 2):  # the second run crashes again
        assert solve(cg, *kept, "--crash-at", crash)[0] == EXIT_CRASHED
        resumed += crash * (3 if persist == "checkpoint" else 1)
    code, said, output = solve(cg, *kept)
    assert (code, said["checksum"], int(said["resumed"])) == (0, right, resumed), output


@pytest.mark.parametrize("persist", KEPT)
def test_a_check_finds_each_damaged_vector(cg: Path, tmp_path: Path, persist: str) -> None:
    kept = ("-n", 16, "-i", 5, "-k", 5, "--persist", persist, "--pool", tmp_path / "pool")
    assert solve(cg, *kept)[0] == 0
    pool = bytearray((tmp_path / "pool").read_bytes())
    header, points = 64 + 64 + 2 * 64, 16 * 16
    slot = header + 3 * points * 8  # the second: 1 or 5 slots were finished
    for vector in range(3):
        damaged = bytearray(pool)
        damaged[slot + vector * points * 8 + 8 * 7 + 6] ^= 1
        (tmp_path / "pool").write_bytes(damaged)
        code, _, output = solve(cg, *kept, "--check")
        assert code == 1 and "WRONG" in output, (vector, output)
    (tmp_path / "pool").write_bytes(pool)
    assert solve(cg, *kept, "--check")[0] == 0


def explore(cg: Path, folder: Path, persist: str, mistake: str) -> subprocess.CompletedProcess[str]:
    own = f"-n 8 -p 2 -i 6 -k 2 --flush clflushopt --persist {persist} --mistake {mistake}"
    check = f"{cg} {own} --pool {{image}} --check"
    options = ["-q", "--pm", "file:pool", "--images", "16", "--no-reads", "--check", check]
    command = [FENCEPOST, "crash", "pcs-table1", *options, "--", cg, *own.split(), "--pool", "pool"]
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("persist", KEPT)
def test_what_it_keeps_survives_every_power_cut(cg: Path, tmp_path: Path, persist: str) -> None:
    done = explore(cg, tmp_path, persist, "none")
    assert done.returncode == 0, done
    images = re.search(r"crash: no violation in ([\d,]+) images", done.stdout)
    assert images and int(images[1].replace(",", "")) > 50


@pytest.mark.few(1)
@pytest.mark.parametrize("mistake", ["early-commit", "one-slot"])
@pytest.mark.parametrize("persist", KEPT)
def test_its_mistakes_are_found(cg: Path, tmp_path: Path, persist: str, mistake: str) -> None:
    done = explore(cg, tmp_path, persist, mistake)
    assert done.returncode == 1, done
    assert "violation 1: " in done.stdout and "WRONG" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("-n 1", "-n takes a number from 2 to 16384, not '1'"),
        ("-n 4 -p 5", "-p 5 is more than the 4 rows"),
        ("--persist some", "--persist does not know 'some'"),
        ("--check", "--check needs --pool, and a --persist that keeps something"),
        ("--persist none --pool p", "--persist none keeps nothing: it takes no --pool"),
    ],
)
def test_wrong_options_are_named(cg: Path, arguments: str, reason: str) -> None:
    code, _, output = solve(cg, *arguments.split())
    assert code == 2 and output.startswith(reason), output
