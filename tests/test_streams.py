"""Standard streams that are full, closed or not UTF-8, and an interrupt while modules are imported:
never a traceback."""

import codecs
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fencepost.cli import streams
from installed import FENCEPOST

COMMANDS = ["--help", "--version", "machine list", "machine keys", "prove --list", "report r.json"]
# Without these, the interpreter takes UTF-8 for the C locale.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def folder(tmp_path: Path, result: dict[str, Any]) -> Path:
    """With a result `r.json`, of which one run has an estimate with its error and one has not."""
    result["runs"][1]["warnings"] = ["a switch – with ±1 ►"]
    (tmp_path / "r.json").write_text(json.dumps(result))
    return tmp_path


def ended(command: str, folder: Path, redirection: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a shell, with its streams redirected."""
    line = f"exec {FENCEPOST} {command} {redirection}"
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_results_that_cannot_be_written_are_one_message(
    command: str, redirection: str, reason: str, folder: Path
) -> None:
    done = ended(command, folder, redirection)
    said = f"fencepost: standard output: cannot be written: {reason}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)
    assert "Traceback" not in done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&-", "<&- 2>&-"])
def test_streams_that_results_do_not_need_change_nothing(redirection: str, folder: Path) -> None:
    whole, other = ended("report r.json", folder), ended("report r.json", folder, redirection)
    assert (other.returncode, other.stdout) == (0, whole.stdout)
    wrong = ended("report absent.json", folder, redirection)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_what_is_recorded_has_closed_what_was_closed(folder: Path) -> None:
    """Not a file of ours in its place."""
    for number in (0, 1, 2):
        program = f"record -o p.fencepost -- ls -l /proc/self/fd/{number}"
        to_error = "" if number == 2 else ">&2"
        done = ended(f"{program} {to_error}", folder, f"{number}>&-")
        assert done.returncode == 2, done
        (folder / "p.fencepost").unlink()


@pytest.mark.few(2)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("environment", [ASCII, {"PYTHONIOENCODING": "latin-1"}])
def test_what_a_terminal_cannot_show_is_replaced(
    command: str, environment: dict[str, str], folder: Path
) -> None:
    done = subprocess.run(
        [FENCEPOST, *command.split()],
        cwd=folder,
        capture_output=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    encoding = "ascii" if environment is ASCII else "latin-1"
    shown = done.stdout.decode(encoding) + done.stderr.decode(encoding)
    assert "?" not in shown


def test_the_replacements_keep_a_table_readable(folder: Path) -> None:
    shown = ended("report r.json", folder, "").stdout
    plain = subprocess.run(
        [FENCEPOST, "report", "r.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | ASCII,
        check=True,
    )
    assert "run time" in plain.stdout and "1,843.2 us" in plain.stdout
    assert [len(line) for line in plain.stdout.splitlines()] == list(map(len, shown.splitlines()))
    assert "warning: a switch - with +-1 >" in plain.stderr


def test_letters_lose_their_marks_and_only_what_looks_like_nothing_is_a_question_mark() -> None:
    codecs.register_error(streams.PLAINLY, streams.plainly)
    assert "Gödel ĝ ☃ 5 µs".encode("ascii", streams.PLAINLY) == b"Godel g ? 5 us"
    assert "Gödel ĝ ☃".encode("latin-1", streams.PLAINLY) == "Gödel g ?".encode("latin-1")


def test_bytes_of_a_name_that_are_no_text_are_shown_escaped(folder: Path) -> None:
    done = ended("report \"$(printf 'r\\377.json')\"", folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fencepost: r\\xff.json: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_modules_are_imported_ends_it_as_any_other(
    how: signal.Signals, tmp_path: Path
) -> None:
    """One of them takes long, and says when it is there."""
    (tmp_path / "typer.py").write_text(
        "import os, time\nos.write(2, b'importing\\n')\ntime.sleep(60)\n"
    )
    running = subprocess.Popen(
        [FENCEPOST, "machine", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert running.stderr is not None and running.stderr.readline() == "importing\n"
    running.send_signal(how)
    printed, said = running.communicate(timeout=30)
    assert (running.returncode, printed, said) == (130, "", "fencepost: interrupted\n")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_when_all_is_done_changes_nothing(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"import atexit, os\natexit.register(os.kill, os.getpid(), {int(how)})\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [FENCEPOST, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 and done.stdout.startswith("fencepost ")


def test_a_recorded_program_ignores_the_interrupts_that_were_ignored(tmp_path: Path) -> None:
    """As the shell has it for what runs in the background of a script."""
    command = [FENCEPOST, "record", "-o", "r", "--", "sh", "-c", "kill -INT $$; echo alive"]
    line = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *map(str, command)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
