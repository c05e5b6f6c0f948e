"""`fencepost whatif`: ranges, knees, Pareto fronts, and what it writes."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core, figures, hardware_cost, hold_up, machines
from fencepost._core import InputError
from fencepost.api import Machine, Sensitivity, whatif
from fencepost.ask.sensitivity import plot, ranges
from fencepost.ask.sensitivity.knee import Offer, front, knee
from fencepost.ask.sensitivity.text import COLUMNS
from fencepost.cli import main
from fencepost.progress import whole_state
from installed import FENCEPOST, Fencepost, on_terminal

Document = dict[str, Any]

ENTRIES = "switch.persist_buffer.entries"


@pytest.mark.parametrize(
    "written, values",
    [
        ("4..32", ["4", "8", "16", "32"]),
        ("1..1", ["1"]),
        ("4..17:4", ["4", "8", "12", "16"]),
        ("0.1..0.4:0.1", ["0.1", "0.2", "0.3", "0.4"]),
        ("100..300:100", ["100", "200", "300"]),
        ("16,4", ["16", "4"]),
        ("true, false", ["true", "false"]),
    ],
)
def test_ranges(written: str, values: list[str]) -> None:
    assert ranges.read(f"a.b={written}") == ranges.Sweep("a.b", tuple(values))


@pytest.mark.parametrize(
    "written, message",
    [
        ("a.b", "has to be KEY=RANGE"),
        ("a.b=", "has to be KEY=RANGE"),
        ("a.b=3..100", "3 is none; type 3..100:STEP"),
        ("a.b=8..4", "type 4..8"),
        ("a.b=4..8:0", "a step has to be above 0"),
        ("a.b=x..8", "x is no number"),
        ("a.b=4..", "nothing is no number"),
        ("a.b=4..inf:1", "inf is no number"),
        ("a.b=1,,2", "a value is missing"),
        ("a.b=1,2,1", "1 is given twice"),
        ("a.b=0..1000000:1", "1000001 values"),
        ("a.b=1..1e30:1", "1e30 is not between 1e-12 and 1e+15"),
        ("a.b=1..1e999999", "1e999999 is not between 1e-12 and 1e+15"),
        ("a.b=1..2:1e-30", "1e-30 is not between 1e-12 and 1e+15"),
        ("a.b=1e-12..1e15:1e-12", "at most 1000 can be"),
    ],
)
def test_a_wrong_range_is_one_message(written: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        ranges.read(written)


def test_the_knee_is_the_first_value_with_95_percent_of_the_gain() -> None:
    sizes = [4, 8, 16, 32, 64]
    speeds = [1.0, 1.5, 1.94, 1.96, 2.0]
    assert knee(sizes, [1 / speed for speed in speeds]) == 32
    # Where less is faster, it is counted from the other end; a run that failed counts for nothing.
    assert knee(sizes, [1 / speed for speed in reversed(speeds)]) == 8
    assert knee(sizes, [1, 1 / 1.5, None, 1 / 1.96, 1 / 2]) == 32
    assert knee(sizes, [1.0, 0.999, 0.998, 0.997, 0.995]) is None, "flat"
    assert knee([4, 8], [2, 1]) is None


def test_the_front_has_what_nothing_else_beats() -> None:
    offers = [
        Offer("near", 0, 10),
        Offer("near", 4, 12),
        Offer("near", 8, 8),
        Offer("near", 16, 8),
        Offer("near", 32, 7),
        Offer("far", 64, 9),
    ]
    assert front(offers) == [True, False, True, False, True, True]


@pytest.fixture(scope="module")
def found(fft_record: Path) -> Document:
    changes = [f"{ENTRIES}=1..8", "link.latency_ns=10,20"]
    return whatif("pcs-table1", fft_record, changes).document


def test_every_point_is_what_a_run_of_that_machine_is(
    found: Document, fft_record: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run.json"
    arguments = ["compare", "pcs-table1", str(fft_record), "-q", "--json", str(output)]
    assert main([*arguments, "--set", f"{ENTRIES}=2"]) == 0
    runs = json.loads(output.read_text())["runs"]
    [point] = [point for point in found["sweeps"][0]["points"] if point["values"] == {ENTRIES: 2}]
    for run in runs:
        expected = {figure.key: figure.value(run, runs[0]) for figure in figures.HEADLINE}
        # Also nopb, which ran once for all sizes.
        assert point["schemes"][run["scheme"]]["figures"] == expected


def test_ratios_are_over_the_baseline_that_is_chosen(
    found: Document, fft_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "over_pb.json"
    change = f"{ENTRIES}=1,2"
    options = ["--baseline", "scheme=pb", "--json", str(output)]
    assert main(["whatif", "pcs-table1", str(fft_record), change, "-q", *options]) == 0
    document = json.loads(output.read_text())
    assert document["provenance"]["baseline"] == "scheme=pb"
    over_first = {str(point["values"]): point["schemes"] for point in found["sweeps"][0]["points"]}
    for point in document["sweeps"][0]["points"]:
        usual, own = over_first[str(point["values"])], point["schemes"]
        pb = usual["pb"]["figures"]["simulated_ns"]
        for scheme, entry in own.items():
            ours = entry["figures"]
            assert ours["simulated_ns"] == usual[scheme]["figures"]["simulated_ns"]
            assert ours["speedup"] == pytest.approx(pb / ours["simulated_ns"])
    assert "speedup over pb" in plot.svg(document)
    shown = capsys.readouterr().out
    assert shown.count("speedup") == len(document["provenance"]["options"]["schemes"]) - 1


def test_a_sweep_has_knees_costs_and_a_front(found: Document) -> None:
    entries, link = found["sweeps"]
    assert [point["values"][ENTRIES] for point in entries["points"]] == [1, 2, 4, 8]
    knees = {found["scheme"]: found["value"] for found in entries["knees"]}
    assert knees["nopb"] is None
    assert knees["pb"] in (2, 4, 8)
    for point in entries["points"]:
        size = point["values"][ENTRIES]
        assert set(point["schemes"]["nopb"]["cost"].values()) == {0}
        counted = json.loads(_core.persist_buffer_cost("pb", size))
        assert point["schemes"]["pb"]["cost"] == {
            "entries": size,
            "bits": sum(counted[name] for name in counted if name.endswith("_bits")),
            "comparators": sum(counted[name] for name in counted if name.endswith("_comparators")),
            "drained_bytes": size * 64,
            "energy_uj": pytest.approx(hold_up.microjoules(size * 64)),
        }
    fastest = min(
        (entry["figures"]["simulated_ns"], entry["cost"]["bits"], entry["is_on_front"])
        for point in entries["points"]
        for entry in point["schemes"].values()
    )
    assert fastest[2], "nothing is faster"
    # What has no price is not compared: each link has a front of its own.
    for point in link["points"]:
        assert point["schemes"]["nopb"]["is_on_front"]


def test_the_cost_is_that_of_all_buffers_each_of_its_size() -> None:
    small = "fabric.switch.root.persist_buffer.entries=4"
    machine = machines.resolve("pcs-table1-tree", [small])
    switches = {"leaf0": {"persist_buffer": {}}, "root": {"persist_buffer": {}}, "leaf1": {}}
    run = {"scheme": "pb_rf", "statistics": {"host0": {}, **switches}}
    found = hardware_cost.of_run(run, machine)
    buffers = [hardware_cost.of_buffer("pb_rf", entries) for entries in (16, 4)]
    assert (found.entries, found.bits) == (20, sum(buffer.bits for buffer in buffers))
    assert found.comparators == sum(buffer.comparators for buffer in buffers)


def test_rows_have_every_point_under_every_scheme(found: Document) -> None:
    rows = Sensitivity(found).rows()
    assert len(rows) == (4 + 2) * 4
    [row] = [row for row in rows if row.get(ENTRIES) == 8 and row["scheme"] == "pb"]
    of = found["sweeps"][0]["points"][-1]["schemes"]["pb"]
    assert row["simulated_ns"] == of["figures"]["simulated_ns"] and row["error"] is None
    assert row["bits"] == of["cost"]["bits"] and row["is_on_front"] is of["is_on_front"]


def test_a_changed_machine_stays_changed(fft_record: Path) -> None:
    machine = Machine.load("pcs-table1").set("pm.ack_at", "media")
    found = whatif(machine, fft_record, [f"{ENTRIES}=4"], schemes=["nopb"]).document
    (changed,) = found["provenance"]["machines"].items()
    assert changed[0] == "pcs-table1 pm.ack_at=media" and changed[1]["pm"]["ack_at"] == "media"
    found = whatif(machine.named("ours"), fft_record, [f"{ENTRIES}=4"], schemes=["nopb"]).document
    assert list(found["provenance"]["machines"]) == ["ours"]


def test_nothing_runs_twice_that_is_the_same(
    fft_record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    whatif(
        "pcs-table1",
        fft_record,
        [f"{ENTRIES}=8..32"],
        schemes=["nopb", "pb"],
        watch=lambda replays: seen.__setitem__(slice(None), [replay.label for replay in replays]),
    )
    assert sorted(label.rsplit(" ", 1)[1] for label in seen) == ["nopb", "pb", "pb", "pb"]


def test_a_grid_has_all_combinations(fft_record: Path) -> None:
    changes = [f"{ENTRIES}=4,16", "core.sfence_order=store_queue,oldest"]
    found = whatif("pcs-table1", fft_record, changes, schemes=["pb"], grid=True).document
    [sweep] = found["sweeps"]
    assert [tuple(point["values"].values()) for point in sweep["points"]] == [
        (4, "store_queue"),
        (4, "oldest"),
        (16, "store_queue"),
        (16, "oldest"),
    ]
    assert sweep["knees"] == []
    assert all(point["schemes"]["pb"]["figures"]["speedup"] == 1 for point in sweep["points"])
    assert "<svg" in plot.svg(found)


def test_the_command_writes_table_document_and_picture(
    found: Document, fft_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "found.json"), "--plot", str(tmp_path / "found.svg")]
    changes = [f"{ENTRIES}=1..8", "link.latency_ns=10,20"]
    assert main(["whatif", "pcs-table1", str(fft_record), *changes, "-q", *files]) == 0
    assert json.loads((tmp_path / "found.json").read_text()) == found
    assert (tmp_path / "found.svg").read_text() == plot.svg(found)
    shown = capsys.readouterr().out
    assert "knee, 95 % of what switch.persist_buffer.entries gains" in shown
    assert "on the Pareto front" in shown


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["RECORD"], "nothing varies"),
        (["RECORD", "switch.persist_buffer.entires=4"], "switch.persist_buffer.entries"),
        (["RECORD", f"{ENTRIES}=128..512"], "512 is out of range"),
        (["RECORD", f"{ENTRIES}=4..5"], "5 is none"),
        (["RECORD", f"{ENTRIES}=4", f"{ENTRIES}=8"], "has a range already"),
        (["RECORD", f"{ENTRIES}=4", "--plot", "a.png"], "pictures are SVG"),
        (["RECORD", f"{ENTRIES}=4", "--schemes", "nobody"], "there is no scheme `nobody`"),
        (["RECORD", f"{ENTRIES}=4", "--baseline", "scheme=x"], "no run has it; of scheme there"),
        (["RECORD", f"{ENTRIES}=4", "--baseline", "threads=1"], "it has to be scheme=SCHEME"),
        ([], "either a record or, behind --, a program is needed"),
        (["nosuch.fencepost", f"{ENTRIES}=4"], "nosuch.fencepost"),
    ],
)
def test_wrong_input_is_one_message_before_anything_runs(
    fft_record: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(fft_record) if argument == "RECORD" else argument for argument in arguments]
    assert main(["whatif", "pcs-table1", *given]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out


def test_interrupted_it_leaves_nothing_behind(fft_record: Path, tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    command = [FENCEPOST, "whatif", "pcs-table1", fft_record, "link.latency_ns=10..309:1"]
    running = subprocess.Popen(
        [*command, "-q", "--json", output], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(2.5)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_the_time_that_is_left_follows_from_what_is_done() -> None:
    class Done:
        started, ended = 0.0, 1.0

    class Waiting:
        started = ended = None

    replays: list[Any] = [Done(), Done(), Done(), Waiting()]
    assert whole_state(replays, 30.0) == (0.75, "3 of 4 replays, 75%, 10 s left")


def test_the_machine_of_a_document_is_the_unchanged_one(found: Document) -> None:
    resolved = machines.resolve("pcs-table1", [])
    assert found["provenance"]["machines"] == {"pcs-table1": resolved}
    assert found["provenance"]["changes"]["link.latency_ns"] == [10, 20]


def test_a_range_of_which_no_run_took_any_time_has_no_knee(
    fft_record: Path, fencepost: Fencepost
) -> None:
    """The limit is reached before the region of interest begins."""
    limit = ("--limit-instructions", "1", "--plot", "p.svg")
    done = fencepost("whatif", "pcs-table1", fft_record, f"{ENTRIES}=4..16", *limit)
    assert done.returncode == 0 and "0.0 ns" in done.stdout and "no knee" in done.stdout
    assert knee([1, 2, 3], [0.0, 4.0, 3.0]) is None


@pytest.mark.few(1)
@pytest.mark.parametrize("columns", [30, 80, 200])
def test_every_width_of_terminal_shows_every_value(
    columns: int, fft_record: Path, tmp_path: Path
) -> None:
    """The schemes stand below each other where they have no room beside each other."""
    own = [FENCEPOST, "whatif", "pcs-table1", fft_record, f"{ENTRIES}=4..16", "--json", "d.json"]
    shown = on_terminal(columns, [*own, "--quiet"], tmp_path)
    assert "…" not in shown and "entries" in shown
    [sweep] = json.loads((tmp_path / "d.json").read_text())["sweeps"]
    for point in sweep["points"]:
        assert re.search(rf"^ +{point['values'][ENTRIES]} ", shown, re.MULTILINE)
        for scheme, entry in point["schemes"].items():
            for key, _, unit in COLUMNS[: 1 if scheme == "nopb" else None]:
                assert figures.shown(entry["figures"][key], unit) in shown
    lines = shown.splitlines()
    assert columns == 30 or all(len(line) <= columns for line in lines)
