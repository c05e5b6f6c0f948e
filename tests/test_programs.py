"""Programs that nobody here wrote, recorded unmodified and compared under the three schemes.

None of them persists anything itself: `--persist sync` flushes what a thread dirtied when it
releases a lock. Their inputs are in `programs/` and keep each to about 50 million instructions, of
which the first are replayed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installed import FENCEPOST

INPUTS = Path(__file__).with_name("programs")
INSTRUCTIONS = 20_000_000


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)}; type: make setup")


def record(path, *program, **options):
    """Records the program; what it wrote to standard output."""
    command = [FENCEPOST, "record", "-o", path, "--", *program]
    return subprocess.run(
        command, stdout=subprocess.PIPE, timeout=300, check=True, **options
    ).stdout


def compare(path, folder, instructions=INSTRUCTIONS):
    """Compares the record's first instructions under the three schemes and checks what must hold
    for any program.
    """
    command = [FENCEPOST, "compare", "pcs-table1", path, "--schemes", "nopb,pb,pb_rf", "--quiet"]
    options = [
        "--schemes",
        "nopb,pb,pb_rf",
        "--persist",
        "sync",
        "--pm",
        "heap",
        "--limit-instructions",
        str(instructions),
    ]
    done = subprocess.run(
        [*command, *options, "--json", "r.json", "--report", "r.html"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    nopb, pb, pb_rf = json.loads((folder / "r.json").read_text())["runs"]
    assert [nopb["scheme"], pb["scheme"], pb_rf["scheme"]] == ["nopb", "pb", "pb_rf"]
    for run in (pb, pb_rf):
        assert run["instructions"] == nopb["instructions"] > 1_000_000
        assert run["persist"]["count"] > 0
        assert run["persist"]["latency_ns"]["mean"] < nopb["persist"]["latency_ns"]["mean"]


@pytest.mark.slow
@needs("xz")
def test_xz_with_two_threads(tmp_path):
    text, path = tmp_path / "text", tmp_path / "xz.fencepost"
    with text.open("wb") as file:
        script = INPUTS / "pseudo_text.py"
        subprocess.run([sys.executable, script, "65536"], stdout=file, check=True)
    compressed = record(path, "xz", "-1", "-T2", "--block-size=16KiB", "-k", "-c", text)
    assert subprocess.check_output(["xz", "-dc"], input=compressed) == text.read_bytes()
    compare(path, tmp_path)


@pytest.mark.slow
@needs("sqlite3")
def test_sqlite3_inserting_rows(tmp_path):
    path, script = tmp_path / "sqlite3.fencepost", INPUTS / "insert.sql"
    native = subprocess.check_output(["sqlite3", tmp_path / "native.db"], stdin=script.open())
    assert record(path, "sqlite3", tmp_path / "rows.db", stdin=script.open()) == native
    compare(path, tmp_path)


@pytest.mark.slow
@needs("redis-server", "redis-benchmark", "redis-cli")
def test_redis_server_under_its_benchmark(tmp_path):
    path = tmp_path / "redis.fencepost"
    prefix = [FENCEPOST, "record", "-o", path, "--"]
    done = subprocess.run(
        ["bash", INPUTS / "redis.sh", *prefix],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["SET", "GET"]
    compare(path, tmp_path)


@pytest.mark.slow
@needs("python3")
def test_python_running_four_threads(tmp_path):
    path = tmp_path / "python3.fencepost"
    program = [sys.executable, "-I", "-S", INPUTS / "four_threads.py"]
    assert record(path, *program) == subprocess.check_output(program)
    compare(path, tmp_path)
