"""Folders of commands that were killed are removed by the next one, those of others never."""

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost import scratch

KILLED = """
import os, signal, sys
from pathlib import Path
from fencepost import scratch

with scratch.made(Path(sys.argv[1])) as folder:
    (folder / "record.fencepost").write_bytes(bytes(1000))
    print(folder, flush=True)
    if len(sys.argv) > 2:
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _started(above: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", KILLED, str(above), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def _folder_of(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_a_folder_is_gone_when_it_is_not_needed_any_more(tmp_path: Path) -> None:
    with scratch.made(tmp_path) as folder:
        (folder / "file").touch()
        assert list(tmp_path.iterdir()) == [folder]
    assert not list(tmp_path.iterdir())


def test_what_a_killed_command_left_the_next_one_removes(tmp_path: Path) -> None:
    with _started(tmp_path) as killed:
        left = _folder_of(killed)
    assert (left / "record.fencepost").exists()
    with scratch.made(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_what_a_command_holds_that_still_runs_stays(tmp_path: Path) -> None:
    with _started(tmp_path, "waits") as running:
        theirs = _folder_of(running)
        with scratch.made(tmp_path) as ours:
            scratch.sweep(tmp_path)
            assert set(tmp_path.iterdir()) == {theirs, ours}
        assert (theirs / "record.fencepost").exists()
        running.kill()


@pytest.mark.parametrize("name", ["fencepost-demo", "fencepost-scratch-of-mine", "x"])
def test_other_folders_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    scratch.sweep(tmp_path)
    assert (tmp_path / name).exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / f"{scratch.PREFIX}abcdefgh").symlink_to("kept")
    scratch.sweep(tmp_path)
    assert (tmp_path / "kept").exists()
