"""`fencepost crash` ends by a kill as by Ctrl-C, in the background too, whatever it is doing, and
leaves nothing but what was found. All that a check prints is kept. The cost decides about reads."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost import interruptions, recording
from fencepost._core import CrashStates
from fencepost.cli import main
from fencepost.crash import output, session
from fencepost.crash.check import Check, Verdict
from fencepost.crash.journal import OUTPUTS, Journal
from fencepost.crash.reads_choice import RUNS_MAX, runs_worth
from installed import FENCEPOST, Fencepost, in_the_background

# Hangs when it is run for the N-th time, its second argument, if that is not 0.
PROGRAM = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  int calls = open("calls", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (ftruncate(file, 4096) || write(calls, "x", 1) != 1)
    return 2;
  volatile uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (lseek(calls, 0, SEEK_END) == atoi(values[2])) {
    close(open("hangs", O_WRONLY | O_CREAT, 0644));
    pause();
  }
  if (count > 3) {
    if (pool[0] && !pool[8] && *values[3] == 'p') {
      for (int line = 0; line < 4000; line++)
        printf("line %d of what it says\n", line);
      printf("the last of it\n");
    }
    return pool[0] && !pool[8];
  }
  for (int line = 1; line < 12; line++)
    pool[8 * line] = 7;
  pool[0] = 1;
  return 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above."""
    folder = tmp_path_factory.mktemp("endings")
    (folder / "ends.c").write_text(PROGRAM)
    command = ["gcc", "-g", "-w", "-o", "ends", "ends.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "ends"


def running_in(folder: Path) -> list[str]:
    """Command lines of processes that work there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended, or is not ours
            continue
    return found


# What is being done when the program runs for so many times.
DOING = {"the recording": 1, "the check of the whole pool": 2, "a recorded check": 3, "a check": 40}


def endings() -> list[Any]:
    """Every way to end it at everything that it does; a half that has each pair of the three is
    not slow."""
    ways = itertools.product(
        enumerate(DOING), enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), (False, True)
    )
    return [
        pytest.param(
            *(doing, how, is_in_background),
            marks=[pytest.mark.slow] if (number + other + is_in_background) % 2 else [],
            id=f"{doing}-{how.name}-{'background' if is_in_background else 'foreground'}",
        )
        for (number, doing), (other, how), is_in_background in ways
    ]


@pytest.mark.few(4)
@pytest.mark.parametrize(("doing", "how", "is_in_background"), endings())
def test_an_end_leaves_no_process_and_no_debris(doing, how, is_in_background, program, tmp_path):
    (tmp_path / "temporary").mkdir()
    call = str(DOING[doing])
    own = [FENCEPOST, "crash", "pcs-table1", "--pm", "file:pool", "--out", "found", "-j1"]
    own += ["--timeout", "60", "--reads" if doing == "a recorded check" else "--no-reads"]
    check = f"{program} {{image}} {call} check"
    command = [*map(str, own), "--check", check, "--", str(program), "pool", call]
    process = subprocess.Popen(
        in_the_background(command) if is_in_background else command,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (tmp_path / "hangs").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.rstrip().endswith("interrupted") and "Traceback" not in said
    assert running_in(tmp_path) == []
    assert list((tmp_path / "temporary").iterdir()) == []
    left = {path.name for path in (tmp_path / "found").glob("*")}
    kept = {"journal.jsonl", "journal.lock", "program.json", "record.fencepost", "crash.json"}
    if doing == "the recording":
        assert not (tmp_path / "found").exists()
        assert "pool" in {path.name for path in tmp_path.iterdir()}, "it is the program's own"
    else:
        assert left - kept <= {"missing_flush-1.image"}


@pytest.mark.parametrize("what", ["check", "recorder"])
def test_an_end_waits_for_the_process_that_is_just_being_started(what, tmp_path, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        """The signal comes when the process runs and nobody knows it yet."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        if what == "check":
            Check("sh -c 'sleep 60' {image}", 60).run(tmp_path / "image")
        else:
            recording.record_to(tmp_path / "r.fencepost", [], ["sleep", "60"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_an_end_while_flushes_are_weighed_costs_nothing_that_was_found(
    program, tmp_path, monkeypatch, capsys
):
    def interrupted(states: CrashStates, work: Callable[[], str]) -> str:
        if work == states.redundant:
            raise KeyboardInterrupt
        return work()

    monkeypatch.setattr(interruptions, "ignore", lambda: None)
    monkeypatch.setattr(session, "interruptible", interrupted)
    monkeypatch.chdir(tmp_path)
    own = ["crash", "pcs-table1", "--pm", "file:pool", "--check", f"{program} {{image}} 0 check"]
    assert main([*own, "--images", "8", "--out", "found", "--", str(program), "pool", "0"]) == 130
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    assert result["interrupted"] and len(result["violations"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("crash: not finished, so far 1 ")


def test_all_that_a_failing_check_prints_is_kept(fencepost: Fencepost, program, tmp_path):
    own = ["--pm", "file:pool", "--check", f"{program} {{image}} 0 prints", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", program, "pool", 0)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    [violation] = result["violations"]
    kept = (tmp_path / "found" / violation["whole_output"]).read_text().splitlines()
    assert len(kept) == 4001 and kept[0] == "line 0 of what it says"
    assert violation["output"].splitlines()[-1] == kept[-1] == "the last of it"
    assert f"  output   found/{violation['whole_output']}" in done.stdout.splitlines()
    files = list((tmp_path / "found" / OUTPUTS).iterdir())
    assert len(files) == 1, "what many images make it print is kept once"


def test_of_endless_output_both_ends_are_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(output, "BYTES_MAX", 1000)
    script = tmp_path / "check"
    script.write_text("#!/bin/sh\necho first\nseq 100000\necho last\nexit 1\n")
    script.chmod(0o755)
    verdict = Check(f"{script} {{image}}", 30).run(tmp_path / "image")
    assert verdict.outcome == "exit 1" and len(verdict.output) < 2000
    assert verdict.output.startswith("first\n1\n2\n") and verdict.output.endswith("\n100000\nlast")
    assert " bytes are left out here]\n" in verdict.output


def test_what_was_kept_of_an_output_is_known_to_the_run_that_goes_on(tmp_path):
    said = "\n".join(f"line {number}" for number in range(1000))
    journal = Journal(tmp_path / "journal.jsonl", {})
    journal.add("a", Verdict("exit 1", said))
    journal.add("b", Verdict("exit 1", "short"))
    journal.close()
    again = Journal(tmp_path / "journal.jsonl", {})
    long, short = again.get("a"), again.get("b")
    again.close()
    assert long and long.kept and (tmp_path / long.kept).read_text() == said + "\n"
    assert said.endswith(long.output) and len(long.output) <= output.SHOWN_BYTES
    assert short == Verdict("exit 1", "short")


def test_recorded_checks_are_worth_no_more_than_the_checks_that_they_spare():
    assert runs_worth(plain=0.005, recorded=0.6, bound=256, jobs=2) == 0
    assert runs_worth(plain=0.05, recorded=0.6, bound=256, jobs=2) == 10
    assert runs_worth(plain=0.05, recorded=0.6, bound=256, jobs=8) == 0, "side by side"
    assert runs_worth(plain=2.0, recorded=2.6, bound=256, jobs=2) == RUNS_MAX


@pytest.mark.parametrize(
    ("naps", "bound", "is_used"),
    [("", 64, False), pytest.param("sleep 0.4; ", 256, True, marks=pytest.mark.slow)],
)
def test_the_cost_decides_whether_it_is_looked_for_what_a_check_reads(
    naps, bound, is_used, fencepost: Fencepost, program, tmp_path
):
    check = f"sh -c '{naps}{program} {{image}} 0 check'"
    own = ["--pm", "file:pool", "--check", check, "--images", bound, "-j1", "--out", "found"]
    done = fencepost("crash", "pcs-table1", *own, "--", program, "pool", 0)
    assert done.returncode == 1, done.stderr
    result = json.loads((tmp_path / "found" / "crash.json").read_text())
    reads, counts = result["reads"], result["counts"]
    assert reads["wanted"] is None and reads["used"] is is_used
    assert (counts["reduced_instants"] == 1) is is_used
    assert counts["images"] == (4 if is_used else bound)
    assert (
        f"--{'' if is_used else 'no-'}reads was chosen: recording the check takes " in done.stdout
    )


def test_bytes_that_a_check_prints_are_kept_as_they_are(tmp_path):
    (tmp_path / "printed").write_bytes(
        b"first \xff\xfe line\n" + b"\xe4\xb8\xad" * 1000 + b"\x80 end"
    )
    check = Check(f"sh -c 'cat {tmp_path / 'printed'}; exit 1' {{image}}", 10)
    journal = Journal(tmp_path / "journal.jsonl", {})
    verdict = journal.add("image", check.run(tmp_path / "image"))
    journal.close()
    assert verdict.kept is not None
    assert (tmp_path / verdict.kept).read_bytes() == (tmp_path / "printed").read_bytes() + b"\n"
    assert "\ufffd" not in verdict.output and verdict.output.endswith("中\udc80 end")
    again = Journal(tmp_path / "journal.jsonl", {})
    assert again.get("image") == verdict
    again.close()
