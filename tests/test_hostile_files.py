"""What is given to the command and is not what it seems: it is refused, or costs what it is worth.

Processor time and memory are bounded by the kernel, so that these tests fail and do not hang.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from crafted_records import LOAD, NO_OPERATION, CraftedRecord, block, thread_start, varint
from installed import FENCEPOST

MIB = 1 << 20


# A small process starts the command: the memory of the one that runs the tests would count.
STARTER = """
import os, sys
file, *command = sys.argv[1:]
_, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
open(file, "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def bounded(*arguments: object, seconds: int = 60) -> tuple[subprocess.CompletedProcess[str], int]:
    """Runs the command with so much processor time; also says the most memory it had, in bytes."""
    command = ["prlimit", f"--cpu={seconds}", str(FENCEPOST), *map(str, arguments)]
    with tempfile.NamedTemporaryFile("r") as most:
        starter = [sys.executable, "-S", "-c", STARTER, most.name]
        done = subprocess.run([*starter, *command], capture_output=True, text=True, check=False)
        return done, int(most.read()) * 1024


def run(record: Path, *options: str, seconds: int = 60) -> Any:
    replay = ("run", "pcs-table1", record, "--scheme", "nopb", "--quiet", *options)
    return bounded(*replay, seconds=seconds)


def test_few_bytes_of_code_are_not_millions_of_blocks(tmp_path: Path) -> None:
    record = CraftedRecord()
    same = [block(0x400000, NO_OPERATION)] * MIB
    for _ in range(7):
        record.code(same)
    record.trace(0, 1, varint(0) * 3 + varint(1), events=thread_start())
    path = record.write(tmp_path / "blocks.fencepost")
    assert path.stat().st_size < 100_000
    for done, memory in (bounded("info", path), run(path)):
        assert done.returncode == 2, done.stderr
        assert "the decompressed length of all code so far is" in done.stderr + done.stdout
        assert memory < 400 * MIB


def test_few_bytes_of_trace_do_not_fill_the_memory(tmp_path: Path) -> None:
    """A hundred threads that all wait in the middle of as long a frame as there can be."""
    threads, instructions = 100, 1 << 21
    record = CraftedRecord()
    record.code([block(0x400000, NO_OPERATION), block(0x400010, LOAD, loads=1)])
    lock = bytes([5, 0]) + varint(0x1000)
    for thread in range(threads):
        creation = b"".join(bytes([3, 0]) + varint(other) for other in range(1, threads))
        events = thread_start() + (creation if thread == 0 else b"") + lock
        control = (varint(0) * 2) * (1 + (threads - 1) * (thread == 0))
        control += varint(0) + varint(2) + varint(0) + varint(2) + varint(0) + varint(0)
        control += varint(instructions - 2)
        slots = varint(0x200000) + b"\0" * (instructions - 1)
        record.trace(thread, instructions, control, slots, events)
    path = record.write(tmp_path / "frames.fencepost")
    assert path.stat().st_size < 100_000
    done, memory = run(path, "--limit-instructions", "1000000", seconds=300)
    assert done.returncode in (0, 1), done.stderr
    assert memory < 1300 * MIB, f"{memory // MIB} MiB"


@pytest.mark.parametrize("threads", [30_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_threads_that_do_nothing_cost_next_to_nothing(tmp_path: Path, threads: int) -> None:
    record = CraftedRecord()
    record.code([block(0x400000, NO_OPERATION)])
    record.trace(0, 1, varint(0) * 3 + varint(1), events=thread_start())
    for thread in range(1, threads):
        record.trace(thread)
    path = record.write(tmp_path / "threads.fencepost")
    shown, _ = bounded("info", path, seconds=40)
    assert shown.returncode == 0, shown.stderr[:500]
    assert f"\n{threads - 16:,} more (--all, --json)\n" in shown.stdout
    done, _ = run(path, seconds=40)
    assert done.returncode in (0, 1), done.stderr[:500]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("line", "number", "code"),
    [("#\n", 5_000_000, 0), ("x\n", 5_000_000, 2), ("k{} = 1\n", 1_000_000, 2)],
    ids=["comments", "not TOML", "unknown keys"],
)
def test_a_machine_file_of_millions_of_lines_is_read(
    tmp_path: Path, line: str, number: int, code: int
) -> None:
    machine = tmp_path / "m.toml"
    begin = 'extends = "pcs-table1"\ndescription = "long"\n'
    machine.write_text(begin + "".join(map(line.format, range(number))))
    done, memory = bounded("machine", "show", machine, seconds=30)
    assert done.returncode == code, done.stderr[:500]
    assert len(done.stderr.splitlines()) == (101 if code else 0)
    assert memory < 1500 * MIB, f"{memory // MIB} MiB"


def test_a_record_in_the_place_of_the_machine_is_recognised(
    tmp_path: Path, fft_record: Path
) -> None:
    done = bounded("run", fft_record)[0]
    assert done.returncode == 2
    assert "it is a record, and a machine comes first" in done.stderr


REPLAYS = {
    "run": ["run", "pcs-table1", "RECORD", "--scheme", "nopb"],
    "compare": ["compare", "pcs-table1", "RECORD"],
    "explain": ["explain", "pcs-table1", "RECORD"],
    "whatif": ["whatif", "pcs-table1", "RECORD", "link.latency_ns=10,20"],
    "power": ["power", "pcs-table1", "RECORD"],
    "crash": ["crash", "pcs-table1", "RECORD", "--pm", "file:pool", "--check", "true {image}"],
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound record of another processor."""
    record = CraftedRecord(isa="riscv64")
    record.code([block(0x400000, b"\x13\x00\x00\x00")])
    record.trace(0, 1, varint(0) * 3 + varint(1), events=thread_start())
    return record.write(tmp_path_factory.mktemp("foreign") / "foreign.fencepost")


@pytest.mark.parametrize("command", REPLAYS.values(), ids=REPLAYS)
def test_a_record_of_another_instruction_set_is_not_replayed(
    command: list[str], foreign: Path
) -> None:
    done, _ = bounded(*(foreign if word == "RECORD" else word for word in command))
    assert done.returncode == 2, done.stdout
    message = "foreign.fencepost: its instruction set is `riscv64`, and this version replays x86-64"
    assert message in "".join(done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 2


def test_a_record_of_another_instruction_set_is_shown(foreign: Path) -> None:
    done, _ = bounded("info", foreign)
    assert done.returncode == 0, done.stderr
    assert "riscv64" in done.stdout


def test_a_machine_file_that_is_far_too_long_is_refused(tmp_path: Path) -> None:
    machine = tmp_path / "m.toml"
    with machine.open("wb") as file:
        file.truncate(1 << 40)
    done, memory = bounded("machine", "show", machine)
    assert done.returncode == 2
    assert "m.toml: cannot be read: it has 1099511627776 bytes, and a machine file" in done.stderr
    assert memory < 300 * MIB


def test_pipes_and_devices_are_no_records_and_no_machines(tmp_path: Path, fft_record: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    extending = tmp_path / "extending.toml"
    extending.write_text('extends = "pipe"\ndescription = "of a pipe"\n')
    cases: list[tuple[list[object], object, str]] = [
        (["info", pipe], pipe, "a named pipe"),
        (["info", "/dev/zero"], "/dev/zero", "a device"),
        (["run", "pcs-table1", pipe], pipe, "a named pipe"),
        (["run", pipe, fft_record], pipe, "a named pipe"),
        (["compare", "pcs-table1", "/dev/zero"], "/dev/zero", "a device"),
        (["machine", "show", pipe], pipe, "a named pipe"),
        (["machine", "show", extending], pipe, "a named pipe"),
        (["machine", "show", tmp_path / "."], tmp_path, "a folder"),
    ]
    for arguments, path, kind in cases:
        command = [FENCEPOST, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, (command, done)
        said = f"fencepost: {path}: cannot be read: it is {kind}, and has to be an ordinary file"
        assert done.stderr.strip() == said


def test_pipes_and_devices_are_neither_results_nor_lists_nor_explorations(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", tmp_path / "found"
    os.mkfifo(pipe)
    found.mkdir()
    (found / "crash.json").symlink_to(pipe)
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "journal.jsonl").symlink_to("/dev/zero")
    (tmp_path / "journal" / "record.fencepost").touch()
    crash = ["crash", "pcs-table1", "--pm", "file:pool", "--check", "true {image}", "--out"]
    program = ["--", "true", "pool"]
    cases: list[tuple[list[object], object, str]] = [
        (["report", pipe], pipe, "a named pipe"),
        (["report", "/dev/zero", "-o", "r.html"], "/dev/zero", "a device"),
        (["report", tmp_path], tmp_path, "a folder"),
        (["diff", pipe, pipe], pipe, "a named pipe"),
        (["timeline", pipe, "-o", "x"], pipe, "a named pipe"),
        (["reproduce", "pcs", "--programs", pipe], pipe, "a named pipe"),
        (["reproduce", "pcs", "--programs", "/dev/zero"], "/dev/zero", "a device"),
        ([*crash, "found", *program], "found/crash.json", "a named pipe"),
        ([*crash, "journal", *program], "journal/journal.jsonl", "a device"),
    ]
    for arguments, path, kind in cases:
        command = ["prlimit", f"--as={2 << 30}", FENCEPOST, *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert done.returncode == 2, (command, done)
        said = f"fencepost: {path}: cannot be read: it is {kind}, and has to be an ordinary file"
        assert done.stderr.strip() == said


@pytest.mark.parametrize("option", ["--json", "--report"])
def test_pipes_and_devices_are_no_outputs(tmp_path: Path, fft_record: Path, option: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/full")):
        command = [FENCEPOST, "compare", "pcs-table1", fft_record, option, path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        said = f"fencepost: {option} {path}: cannot be written: it is no ordinary file"
        assert done.stderr.strip() == said
