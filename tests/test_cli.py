"""The command line as a user meets it: what it prints where, and with which code it ends."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from fencepost.cli.application import COMMANDS
from installed import FENCEPOST

# Prints the modules and the commands that are there when one command is asked for.
ALONE = """
import sys
from fencepost.cli.application import app, load
import typer
load(sys.argv[1:])
here = "fencepost.cli."
print(*(name.removeprefix(here) for name in sys.modules if name.startswith(here)))
print(*typer.main.get_command(app).list_commands(None))
"""


def refused(done, *parts):
    """Ended with code 2, nothing on standard output, and one clear message with these parts."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
    return True


def test_the_version_is_printed(fencepost):
    done = fencepost("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"fencepost \d+\.\d+\.\d+\n", done.stdout)


def test_every_command_is_found_by_its_name_alone_and_imports_no_other():
    """What a command starts with is in `COMMANDS`; each in a process of its own."""
    for name, module in COMMANDS.items():
        done = subprocess.run(
            [sys.executable, "-c", ALONE, name], capture_output=True, text=True, check=False
        )
        loaded, registered = map(str.split, done.stdout.splitlines())
        assert module in loaded and name in registered, done.stderr
    assert "crash" not in loaded and "crash" not in registered


def test_no_command_prints_the_help_and_is_wrong(fencepost):
    done = fencepost()
    assert done.returncode == 2
    assert "compare" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["compair"], "compair"),
        (["run", "--nonsense", "pcs-table1"], "--nonsense"),
        (["run", "pcs-table1"], "either a record or, behind --, a program is needed"),
        (["run", "pcs-table1", "x.fencepost", "--", "true"], "either a record or"),
        (["compare", "pcs-table1"], "a record is missing"),
        (["run", "pcs-table1", "absent.fencepost"], "absent.fencepost: cannot be read"),
        (["run", "pcs-tabel1", "x.fencepost"], "there is no machine `pcs-tabel1`"),
        (["run", "absent.toml", "x.fencepost"], "absent.toml: cannot be read"),
        (["run", "--scheme", "pbrf", "pcs-table1", "x"], "pbrf"),
        (["compare", "--schemes", "", "pcs-table1", "x"], "scheme"),
        (["run", "--pm", "head", "pcs-table1", "x"], "PM selector `head`"),
        (["run", "--persist", "every:0", "pcs-table1", "x"], "every:0"),
        (["run", "--seed", "-1", "pcs-table1", "x"], "--seed"),
        (
            ["run", "--seed", "1" + 30 * "0", "pcs-table1", "x"],
            "18446744073709551615",
        ),
        (
            ["run", "--limit-pm-writes", "1" + 30 * "0", "pcs-table1", "x"],
            "18446744073709551615",
        ),
        (["run", "--limit-instructions", "0", "pcs-table1", "x"], "--limit-instructions"),
        (["latency", "xconn-x8", "--measure-us", "nan"], "nan"),
        (["crash", "pcs-table1", "--check", "true", "--timeout", "nan", "--", "true"], "nan"),
        (["record"], "a program is missing"),
        (["record", "--"], "a program is missing behind --"),
        (["info", "absent"], "absent: cannot be read"),
        (["machine", "list", "--", "true"], "machine takes no program behind --"),
        (["report", "absent.json"], "absent.json: cannot be read"),
    ],
)
def test_wrong_input_is_one_message_and_code_2(fencepost, arguments, part):
    done = fencepost(*arguments)
    assert refused(done, part)
    assert len(done.stderr.splitlines()) == 1


def test_the_machines_are_found_from_any_folder(fencepost):
    done = fencepost("machine", "list", "--json", "machines.json")
    assert done.returncode == 0
    for name in (
        "pcs-table1",
        "pcs-table1-0sw",
        "pcs-table1-2sw",
        "pcs-table1-3sw",
        "pcs-table1-4sw",
        "pcs-table1-2hosts",
        "pcs-table1-tree",
    ):
        assert re.search(rf"^{name}  +\w", done.stdout, re.MULTILINE)


def test_a_machine_is_shown_with_what_was_set(fencepost):
    done = fencepost("machine", "show", "pcs-table1", "--set", "core.rob_entries=77")
    assert done.returncode == 0
    assert json.loads(done.stdout)["core"]["rob_entries"] == 77


def test_what_a_machine_resolves_to_resolves_to_itself(fencepost, tmp_path):
    shown = json.loads(fencepost("machine", "show", "pcs-table1").stdout)
    (tmp_path / "mine.toml").write_text('extends = "pcs-table1"\ndescription = "mine"\n')
    mine = json.loads(fencepost("machine", "show", "mine.toml").stdout)
    assert mine == shown | {"description": "mine"}


def test_a_wrong_key_is_named_with_file_line_and_the_nearest_one(fencepost, tmp_path):
    text = 'extends = "pcs-table1"\ndescription = "mine"\n[core]\nrob_entires = 64\n'
    (tmp_path / "mine.toml").write_text(text)
    assert refused(fencepost("machine", "show", "mine.toml"), "mine.toml:4:", "rob_entries")


def test_a_wrong_set_is_named_with_the_nearest_key(fencepost):
    done = fencepost("machine", "show", "pcs-table1", "--set", "core.rob_entires=64")
    assert refused(done, "--set core.rob_entires=64", "core.rob_entries")


def test_a_number_out_of_range_says_the_range(fencepost):
    key = "switch.persist_buffer.entries"
    assert refused(fencepost("machine", "show", "pcs-table1", "--set", f"{key}=0"), key, "1")


def test_machines_that_extend_each_other_are_refused(fencepost, tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{other}"\ndescription = "x"\n')
    assert refused(fencepost("machine", "show", "a.toml"), "loop")


def test_the_schema_of_machine_files_is_a_schema(fencepost):
    schema = json.loads(fencepost("machine", "schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"core", "cache", "link", "switch", "pm", "fabric"} <= schema["properties"].keys()


def test_a_reader_that_went_away_ends_it_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    command = [FENCEPOST, "machine", "schema"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == -signal.SIGPIPE


def test_the_doctor_finds_what_setup_installed(fencepost):
    done = fencepost("doctor", "--json", "doctor.json")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ok +recorder", done.stdout, re.MULTILINE)


def test_the_doctor_says_what_to_type(fencepost, tmp_path):
    (tmp_path / "bin").mkdir()
    done = fencepost("doctor", env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 1
    assert re.search(r"^MISSING +cmake .* sudo apt-get install cmake", done.stdout, re.MULTILINE)
    assert re.search(r"^MISSING +rustc .* rustup", done.stdout, re.MULTILINE)


def test_diff_of_two_results(fencepost, tmp_path, result):
    (tmp_path / "a.json").write_text(json.dumps(result))
    result["runs"][1]["simulated_ns"] *= 2
    (tmp_path / "b.json").write_text(json.dumps(result))
    done = fencepost("diff", "a.json", "b.json", "--json", "d.json")
    assert done.returncode == 0
    assert re.search(r"fixture-machine pb +run time +1,402.9 µs +2,805.8 µs +2.000", done.stdout)
    assert len(json.loads((tmp_path / "d.json").read_text())["runs"]) == 3


def test_a_report_is_made_again_from_its_result(fencepost, tmp_path, result):
    (tmp_path / "r.json").write_text(json.dumps(result))
    done = fencepost("report", "r.json")
    assert done.returncode == 0
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert re.search(r"run time +1,843.2 µs +1,402.9 µs +1,391.0 µs", done.stdout)


def test_a_quiet_recording_throws_away_what_the_program_prints_and_nothing_else(
    fencepost, tmp_path
):
    program = ("--", "sh", "-c", "echo printed; echo problem >&2; exit 9")
    loud = fencepost("record", "-o", "loud.fencepost", *program)
    assert (loud.returncode, loud.stdout, loud.stderr) == (9, "printed\n", "problem\n")
    for option in ("-q", "--quiet"):
        quiet = fencepost("record", option, "-o", "quiet.fencepost", *program)
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (9, "", "problem\n")
        assert (tmp_path / "quiet.fencepost").exists()
        (tmp_path / "quiet.fencepost").unlink()


def test_a_failed_run_is_on_standard_error(fencepost, tmp_path, result):
    result["runs"][1] = {"scheme": "pb", "machine": "fixture-machine", "error": "a fault"}
    (tmp_path / "r.json").write_text(json.dumps(result))
    done = fencepost("report", "r.json")
    assert "error: a fault (pb)" in done.stderr


def test_help_of_every_command_says_something(fencepost):
    for command in ("record", "run", "compare", "info", "doctor", "machine", "report", "diff"):
        done = fencepost(command, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout
