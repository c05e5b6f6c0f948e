"""Runs whose figures must not be used say so wherever they are shown, and end commands with 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from crafted_records import NO_OPERATION, CraftedRecord, block, thread_start, varint
from fencepost import _core, reliability, report
from fencepost.cli import main
from fencepost.tree import WORKLOADS
from installed import Fencepost
from pages import Page
from record_format import TRACE, VERSION, read_frames

REASON = "7 waits were ended because nothing else could go on"
SHARE = "7.5% of the instructions are in loops that only read again what other threads store to"


@pytest.fixture(scope="module")
def halved(fft_record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The FFT without the trace of its first thread, for which the second one waits."""
    data = fft_record.read_bytes()
    traces = [frame for frame in read_frames(data) if frame.kind == TRACE]
    assert {frame.thread for frame in traces} == {0, 1} and traces[-1].thread == 0
    path = tmp_path_factory.mktemp("halved") / "halved.fencepost"
    path.write_bytes(data[: next(one.offset for one in traces if one.thread == 0)])
    return path


def of_one(result: dict[str, Any]) -> dict[str, Any]:
    """`result`, in which the second run had to end waits."""
    result["runs"][1] |= {"reliable": False, "unreliable_because": [REASON], "forced_waits": 7}
    return result


@pytest.mark.parametrize("command", ["run --scheme nopb", "compare --schemes nopb,pb"])
def test_forced_waits_end_a_replay_with_1_unless_they_are_allowed(
    command: str, halved: Path, fencepost: Fencepost, tmp_path: Path
) -> None:
    name, *options = command.split()
    own = [name, "pcs-table1", halved, *options, "--allow-cut", "--json", "r.json"]
    done = fencepost(*own)
    assert done.returncode == 1, done.stderr
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    for run in runs:
        assert run["reliable"] is False and run["forced_waits"] > 0
        [reason] = run["unreliable_because"]
        assert f"warning: not reliable: {reason}" in done.stderr
    assert done.stdout.split("reliable")[1].split()[: len(runs)] == ["no"] * len(runs)
    for option in ("--allow-unreliable", "--allow-forced-waits"):
        allowed = fencepost(*own, option)
        assert (allowed.returncode, allowed.stdout) == (0, done.stdout)


def test_a_reliable_replay_ends_with_0_and_has_no_row_about_it(
    fft_record: Path, fencepost: Fencepost
) -> None:
    done = fencepost("run", "pcs-table1", fft_record)
    assert done.returncode == 0 and "reliable" not in done.stdout + done.stderr


def test_a_report_says_it_before_all_else(result: dict[str, Any]) -> None:
    before = " ".join(Page(report.html(result)).text)
    text = " ".join(Page(report.html(of_one(result))).text)
    assert f"Not reliable: {REASON} (pb)" in text
    assert " ".join(text.split()).count(" reliable yes no yes ") == 1
    finding = "Under pb a persist takes"
    assert finding in before and finding not in text


def test_a_result_of_an_older_version_counts_as_reliable(result: dict[str, Any]) -> None:
    for run in result["runs"]:
        for name in ("reliable", "unreliable_because", "forced_waits"):
            del run[name]
    assert fp.Result(result).is_reliable
    assert "eliable" not in report.html(result)


def test_the_interface_says_which_runs_are_reliable(result: dict[str, Any]) -> None:
    found = fp.Result(of_one(result))
    assert not found.is_reliable
    assert [row["reliable"] for row in found.rows()] == [True, False, True]


def test_a_difference_names_the_side_that_is_not_reliable(
    result: dict[str, Any], fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(result))
    (tmp_path / "b.json").write_text(json.dumps(of_one(result)))
    done = fencepost("diff", "a.json", "b.json", "--json", "d.json", check=True)
    assert done.stderr.splitlines() == [f"B: warning: not reliable: {REASON} (fixture-machine pb)"]
    runs = json.loads((tmp_path / "d.json").read_text())["runs"]
    assert [run["reliable"] for run in runs] == [[True, True], [True, False], [True, True]]


def test_every_reason_is_shown_not_only_forced_waits(
    result: dict[str, Any], fencepost: Fencepost, tmp_path: Path
) -> None:
    other = "the record does not name the ends of 3 waits"
    result["runs"][0] |= {"reliable": False, "unreliable_because": [other]}
    (tmp_path / "r.json").write_text(json.dumps(of_one(result)))
    done = fencepost("report", "r.json")
    assert done.stderr.splitlines() == [
        f"warning: not reliable: {other} (nopb)",
        f"warning: not reliable: {REASON} (pb)",
    ]
    assert not reliability.are_reliable(result["runs"][:1])


@pytest.mark.parametrize(("share", "is_told"), [(None, False), (0.05, False), (0.075, True)])
def test_polling_that_was_not_recognised_is_told_above_5_percent(
    share: float | None, is_told: bool, result: dict[str, Any]
) -> None:
    if share is not None:
        result["runs"][2]["polling_share"] = share
    assert any(SHARE in note for note in reliability.notes(result["runs"][2])) == is_told
    assert (SHARE in report.html(result)) == is_told


def test_polling_in_a_record_is_told_with_its_summary(
    fft_record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = json.loads(_core.record_info(str(fft_record)))
    text = json.dumps(summary | {"polling_share": 0.075})
    monkeypatch.setattr(_core, "record_info", lambda path: text)
    assert main(["info", str(fft_record)]) == 0
    printed = capsys.readouterr()
    assert "polling share" in printed.out
    assert printed.err.startswith(f"warning: {SHARE}")


def test_explain_and_whatif_say_it_too(halved: Path, fencepost: Fencepost, tmp_path: Path) -> None:
    own = ["pcs-table1", halved, "--allow-cut", "--schemes", "pb", "--json", "d.json"]
    done = fencepost("explain", *own)
    assert done.returncode == 0 and "warning: not reliable: " in done.stderr
    [run] = json.loads((tmp_path / "d.json").read_text())["runs"]
    assert run["reliable"] is False and run["unreliable_because"]
    done = fencepost("whatif", *own, "switch.persist_buffer.entries=4,8")
    assert "warning: not reliable: " in done.stderr
    [sweep] = json.loads((tmp_path / "d.json").read_text())["sweeps"]
    assert all(point["schemes"]["pb"]["reliable"] is False for point in sweep["points"])


@pytest.mark.slow
def test_a_study_with_forced_waits_ends_with_1_unless_they_are_allowed(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    """One of its replays, which are kept in files."""
    program = f'name = "queue"\ncommand = ["{WORKLOADS}/queue", "-t1", "-c1", "-n40"]\n'
    (tmp_path / "list.toml").write_text(f"[[program]]\n{program}")
    own = ["reproduce", "pcs", "--part", "schemes", "--programs", "list.toml", "--out", "out"]
    own += ["--quiet", "--json", "d.json"]
    assert fencepost(*own).returncode == 0
    kept = next((tmp_path / "out" / "results").glob("pb_rf-*.json"))
    run = json.loads(kept.read_text())
    assert run["reliable"] is True
    run |= {"reliable": False, "unreliable_because": [REASON], "forced_waits": 7}
    kept.write_text(json.dumps(run))
    done = fencepost(*own)
    assert done.returncode == 1 and f"warning: queue pb_rf: not reliable: {REASON}" in done.stderr
    runs = json.loads((tmp_path / "d.json").read_text())["runs"]
    assert {run["scheme"] for run in runs if not run["reliable"]} == {"pb_rf"}
    assert REASON in (tmp_path / "out" / "report.html").read_text()
    assert fencepost(*own, "--allow-unreliable").returncode == 0


KILLED = ("sh", "-c", "kill -SEGV $$")
SIGNAL = "the recorded program was ended by signal 11: the record holds what it did until then"


def test_info_says_what_a_record_lacks(fencepost: Fencepost, tmp_path: Path) -> None:
    fencepost("record", "-o", "r", "--roi", "no_such_function:main", "--", *KILLED)
    done = fencepost("info", "r")
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            f"warning: {SIGNAL}",
            "warning: the region of interest was never reached (--roi no_such_function:main)",
        ],
    )


def test_info_says_that_instructions_of_killed_threads_are_missing(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    record = CraftedRecord()
    record.code([block(0x400000, NO_OPERATION)])
    record.trace(0, 1, varint(0) * 3 + varint(1), events=thread_start())
    record.write(tmp_path / "r", ended=b"signal 9", lost=1)
    done = fencepost("info", "r", check=True)
    assert "warning: the last instructions of 1 thread are not in the record\n" in done.stderr


@pytest.mark.parametrize("command", ["diff", "timeline"])
def test_what_a_result_is_told_about_is_said_by_all_that_use_it(
    command: str, result: dict[str, Any], fft_record: Path, fencepost: Fencepost, tmp_path: Path
) -> None:
    made = ["compare", "pcs-table1", fft_record, "--schemes", "nopb,pb", "--json", "r.json"]
    fencepost(*made, check=True)
    document = json.loads((tmp_path / "r.json").read_text())
    document["runs"][0]["warnings"] = ["of this alone"]
    for run in document["runs"]:
        run["warnings"] = [*run["warnings"], SIGNAL]
    (tmp_path / "r.json").write_text(json.dumps(document))
    if command == "diff":
        done = fencepost("diff", "r.json", "r.json", check=True)
        each = ["warning: of this alone (pcs-table1 nopb)", f"warning: {SIGNAL}"]
        assert done.stderr.splitlines() == [f"{side}: {text}" for side in "AB" for text in each]
    else:
        (tmp_path / fft_record.name).symlink_to(fft_record)
        done = fencepost("timeline", "r.json", "-o", "t", "--persist", "1", check=True)
        assert done.stderr.splitlines()[0] == f"warning: {SIGNAL}"
        assert "of this alone" not in done.stderr


@pytest.mark.parametrize("command", ["info", "run", "compare"])
def test_a_record_of_an_older_version_is_refused_by_its_name(
    command: str, fencepost: Fencepost, tmp_path: Path
) -> None:
    record = CraftedRecord(VERSION - 1)
    record.code([block(0x400000, NO_OPERATION)])
    record.trace(0, 1, varint(0) * 3 + varint(1), events=thread_start())
    record.write(tmp_path / "old")
    machine = [] if command == "info" else ["pcs-table1"]
    done = fencepost(command, *machine, "old")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.endswith(
        f"old: the record's format version is {VERSION - 1}, and this program reads version "
        f"{VERSION}: record the program again (fencepost record)"
    )
