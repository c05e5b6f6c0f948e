"""Programs that do what few do: killed at any instant, with shared descriptors, in odd places."""

from __future__ import annotations

import json
import os
import signal
import stat
import struct
import subprocess
import time

import pytest
from recorder_programs import Recorder, child_of

import record_format as rf
from fencepost import _core

KILLS = 12


@pytest.mark.parametrize("threads", [1, 3])
def test_a_killed_program_s_record_has_all_that_it_did(recorder: Recorder, threads: int) -> None:
    """It counts in a file; each of its rounds is four instructions."""
    program = recorder.compile("counting", "-O1")
    beside = []
    for kill in range(KILLS):
        launcher = recorder.start(program, "counts", str(threads), says="counts")
        time.sleep(0.02 * kill)
        os.kill(child_of(launcher), signal.SIGKILL)
        assert launcher.wait(60) == -signal.SIGKILL
        counts = (recorder.folder / "counts").read_bytes()
        rounds = sum(struct.unpack_from("<Q", counts, 64 * thread)[0] for thread in range(threads))
        record = rf.Record(recorder.folder / "record.fencepost")
        assert (record.ended, record.lost) == ("signal 9", 0)
        beside.append(record.instructions - 4 * rounds)
    # Of the round that was under way some instructions may be there, and of a thread that started.
    assert max(beside) - min(beside) <= 100 * threads


def test_a_program_may_end_while_threads_begin(recorder: Recorder) -> None:
    """They wait for their first turns then, and have nothing yet that is recorded."""
    program = recorder.compile("begins", "-O1")
    for kill in range(KILLS):
        launcher = recorder.start(program, says="begins")
        time.sleep(0.01 * kill)
        os.kill(child_of(launcher), signal.SIGTERM)
        _, complaints = launcher.communicate(timeout=60)
        assert launcher.returncode == -signal.SIGTERM, complaints
        record = rf.Record(recorder.folder / "record.fencepost")
        assert (record.ended, record.lost) == ("signal 15", 0)


def test_a_launcher_that_is_told_to_end_as_it_starts_leaves_nothing(recorder: Recorder) -> None:
    command = recorder.command("true")
    for start in range(4 * KILLS):
        launcher = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=recorder.folder)
        time.sleep(0.0001 * start)
        launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=60)
        assert not list(recorder.folder.glob("*.partial"))


def test_a_signal_reaches_children_that_are_just_being_made(recorder: Recorder) -> None:
    """Their parent ends by it: nobody else would end them."""
    program = recorder.compile("trees", "-O1", "-pthread")
    command = recorder.command(program, "serves", recorder.folder, options=("--children",))
    for interrupt in range(2 * KILLS):
        launcher = subprocess.Popen(command, cwd=recorder.folder, start_new_session=True)
        time.sleep(0.004 * interrupt)
        launcher.send_signal(signal.SIGINT)
        try:
            launcher.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(launcher.pid, signal.SIGKILL)
            raise
        for path in recorder.folder.glob("record*"):
            path.unlink()


def test_calls_of_the_vsyscall_page(recorder: Recorder) -> None:
    program = recorder.compile("vsyscall", "-O1")
    if subprocess.run([program], check=False).returncode != 0:
        pytest.skip("this kernel has no vsyscall page")
    run = recorder.record(program)
    assert (run.returncode, run.stdout, run.stderr) == (0, "1 1\n", "")


def test_large_uniform_code_is_read_again(recorder: Recorder) -> None:
    code = ".globl main\nmain: .rept 1500000\nlea 0x12345(%rax),%rax\n.endr\nxor %eax,%eax\nret\n"
    (recorder.folder / "uniform.s").write_text(code + ".section .note.GNU-stack\n")
    subprocess.run(["gcc", "uniform.s", "-o", "uniform"], cwd=recorder.folder, check=True)
    run = recorder.record(recorder.folder / "uniform")
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(_core.record_info(str(run.path)))["instructions"] > 1_500_000


CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_VFORK = 0x100, 0x200, 0x400, 0x4000
SHARES = ": what shares its parent's memory is not\n"


@pytest.mark.parametrize("flags", [CLONE_FILES, CLONE_FILES | CLONE_FS])
@pytest.mark.parametrize("options", [(), ("--children",)], ids=["alone", "children"])
def test_a_child_that_shares_descriptors(
    recorder: Recorder, flags: int, options: tuple[str, ...]
) -> None:
    program = recorder.compile("clone_child", "-O1")
    run = recorder.record(program, f"{flags:x}", options=options)
    said = "" if options else "1 child process was not recorded (clone_child)"
    assert (run.returncode, run.stdout) == (0, "7\n")
    assert said in run.stderr and (said or run.stderr == "")
    assert run.load().ended == "exit 0"


@pytest.mark.parametrize("flags", [CLONE_VM, CLONE_VM | CLONE_FILES])
def test_a_child_that_shares_memory_is_said_not_to_be_recorded(
    recorder: Recorder, flags: int
) -> None:
    run = recorder.record(
        recorder.compile("clone_child", "-O1"), f"{flags:x}", options=("--children",)
    )
    assert (run.returncode, run.stdout) == (0, "7\n")
    assert f"1 child process was not recorded (a copy of the program){SHARES}" in run.stderr
    said = "clone_child is not recorded and may store to memory that the program shares"
    assert said in run.stderr
    assert run.load().sharers == ["clone_child"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can make such a program")
def test_a_set_uid_program_that_ran_without_its_bit_is_named(recorder: Recorder) -> None:
    program = recorder.compile("vsyscall", "-O1")
    os.chown(program, 12345, -1)
    program.chmod(program.stat().st_mode | stat.S_ISUID)
    run = recorder.record("sh", "-c", f"{program}; true", options=("--children",))
    assert run.returncode == 0
    said = "vsyscall ran without its set-uid or set-gid bit, which no program has that is recorded"
    assert said in run.stderr
