"""Programs that nobody here wrote run paced, and pass their own tests.

They are charged several times what the emulated pool carries for a second of processor time, so a
thread that computes is paused for most of its time, also where others take half of the processor.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from installed import FENCEPOST, Fencepost
from test_channel import build

PACED = ("channel", "run", "-q", "--json", "paced.json", "--emulate", "1", "--charge", "5")
PAUSED_MIN = 0.3
PYTHON = Path(sys.base_prefix) / "bin" / "python3"


def paused_part(folder: Path) -> float:
    """The part of their time for which the paced threads were paused."""
    document: dict[str, Any] = json.loads((folder / "paced.json").read_text())
    rows = document["channels"]
    paused, lived = (sum(row[key] for row in rows) for key in ("paused_seconds", "thread_seconds"))
    return float(paused / lived)


def test_a_c_plus_plus_program_with_threads(fencepost: Fencepost, tmp_path: Path) -> None:
    program = build(tmp_path, "pipeline")
    assert fencepost(*PACED, "--", program, check=True).stdout == "right\n"
    assert paused_part(tmp_path) >= PAUSED_MIN


SQL = """
CREATE TABLE t (key INTEGER PRIMARY KEY, value TEXT, number REAL);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80000)
INSERT INTO t SELECT i, hex(i * 2654435761 % 4294967296), i * 0.25 FROM n;
CREATE INDEX by_value ON t (value);
DELETE FROM t WHERE key % 7 = 0;
UPDATE t SET number = number + length(value) WHERE key % 5 = 0;
SELECT count(*), sum(number), min(value), max(value) FROM t;
SELECT substr(value, 1, 2) AS head, count(*), sum(key) FROM t GROUP BY head ORDER BY head;
SELECT count(*) FROM t AS a JOIN t AS b ON a.value = b.value AND a.key < b.key;
PRAGMA integrity_check;
"""


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_sqlite3(fencepost: Fencepost, tmp_path: Path) -> None:
    plain = subprocess.run(
        ["sqlite3", tmp_path / "plain.db"], input=SQL, capture_output=True, text=True, check=True
    )
    paced = fencepost(*PACED, "--", "sqlite3", "paced.db", input=SQL, check=True)
    assert plain.stdout.splitlines()[-1] == "ok"
    assert paced.stdout == plain.stdout
    assert (tmp_path / "paced.db").read_bytes() == (tmp_path / "plain.db").read_bytes()
    assert paused_part(tmp_path) >= PAUSED_MIN


def has_its_tests() -> bool:
    command = [PYTHON, "-c", "import test.test_json"]
    found = subprocess.run(command, capture_output=True, check=False)
    return found.returncode == 0


def run_tests_of_python(fencepost: Fencepost, *arguments: str, charge: int = 5) -> None:
    command = [PYTHON, "-m", "test", "-q", *arguments]
    paced = fencepost(*PACED[:-1], charge, "--", *command, timeout=1200)
    assert paced.stdout.splitlines()[-1] == "Result: SUCCESS", paced.stdout
    assert paced.returncode == 0


needs_its_tests = pytest.mark.skipif(not has_its_tests(), reason="needs Python's own tests")


@pytest.mark.slow
@needs_its_tests
def test_python_passes_its_own_tests(fencepost: Fencepost, tmp_path: Path) -> None:
    run_tests_of_python(fencepost, "test_zlib")
    assert paused_part(tmp_path) >= PAUSED_MIN


@pytest.mark.slow
@needs_its_tests
@pytest.mark.parametrize(
    "arguments",
    [
        *("test_json", "test_signal", "test_select", "test_poll", "test_fork1"),
        # What only POSIX has: sessions, signals, inherited descriptors, code before exec.
        "test_subprocess --match POSIXProcessTestCase",
        pytest.param("test_subprocess", marks=pytest.mark.exhaustive),
    ],
)
def test_python_passes_more_of_its_own_tests(fencepost: Fencepost, arguments: str) -> None:
    # With timeouts of their own: charged less, they take minutes less.
    run_tests_of_python(fencepost, *arguments.split(), charge=2)


class Redis:
    """A server with nothing but memory, and its own programs beside."""

    def __init__(self, folder: Path, command: list[object]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--port", self.port, "--save", "", "--enable-debug-command", "yes"]
        self.process = subprocess.Popen(
            list(map(str, [*command, "redis-server", *options])),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while self.cli("ping", check=False) != "PONG":
            assert self.process.poll() is None
            time.sleep(0.05)

    def cli(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=check,
        )
        return done.stdout.strip()

    def benchmark(self, *options: str) -> list[str]:
        """The tests that its own benchmark ran to their end."""
        done = subprocess.run(
            ["redis-benchmark", "-p", str(self.port), "--csv", *options],
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split(",")[0] for line in done.stdout.splitlines()]

    def end(self) -> None:
        self.cli("shutdown", "nosave", check=False)
        assert self.process.wait(30) == 0


def use(server: Redis) -> tuple[object, ...]:
    """What a server answers that does not depend on time."""
    commands = [f"set key:{number} {number * number}" for number in range(1500)]
    commands += [f"zadd scores {number * 7919 % 1009} {number}" for number in range(1500)]
    commands += [f"lpush list {number}" for number in range(1000)]
    answers = server.cli(text="\n".join([*commands, "sort list limit 0 5", "zrange scores 0 9"]))
    tests = server.benchmark("-t", "set,get,lpush,zadd", "-n", "4000", "-c", "20", "-r", "1000")
    count = server.cli("eval", "return #redis.call('keys', 'key:*')", "0")
    digest = server.cli("debug", "digest-value", "scores", "list", "key:7")
    return answers, tests, count, digest


@pytest.mark.skipif(shutil.which("redis-benchmark") is None, reason="needs redis")
def test_redis_server(tmp_path: Path) -> None:
    answers = []
    # A server waits for its clients besides.
    for command in ([], [FENCEPOST, *PACED[:-1], "12", "--"]):
        server = Redis(tmp_path, command)
        try:
            answers.append(use(server))
        finally:
            server.end()
    plain, paced = answers
    # Of keys that the benchmark draws at random, the number differs, but not of ours.
    assert paced[:2] == plain[:2]
    assert paced[3] == plain[3]
    document = json.loads((tmp_path / "paced.json").read_text())
    [server_row] = document["channels"]
    # Its threads for work in the background wait all the time: what counts is the one that serves.
    assert server_row["paused_seconds"] >= PAUSED_MIN * server_row["seconds"]
