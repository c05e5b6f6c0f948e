"""Plans of sweeps: what they say, which points come of it, and how mistakes are told."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from fencepost._core import InputError
from fencepost.sweeps import example, figure_paths, folder, plan, schema, values
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.point import Point
from fencepost.sweeps.toml_file import Node
from fencepost.tree import RECORDS
from installed import FENCEPOST

RECORD = RECORDS / "persist_loops.fencepost"
ENTRIES = "switch.persist_buffer.entries"
START = f'machine = "pcs-table1"\nrecord = "{RECORD}"\n'


def made(path: Path, text: str) -> Folder:
    found, warnings = folder.made(plan.parsed(text, "plan.toml", Path()), path / "s.sweep")
    assert not warnings
    return found


def coordinates(path: Path, text: str, *names: str) -> list[tuple[object, ...]]:
    points = made(path, text).points()
    return [tuple(point.coordinates[name] for name in names) for point in points]


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        plan.parsed(text, "plan.toml", Path())
    return str(error.value)


def test_a_grid_has_every_combination_in_the_order_of_the_plan(tmp_path: Path) -> None:
    text = f'{START}scheme = ["nopb", "pb"]\n[axes]\n"{ENTRIES}" = "4..8"\n"pm.banks" = [1, 2]\n'
    found = coordinates(tmp_path, text, ENTRIES, "pm.banks", "scheme")
    assert found == list(itertools.product([4, 8], [1, 2], ["nopb", "pb"]))


def test_a_zip_takes_the_values_of_all_axes_together(tmp_path: Path) -> None:
    axes = f'[axes]\n"{ENTRIES}" = [4, 8]\n"pm.banks" = [1, 2]\n[sampling]\nhow = "zip"\n'
    text = f'{START}scheme = "pb"\n{axes}'
    assert coordinates(tmp_path, text, ENTRIES, "pm.banks") == [(4, 1), (8, 2)]


@pytest.mark.parametrize("how", ["random", "latin_hypercube"])
def test_a_sample_is_the_same_for_the_same_seed(tmp_path: Path, how: str) -> None:
    def sampled(seed: int, name: str) -> list[tuple[object, ...]]:
        axes = (
            f'[axes]\n"{ENTRIES}" = {{from = 4, to = 64}}\n"pm.read_ns" = {{from = 1.5, to = 9}}\n'
        )
        how_many = f'[sampling]\nhow = "{how}"\npoints = 8\nseed = {seed}\n'
        text = f'{START}scheme = "pb"\n{axes}{how_many}'
        return coordinates(tmp_path / name, text, ENTRIES, "pm.read_ns")

    first = sampled(1, "a")
    assert first == sampled(1, "b") != sampled(2, "c")
    assert all(isinstance(entries, int) and 4 <= entries <= 64 for entries, _ in first)
    assert all(isinstance(ns, float) and 1.5 <= ns <= 9 for _, ns in first)


def test_a_latin_hypercube_has_one_point_in_each_part_of_each_axis() -> None:
    axes = [values.Between(0, 16, False, False), values.Between(1, 256, True, False)]
    found = list(values.combinations(axes, "latin_hypercube", 16, 3))
    assert sorted(int(float(first)) for first, _ in found) == list(range(16))


def test_a_whole_number_has_a_part_of_the_same_width_at_both_ends() -> None:
    axis = values.Between(1, 4, False, True)
    assert [axis.at((place + 0.5) / 8) for place in range(8)] == list("11223344")


def test_where_keeps_the_points_that_meet_every_condition(tmp_path: Path) -> None:
    where = f'where = ["{ENTRIES} >= 4 * pm.banks", "not (pm.banks == 1 and scheme == \'pb\')"]\n'
    axes = f'[axes]\n"{ENTRIES}" = [4, 8]\n"pm.banks" = [1, 2]\n'
    text = f'{START}scheme = ["nopb", "pb"]\n{where}{axes}'
    found = coordinates(tmp_path, text, ENTRIES, "pm.banks", "scheme")
    assert found == [(4, 1, "nopb"), (8, 1, "nopb"), (8, 2, "nopb"), (8, 2, "pb")]


def test_repetitions_differ_in_their_seed(tmp_path: Path) -> None:
    found = made(tmp_path, f'{START}scheme = "pb"\nrepetitions = 3\n').points()
    assert [(point.coordinates["seed"], point.options["seed"]) for point in found] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]


def test_options_and_axes_of_a_replay_reach_its_points(tmp_path: Path) -> None:
    axes = '[axes]\nplacement = ["", "heap=dram0"]\npersist = ["program", "every:8"]\n'
    text = f'{START}scheme = "pb"\nset = ["pm.banks=2"]\n[options]\nlimit_instructions = 9\n{axes}'
    points = list(made(tmp_path, text).points())
    assert [point.options.get("place") for point in points] == [None, None, *[["heap=dram0"]] * 2]
    assert [point.options["persist"] for point in points] == ["program", "every:8"] * 2
    assert all(point.options["limit_instructions"] == 9 for point in points)
    assert all(point.sets == ("pm.banks=2",) for point in points)


def test_without_schemes_each_machine_has_those_that_it_can_run(tmp_path: Path) -> None:
    text = START.replace('"pcs-table1"', '["pcs-table1", "pcs-table1-0sw"]')
    found = coordinates(tmp_path, text, "machine", "scheme")
    assert found == [
        ("pcs-table1", "nopb"),
        ("pcs-table1", "pb"),
        ("pcs-table1", "pb_rf"),
        ("pcs-table1", "pb_adaptive"),
        ("pcs-table1-0sw", "nopb"),
    ]


def test_a_line_of_points_is_the_point(tmp_path: Path) -> None:
    text = f'{START}scheme = "pb"\n[options]\nseed = 3\n[axes]\n"pm.banks" = [1, 2]\n'
    for point in made(tmp_path, text).points():
        assert Point.of_line(point.number, point.line) == point


def test_two_folders_of_one_plan_have_equal_points(tmp_path: Path) -> None:
    text = f'{START}scheme = ["nopb", "pb"]\n[axes]\n"{ENTRIES}" = "4..32"\n'
    one, other = made(tmp_path / "a", text), made(tmp_path / "b", text)
    for name in ("points", "plan.toml"):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes()


def test_a_changed_plan_adds_points_behind_those_that_are_there(tmp_path: Path) -> None:
    first = made(tmp_path, f'{START}scheme = "pb"\n[axes]\n"pm.banks" = [2, 4]\n')
    lines = (first.path / "points").read_text()
    wider = f'{START}scheme = "pb"\n[axes]\n"pm.banks" = [1, 2, 4]\n'
    grown, _ = folder.made(plan.parsed(wider, "plan.toml", Path()), first.path)
    assert (grown.path / "points").read_text().startswith(lines)
    assert [point.coordinates["pm.banks"] for point in grown.points()] == [2, 4, 1]
    assert grown.count == 3


def test_plans_that_grow_a_folder_at_once_add_their_points_behind_each_other(
    tmp_path: Path,
) -> None:
    made(tmp_path, f'{START}scheme = "pb"\n')
    for name in ("pm.read_ns", "pm.write_ns", "link.latency_ns"):
        axes = f'[axes]\n"{name}" = "1..200:1"\n'
        (tmp_path / f"{name}.toml").write_text(f'{START}scheme = "pb"\n{axes}')
    both = [
        subprocess.Popen([FENCEPOST, "sweep", "--prepare", "-o", tmp_path / "s.sweep", file])
        for file in tmp_path.glob("*.toml")
    ]
    assert [process.wait() for process in both] == [0, 0, 0]
    grown = Folder.opened(tmp_path / "s.sweep")
    assert grown.count == len((grown.path / "points").read_text().splitlines())
    assert len({point.identity for point in grown.points()}) == grown.count >= 1 + 3 * 199
    assert not list((grown.path / "claims").iterdir())


def test_a_folder_whose_making_was_killed_leaves_nothing_beside_the_next(tmp_path: Path) -> None:
    axes = f'[axes]\n"pm.read_ns" = "1..1000:1"\n"{ENTRIES}" = "4..64:1"\n'
    (tmp_path / "big.toml").write_text(f"{START}{axes}")
    killed = subprocess.Popen([FENCEPOST, "sweep", "--prepare", "big.toml"], cwd=tmp_path)
    while not list(tmp_path.glob("*/sweep/.points.*")):
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    (tmp_path / "big.toml").write_text(START)
    subprocess.run([FENCEPOST, "sweep", "--prepare", "big.toml"], cwd=tmp_path, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"big.toml", "big.sweep"}


def test_a_record_that_was_made_again_spoils_nothing(tmp_path: Path) -> None:
    record = tmp_path / "a.fencepost"
    record.write_bytes(RECORD.read_bytes())
    text = f'machine = "pcs-table1"\nrecord = "{record}"\nscheme = "pb"\n'
    before = made(tmp_path, text)
    kept = list(before.points())
    record.unlink()
    record.write_bytes((RECORDS / "mb_chase-512.fencepost").read_bytes())
    again, warnings = folder.made(plan.parsed(text, "plan.toml", Path()), before.path)
    assert list(again.points()) == kept
    again.check_records()
    assert ["was recorded again" in warning for warning in warnings] == [True]


def test_a_machine_and_what_it_extends_are_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        'description = "a"\nextends = "pcs-table1"\n[pm]\nbanks = 2\n'
    )
    mine = tmp_path / "mine.toml"
    mine.write_text('description = "b"\nextends = "base"\n[core]\nrob_entries = 64\n')
    text = f'machine = "{mine}"\nrecord = "{RECORD}"\nscheme = "pb"\n'
    found = made(tmp_path, text)
    mine.unlink()
    (tmp_path / "base.toml").unlink()
    [point] = found.points()
    machine = found.machine(point.machine, [])
    assert (machine["pm"]["banks"], machine["core"]["rob_entries"]) == (2, 64)


@pytest.mark.parametrize(
    "text, message",
    [
        ("machin = 1\n", "plan.toml:1: machin: there is no key `machin`; did you mean `machine`?"),
        ('machine = "pcs-table1"\n', "`record` is missing"),
        (f"{START}scheme = 'pbx'\n", "plan.toml:3: scheme: there is no choice `pbx`; did you mean"),
        (f"{START}[axes]\nbanks = [1]\n", "plan.toml:4: axes.banks: there is no axis `banks`"),
        (f"{START}[axes]\n'pm.banks' = []\n", "plan.toml:4: axes.pm.banks: it has no value"),
        (f"{START}[axes]\n'pm.banks' = [1, 1]\n", "1 is given twice"),
        (f"{START}[axes]\n'pm.banks' = '3..9'\n", "a range without a step"),
        (f"{START}[axes]\n'pm.banks' = {{from = 1}}\n", "it needs `from` and `to`"),
        (f"{START}[axes]\n'pm.banks' = {{from = 1, to = 4}}\n", "a grid needs values"),
        (f"{START}[sampling]\nhow = 'random'\n", "random needs `points`"),
        (f"{START}[sampling]\nhow = 'grd'\n", "there is no choice `grd`; did you mean `grid`?"),
        (f"{START}where = ['pm.banks >']\n", "is no condition"),
        (f"{START}where = ['open(1)']\n", "only comparisons, arithmetic"),
        (
            f"{START}[options]\nseed = -1\n",
            "plan.toml:4: options.seed: it has to be at least 0",
        ),
        (f"{START}repetitions = 2\n[options]\nseed = 1\n", "they have seeds of their own"),
        (f"{START}[options]\npersist = 'sync'\n[axes]\npersist = ['sync']\n", "an axis varies it"),
        (f"{START}[limits]\nmemory_mb = 1\n", "limits.memory_mb: it has to be a whole number"),
        (
            f"{START}extract = ['cost.bit']\n",
            "there is no cost `cost.bit`; did you mean `cost.bits`?",
        ),
        (f"{START}extract = ['simulated_n']\n", "did you mean `simulated_ns`?"),
        (f"{START}extract = ['persist']\n", "persist is no number of a run"),
        (f"{START}extract = ['simulated_ns.mean']\n", "nothing is below a number"),
        (f"{START}extract = ['persist.latency_ns.men']\n", "did you mean `mean`?"),
        (f"{START}extract = ['mips']\n", "differs between two replays"),
        (f"{START}extract = []\n", "it has no figure"),
        ("a = [1,\n", "plan.toml:"),
    ],
)
def test_mistakes_have_file_line_and_key(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    "more, message",
    [
        (
            'scheme = "pb"\n[axes]\n"pm.bank" = [1]\n',
            "plan.toml:5: axes.pm.bank: pm.bank: there is no such key",
        ),
        (
            'set = ["pm.banks=2", "pm.bank=1"]\n[axes]\nseed = [1]\n',
            "plan.toml:3: set: pm.bank: there is no such key",
        ),
        (
            '[axes]\nthreads = ["close", "0,99"]\n',
            "plan.toml:4: axes.threads: 0,99: there is no core 99",
        ),
        ("[axes]\nseed = [1, -1]\n", "plan.toml:4: axes.seed: -1: it has to be at least 0"),
        ('[axes]\nsample = ["1"]\n', "plan.toml:4: axes.sample: 1: it has to be PERIOD:DETAIL"),
        ('[axes]\ntransport = ["x"]\n', "plan.toml:4: axes.transport: there is no transport `x`"),
        (
            '[axes]\nplacement = ["", "heap=x"]\n',
            "plan.toml:4: axes.placement: heap=x: there is no memory node `x`",
        ),
        ('[axes]\nplacement = ["heap=\'x"]\n', "plan.toml:4: axes.placement: heap='x: No closing"),
        (
            '[options]\nseed = 1\n[axes]\npersist = ["x"]\n',
            "plan.toml:6: axes.persist: x: it has to be program",
        ),
        ('where = ["pm.bank > 1"]\n', "there is no `pm.bank`"),
        ('where = ["scheme > 1"]\n', "it cannot be worked out"),
        (
            '[options]\npersist = "sometimes"\n',
            "plan.toml:4: options.persist: it has to be program, sync or",
        ),
        ('[options]\nplace = ["heap=nowhere"]\n', "nowhere"),
        ('where = ["pm.banks < 0"]\n', "plan.toml:3: where: the plan has no points"),
    ],
)
def test_mistakes_that_only_machines_tell_leave_no_folder(
    tmp_path: Path, more: str, message: str
) -> None:
    with pytest.raises(InputError) as error:
        made(tmp_path, START + more)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "machine, record, message",
    [
        ("pcs-tabel1", str(RECORD), "plan.toml:1: machine: there is no machine `pcs-tabel1`"),
        ("mine.toml", str(RECORD), "plan.toml:1: machine: mine.toml: cannot be read"),
        ("pcs-table1", "a.fencepost", "plan.toml:3: record: a.fencepost: cannot be read"),
        ("pcs-table1", __file__, f"plan.toml:3: record: {__file__}: this is not a record"),
    ],
)
def test_inputs_that_are_not_there_leave_no_folder(
    tmp_path: Path, machine: str, record: str, message: str
) -> None:
    text = f'machine = "{machine}"\nrecord = [\n"{record}"]\n'
    with pytest.raises(InputError) as error:
        folder.made(plan.parsed(text, "plan.toml", Path()), tmp_path / "a" / "b" / "s.sweep")
    assert str(error.value).startswith(message)
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_a_machines_file_is_told_there(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('description = "a"\nextends = "pcs-table1"\n[pm]\nbank = 2\n')
    with pytest.raises(InputError) as error:
        made(tmp_path, f'machine = "{mine}"\nrecord = "{RECORD}"\n')
    assert str(error.value).startswith(f"{mine}:4: pm.bank: ")


def test_folders_above_are_made(tmp_path: Path) -> None:
    assert made(tmp_path / "a" / "b", f'{START}scheme = "pb"\n').count == 1
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["s.sweep"]


def test_what_points_that_are_done_do_not_have_is_told(tmp_path: Path) -> None:
    text = f'{START}scheme = "pb"\nextract = ["simulated_ns"]\n'
    first = made(tmp_path, text)
    wider = text.replace('"]', '", "cost.bits"]')
    again = folder.made(plan.parsed(wider, "plan.toml", Path()), first.path)
    assert not again[1]
    subprocess.run([FENCEPOST, "point", "-q", first.path, "0"], check=True)
    widest = wider.replace('"]', '", "persist.count"]') + 'keep = "full"\n'
    _, [warning] = folder.made(plan.parsed(widest, "plan.toml", Path()), first.path)
    assert warning.startswith("points that are done have no persist.count, the whole document")


PLANS = [
    START,
    f'{START}scheme = ["nopb"]\n[axes]\n"pm.banks" = [1, 2]\nplacement = [""]\n',
    f'{START}[axes]\n"pm.banks" = {{from = 1, to = 4}}\n[sampling]\nhow = "random"\npoints = 2\n',
    f'{START}[options]\npm = ["heap"]\nseed = 1\n[limits]\nseconds = 1.5\nmemory_mb = 64\n',
    example.plan("pcs-table1", str(RECORD)),
]


@pytest.mark.parametrize("text", PLANS)
def test_the_schema_accepts_plans(text: str) -> None:
    plan.parsed(text, "plan.toml", Path())
    jsonschema.validate(Node.parsed(text, "plan.toml").value, schema.schema())


@pytest.mark.parametrize(
    "text", ['machine = "a"\n', f"{START}sceme = 1\n", f"{START}keep = 'all'\n"]
)
def test_the_schema_refuses_what_plans_cannot_say(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(Node.parsed(text, "plan.toml").value, schema.schema())
    refused(text)


def test_the_usual_figures_are_numbers_of_a_run() -> None:
    assert [figure_paths.wrong(name) for name in plan.USUAL] == [None] * len(plan.USUAL)
    for name in ("instructions", "statistics.host0.core0.instructions", "forced_waits"):
        assert figure_paths.wrong(name) is None


def test_a_folder_that_is_no_sweep_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s.sweep").mkdir()
    (tmp_path / "s.sweep" / "thesis.tex").touch()
    with pytest.raises(InputError, match="no sweep's folder"):
        made(tmp_path, START)


def test_machines_with_other_numbers_of_hosts_want_records_for_each(tmp_path: Path) -> None:
    text = f'machine = "pcs-table1-2hosts"\nrecord = "{RECORD}"\nscheme = "pb"\n'
    with pytest.raises(
        InputError, match=r"plan.toml:2: record: .* has 2 hosts, and persist_loops is 1 record"
    ):
        made(tmp_path, text)
    hosts = f'{{name = "pair", hosts = ["{RECORD}", "{RECORD}"]}}'
    both = f'machine = "pcs-table1-2hosts"\nrecord = [{hosts}]\nscheme = "pb"\n'
    [point] = made(tmp_path, both).points()
    assert len(point.records) == 2
