"""`fencepost calibrate`: hidden values found again, what the data leave open, what is refused."""

import json
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from optuna.storages.journal import JournalFileBackend

from fencepost import machines, traffic
from fencepost._core import InputError
from fencepost.ask import latencies
from fencepost.calibrate import data, free_key, machine_file, measurement, misfit, mlc, search
from fencepost.calibrate.calibration import Plan
from installed import FENCEPOST, Fencepost

Document = dict[str, Any]

BASE = "pond-8"
HIDDEN = {
    "host_bridge.latency_ns": 30.0,
    "expander.controller_latency_ns": 40.0,
    "link.bandwidth_gb_per_s": 20.0,
}
FREE = [
    "host_bridge.latency_ns=5..60",
    "expander.controller_latency_ns=5..100",
    "link.bandwidth_gb_per_s=8..64",
]
MEASURE_NS = 20_000.0
HEAD = "metric,condition,expected,unit,role,group"


@pytest.fixture(scope="module")
def rows() -> str:
    """What `fencepost latency` measures of a machine with hidden values, as rows."""
    sets = [f"{key}={value}" for key, value in HIDDEN.items()]
    truth = traffic.Machine("hidden", machines.resolve(BASE, sets))
    lines = [HEAD]
    for memory in ("expander", "dram"):
        mean = latencies.idle_point(truth, memory)["latency_ns"]["mean"]
        lines.append(f"idle_latency,{memory},{mean},ns,set,idle")
    load = latencies.Load(**vars(latencies.usual_load(truth)) | {"measure_ns": MEASURE_NS})
    for mix, role in (((1, 0), "set"), ((2, 1), "held_out")):
        named = f"expander, {mix[0]}:{mix[1]}"
        for delay in (0, 160, 400):
            point = latencies.loaded_point(truth, load, mix, delay)
            rate = point["bandwidth_gb_per_s"]
            if delay == 0:
                highest = rate
                lines.append(f'bandwidth,"{named}",{rate * 1000},MB/s,{role},peak')
            else:
                assert rate < measurement.SATURATED * highest
                mean = point["latency_ns"]["mean"]
                lines.append(f'loaded_latency,"{named}, {rate} GB/s",{mean},ns,{role},loaded')
    return "\n".join(lines) + "\n"


def plan(rows: str, free: Sequence[str] = FREE, **options: Any) -> Plan:
    usual = {
        "draws": 16,
        "alike": 0.01,
        "measure_ns": MEASURE_NS,
        "seed": 0,
        "is_cross_validated": False,
    }
    targets = data.from_csv(rows, "rows.csv")
    return Plan.checked(BASE, list(free), targets, **usual | options)


def found(made: Plan, folder: Path) -> Document:
    return made.run(2, lambda *_: None, folder / "search.journal")


@pytest.fixture(scope="module")
def calibrated(rows: str, tmp_path_factory: pytest.TempPathFactory) -> Document:
    return found(plan(rows), tmp_path_factory.mktemp("calibrated"))


@pytest.mark.slow
def test_hidden_values_are_found_within_5_percent(calibrated: Document) -> None:
    for entry in calibrated["values"]:
        hidden = HIDDEN[entry["key"]]
        assert entry["value"] == pytest.approx(hidden, rel=0.05)
        assert entry["own"] != pytest.approx(hidden, rel=0.2), "it would have been found unsearched"
        assert entry["low"] <= hidden <= entry["high"]
        assert entry["free_low"] < entry["low"] < entry["value"] < entry["high"]
        assert entry["determined"]
    assert calibrated["far_apart"] == []


def test_errors_stand_beside_those_of_the_machine_before(calibrated: Document) -> None:
    for role, count in (("set", 5), ("held_out", 3)):
        after = calibrated["error"][role]
        before = after["uncalibrated"]
        assert after["rows"] == before["rows"] == count
        for name in ("mean", "worst", "whole_curve"):
            assert after[name] < 0.05 < before[name]
    assert {row["role"] for row in calibrated["rows"]} == {"set", "held_out"}
    off = [abs(row["difference"]) for row in calibrated["rows"] if row["role"] == "set"]
    assert calibrated["error"]["set"]["worst"] == pytest.approx(max(off))


def test_held_out_rows_are_not_seen_by_the_search(tmp_path: Path) -> None:
    seen = f"{HEAD}\nidle_latency,dram,120,ns,set,\nidle_latency,expander,{{}},ns,held_out,\n"
    near, far = (
        found(plan(seen.format(expected), FREE[:1], draws=8), tmp_path / str(expected))
        for expected in (180, 900)
    )
    assert far["error"]["held_out"]["mean"] > 2 * near["error"]["held_out"]["mean"]
    for member in ("values", "misfit", "tried", "sensitivity"):
        assert far[member] == near[member]


def test_the_machine_file_is_the_machine_that_was_measured(
    calibrated: Document, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(machine_file.text(calibrated, "rows.csv"))
    keys = free_key.all_of(FREE, BASE, machines.resolve(BASE, []))
    values = tuple(float(entry["value"]) for entry in calibrated["values"])
    by_sets = machines.resolve(BASE, free_key.sets(keys, values))
    assert machines.resolve(str(path), []) == by_sets | {
        "description": "pond-8, calibrated to rows.csv"
    }
    for entry in calibrated["values"]:
        span = f"calibrated to rows.csv: fits about as well from {entry['low']} to {entry['high']}"
        assert f"= {entry['value']}  # {span}" in path.read_text()


def test_what_the_data_cannot_tell_apart_is_said(tmp_path: Path, fencepost: Fencepost) -> None:
    """An idle latency is a sum: it says nothing of its parts."""
    idle = f"{HEAD}\nidle_latency,expander,300,ns,set,idle\n"
    (tmp_path / "rows.csv").write_text(idle)
    free = ["link.latency_ns=5..60", "expander.controller_latency_ns=5..100"]
    no_effect = "pm.read_ns=50..400"  # there is no PM on that machine
    arguments = [f"--free={one}" for one in [*free, no_effect]]
    files = ["-o", "c.toml", "--json", "c.json", "--page", "c.md", "--journal", "c.journal"]
    done = fencepost("calibrate", BASE, "--to", "rows.csv", *arguments, *files, "--draws", "16")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "c.json").read_text())
    *summands, unused = document["values"]
    own = machines.resolve(BASE, [])["pm"]["read_ns"]
    assert (unused["value"], unused["determined"]) == (own, False)
    assert "pm.read_ns: alone, it moves no row that is set" in done.stdout
    for entry in summands:
        assert not entry["determined"]
        assert f"{entry['key']}: the data do not determine it" in done.stdout
    # The other one makes up for each, as far as its own range goes.
    link, controller = summands
    assert (link["low"], link["high"]) == (5.0, 60.0)
    assert (
        controller["low"] < controller["value"] - 20 < controller["value"] + 20 < controller["high"]
    )
    line = [(link["value"], controller["value"])]
    keys = [entry["key"] for entry in summands]
    line += [tuple(one["values"][key] for key in keys) for one in document["far_apart"]]
    assert len(line) >= 2
    [(x0, y0), *others] = line
    for one, (x, y) in zip(document["far_apart"], others, strict=True):
        assert one["misfit"] <= document["misfit"] + 0.01
        assert abs(x - x0) > 0.2 * 55 or abs(y - y0) > 0.2 * 95
        assert (x - x0) * (y - y0) < 0, "one of the summands is more, the other one less"
    assert "# not determined by rows.csv" in (tmp_path / "c.toml").read_text()
    assert "No row is held out" in (tmp_path / "c.md").read_text()
    assert done.stdout.splitlines()[-1].startswith(
        "calibrate: 1 of 1 hold, 0 undecided, held out 0"
    )


@pytest.mark.slow
def test_a_group_that_is_left_out_is_predicted_without_it(rows: str, tmp_path: Path) -> None:
    known = [line for line in rows.splitlines() if "held_out" not in line and "GB/s" not in line]
    document = found(plan("\n".join(known), is_cross_validated=True), tmp_path)
    folds = {fold["group"]: fold for fold in document["cross_validation"]}
    assert folds.keys() == {"idle", "peak"}
    whole = {entry["key"]: entry["value"] for entry in document["values"]}
    *latencies, bandwidth = whole
    for key in latencies:  # an idle latency says them without the bandwidth
        assert folds["peak"]["values"][key] == pytest.approx(whole[key], rel=0.05)
    assert folds["idle"]["values"][bandwidth] == pytest.approx(whole[bandwidth], rel=0.05)
    for group, count in (("idle", 2), ("peak", 1)):
        assert folds[group]["error"]["rows"] == count
        assert folds[group]["error"]["worst"] > 0.1 > document["error"]["set"]["worst"]


TWO_SUMS = f"{HEAD}\nidle_latency,dram,120,ns,set,\nidle_latency,expander,230,ns,set,\n"


class Stop(BaseException):
    """The power goes."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_that_is_cut_anywhere_goes_on_to_the_same_end(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(TWO_SUMS, FREE[:2])
    whole = found(made, tmp_path / "whole")
    whole_size = (tmp_path / "whole" / "search.journal").read_bytes().count(b"\n")
    append = JournalFileBackend.append_logs
    random = Random(seed)
    left = 0

    def cut(backend: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            # A process that is killed may leave half a line, and the lock that it held.
            with Path(backend._file_path).open("ab") as file:
                file.write(b'{"op_code": 4')
            Path(f"{backend._file_path}.lock").symlink_to(backend._file_path)
            raise Stop
        append(backend, logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", cut)
    cuts = 0
    while True:
        left = random.randint(5, whole_size // 5)
        try:
            again = found(made, tmp_path / "cut")
            break
        except Stop:
            cuts += 1
    assert again == whole
    assert cuts >= 5
    # Not more than a handful was measured again each time.
    size = (tmp_path / "cut" / "search.journal").read_bytes().count(b"\n")
    assert size < 1.3 * whole_size


@pytest.mark.slow
def test_an_interrupted_command_goes_on(fencepost: Fencepost, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(TWO_SUMS)
    arguments = ["calibrate", BASE, "--to", "rows.csv", *(f"--free={one}" for one in FREE[:2])]
    arguments += ["--draws", "64", "--json", "c.json", "--journal", "c.journal"]
    process = subprocess.Popen(
        [FENCEPOST, *arguments], cwd=tmp_path, text=True, stderr=subprocess.PIPE
    )
    journal = tmp_path / "c.journal"
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 100):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "fencepost: interrupted"
    assert not (tmp_path / "c.json").exists()
    before = journal.read_bytes()
    fencepost(*arguments, check=True)
    assert journal.read_bytes().startswith(before[: before.rfind(b"\n")])
    assert (tmp_path / "c.json").exists()


def test_one_search_at_a_time_has_a_journal(tmp_path: Path) -> None:
    with (
        search.journal(tmp_path / "search.journal"),
        pytest.raises(InputError, match="another process searches for the same"),
    ):
        found(plan(TWO_SUMS, FREE[:2]), tmp_path)


# Its lines of figures end with a tab, shown here as ⇥.
MLC = """\
Intel(R) Memory Latency Checker - v3.11
Measuring idle latencies for random access (in ns)...
		Numa node
Numa node	     0	     1⇥
       0	 131.5	 284.9⇥

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using all the threads from each core if Hyper-threading is enabled
Using traffic with the following read-write ratios
ALL Reads        :	66000.5⇥
2:1 Reads-Writes :	60000.0⇥
Stream-triad like:	61000.0⇥

Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using all the threads from each core if Hyper-threading is enabled
Using Read-only traffic type
		Numa node
Numa node	     0	     1⇥
       0	66000.0	24800.5⇥

Measuring Loaded Latencies for the system
Using all the threads from each core if Hyper-threading is enabled
Using Read-only traffic type
Inject	Latency	Bandwidth
Delay	(ns)	MB/sec
==========================
 00000	 430.10	  66100.0
 00002	 425.00	  65900.0
 00300	 160.00	  40000.0
 20000	 132.00	   1200.0

Measuring cache-to-cache transfer latency (in ns)...
Local Socket L2->L2 HIT  latency	52.4
""".replace("⇥", "\t")


def test_what_mlc_prints_becomes_rows() -> None:
    memories = mlc.memories("asic-expander", [])
    assert memories == {"0": "dram", "1": "expander"}
    targets, notes = mlc.rows(MLC, "mlc.txt", memories)
    got = {(one.measurement.metric, one.condition): one.expected for one in targets}
    assert got == {
        ("idle_latency", "dram"): 131.5,
        ("idle_latency", "expander"): 284.9,
        ("bandwidth", "dram, 1:0"): 66.0005,
        ("bandwidth", "dram, 2:1"): 60.0,
        ("bandwidth", "expander, 1:0"): 24.8005,
        ("loaded_latency", "dram, 1:0, 1.2 GB/s"): 132.0,
        ("loaded_latency", "dram, 1:0, 40 GB/s"): 160.0,
    }
    [saturated] = notes
    assert "2 of 4 rates is left out" in saturated
    for target in targets:  # a condition says what is measured, also where a person types it
        assert measurement.read(target.measurement.metric, target.condition) == target.measurement


def test_one_idle_latency_is_that_of_its_node() -> None:
    memories = {"0": "dram", "2": "expander"}
    text = "Command line parameters: --idle_latency -j2 \n"
    text += "Each iteration took 740.1 base frequency clocks (\t284.9\tns)\n"
    [target], _ = mlc.rows(text, "mlc.txt", memories)
    assert (target.condition, target.expected) == ("expander", 284.9)


def test_nodes_that_are_no_memory_and_other_sockets_are_left_out_with_a_word() -> None:
    two = MLC.replace(
        "       0	 131.5	 284.9	\n",
        "       0	 131.5	 240.0	\n       1	 241.0	 131.0	\n",
    )
    targets, notes = mlc.rows(two, "mlc.txt", {"0": "dram"})
    assert [one.condition for one in targets] == ["dram", "dram, 1:0"]
    said = "\n".join(notes)
    assert "the latency of node 1 is left out" in said
    assert "loaded latencies of a system of 2 sockets are left out" in said
    assert "peak bandwidths of a system of 2 sockets" in said


def test_sequential_idle_latencies_are_taken_with_a_word() -> None:
    text = MLC.replace("for random access", "for sequential access")
    targets, notes = mlc.rows(text, "mlc.txt", {"0": "dram", "1": "expander"})
    assert len(targets) == 7
    assert "measured with sequential access" in notes[0]


def test_the_latency_command_prints_what_can_be_calibrated_to(fencepost: Fencepost) -> None:
    printed = fencepost("latency", BASE, "-q", "--mix", "2:1", "--measure-us", "20", check=True)
    targets, _ = mlc.rows(printed.stdout, "own.txt", {})
    kinds = [(one.measurement.metric, one.measurement.memory) for one in targets]
    assert kinds[:3] == [
        ("idle_latency", "expander"),
        ("idle_latency", "dram"),
        ("bandwidth", "expander"),
    ]
    assert set(kinds[3:]) == {("loaded_latency", "expander")}
    assert {one.measurement.mix for one in targets[2:]} == {(2, 1)}


def test_rows_at_the_end_of_their_curve_are_named(fencepost: Fencepost, tmp_path: Path) -> None:
    text = f"""{HEAD}
bandwidth,"dram, 2:1",20000,MB/s,set,
loaded_latency,"dram, 2:1, 19 GB/s",200,ns,set,
loaded_latency,"dram, 2:1, 18.9 GB/s",200,ns,set,
loaded_latency,"dram, 19.5 GB/s",200,ns,set,
"""
    [row] = data.saturated(data.from_csv(text, "x.csv"))
    assert row.condition == "dram, 2:1, 19 GB/s"
    (tmp_path / "x.csv").write_text(text)
    fast = ["--free", "dram.controller_latency_ns=10..10.01", "--draws", "1", "--measure-us", "5"]
    done = fencepost("calibrate", BASE, "--to", "x.csv", *fast, "--journal", "j", check=True)
    assert done.stderr.count("how many requests were under way") == 1


def test_the_error_of_a_whole_curve_is_an_area() -> None:
    text = f"""{HEAD}
loaded_latency,"dram, 10 GB/s",100,ns,set,
loaded_latency,"dram, 20 GB/s",200,ns,set,
loaded_latency,"dram, 40 GB/s",300,ns,set,
bandwidth,dram,50,GB/s,set,
"""
    error = misfit.error(data.from_csv(text, "x.csv"), [110, 200, 330, 40])
    # Between them 10 x 5 + 20 x 15, below 10 x 150 + 20 x 250.
    assert error["whole_curve"] == pytest.approx(350 / 6500)
    assert error["mean"] == pytest.approx((0.1 + 0 + 0.1 + 0.2) / 4)
    assert error["worst"] == pytest.approx(0.2)


def test_a_row_without_data_is_counted_and_off_by_a_factor_of_two() -> None:
    targets = data.from_csv(f"{HEAD}\nidle_latency,dram,100,ns,set,\n", "x.csv")
    assert misfit.misfit(targets, [None]) == misfit.misfit(targets, [200.0]) > 0.5
    error = misfit.error(targets, [None])
    assert (error["without_data"], error["mean"]) == (1, None)


ROW = "idle_latency,expander,300,ns,set,"


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (
            "speed,expander,300,ns,set,",
            "rows.csv:2: there is no metric `speed`; there are: idle_latency",
        ),
        ("idle_latency,expander,300,GB/s,set,", "unit 'GB/s': idle_latency is in ns or us"),
        ("idle_latency,expander,fast,ns,set,", "expected 'fast': it has to be a number above 0"),
        ("idle_latency,expander,nan,ns,set,", "a number above 0"),
        ("idle_latency,expander,0,ns,set,", "a number above 0"),
        ("idle_latency,expander,300,ns,train,", "role 'train': it has to be set or held_out"),
        ("idle_latency,ssd,300,ns,set,", "rows.csv:2: pond-8: there is no memory `ssd`"),
        ("idle_latency,pm,300,ns,set,", "host0 reaches no PM device"),
        ("idle_latency,expander 2,300,ns,set,", "expander 2: a condition is made of memory"),
        ('idle_latency,"expander, 2:1",300,ns,set,', "idle_latency has no load"),
        ('bandwidth,"expander, 0:1",30,GB/s,set,', "a mix needs reads"),
        ('bandwidth,"expander, 3 GB/s",30,GB/s,set,', "bandwidth has no rate"),
        ("loaded_latency,expander,30,ns,set,", "loaded_latency needs a rate"),
        ('loaded_latency,"dram, 0 GB/s",30,ns,set,', "a rate has to be above 0"),
        ('bandwidth,"dram, pm",30,GB/s,set,', "the condition has said another memory already"),
        ('bandwidth,"dram, 0 threads",30,GB/s,set,', "0 threads: it has to be at least 1"),
        ('bandwidth,"dram, 99999 threads",30,GB/s,set,', "at most 65,536 requests"),
        ("idle_latency,expander,300", "rows.csv:2: it has to have 6 cells"),
        (f"{ROW}\n{ROW}", "rows.csv:3: line 2 has the same metric and condition"),
        ("idle_latency,expander,300,ns,held_out,", "no row is set"),
        ("", "no row is set"),
    ],
)
def test_wrong_rows_are_one_message(row: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        plan(f"{HEAD}\n{row}\n")
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--free", "link.latency=1..9"], "link.latency: there is no such key"),
        (["--free", "core.rob_entries=64..256"], "only keys of devices, links and the fabric"),
        (["--free", "cache.l1d.mshrs=4..64"], "only keys of devices, links and the fabric"),
        (["--free", "simulation.run_ahead_ns=1..9"], "only keys of devices, links and the fabric"),
        (["--free", "placement=1..9"], "only keys of devices, links and the fabric"),
        (["--free", "link.latency_ns=9..9"], "the range is empty"),
        (["--free", "link.latency_ns=9..1"], "the range is empty"),
        (["--free", "link.latency_ns=9"], "it has to be KEY=LO..HI"),
        (["--free", "link.latency_ns=a..9"], "a is no number"),
        (["--free", "link.latency_ns=1..inf"], "inf is no number"),
        (["--free", "link.latency_ns=-1..9"], "link.latency_ns"),
        (["--free", "link.flit_format=1..9"], "link.flit_format"),
        (["--free", "link.latency_ns=1..9", "--free", "link.latency_ns=2..3"], "is free already"),
        ([], "nothing is free"),
        (["--free", "link.latency_ns=1..9", "--hold-out", "x"], "no group `x`; there are: idle"),
        (["--free", "link.latency_ns=1..9", "--hold-out", "idle"], "no row is set"),
        (["--free", "link.latency_ns=1..9", "--cross-validate"], "there is only idle"),
        (["--free", "link.latency_ns=1..9", "--node", "1=expander"], "rows.csv is a CSV file"),
        (["--free", "link.nope=1..9"], "--free link.nope=1..9: link.nope: there is no such key"),
        (["--free", "link.latency_ns=1..9", "-o", "pond-8.toml"], "cannot have its name"),
        (["--free", "link.latency_ns=1..9", "-o", "x"], "machine files are TOML"),
        (["--free", "link.latency_ns=1..9", "-o", "rows.csv"], "would overwrite the input"),
        (["--free", "link.latency_ns=1..9", "--journal", "other.txt"], "no journal of a search"),
        (
            ["--free", "link.latency_ns=1..9", "--alike", "nan"],
            "--alike nan: it has to be a number from",
        ),
    ],
)
def test_wrong_input_is_one_message_and_code_2(
    fencepost_here: Fencepost, tmp_path: Path, arguments: list[str], part: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"{HEAD}\n{ROW.removesuffix(',')},idle\n")
    (tmp_path / "other.txt").write_text("a letter\n")
    done = fencepost_here("calibrate", BASE, "--to", "rows.csv", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "other.txt").read_text() == "a letter\n"


@pytest.mark.parametrize(
    ("machine", "file", "part"),
    [
        ("no-machine", "rows.csv", "there is no machine `no-machine`"),
        (BASE, "nothing.csv", "nothing.csv: cannot be read"),
        (BASE, "streamr", "no such file, nor study; studies: streamer"),
        (BASE, "empty.csv", "there is no column metric"),
        (BASE, "mlc.txt", "no idle latency, loaded latency or bandwidth"),
        (BASE, "more.csv", "there is no use for a column 'colour'"),
        (BASE, "twice.csv", "there are two columns unit"),
        (BASE, "long.csv", "this is no CSV file: field larger than field limit"),
        (BASE, "zero.txt", "loaded_latency of dram, 1:0, 0 GB/s: 0 is no figure"),
        (BASE, "endless.txt", "bandwidth of dram, 1:0: inf is no figure"),
        (BASE, "bytes.csv", "not UTF-8 text"),
    ],
)
def test_files_that_have_no_rows_are_said(
    fencepost_here: Fencepost, tmp_path: Path, machine: str, file: str, part: str
) -> None:
    (tmp_path / "rows.csv").write_text(f"{HEAD}\n{ROW}\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "mlc.txt").write_text("Intel(R) Memory Latency Checker - v3.11\n")
    (tmp_path / "more.csv").write_text(f"{HEAD},colour\n{ROW},red\n")
    (tmp_path / "twice.csv").write_text(f"{HEAD},unit\n{ROW},ns\n")
    (tmp_path / "long.csv").write_text(f"{HEAD}\n{'x' * 200_000}\n")
    (tmp_path / "zero.txt").write_text(MLC.replace("   1200.0", "      0.0"))
    (tmp_path / "endless.txt").write_text(MLC.replace("66000.5", "9" * 400))
    (tmp_path / "bytes.csv").write_bytes(b"metric\xff")
    done = fencepost_here("calibrate", machine, "--to", file, "--free", "link.latency_ns=1..9")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert part in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "is_whole", "by_ratios"),
    [
        ("link.latency_ns=10..60", False, False),
        ("link.request_credits=8..256", True, False),
        ("link.request_credits=1..1024", True, True),
        ("expander.channels=1..4", True, False),
        ('fabric.link."host0 -> pool".latency_ns=0.1..60', False, True),
    ],
)
def test_a_key_takes_the_values_that_the_machine_has(
    text: str, is_whole: bool, by_ratios: bool
) -> None:
    [key] = free_key.all_of([text], BASE, machines.resolve(BASE, []))
    assert (key.is_whole, key.by_ratios) == (is_whole, by_ratios)
    for value in (key.at(0.0), key.at(0.3), key.at(1.0)):
        assert key.low <= value <= key.high
        assert key.at(key.share(value)) == value
        assert not is_whole or value == int(value)


def test_values_that_no_machine_has_are_passed_over(tmp_path: Path) -> None:
    rows = f"{HEAD}\nbandwidth,dram,60,GB/s,set,\nbandwidth,expander,20,GB/s,set,\n"
    document = found(plan(rows, ["dram.channels=1..4"], draws=8), tmp_path)
    [entry] = document["values"]
    assert entry["value"] in (1, 2, 4)
    assert document["tried"] <= 3, "three channels are no machine"


def blocks(page: str, kind: str) -> list[str]:
    """The blocks of that kind of a page, in their order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for own, text in found if own == kind]


def without_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def arguments_of(command: str) -> list[str]:
    program, *arguments = shlex.split(command.partition(" > ")[0].replace("\\\n", " "))
    assert program == "fencepost"
    return [*arguments, "-q"]


@pytest.fixture
def page(pytestconfig: pytest.Config) -> str:
    return (pytestconfig.rootpath / "docs" / "calibration.md").read_text()


@pytest.mark.slow
def test_the_page_shows_what_two_latencies_leave_open(
    fencepost: Fencepost, page: str, tmp_path: Path
) -> None:
    [rows] = blocks(page, "csv")
    (tmp_path / "asic.csv").write_text(rows)
    command = arguments_of(blocks(page, "sh")[2])
    done = fencepost(*command, "--journal", "j", check=True)
    assert without_ends(done.stdout) == without_ends(blocks(page, "")[1])


@pytest.mark.slow
@pytest.mark.exhaustive  # that hidden values are found, smaller searches show
def test_the_page_shows_what_a_search_finds(
    fencepost: Fencepost, page: str, tmp_path: Path
) -> None:
    search_command, made_by, *_ = blocks(page, "sh")
    printed = fencepost(*arguments_of(made_by), check=True).stdout
    (tmp_path / "mlc.txt").write_text(printed)
    done = fencepost(*arguments_of(search_command), "--journal", "j", check=True, timeout=1200)
    assert without_ends(done.stdout) == without_ends(blocks(page, "")[0])
    [machine] = blocks(page, "toml")
    assert (tmp_path / "mine.toml").read_text() == machine
