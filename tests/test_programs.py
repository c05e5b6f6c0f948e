"""Programs that nobody here wrote, recorded unmodified and compared under the three schemes.

None of them persists anything itself: `--persist sync` flushes what a thread dirtied when it
releases a lock. Each is kept to at most 50 million instructions.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time

import pytest

from conftest import FENCEPOST

INSTRUCTIONS_MAX = 50_000_000


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)}; type: make setup")


def record_command(path, *program):
    return [FENCEPOST, "record", "-o", path, "--", *program]


def compare(record, folder):
    """Compares the record under the three schemes and checks what must hold for any program."""
    command = [FENCEPOST, "compare", "pcs-table1", record, "--schemes", "nopb,pb,pb_rf"]
    options = ["--persist", "sync", "--pm", "heap", "--limit-instructions", INSTRUCTIONS_MAX]
    command += [*map(str, options), "-q", "--json", "r.json", "--report", "r.html"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads((folder / "r.json").read_text())["runs"]
    assert [run["scheme"] for run in runs] == ["nopb", "pb", "pb_rf"]
    nopb, pb, pb_rf = runs
    for run in runs:
        assert run["persist"]["count"] > 0
        assert run["instructions"] == nopb["instructions"]
    for run in (pb, pb_rf):
        assert run["persist"]["latency_ns"]["mean"] < nopb["persist"]["latency_ns"]["mean"]
    return nopb


@needs("xz")
def test_xz_with_two_threads(tmp_path):
    text = tmp_path / "input"
    text.write_text(" ".join(f"{n * 2654435761 % 99991:x}" for n in range(40_000)))
    with (tmp_path / "input.xz").open("wb") as compressed:
        xz = ["xz", "-0", "-T2", "--block-size=64KiB", "-c", text]
        subprocess.run(
            record_command(tmp_path / "xz.fencepost", *xz),
            stdout=compressed,
            timeout=300,
            check=True,
        )
    decompressed = subprocess.run(["xz", "-dc", "input.xz"], cwd=tmp_path, capture_output=True)
    assert decompressed.stdout == text.read_bytes()
    assert compare(tmp_path / "xz.fencepost", tmp_path)["instructions"] > 1_000_000


@needs("sqlite3")
def test_sqlite3_inserting_rows(tmp_path):
    database = tmp_path / "rows.db"
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
    script = f"CREATE TABLE t(i, s); INSERT INTO t {rows} SELECT i, hex(i * 7919) FROM n;"
    command = record_command(tmp_path / "sqlite3.fencepost", "sqlite3", database, script)
    subprocess.run(command, timeout=300, check=True)
    count = ["sqlite3", database, "SELECT count(*), max(i) FROM t;"]
    done = subprocess.run(count, capture_output=True, text=True, check=True)
    assert done.stdout == "2000|2000\n"
    compare(tmp_path / "sqlite3.fencepost", tmp_path)


@needs("redis-server", "redis-benchmark", "redis-cli")
def test_redis_server_under_its_benchmark(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    command = record_command(tmp_path / "redis.fencepost", "redis-server", *options)
    with (tmp_path / "log").open("wb") as log:
        recorder = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        server = server_process(port)
        benchmark = ["redis-benchmark", "-p", port, "-t", "set,get", "-n", "500", "-q"]
        done = subprocess.run(benchmark, capture_output=True, text=True, timeout=120, check=True)
        assert "SET" in done.stdout
        assert "GET" in done.stdout
        subprocess.run(["kill", "-TERM", str(server)], check=True)
        assert recorder.wait(timeout=120) == 0, (tmp_path / "log").read_text()
    finally:
        recorder.kill()
    compare(tmp_path / "redis.fencepost", tmp_path)


def server_process(port):
    """The process number of the redis-server that listens there, as it says itself."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.CalledProcessError):
            information = subprocess.run(
                ["redis-cli", "-p", port, "info", "server"],
                capture_output=True,
                text=True,
                check=True,
            )
            for line in information.stdout.splitlines():
                if line.startswith("process_id:"):
                    return int(line.partition(":")[2])
        time.sleep(0.2)
    pytest.fail("redis-server did not come up within a minute")


@needs("python3")
def test_python_running_four_threads(tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(
        "import threading\n"
        "counts, lock = {}, threading.Lock()\n"
        "def work(name):\n"
        "    for i in range(300):\n"
        "        with lock:\n"
        "            counts[i % 17] = counts.get(i % 17, 0) + name\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(sum(counts.values()))\n"
    )
    command = record_command(tmp_path / "python3.fencepost", sys.executable, "-I", "-S", script)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "1800\n"
    compare(tmp_path / "python3.fencepost", tmp_path)
