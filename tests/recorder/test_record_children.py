"""With --children, every process that comes of the program has a record of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from recorder_programs import ROOT, Recorder, Run, child_of, wait_for_end

import record_format as rf

FENCEPOST = ROOT / ".venv" / "bin" / "fencepost"


def record(recorder: Recorder, *arguments: str, options: tuple[str, ...] = ()) -> Run:
    program = recorder.compile("children", "-O1")
    return recorder.record(program, *arguments, options=("--children", *options))


def processes(run: Run) -> dict[str, int]:
    """The numbers of the children, by the "NAME PID" lines that the program printed."""
    pairs = (line.split() for line in run.stdout.splitlines())
    ids = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    return {name: number for number, name in enumerate(sorted(ids, key=ids.__getitem__), 1)}


def path_of(recorder: Recorder, process: int) -> Path:
    return recorder.folder / f"record.{process}.fencepost"


def of_child(recorder: Recorder, process: int) -> rf.Record:
    found = rf.Record(path_of(recorder, process))
    assert found.is_sealed
    assert found.info["process"] == process
    list(found.events())  # reads all of it
    return found


def records(recorder: Recorder) -> list[str]:
    return sorted(path.name for path in recorder.folder.glob("record*"))


def forks(found: rf.Record) -> list[object]:
    return [event.child for event in found.events(None, "fork")]


def assert_simulator_reads(path: Path) -> None:
    finished = subprocess.run(
        [FENCEPOST, "info", path], capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (0, "")


def test_each_child_has_its_own_work(recorder: Recorder) -> None:
    run = record(recorder, "two")
    assert (run.returncode, run.stderr) == (0, "")
    named = processes(run)
    parent = run.load()
    assert forks(parent) == [named["one"], named["another"]]
    assert parent.ended == "exit 0"
    for name, code, work in (("one", 3, 600_000), ("another", 4, 2_400_000)):
        child = of_child(recorder, named[name])
        assert (child.ended, child.lost, sorted(child.threads)) == (f"exit {code}", 0, [0])
        assert work < child.instructions < work + 20_000
        assert next(event.name for event in child.events(0)) == "thread_start"
        assert child.info["arguments"] == parent.info["arguments"]
        assert {event.path for event in parent.events(0, "module")} == {
            event.path for event in child.events(0, "module")
        }
        assert_simulator_reads(path_of(recorder, named[name]))
    assert parent.instructions < 1_000_000
    assert len(records(recorder)) == 3
    replayed = subprocess.run(
        [FENCEPOST, "run", "pcs-table1", path_of(recorder, named["one"]), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=recorder.folder,
    )
    assert replayed.returncode == 0, replayed.stderr


def test_spawned_programs_are_recorded(recorder: Recorder) -> None:
    run = record(recorder, "spawned")
    assert (run.returncode, run.stderr) == (7, "")
    named = processes(run)
    spawned = of_child(recorder, named["spawned"])
    assert (spawned.ended, spawned.info["arguments"]) == ("exit 7", ["sh", "-c", "exit 7"])
    assert spawned.info["program"] == str(Path("/bin/sh").resolve())
    vforked = of_child(recorder, named["vforked"])
    assert (vforked.ended, vforked.info["arguments"]) == ("exit 0", ["true", "argument"])
    parent = run.load()
    # The spawn that failed had a process, too; it had no program to record.
    assert forks(parent)[-2:] == [named["spawned"], named["vforked"]]
    assert len(records(recorder)) == 3


def test_pipeline_of_a_shell(recorder: Recorder) -> None:
    line = "seq 2000 | (read first; wc -l); exit 5"
    run = recorder.record("sh", "-c", line, options=("--children",))
    assert (run.returncode, run.stdout, run.stderr) == (5, "1999\n", "")
    children = [of_child(recorder, int(str(child))) for child in forks(run.load())]
    programs = [[Path(str(e.path)).name for e in c.events(0, "exec")] for c in children]
    assert ["seq"] in programs
    assert {child.ended for child in children} == {"exit 0"}
    for name in records(recorder):
        assert_simulator_reads(recorder.folder / name)


def test_child_killed_by_a_signal(recorder: Recorder) -> None:
    run = record(recorder, "killed")
    assert run.returncode == signal.SIGKILL
    assert run.stderr.endswith(
        "the program was ended by signal 9: the record holds what it did until then\n"
    )
    child = of_child(recorder, processes(run)["killed"])
    assert (child.ended, child.lost) == ("signal 9", 0)


def test_orphan_is_recorded_to_its_end(recorder: Recorder) -> None:
    run = record(recorder, "orphan")
    assert (run.returncode, run.stderr) == (0, "")
    named = processes(run)
    child = of_child(recorder, named["child"])
    assert (child.ended, forks(child)) == ("exit 8", [named["grandchild"]])
    grandchild = of_child(recorder, named["grandchild"])
    assert grandchild.ended == "exit 9"
    assert grandchild.instructions > 3_000_000


@pytest.mark.slow
def test_thread_forks_while_another_makes_code_anew(recorder: Recorder) -> None:
    """The other thread must not take it out of its system call."""
    program = recorder.compile("children", "-O0")
    for _ in range(12):
        options = ("--children", "--values", "--pm", "heap")
        run = recorder.record(program, "threads", options=options)
        assert (run.returncode, run.stderr) == (0, "")
        assert path_of(recorder, processes(run)["child"]).exists()


def test_thread_forks_and_values_are_rebuilt(recorder: Recorder) -> None:
    run = record(recorder, "threads", options=("--values", "--pm", "heap"))
    assert (run.returncode, run.stderr) == (0, "")
    process = processes(run)["child"]
    child = of_child(recorder, process)
    assert (child.ended, child.lost, sorted(child.threads)) == ("exit 6", 0, [0, 1])
    assert len(child.events(0, "thread_create")) == len(child.events(0, "thread_join")) == 1
    start, length = next(
        (int(line[1]), int(line[2]))
        for line in map(str.split, run.stdout.splitlines())
        if line[0] == "pool"
    )
    [pool] = recorder.folder.glob("pool.*")
    content = pool.read_bytes()
    assert child.rebuild(start, length) == content
    # The parent's has none of the child's changes.
    half = length // 2
    assert run.load().rebuild(start, length)[half:] == b"\x02" * half
    assert content[half:] != b"\x02" * half
    assert_simulator_reads(path_of(recorder, process))
    assert len(run.load().threads) == 3


def has_trace(partial: Path) -> bool:
    if not partial.exists():  # the child's number is printed before its recorder has begun
        return False
    return any(frame.kind == rf.TRACE for frame in rf.read_frames(partial.read_bytes()))


def start(recorder: Recorder) -> tuple[subprocess.Popen[str], int]:
    command = recorder.command(recorder.compile("children", "-O1"), "wait", options=("--children",))
    launcher = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=recorder.folder, start_new_session=True
    )
    assert launcher.stdout is not None
    child = int(launcher.stdout.readline().split()[1])
    partial = recorder.folder / "record.1.fencepost.partial"
    deadline = time.monotonic() + 30
    while not has_trace(partial) and time.monotonic() < deadline:
        time.sleep(0.05)
    return launcher, child


def test_interrupt_seals_all(recorder: Recorder) -> None:
    launcher, _ = start(recorder)
    os.killpg(launcher.pid, signal.SIGINT)
    assert launcher.wait(60) == -signal.SIGINT
    assert rf.Record(path_of(recorder, 1)).ended == "signal 2"
    assert rf.Record(recorder.folder / "record.fencepost").ended == "signal 2"
    assert len(records(recorder)) == 2


def test_signal_to_the_launcher_alone_ends_all(recorder: Recorder) -> None:
    """None of them is left until it is killed."""
    launcher, _ = start(recorder)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(300) == -signal.SIGTERM
    assert rf.Record(path_of(recorder, 1)).ended == "signal 15"
    assert rf.Record(recorder.folder / "record.fencepost").ended == "signal 15"


def test_children_that_outlive_the_program_are_told_to_end(recorder: Recorder) -> None:
    launcher, _ = start(recorder)
    program = child_of(launcher)
    os.kill(program, signal.SIGTERM)
    wait_for_end(program)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(300) == -signal.SIGTERM
    assert rf.Record(path_of(recorder, 1)).ended == "signal 15"


def test_children_die_with_the_launcher(recorder: Recorder) -> None:
    launcher, child = start(recorder)
    program = child_of(launcher)
    launcher.kill()
    launcher.wait(60)
    wait_for_end(program)
    wait_for_end(child)


def test_killed_launcher_leaves_readable_partial_records(recorder: Recorder) -> None:
    launcher, _ = start(recorder)
    os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait(60)
    assert records(recorder) == [
        "record.1.fencepost.partial",
        "record.fencepost.partial",
    ]
    partial = rf.Record(recorder.folder / "record.1.fencepost.partial")
    assert not partial.is_sealed
    assert partial.info["process"] == 1
    shown = subprocess.run(
        [FENCEPOST, "info", recorder.folder / "record.1.fencepost.partial"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "seal" in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("output", "expected"), [("trace", "trace.1"), ("a.b/x.y.rec", "a.b/x.y.1.rec")]
)
def test_childs_number_stands_before_the_suffix(
    recorder: Recorder, output: str, expected: str
) -> None:
    (recorder.folder / "a.b").mkdir()
    launcher = recorder.command()[0]
    subprocess.run(
        [launcher, "--children", "-o", output, "--", "sh", "-c", "true & wait"],
        capture_output=True,
        text=True,
        check=True,
        cwd=recorder.folder,
    )
    assert rf.Record(recorder.folder / expected).ended == "exit 0"


def test_each_record_is_listed_with_its_program(recorder: Recorder) -> None:
    run = recorder.record("sh", "-c", "seq 1 | cat; true", options=("--children", "--list"))
    listed = [line.split(": ")[1:] for line in run.stderr.splitlines()]
    assert sorted(program for _, program in listed) == sorted(
        ["cat", "seq", Path("/bin/sh").resolve().name]
    )
    assert {Path(path).name for path, _ in listed} == set(records(recorder))
