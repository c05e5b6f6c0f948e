"""A result document of which any member is wrong has one clear message, and no traceback."""

from __future__ import annotations

import copy
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fencepost import difference, documents, report, result_shape, table
from fencepost._core import InputError
from fencepost.ask import trace
from fencepost.report.view import view
from fencepost.result_shape import MEASURES
from fencepost.runs import axes
from installed import Fencepost

Step = str | int

SOME: list[Any] = [None, -1, "text", [None]]
MORE: list[Any] = [True, 0.5, 1e99, 10**30, "-1", [], {}, {"x": None}]
DEPTH = 7
# What the report shows of a machine; the simulator's own checks of the rest are tested elsewhere.
MACHINE_SHOWN = ("fabric", "hold_up")
ALIKE = set(MEASURES) - {"persist", "fence_stall"}


def few(members: dict[str, Any]) -> dict[str, Any]:
    return dict(list(members.items())[:2])


@pytest.fixture(scope="module")
def replayed(fft_record: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A small real result with every kind of member, and few of each."""
    import fencepost as fp

    options = {"schemes": ["nopb", "pb"], "power": True, "limit_instructions": 200_000}
    document = fp.compare("pcs-table1", fft_record, **options).document
    for run in document["runs"]:
        core, buffer = run["statistics"]["host0"]["core0"], run["statistics"]["switch0"]
        run["statistics"] = {"host0": {"core0": few(core)}, "switch0": few(buffer)}
        if "persist_buffer" in buffer:
            occupancy = {"occupancy": buffer["persist_buffer"]["occupancy"]}
            run["statistics"]["switch0"]["persist_buffer"] = occupancy
        stacks = run["latency_stacks"]
        run["latency_stacks"] = {name: stacks[name] for name in ("persist", "llc_read")}
        for counted in (run, *run["hosts"], *run["regions"]):
            for measure in set(MEASURES) & counted.keys():
                counted[measure]["cdf"] = counted[measure]["cdf"][:2]
        run["sampling"] = {
            "plan": "1M:30k:120k",
            **{"period": 1_000_000, "detail": 30_000, "warmup": 120_000, "coefficients": 3},
            "estimates": {"simulated_ns": {"value": 1.0, "half_width": 0.1}},
            "intervals": [[0, 1, 2, 3.0, -0.5], [0, 1, 2, 3.0, 0.5], [0, 1, 2, 3.0, 0.25]],
        }
    document["provenance"]["machines"]["pcs-table1"]["hold_up"] = {"energy_uj": 5.0}
    path = tmp_path_factory.mktemp("result") / "r.json"
    documents.write_json(path, document)
    written: dict[str, Any] = json.loads(path.read_text())
    return written


def members(node: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every member; of lists and of runs the first."""
    if path:
        yield path
    if len(path) >= DEPTH or (path[2:3] and path[2] in ALIKE):
        return
    if path[1:2] == ("machines",) and len(path) == 4 and path[3] not in MACHINE_SHOWN:
        return
    if isinstance(node, dict):
        for name, member in node.items():
            yield from members(member, (*path, name))
    elif isinstance(node, list) and node:
        yield from members(node[0], (*path, 0))


def changed(document: dict[str, Any], path: tuple[Step, ...], value: Any) -> dict[str, Any]:
    """A document that differs in one member; only what is on the way there is copied."""
    copied = copy.copy(document)
    node: Any = copied
    for step in path[:-1]:
        node[step] = copy.copy(node[step])
        node = node[step]
    node[path[-1]] = value
    return copied


def read(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    path.write_text(json.dumps(document))
    return documents.read_result(path)


def reported(document: dict[str, Any]) -> None:
    view(document)
    table.show(document, Console(file=io.StringIO()), Console(file=io.StringIO()))


def compared(document: dict[str, Any], other: dict[str, Any]) -> None:
    found = difference.between(document, other)
    difference.show(found, Console(file=io.StringIO()), Console(file=io.StringIO()))


def followed(path: Path, document: dict[str, Any], record: Path) -> None:
    """A timeline, up to where the simulator would begin."""
    key = trace.run_of(document, None)
    trace.records_of(path, document)
    experiment = trace.experiment_of(path, document, [record])
    experiment._task(key).job()


@pytest.mark.slow
@pytest.mark.parametrize("others", [SOME, pytest.param(MORE, marks=pytest.mark.slow)])
def test_any_member_of_another_kind_is_refused_or_does_no_harm(
    replayed: dict[str, Any],
    fft_record: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    others: list[Any],
) -> None:
    # What a table holds is made; laying it out takes most of the time, and asks no document.
    monkeypatch.setattr("fencepost.terminal.print_table", lambda output, table: None)
    monkeypatch.chdir(tmp_path)
    Path(fft_record.name).symlink_to(fft_record)
    path = tmp_path / "r.json"
    whole = read(path, replayed)
    refused, harmless = 0, 0
    for member in members(replayed):
        for value in others:
            try:
                document = read(path, changed(replayed, member, value))
                reported(document)
                compared(document, whole)
                if member[0] == "provenance" or member[-1] in ("runs", "scheme", "machine"):
                    followed(path, document, fft_record)
            except InputError as error:
                said = str(error)
                assert str(path) in said or value == [], (member, value, said)
                # The simulator names every key of a machine that is wrong.
                assert "\n" not in said or "provenance.machines." in said, (member, value)
                refused += 1
            except Exception as error:
                raise AssertionError(f"{member} = {value!r}: {error!r}") from error
            else:
                harmless += 1
    assert refused > 200 * len(others)
    assert harmless > 20 * len(others)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("runs", 5, "`provenance` is an object, and `runs` a list"),
        ("runs[0].statistics", [], "runs[0].statistics is []; it has to be an object"),
        (
            "runs[1].persist.count",
            "many",
            'runs[1].persist.count is "many"; it has to be a whole number from 0 on',
        ),
        ("runs[0].explanation", None, "runs[0].explanation is null; it has to be an object"),
        (
            "runs[0].persist.latency_ns.mean",
            [1],
            "runs[0].persist.latency_ns.mean is a list; it has to be a number from 0 on or null",
        ),
        (
            "provenance.baseline",
            "nopb",
            'provenance.baseline is "nopb"; it has to be AXIS=VALUE with an axis of scheme, '
            "placement, threads, transport or null",
        ),
        ("runs[1].axes.scheme", 1, "runs[1].axes.scheme is 1; it has to be a text"),
        ("runs[1].scheme", None, "runs[1].scheme is null; it has to be a text"),
        (
            "runs[1].machine",
            "elsewhere",
            'runs[1].machine is "elsewhere"; it has to be a name in provenance.machines',
        ),
        (
            "runs[0].statistics.host0",
            "x" * 100,
            f'runs[0].statistics.host0 is "{"x" * 38}…; it has to be an object',
        ),
        (
            "provenance.machines.pcs-table1.fabric.edges[0]",
            "host0 -> nowhere",
            "provenance.machines.pcs-table1.fabric.edges[0] is "
            '"host0 -> nowhere"; it has to be A -> B with names of hosts, switches, devices, '
            "expanders or accelerators",
        ),
        (
            "runs[0].latency_stacks.persist.parts.gremlins",
            1,
            'runs[0].latency_stacks.persist.parts has a member "gremlins"; its names have to be of',
        ),
    ],
)
@pytest.mark.parametrize("command", ["report R", "diff R R", "timeline R -o x"])
def test_the_message_says_where_and_what_would_be_right(
    replayed: dict[str, Any],
    fencepost_here: Fencepost,
    tmp_path: Path,
    command: str,
    member: str,
    value: Any,
    message: str,
) -> None:
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[\w-]+", member)]
    documents.write_json(tmp_path / "R", changed(replayed, tuple(steps), value))
    done = fencepost_here(*command.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"R: not a result: {message}" in done.stderr


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 5000])
def test_what_is_no_number_is_refused(
    replayed: dict[str, Any], tmp_path: Path, number: str
) -> None:
    text = json.dumps(changed(replayed, ("runs", 0, "simulated_ns"), "NUMBER"))
    path = tmp_path / "r.json"
    path.write_text(text.replace('"NUMBER"', number))
    with pytest.raises(InputError, match=r"r\.json: not a result: "):
        documents.read_result(path)


def test_the_axes_are_those_of_runs() -> None:
    assert tuple(axes.AXES) == result_shape.AXES


def test_the_real_result_is_right(replayed: dict[str, Any], tmp_path: Path) -> None:
    document = read(tmp_path / "r.json", replayed)
    assert report.html(document)
