"""The command line as a user meets it: what it prints where, and with which code it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter

import pytest
import typer

from fencepost import _core, figures
from fencepost.cli import main
from fencepost.cli.application import COMMANDS, app, load
from installed import FENCEPOST, on_terminal

# Prints the modules and the commands that are there when one command is asked for, for each in a
# process of its own.
ALONE = """
import os, sys
from fencepost.cli.application import app, load
import typer
here = "fencepost.cli."
for asked in sys.argv[1:]:
    if os.fork() > 0:
        os.wait()
        continue
    load([asked])
    print(*(name.removeprefix(here) for name in sys.modules if name.startswith(here)))
    print(*typer.main.get_command(app).list_commands(None))
    sys.exit()
"""


def alone(*asked):
    """What `ALONE` prints, of each the modules and the commands."""
    command = [sys.executable, "-c", ALONE, *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = list(map(str.split, done.stdout.splitlines()))
    return list(zip(lines[::2], lines[1::2], strict=True))


# The command, with Ctrl-C at the moment when a module is asked for.
INTERRUPTED = """
import sys, posix

def interrupt(event, what):
    if event == "import" and what[0] == module:
        posix.kill(posix.getpid(), 2)

module = sys.argv.pop(1)
with open(sys.argv[1]) as file:
    script = file.read()
del sys.argv[0]
sys.addaudithook(interrupt)
exec(script)
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
    [(modules, commands)] = alone("--version")
    assert not commands and not set(modules) & set(COMMANDS.values()), "it needs none"


@pytest.mark.parametrize(
    "module",
    [
        *("re", "fencepost.interruptions", "signal", "enum", "threading", "contextlib"),
        *("fencepost.cli", "fencepost._core", "typer", "fencepost.machines"),
    ],
)
def test_an_interrupt_ends_the_command_while_it_is_imported(module):
    command = [sys.executable, "-I", "-c", INTERRUPTED, module, FENCEPOST, "machine", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "fencepost: interrupted\n"


@pytest.mark.parametrize("path", ["", ".", "/", "folder"])
def test_the_report_of_what_is_no_file_is_refused(path, fencepost_here, tmp_path):
    (tmp_path / "folder").mkdir()
    done = fencepost_here("report", path)
    refused(done, "cannot be read: it is a folder, and has to be an ordinary file")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["", "/"])
def test_a_picture_without_a_name_is_refused(path, fencepost_here):
    done = fencepost_here("latency", "pcs-table1", "--plot", path)
    refused(done, "cannot be written: it is a folder")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("timeline r.json -o t.json", "-o t.json: the trace is binary, as Perfetto reads it"),
        ("timeline r.json -o t.JSON.gz", "name it t.JSON.pftrace"),
        (
            "timeline agilex-type2 --request nc_read -o t.json",
            "-o t.json: the trace is binary, as Perfetto reads it; name it t.pftrace",
        ),
        ("report r.json -o t.json", "-o t.json: a report is HTML; name it t.html"),
        ("run pcs-table1 r.json --report t.md", "--report t.md: a report is HTML; name it t.html"),
    ],
)
def test_a_name_that_promises_another_format_is_refused(
    command, said, fencepost_here, tmp_path, result
):
    (tmp_path / "r.json").write_text(json.dumps(result))
    refused(fencepost_here(*command.split()), said)
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    "words",
    [
        ("crash", "pcs-table1", "r", "--seed"),
        ("crash", "pcs-table1", "r", "--images"),
        ("crash", "pcs-table1", "r", "--pool-size"),
        ("crash", "pcs-table1", "r", "--timeout"),
        ("hazard", "--seed"),
        ("latency", "pcs-table1", "--size"),
        ("latency", "pcs-table1", "--delay"),
        ("prove", "--jobs"),
        ("prove", "coherence", "--jobs"),
    ],
)
def test_a_number_beyond_any_use_is_refused_with_the_range(words, fencepost_here):
    done = fencepost_here(*words, 10**30)
    refused(done, f"fencepost: {words[-1]} 1", "it has to be a ")
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 150


@pytest.mark.parametrize(
    ("machine", "changed", "said"),
    [
        ("pcs-table1", "link.latency_ns=1e308", "1e308 is out of range: 0 to 100000 is allowed"),
        ("pcs-table1", "core.count=-1e308", "-1e308 is not an integer from 1 to 64"),
        ("pcs-table1", "cache.l1i.size_kib=1048576", "a first level has at most 2048 KiB"),
        ("spr-cxl", "cache.l2.size_kib=131072", "a level of each core has at most 65536 KiB"),
    ],
)
def test_what_no_machine_has_is_refused_in_a_line(machine, changed, said, fencepost_here):
    done = fencepost_here("machine", "show", machine, "--set", changed)
    key, _, _ = changed.partition("=")
    refused(done, f"--set {changed}: {key}: ", said)
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 200


@pytest.mark.parametrize("columns", [70, 100])
@pytest.mark.parametrize("command", ["machine list", "doctor", "explain"])
def test_a_pipe_has_as_many_columns_as_the_environment_says(
    command, columns, fencepost_here, fft_record, monkeypatch
):
    words = ["explain", "pcs-table1", fft_record, "-q"] if command == "explain" else command.split()
    monkeypatch.setenv("COLUMNS", str(columns))
    widest = max(map(len, fencepost_here(*words).stdout.splitlines()))
    assert columns - 20 < widest <= columns


def test_every_command_is_found_by_its_name_alone_and_imports_no_other():
    """What a command starts with is in `COMMANDS`."""
    for (name, module), (loaded, registered) in zip(
        COMMANDS.items(), alone(*COMMANDS), strict=True
    ):
        assert module in loaded and name in registered, name
    assert "crash" not in loaded and "crash" not in registered


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["compair"], "compair"),
        (["run", "--nonsense", "pcs-table1"], "--nonsense"),
        (["run", "pcs-table1"], "either a record or, behind --, a program is needed"),
        (["run", "pcs-table1", "x.fencepost", "--", "true"], "either a record or"),
        (["compare", "pcs-table1"], "a record is missing"),
        (["run", "pcs-table1", "absent.fencepost"], "absent.fencepost: cannot be read"),
        (["run", "pcs-table1", "--", "no-such-program"], "no-such-program: there is no such progr"),
        (["compare", "pcs-table1", "--", "./absent"], "./absent: there is no such program"),
        (["machine", "list", "--json", "/dev/null/x"], "--json /dev/null/x: cannot be written"),
        (["doctor", "--json", "/dev/null/x"], "--json /dev/null/x: cannot be written"),
        (
            ["run", "pcs-tabel1", "x.fencepost"],
            "there is no machine `pcs-tabel1`; did you mean `pcs-table1`? There are: agilex",
        ),
        (["run", "absent.toml", "x.fencepost"], "absent.toml: cannot be read"),
        (["run", "--scheme", "pbrf", "pcs-table1", "x"], "pbrf"),
        (["compare", "--schemes", "", "pcs-table1", "x"], "scheme"),
        (["run", "--pm", "head", "pcs-table1", "x"], "PM selector `head`"),
        (["run", "--persist", "every:0", "pcs-table1", "x"], "every:0"),
        (["run", "--seed", "-1", "pcs-table1", "x"], "--seed"),
        (
            ["run", "--seed", "1" + 30 * "0", "pcs-table1", "x"],
            "18,446,744,073,709,551,615",
        ),
        (
            ["run", "--limit-pm-writes", "1" + 30 * "0", "pcs-table1", "x"],
            "18,446,744,073,709,551,615",
        ),
        (["run", "--limit-instructions", "0", "pcs-table1", "x"], "--limit-instructions"),
        (["record"], "a program is missing"),
        (["record", "--"], "a program is missing behind --"),
        (["info", "absent"], "absent: cannot be read"),
        (["machine", "list", "--", "true"], "machine takes no program behind --"),
        (["report", "absent.json"], "absent.json: cannot be read"),
    ],
)
def test_wrong_input_is_one_message_and_code_2(fencepost_here, arguments, part):
    done = fencepost_here(*arguments)
    assert refused(done, part)
    assert len(done.stderr.splitlines()) == 1


def fractions(command, path=()):
    """Each option of each command that takes a number with a fraction."""
    for name, one in getattr(command, "commands", {}).items():
        yield from fractions(one, (*path, name))
    for option in command.params:
        if option.type.name.startswith("float"):
            yield *path, option.opts[-1]


def test_no_option_takes_what_is_no_finite_number(capsys):
    load([])
    found = list(fractions(typer.main.get_command(app)))
    assert {("channel", "run", "--emulate"), ("channel", "run", "--charge")} <= set(found)
    assert {("channel", "status", "--interval"), ("crash", "--timeout")} <= set(found)
    for *command, option in found:
        for value in ("nan", "inf", "-inf"):
            assert main([*command, option, value]) == 2
            told = capsys.readouterr()
            assert told.out == ""
            wanted = re.escape(f"fencepost: {option} {value}: it has to be a number from ")
            assert re.fullmatch(wanted + r"[\d.,]+ to [\d.,]+\n", told.err), told.err


def test_folders_of_outputs_are_made(fencepost, tmp_path):
    fencepost("record", "-o", "own/records/true.fencepost", "--", "true", check=True)
    fencepost("info", "own/records/true.fencepost", "--json", "own/found/i.json", check=True)
    assert (tmp_path / "own/found/i.json").exists()


def test_a_missing_program_is_one_message_of_the_recorder(fencepost):
    done = fencepost("record", "--", "no-such-program")
    assert (done.returncode, done.stderr) == (127, "fencepost-record: no-such-program: not found\n")


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


@pytest.mark.parametrize("columns", [45, 80])
def test_a_comparison_shows_every_figure_on_a_narrow_terminal(columns, tmp_path, result):
    """In tables below each other, of as many runs as have room."""
    others = [run | {"machine": "another-machine"} for run in result["runs"]]
    result["runs"] += others
    machine = result["provenance"]["machines"]["fixture-machine"]
    result["provenance"]["machines"]["another-machine"] = machine
    (tmp_path / "r.json").write_text(json.dumps(result))
    shown = on_terminal(columns, [FENCEPOST, "report", "r.json"], tmp_path)
    assert "…" not in shown and max(map(len, shown.splitlines())) <= columns
    labels = [figure.label_over(None) for figure in figures.HEADLINE]
    for label in labels:
        rows = re.findall(rf"^ {label} +(.+)$", shown, re.MULTILINE)
        assert len(rows) == {45: 6, 80: 2}[columns] * labels.count(label), label
    times = [figures.shown(run["simulated_ns"], "ns") for run in result["runs"]]
    assert re.findall(r"\d[\d,.]+ µs", "\n".join(re.findall("^ run time.*", shown, re.M))) == times


@pytest.mark.few(2)
@pytest.mark.parametrize("columns", [50, 80])
@pytest.mark.parametrize("command", [["diff", "a.json", "b.json"], ["doctor"]])
def test_a_table_loses_nothing_on_a_narrow_terminal(command, columns, tmp_path, result, fencepost):
    (tmp_path / "a.json").write_text(json.dumps(result))
    result["provenance"]["record"]["arguments"] = ["[bold]", "-x" * 40]
    (tmp_path / "b.json").write_text(json.dumps(result))
    shown = on_terminal(columns, [FENCEPOST, *command], tmp_path)
    plain = fencepost(*command).stdout
    assert "…" not in shown
    what_is_shown, what_is_there = (Counter(text) for text in (shown, plain))
    for filling in " ─\n":
        del what_is_shown[filling], what_is_there[filling]
    assert what_is_shown == what_is_there


def test_info_sums_up_what_a_small_program_has_dozens_of(tmp_path, fft_record, fencepost):
    (tmp_path / "fft").symlink_to(fft_record)
    whole = json.loads(_core.record_info(str(fft_record)))
    brief = fencepost("info", "fft").stdout
    of_file = sum(mapping["kind"] == "file" for mapping in whole["mappings"])
    named = re.findall(r"^(?:program and libraries|/\S+) +(\d+) +[\d,]+ KiB", brief, re.MULTILINE)
    assert sum(map(int, named)) == of_file > len(named)
    assert all(module["path"] in brief for module in whole["modules"])
    assert "every mapping, module and thread: --all" in brief and "0x7f" not in brief
    assert not re.search(r"^(problem|limits met) ", brief, re.MULTILINE), "there is nothing to say"
    everything = fencepost("info", "fft", "--all").stdout
    for mapping in whole["mappings"]:
        assert f"{mapping['range']['start']:#x}-{mapping['range']['end']:#x}" in everything


@pytest.mark.parametrize("columns", [50, 80])
def test_entries_take_the_place_of_rows_that_are_too_wide(columns, tmp_path, fft_record):
    (tmp_path / "fft").symlink_to(fft_record)
    shown = on_terminal(columns, [FENCEPOST, "info", "fft", "--all"], tmp_path)
    whole = json.loads(_core.record_info(str(fft_record)))
    too_wide = [line for line in shown.splitlines() if len(line) > columns]
    assert [line for line in too_wide if len(line.split()) > 3] == [], "but for one long cell"
    for mapping in whole["mappings"]:
        entry = f"{mapping['range']['start']:#x}-{mapping['range']['end']:#x}"
        found = re.findall(rf"^{entry}(?:  .*)?\n(?:    .*\n)*", shown, re.MULTILINE)
        parts = (f"kind {mapping['kind']}", f"offset {mapping['offset']:#x}", mapping["name"])
        assert any(all(part in one for part in parts) for one in found), mapping


def test_what_was_typed_is_repeated_without_control_characters(fencepost):
    for command in (["machine", "show", "x\033[31m"], ["x\033[31m"], ["report", "x\033[31m"]):
        done = fencepost(*command)
        assert done.returncode == 2
        assert "x\\x1b[31m" in done.stderr and "\033" not in done.stderr


def test_prose_in_a_table_is_broken_between_words(fencepost):
    shown = on_terminal(100, [FENCEPOST, "prove", "--list"])
    assert max(map(len, shown.splitlines())) <= 100
    assert sorted(shown.split()) == sorted(fencepost("prove", "--list").stdout.split())


def test_a_program_that_fails_is_said_to_have_failed_where_it_is_recorded_on_the_fly(fencepost):
    for code, said in ((3, ["warning: sh ended with exit code 3: "]), (0, [])):
        done = fencepost("run", "asic-expander", "-q", "--", "sh", "-c", f"exit {code}")
        assert done.returncode == 0
        assert [line for line in done.stderr.splitlines() if "exit code" in line] == [
            f"{text}what it did until then is replayed" for text in said
        ]


@pytest.mark.parametrize(
    "typed, said",
    [
        (["prove", "nope"], "No such command 'nope'. See: fencepost prove --help"),
        (["zzz"], "No such command 'zzz'. See: fencepost --help"),
        (["runn"], "No such command 'runn'. Did you mean 'run'?"),
        (["timeline", "x", "--zzz"], "No such option: --zzz. See: fencepost timeline --help"),
        (["--zzz"], "No such option: --zzz. See: fencepost --help"),
        (["run", "a", "b", "--jsn"], "No such option: --jsn (Possible options: --jobs, --json"),
    ],
)
def test_what_is_not_known_names_what_is_near_or_the_help(typed, said, capsys):
    assert main(typed) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"fencepost: {said}") and shown.count("\n") == 1


def test_reasons_of_misses_are_plain_text_on_a_terminal():
    shown = on_terminal(80, [FENCEPOST, "validate", "unloaded"])
    assert "- xconn-x8" in shown and "**" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_schedules_are_records_of_their_own(tmp_path, fencepost):
    fencepost(
        "record", "--schedules", "2", "--seed", "7", "-o", "t.fencepost", "--", "true", check=True
    )
    assert sorted(path.name for path in tmp_path.glob("*.fencepost")) == [
        "t.2.fencepost",
        "t.fencepost",
    ]


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


GROUPS = [["machine", name] for name in ("list", "show", "schema", "keys")]

# Prints the help of each of the commands asked for, and a form feed behind it.
HELPS = """
import sys
from fencepost import cli
for words in sys.argv[1:]:
    cli.main([*words.split(), "--help"])
    print("\\f")
"""


@pytest.mark.parametrize("columns", [60, pytest.param(80, marks=pytest.mark.slow)])
def test_help_cuts_neither_the_names_of_options_nor_words(columns):
    """As a terminal of that width has it."""
    main_help = on_terminal(columns, [FENCEPOST, "--help"])
    asked = [[name] for name in COMMANDS] + GROUPS
    printed = on_terminal(columns, [sys.executable, "-c", HELPS, *map(" ".join, asked)])
    for words, shown in zip(asked, printed.split("\f")[:-1], strict=True):
        assert max(map(len, shown.splitlines())) <= columns, words
        assert not re.search(r"\bx[<>]|[<>]=?x\b|<\w+( range)?>", shown), words
        command = typer.main.get_command(application())
        for word in words:
            command = command.commands[word]
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert not name.startswith("-") or re.search(rf"{name}\b", shown), (words, name)
            assert in_words(getattr(parameter, "help", None)) in in_words(shown)
        for text in (shown, main_help) if len(words) == 1 else (shown,):
            assert in_words(command.help.partition("\n\n")[0]) in in_words(text)


def in_words(text):
    """Without line breaks, which may follow hyphens."""
    return "".join((text or "").split())


def application():
    """The whole of it."""
    load([])
    return app


@pytest.mark.parametrize("words", [[], ["machine"]])
def test_a_group_alone_prints_its_help_and_is_wrong(words, fencepost):
    done = fencepost(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == fencepost(*words, "--help").stdout
