"""No command writes over what it reads, nor two things into one file."""

import os
import resource
import signal
from pathlib import Path

import pytest

from fencepost import documents
from fencepost._core import InputError
from fencepost.cli import main, outputs


def test_an_output_that_is_an_input_is_refused_by_both_names(tmp_path):
    record = tmp_path / "fft.fencepost"
    record.write_text("a record")
    with pytest.raises(InputError, match=r"--json .*fft.fencepost: .* input .*/fft.fencepost"):
        outputs.check({"--json": record}, [record])


def test_links_and_other_spellings_are_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = tmp_path / "a"
    record.write_text("a record")
    (tmp_path / "symbolic").symlink_to("a")
    os.link("a", "hard")
    for name in ("symbolic", "hard", "./a", f"../{tmp_path.name}/a"):
        with pytest.raises(InputError):
            outputs.check({"-o": type(record)(name)}, [record])
    outputs.check({"-o": tmp_path / "b", "--json": None}, [record])


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--docs .*file: cannot be written: it is no folder"):
        outputs.check_folder("--docs", tmp_path / "file")


def test_a_dash_is_no_file():
    with pytest.raises(InputError, match=r"--json -: .*name a file"):
        outputs.check({"--json": Path("-")})


@pytest.mark.parametrize(
    "check",
    [
        lambda folder: outputs.check({"--json": folder / "r.json"}),
        lambda folder: outputs.check_folder("--json", folder),
    ],
)
def test_a_full_disk_is_found_before_the_work(check, tmp_path):
    """On one a file can be made, but nothing be written to it: as where no file may have a byte."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(InputError, match=r"--json .*: cannot be written: File too large"):
            check(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())


def test_two_outputs_in_one_file_are_refused_before_it_exists(tmp_path):
    with pytest.raises(InputError, match=r"--report .*x: --json .*x is the same file"):
        outputs.check({"--json": tmp_path / "x", "--report": tmp_path / "." / "x"})


def test_an_output_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for path, said in (
        (tmp_path / "folder", "it is a folder"),
        (tmp_path / "file" / "x", "Not a directory"),
        (tmp_path / ("x" * 255), "File name too long"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "absent" / "in" / "x", None),
        (tmp_path / "file", None),
        (Path("/dev/null"), "it is no ordinary file"),
        (Path("/proc/absent/x"), "No such file or directory"),
    ):
        if said is None:
            outputs.check({"--json": path})
            continue
        with pytest.raises(InputError, match=f"--json .*: cannot be written: {said}"):
            outputs.check({"--json": path})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"], "nothing is left"


@pytest.mark.parametrize("command", ["prove", "validate flits", "litmus px86-01"])
def test_a_long_command_tries_its_output_first(fencepost, command):
    done = fencepost(*command.split(), "--json", "/proc/absent/x.json", timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fencepost: --json /proc/absent/x.json: cannot be written: ")


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("prove --entries 1 --addresses 1 --hosts 1 --writes 1 --crashes 1", "proved: "),
        ("prove --mutant drain-unseen --quiet", "killed 1 of 1"),
        ("litmus px86-01 --machine switch --variations 1 --quiet", "litmus: 1 of 1 hold"),
    ],
)
def test_a_full_disk_costs_the_file_and_not_what_was_found(command, verdict, monkeypatch, capsys):
    def full(path, document):
        raise InputError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr(documents, "write_json", full)
    assert main([*command.split(), "--json", "x.json"]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith(verdict)
    assert printed.err.splitlines()[-1].endswith(
        "x.json: cannot be written: No space left on device"
    )


INPUTS = ["fft.fencepost", "fft.json", "own.toml", "report.html"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("compare pcs-table1 fft.fencepost --json fft.fencepost", "--json fft.fencepost"),
        ("compare own.toml fft.fencepost --report own.toml", "--report own.toml"),
        ("run pcs-table1 --host 0=fft.fencepost --json ./fft.fencepost", "--json fft.fencepost"),
        ("info fft.fencepost --json fft.fencepost", "--json fft.fencepost"),
        ("timeline fft.json -o fft.json", "-o fft.json"),
        ("timeline fft.json -o t --record fft.fencepost --picture t", "--picture t"),
        ("timeline fft.json --record fft.fencepost -o fft.fencepost", "-o fft.fencepost"),
        ("timeline fft.json -o fft.fencepost", "-o fft.fencepost"),
        ("report fft.json -o fft.json", "-o fft.json"),
        ("report report.html", "-o report.html"),
        ("diff fft.json report.html --json report.html", "--json report.html"),
        ("latency own.toml --json own.toml", "--json own.toml"),
        ("machine show own.toml --json own.toml", "--json own.toml"),
        ("record -o own.toml -- ./own.toml", "-o own.toml"),
    ],
)
def test_every_command_refuses(fencepost_here, tmp_path, result, fft_record, arguments, parts):
    result["provenance"]["record"]["name"] = "fft.fencepost"
    documents.write_json(tmp_path / "fft.json", result)
    documents.write_json(tmp_path / "report.html", result)
    (tmp_path / "fft.fencepost").write_bytes(fft_record.read_bytes())
    (tmp_path / "own.toml").write_text("an own machine, executable")
    (tmp_path / "own.toml").chmod(0o755)
    before = {name: (tmp_path / name).read_bytes() for name in INPUTS}
    done = fencepost_here(*arguments.split())
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith(f"fencepost: {parts}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert before == {name: (tmp_path / name).read_bytes() for name in INPUTS}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(INPUTS)
