"""No command writes over what it reads, nor two things into one file."""

import os

import pytest

from fencepost._core import InputError
from fencepost.cli import outputs


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


def test_two_outputs_in_one_file_are_refused_before_it_exists(tmp_path):
    with pytest.raises(InputError, match=r"--report .*x: --json .*x is the same file"):
        outputs.check({"--json": tmp_path / "x", "--report": tmp_path / "." / "x"})


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
def test_every_command_refuses(fencepost, tmp_path, result, fft_record, arguments, parts):
    from fencepost import documents

    result["provenance"]["record"]["name"] = "fft.fencepost"
    documents.write_json(tmp_path / "fft.json", result)
    documents.write_json(tmp_path / "report.html", result)
    (tmp_path / "fft.fencepost").write_bytes(fft_record.read_bytes())
    (tmp_path / "own.toml").write_text("an own machine, executable")
    (tmp_path / "own.toml").chmod(0o755)
    before = {name: (tmp_path / name).read_bytes() for name in INPUTS}
    done = fencepost(*arguments.split())
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith(f"fencepost: {parts}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert before == {name: (tmp_path / name).read_bytes() for name in INPUTS}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(INPUTS)
