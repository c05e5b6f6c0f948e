"""A record replayed: the result document, what makes it the same again, and what is refused."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import fencepost as fp
from installed import FENCEPOST, FFT, WORKLOADS

SCHEMES = ["nopb", "pb", "pb_rf", "pb_adaptive"]


@pytest.fixture(scope="module")
def compared(fft_record, tmp_path_factory):
    """The FFT compared under all schemes: the result, standard output and error."""
    folder = tmp_path_factory.mktemp("compared")
    # Progress is shown where the machine is busy.
    command = [FENCEPOST, "compare", "pcs-table1", fft_record, "--json", "r.json", "--quiet"]
    done = subprocess.run(
        [*command, "--report", "r.html"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads((folder / "r.json").read_text()), done, folder


def without_host_times(result):
    for run in result["runs"]:
        del run["host_seconds"], run["mips"]
        for region in run["regions"]:
            del region["host_seconds"]
    return result


# The pages that list the members of a result.
RESULT_PAGES = [f"results-{part}.md" for part in ("reference", "counters", "provenance")]
RESULT_PAGES += ["sampling.md", "power.md"]


def documentation(pytestconfig):
    """All pages that list members of a result."""
    docs = pytestconfig.rootpath / "docs"
    return "".join((docs / name).read_text() for name in RESULT_PAGES)


def documented_members(page, heading):
    """The first names of a table of these pages."""
    section = page.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {row.split("`")[1] for row in rows}


def test_every_documented_member_is_there(compared, pytestconfig):
    result, _, _ = compared
    page = documentation(pytestconfig)
    runs = documented_members(page, "## `runs[]`: one replay each")
    explanation = documented_members(page, "## `explanation`")
    buffer = documented_members(page, "## `persist_buffer`") | {"read_hits", "reads", "stalls"}
    assert len(runs) > 15
    for run in result["runs"]:
        assert run.keys() == runs
        assert run["power"].keys() == documented_members(page, "## `power` in a result document")
        names = {name for row in explanation for name in row.split(", ")}
        assert names <= run["explanation"].keys()
        assert run["persist"].keys() == {"count", "latency_ns", "cdf"}
        if run["scheme"] == "nopb":
            assert run["persist_buffer"] is None
        else:
            assert buffer <= run["persist_buffer"].keys()
    record = result["provenance"]["record"]
    assert [record["program"], *record["arguments"]] == ["fft", *FFT[1:]]
    assert list(result["provenance"]["machines"]) == ["pcs-table1"]


def names_of(value, left_out):
    """The names of all members, but for what lies in those that are left out."""
    if isinstance(value, list):
        for element in value:
            yield from names_of(element, left_out)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in left_out:
                yield from names_of(member, left_out)


def test_every_member_is_documented(compared, pytestconfig):
    """Counters beside their components; resolved machines with the keys of machine files; names of
    axes, schemes, switches and causes of time are no members."""
    result, _, _ = compared
    page = documentation(pytestconfig)
    documented = {
        name for code in re.findall(r"`([^`\n]+)`", page) for name in re.findall(r"\w+", code)
    }
    left_out = ("statistics", "machines", "axes", "buffer_uj")
    assert set(names_of(result, left_out)) - documented == set()


def test_the_same_instructions_under_every_scheme(compared):
    result, _, _ = compared
    runs = result["runs"]
    assert [run["scheme"] for run in runs] == SCHEMES
    # One thread marks the region of interest; where the other one is at that time may differ a bit.
    assert runs[0]["persist"]["count"] > 1000
    for run in runs:
        assert run["instructions"] == pytest.approx(runs[0]["instructions"], rel=1e-3)
        assert run["persist"]["count"] == pytest.approx(runs[0]["persist"]["count"], rel=1e-3)


def test_a_persist_buffer_makes_persists_cheaper(compared):
    nopb, pb, *_ = compared[0]["runs"]
    assert pb["persist"]["latency_ns"]["mean"] < nopb["persist"]["latency_ns"]["mean"]
    assert pb["simulated_ns"] < nopb["simulated_ns"]


def test_latency_stacks_sum_to_the_latencies(compared):
    for run in compared[0]["runs"]:
        for kind, stack in run["latency_stacks"].items():
            assert sum(stack["parts"].values()) == pytest.approx(stack["total_ns"], abs=0.01)
            if stack["count"]:
                before = stack["parts"]["core"]
                if kind in ("persist", "writeback", "dram_write"):
                    before += stack["parts"]["cache"]
                assert stack["latency_ns"] + before == pytest.approx(stack["total_ns"], abs=0.01)
            if stack["count"] and kind in run:
                assert stack["count"] == run[kind]["count"]
                mean = run[kind]["latency_ns"]["mean"]
                assert stack["latency_ns"] / stack["count"] == pytest.approx(mean, rel=1e-9)
        happened = {kind for kind, stack in run["latency_stacks"].items() if stack["count"]}
        # Its stack stays in the caches: DRAM is read for code and page tables only.
        assert {"persist", "llc_read", "page_walk", "instruction_fetch"} <= happened
        assert ("drain" in happened) == (run["scheme"] != "nopb")


def test_writes_are_split_by_cause(compared):
    for run in compared[0]["runs"][1:]:
        buffer = run["persist_buffer"]
        causes = ("writes_flush", "writes_eviction", "writes_non_temporal")
        assert sum(buffer[cause] for cause in causes) == buffer["writes"]


def test_results_go_to_standard_output_and_messages_do_not(compared):
    _, done, folder = compared
    assert "persist latency, mean" in done.stdout
    assert done.stderr == ""
    assert sorted(path.name for path in folder.iterdir()) == ["r.html", "r.json"]


def test_two_replays_give_one_document(compared, fft_record, tmp_path, fencepost):
    own = ["--power", "--jobs", 1, "-q", "--json", "r.json"]  # with a report it is looked for, too
    fencepost("compare", "pcs-table1", fft_record, *own, check=True)
    again = json.loads((tmp_path / "r.json").read_text())
    assert without_host_times(again) == without_host_times(json.loads(json.dumps(compared[0])))


def test_a_program_can_be_replayed_without_keeping_a_record(fencepost, tmp_path):
    scratch = tmp_path / "scratch"
    # As a command leaves it that is killed in the middle of a replay.
    (scratch / "fencepost-scratch-abcd1234").mkdir(parents=True)
    (scratch / "fencepost-scratch-abcd1234" / "record.fencepost").write_bytes(bytes(1000))
    done = fencepost(
        *("run", "pcs-table1", "--scheme", "pb", "--json", "r.json", "--", *FFT),
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["runs"][0]["persist"]["count"] > 0
    assert list(scratch.iterdir()) == []


def test_a_set_key_is_in_the_resolved_machine(fencepost, fft_record, tmp_path):
    key = "switch.persist_buffer.entries"
    arguments = ("--scheme", "pb", "--set", f"{key}=4", "--json", "r.json", "-q")
    fencepost("run", "pcs-table1", fft_record, *arguments, check=True)
    result = json.loads((tmp_path / "r.json").read_text())
    machine = result["provenance"]["machines"]["pcs-table1"]
    assert machine["switch"]["persist_buffer"]["entries"] == 4
    assert result["provenance"]["options"]["set"] == [f"{key}=4"]
    assert result["runs"][0]["persist_buffer"]["occupancy"]["entries"] == 4


def test_several_machines_are_compared_in_one_table(fencepost, fft_record, tmp_path):
    done = fencepost(
        *("compare", "pcs-table1", "pcs-table1-2sw", fft_record, "--schemes", "nopb,pb"),
        *("--json", "r.json", "-q"),
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert [(run["machine"], run["scheme"]) for run in runs] == [
        (machine, scheme) for machine in ("pcs-table1", "pcs-table1-2sw") for scheme in SCHEMES[:2]
    ]
    assert "pcs-table1-2sw" in done.stdout


def test_a_limit_of_instructions_ends_every_scheme_at_the_same_place(
    fencepost, fft_record, tmp_path, compared
):
    # In the middle of the region of interest, which is most of the program.
    limit = compared[0]["provenance"]["record"]["instructions"] // 2
    arguments = ("--limit-instructions", limit, "--json", "r.json", "-q")
    fencepost("compare", "pcs-table1", fft_record, *arguments, check=True)
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert {run["ended"] for run in runs} == {"limit_instructions"}
    assert len({run["instructions"] for run in runs}) == 1
    whole = compared[0]["runs"][0]["instructions"]
    assert 0 < runs[0]["instructions"] < whole


@pytest.mark.parametrize("schemes", ["nopb,pb", "pb"])
def test_limits_beyond_the_end_are_told_once_with_what_there_is(
    fencepost, fft_record, compared, schemes
):
    limits = ("--limit-instructions", 9_000_000_000, "--limit-pm-writes", 1_234_567_890)
    own = ("compare", "pcs-table1", fft_record, "--schemes", schemes, "-q")
    done = fencepost(*own, *limits, check=True)
    executed = compared[0]["provenance"]["record"]["instructions"]
    instructions, writes = (line for line in done.stderr.splitlines() if "--limit" in line)
    assert instructions == (
        "warning: --limit-instructions 9,000,000,000: "
        f"the record has only {executed:,} instructions"
    )
    assert re.fullmatch(
        r"warning: --limit-pm-writes 1,234,567,890: the record makes only [\d,]+ writes to PM",
        writes,
    )
    assert "--limit" not in fencepost(*own, "--limit-instructions", executed, check=True).stderr


def test_a_limit_of_pm_writes_ends_every_scheme_at_the_same_place(fencepost, fft_record, tmp_path):
    arguments = ("--limit-pm-writes", 20, "--json", "r.json", "-q")
    fencepost("compare", "pcs-table1", fft_record, *arguments, check=True)
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert {run["ended"] for run in runs} == {"limit_pm_writes"}
    assert len({run["instructions"] for run in runs}) == 1


def test_a_persist_buffer_without_a_switch_is_refused_with_the_reason(fencepost, fft_record):
    done = fencepost("run", "pcs-table1-0sw", fft_record, "--scheme", "pb")
    assert done.returncode == 2
    assert "switch" in done.stderr


def test_a_selector_that_matches_nothing_is_a_warning_that_names_it(fencepost, fft_record):
    done = fencepost("run", "pcs-table1", fft_record, "--pm", "file:*.absent", "-q")
    assert done.returncode == 0
    assert "warning:" in done.stderr
    assert "file:*.absent" in done.stderr
    assert "–" in done.stdout


def damaged(record, tmp_path, change):
    data = bytearray(record.read_bytes())
    path = tmp_path / "damaged.fencepost"
    path.write_bytes(change(data))
    return path


def flip(data):
    data[len(data) // 2] ^= 1
    return data


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (flip, ["frame", "offset", "damaged"]),
        (lambda data: data[:-32], ["not sealed"]),
        (lambda data: data[: len(data) // 2], ["not sealed"]),
        (lambda data: b"\x7fELF" + data, ["not a record"]),
        (lambda data: b"", ["empty"]),
        (lambda data: data[:4] + b"\xff" + data[5:], ["version"]),
    ],
)
def test_a_record_that_is_not_whole_is_refused(fencepost, fft_record, tmp_path, change, parts):
    path = damaged(fft_record, tmp_path, change)
    done = fencepost("run", "pcs-table1", path, "--json", "r.json")
    assert done.returncode == 2
    assert done.stdout == ""
    for part in (str(path), *parts):
        assert part in done.stderr
    assert not (tmp_path / "r.json").exists()


def test_a_cut_record_is_replayed_when_allowed(fencepost, fft_record, tmp_path):
    path = damaged(fft_record, tmp_path, lambda data: data[: len(data) * 3 // 4])
    own = ("--allow-cut", "--allow-unreliable")  # what is cut off ends waits
    done = fencepost("run", "pcs-table1", path, *own, "--json", "r.json", "-q")
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "r.json").read_text())["provenance"]
    assert said["record"]["ended"] is None
    there = fp.compare("pcs-table1", fp.Record(path, allow_cut=True), schemes=["pb_rf"])
    assert there.document["provenance"]["options"] == said["options"]


def test_info_describes_a_record(fencepost, fft_record, tmp_path):
    done = fencepost("info", fft_record, "--json", "i.json")
    assert done.returncode == 0
    info = json.loads((tmp_path / "i.json").read_text())
    assert info["instructions"] == sum(thread["instructions"] for thread in info["threads"])
    assert info["persist_instructions"]["clflush"] > 0
    assert info["ended"]["how"] == "exit 0"
    assert f"{info['instructions']:,}" in done.stdout


def test_info_of_a_damaged_record_says_what_is_wrong(fencepost, fft_record, tmp_path):
    path = damaged(fft_record, tmp_path, flip)
    done = fencepost("info", path)
    assert done.returncode == 2
    assert "fft" in done.stdout
    assert "frame" in done.stderr


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    scratch, folder = tmp_path / "scratch", tmp_path / "folder"
    scratch.mkdir()
    folder.mkdir()
    command = [FENCEPOST, "compare", "pcs-table1", "--json", "r.json", "--report", "r.html"]
    program = [WORKLOADS / "fft", "-m14", "-p2", "-r40", "--flush", "clflush"]
    process = subprocess.Popen(
        [*command, "--", *program],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # The first line of progress: it is in the middle of the replays.
    assert "instr." in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.stdout.read(), process.stderr.read()
    assert process.wait(timeout=30) == 130, stderr
    assert "persist latency" not in stdout
    assert stderr.splitlines()[-1] == "fencepost: interrupted"
    assert "Traceback" not in stderr
    assert list(scratch.iterdir()) == list(folder.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_of_the_command_alone_ends_the_recorded_program_too(how, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = ["sh", "-c", "echo $$ >started.new; mv started.new started; exec sleep 1000"]
    process = subprocess.Popen(
        [FENCEPOST, "run", "pcs-table1", "--", *program],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
    )
    started = tmp_path / "started"
    while process.poll() is None and not started.exists():
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(timeout=30) == 130, process.stderr.read()
    assert list(scratch.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_an_output_that_cannot_be_written_is_refused_by_name(fencepost, fft_record):
    done = fencepost("run", "pcs-table1", fft_record, "--json", "/proc/absent/r.json", "-q")
    assert done.returncode == 2
    assert "/proc/absent/r.json: cannot be written" in done.stderr


def test_a_machine_without_a_switch_runs_nopb_where_nobody_says_what(fencepost, fft_record):
    done = fencepost("run", "pcs-table1-0sw", fft_record, check=True)
    assert re.search(r"^ +nopb *$", done.stdout, re.MULTILINE)
    refused = fencepost("run", "pcs-table1-0sw", fft_record, "--scheme", "pb")
    assert refused.returncode == 2 and "scheme pb needs a switch" in refused.stderr


@pytest.mark.parametrize("command", ["explain", "whatif"])
def test_without_a_switch_other_commands_have_nopb_alone_too(command, fencepost, fft_record):
    changes = ["core.rob_entries=64,128"] if command == "whatif" else []
    done = fencepost(command, "pcs-table1-0sw", fft_record, *changes, "--json", "r.json")
    assert done.returncode == 0, done.stderr
    assert "nopb" in done.stdout and "pb_rf" not in done.stdout


def test_each_machine_is_compared_under_the_schemes_that_it_can_run(
    fencepost, fft_record, tmp_path
):
    own = ["compare", "pcs-table1-0sw", "pcs-table1", fft_record, "--limit-instructions", "50000"]
    fencepost(*own, "--json", "r.json", check=True)
    result = json.loads((tmp_path / "r.json").read_text())
    runs = [(run["machine"], run["scheme"]) for run in result["runs"]]
    assert runs == [("pcs-table1-0sw", "nopb"), *(("pcs-table1", scheme) for scheme in SCHEMES)]
    assert result["provenance"]["options"]["schemes"] == SCHEMES
    refused = fencepost(*own, "--schemes", "nopb,pb")
    assert refused.returncode == 2 and "scheme pb needs a switch" in refused.stderr


def test_only_a_run_that_asked_for_pm_or_persists_is_told_that_it_has_none(fencepost):
    fencepost("record", "-q", "-o", "r.fencepost", "--", "true", check=True)
    own = ("run", "pcs-table1", "r.fencepost", "-q")
    assert fencepost(*own, check=True).stderr == ""
    hint = "warning: the run has no persist: it flushes no line of PM (--pm, --persist)\n"
    assert fencepost(*own, "--place", "stack=pm0", check=True).stderr == hint
    assert len(hint) <= 80
