"""The launcher as a user meets it: names, exit codes, messages, and what it leaves behind."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from recorder_programs import LAUNCHER, Recorder

import record_format as rf


def launch(
    recorder: Recorder, *arguments: str | Path, **options: object
) -> subprocess.CompletedProcess[str]:
    """The launcher with just these arguments, in the recorder's folder."""
    return subprocess.run(
        [LAUNCHER, *arguments],
        capture_output=True,
        text=True,
        cwd=recorder.folder,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def files(recorder: Recorder) -> list[str]:
    return sorted(path.name for path in recorder.folder.iterdir())


def test_program_runs_as_without_us(recorder: Recorder) -> None:
    code = 'read line; echo "$line $0 $1 $PWD"; echo problem >&2; exit 9'
    command = ["sh", "-c", code, "zero", "a b"]
    expected = subprocess.run(
        command, capture_output=True, text=True, input="in\n", cwd=recorder.folder, check=False
    )
    finished = launch(recorder, "--", *command, input="in\n")
    assert (finished.returncode, finished.stdout, finished.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )
    assert files(recorder) == ["sh.fencepost"]


@pytest.mark.parametrize("is_there", [True, False], ids=["whole", "dangling"])
def test_a_link_is_written_through(recorder: Recorder, is_there: bool) -> None:
    (recorder.folder / "far").mkdir()
    (recorder.folder / "far" / "second").symlink_to("record")
    if is_there:
        (recorder.folder / "far" / "record").write_text("old")
    (recorder.folder / "first").symlink_to("far/second")
    finished = launch(recorder, "-o", "first", "--", "true")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert (recorder.folder / "first").readlink() == Path("far/second")
    assert (recorder.folder / "far" / "second").readlink() == Path("record")
    assert (recorder.folder / "far" / "record").read_bytes().startswith(b"FPFR")
    assert files(recorder) == ["far", "first"]


def test_links_that_lead_to_each_other_are_refused(recorder: Recorder) -> None:
    (recorder.folder / "first").symlink_to("second")
    (recorder.folder / "second").symlink_to("first")
    finished = launch(recorder, "-o", "first", "--", "true")
    assert finished.returncode == 125 and "Too many levels of symbolic links" in finished.stderr


def test_a_program_that_ends_by_a_signal_is_said(recorder: Recorder) -> None:
    finished = launch(recorder, "-o", "r", "--", "sh", "-c", "kill -SEGV $$")
    assert finished.stderr == (
        f"fencepost-record: {recorder.folder / 'r'}: the program was ended by signal 11: "
        "the record holds what it did until then\n"
    )


def test_environment_is_as_without_us(recorder: Recorder) -> None:
    environment = {"PATH": os.environ["PATH"], "ONE": "1", "TWO": "two words"}
    command = ["/usr/bin/env", "LD_SHOW_AUXV=1", "/usr/bin/env"]
    plain = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    finished = launch(recorder, "--", *command, env=environment)

    def shown(output: str) -> list[str]:
        # Of the auxiliary vector only what it holds: the addresses are others.
        return [line.split(":")[0] if "AT_" in line else line for line in output.splitlines()]

    # Clocks that the kernel maps into a process are hidden: time is the recording's.
    expected = [line for line in shown(plain.stdout) if line != "AT_SYSINFO_EHDR"]
    assert shown(finished.stdout) == expected
    assert {"ONE=1", "TWO=two words", "AT_PHDR"} <= set(shown(finished.stdout))


def test_stack_begins_where_arguments_and_environment_say(recorder: Recorder) -> None:
    """Not where the recorder is installed, nor what the engine and the kernel put above it."""
    elsewhere = recorder.folder / "a-folder-with-a-rather-long-name" / "recorder"
    shutil.copytree(LAUNCHER.parent, elsewhere, ignore=shutil.ignore_patterns("objects"))

    def stack(launcher: Path, environment: dict[str, str]) -> int:
        # proc(5): startstack is field 28, and the name in field 2 has no spaces here.
        command = [launcher, "-o", "stat.fencepost", "--", "/bin/cat", "/proc/self/stat"]
        finished = subprocess.run(
            command,
            env=environment,
            cwd=recorder.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return int(finished.stdout.split()[27])

    here = stack(LAUNCHER, {"A": "1"})
    assert stack(elsewhere / LAUNCHER.name, {"A": "1"}) == here
    assert stack(LAUNCHER, {"A": "1" * 513}) == here - 512


def test_record_names_what_was_recorded(recorder: Recorder) -> None:
    launch(recorder, "-o", "x.fencepost", "--", "/bin/echo", 'a"b\\', "µ")
    info = rf.Record(recorder.folder / "x.fencepost").info
    assert info["program"] == str(Path("/bin/echo").resolve())
    assert info["arguments"] == ["/bin/echo", 'a"b\\', "µ"]
    assert info["format_version"] == rf.VERSION
    assert info["isa"] == "x86-64"
    assert info["line_size"] == 64
    assert info["options"] == {"values": False, "pm": None, "roi": None}


def test_older_record_is_replaced_only_by_a_finished_one(recorder: Recorder) -> None:
    old = recorder.folder / "echo.fencepost"
    old.write_bytes(b"old")
    assert launch(recorder, "--", "nothing-of-this-name").returncode == 127
    assert old.read_bytes() == b"old"
    assert launch(recorder, "--", "echo").returncode == 0
    assert rf.Record(old).is_sealed


def test_program_without_a_name_is_named(recorder: Recorder) -> None:
    finished = launch(recorder, "--", "")
    assert (finished.returncode, finished.stderr) == (127, "fencepost-record: '': not found\n")


def elf32() -> bytes:
    return struct.pack("<4s5B7xHHI", b"\x7fELF", 1, 1, 1, 0, 0, 2, 3, 1) + bytes(200)


@pytest.mark.parametrize(
    ("name", "content", "mode", "code", "message"),
    [
        ("text", b"neither\n", 0o755, 126, "neither an executable nor a script"),
        ("plain", b"#!/bin/sh\n", 0o644, 126, "make it executable with chmod +x"),
        ("app.cpp", b"int main() {}\n", 0o644, 126, "g++ -O2 -g ./app.cpp -o ./app\n"),
        ("app.c", b"int main() {}\n", 0o755, 126, "compile it, and record the program: gcc -O2 -g"),
        ("app.py", b"pass\n", 0o644, 126, "record its interpreter: -- python3 ./app.py"),
        ("small", elf32(), 0o755, 126, "a 32-bit program"),
        ("lost", b"#!/nowhere/interpreter\n", 0o755, 127, "/nowhere/interpreter: not found"),
    ],
)
def test_what_cannot_be_run_is_named(
    recorder: Recorder, name: str, content: bytes, mode: int, code: int, message: str
) -> None:
    path = recorder.folder / name
    path.write_bytes(content)
    path.chmod(mode)
    if mode == 0o644 and os.geteuid() == 0:
        assert not os.access(path, os.X_OK)
    finished = launch(recorder, "--", f"./{name}")
    assert finished.returncode == code
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert files(recorder) == [name]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_set_uid_program_is_refused(recorder: Recorder) -> None:
    path = recorder.folder / "privileged"
    shutil.copy("/bin/true", path)
    os.chown(path, 1234, -1)
    path.chmod(0o4755)
    finished = launch(recorder, "--", path)
    assert finished.returncode == 126
    assert "set-uid" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no program"),
        (["--"], "no program"),
        (["--nothing", "--", "true"], "--nothing"),
        (["-o", "--", "true"], "-o needs a value"),
        (["--values", "--", "true"], "--pm"),
        (["--roi", "here", "--", "true"], "START:STOP"),
        (["--warm", "5", "--", "true"], "without --roi"),
        (["--roi", "a:b", "--warm", "5", "--", "true"], "needs a region between counts"),
        (["--roi", "1:9", "--warm", "5", "--values", "--pm", "heap", "--", "true"], "--values"),
    ],
)
def test_wrong_options_are_named(recorder: Recorder, arguments: list[str], message: str) -> None:
    finished = launch(recorder, *arguments)
    assert finished.returncode == 2
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert files(recorder) == []


def test_unwritable_place_is_named(recorder: Recorder) -> None:
    finished = launch(recorder, "-o", "nowhere/x.fencepost", "--", "true")
    assert finished.returncode == 125
    assert "No such file or directory" in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_full_disk_is_reported_and_nothing_left(recorder: Recorder) -> None:
    program = recorder.compile("walks", "-O1")
    disk = recorder.folder / "disk"
    disk.mkdir()
    script = f"mount -t tmpfs -o size=1m none {disk} && {LAUNCHER} -o {disk}/x -- {program}; "
    script += f"echo $?; ls {disk}"
    finished = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "mount" in finished.stderr or "unshare" in finished.stderr:
        pytest.skip("no right to mount a small disk")
    assert finished.stdout == "walked\n125\n"
    assert "No space left on device" in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_refused_personality_is_explained(recorder: Recorder) -> None:
    def refuse_personality() -> None:
        # if (number == 135) return EPERM; else allow
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, 135), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
        program = b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
        buffer = ctypes.create_string_buffer(program)
        header = struct.pack("<H6xQ", len(code), ctypes.addressof(buffer))
        libc = ctypes.CDLL(None)
        libc.prctl(38, 1, 0, 0, 0)
        libc.prctl(22, 2, header, 0, 0)

    finished = launch(recorder, "--", "true", preexec_fn=refuse_personality)
    assert finished.returncode == 125
    assert "personality" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert files(recorder) == []


def test_two_recordings_do_not_share_a_file(recorder: Recorder) -> None:
    first = subprocess.Popen(
        [LAUNCHER, "-o", "x", "--", "cat"], stdin=subprocess.PIPE, cwd=recorder.folder
    )
    try:
        while not (recorder.folder / "x.partial").exists():
            assert first.poll() is None
        finished = launch(recorder, "-o", "x", "--", "true")
        assert finished.returncode == 125
        assert "another recording" in finished.stderr
    finally:
        first.communicate(timeout=60)
    assert rf.Record(recorder.folder / "x").ended == "exit 0"


def test_launcher_says_its_version(recorder: Recorder) -> None:
    finished = launch(recorder, "--version")
    assert finished.returncode == 0
    assert finished.stdout.startswith("fencepost-record ")
    assert "DynamoRIO 11.90" in finished.stdout
    assert sys.platform == "linux"
