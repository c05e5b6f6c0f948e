"""The rows that a machine is calibrated to: a CSV file, or what Intel MLC printed."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost import documents
from fencepost._core import InputError, there_is_no
from fencepost.calibrate import measurement
from fencepost.calibrate.measurement import UNITS, Measurement
from fencepost.rows.row import HELD_OUT, PUBLISHED, QUALITIES, SET

if TYPE_CHECKING:
    from fencepost.calibrate.study_rows import StudyRow

REQUIRED = ("metric", "condition", "expected", "unit")
OPTIONAL = ("study", "source", "quality", "role", "group")


@dataclass(frozen=True)
class Target:
    """A row as it was given: what is measured, what is expected of it, and whether it is set."""

    study: str
    condition: str
    measurement: Measurement | StudyRow
    expected: float  # in the metric's own unit
    unit: str
    source: str
    quality: str
    group: str
    is_set: bool = True
    where: str = field(default="", repr=False)  # file and line, for messages


def from_csv(text: str, name: str) -> list[Target]:
    """The rows of a CSV file; raises `InputError` with the line of the first that is wrong."""
    try:
        return _rows(csv.DictReader(io.StringIO(text), skipinitialspace=True), name)
    except csv.Error as error:
        raise InputError(f"{name}: this is no CSV file: {error}") from error


def _rows(reader: csv.DictReader[str], name: str) -> list[Target]:
    columns = reader.fieldnames or []
    for column in REQUIRED:
        if column not in columns:
            raise InputError(f"{name}: there is no column {column}; {_columns()}")
    for column in columns:
        if column not in (*REQUIRED, *OPTIONAL):
            raise InputError(f"{name}: there is no use for a column {column!r}; {_columns()}")
        if columns.count(column) > 1:
            raise InputError(f"{name}: there are two columns {column}")
    targets: list[Target] = []
    seen: dict[tuple[str, str, str], int] = {}
    for line in reader:
        where = f"{name}:{reader.line_num}"
        if None in line or None in line.values():
            raise InputError(f"{where}: it has to have {len(columns)} cells, as the first line has")
        try:
            target = replace(_target(line, Path(name).stem), where=where)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        key = (target.study, target.measurement.metric, target.condition)
        if key in seen:
            raise InputError(f"{where}: line {seen[key]} has the same metric and condition")
        seen[key] = reader.line_num
        targets.append(target)
    return targets


def _columns() -> str:
    return f"a row has {', '.join(REQUIRED)}, and may have {', '.join(OPTIONAL)}"


def _target(line: dict[str, str], stem: str) -> Target:
    cell = {column: (text or "").strip() for column, text in line.items()}
    asked = measurement.read(cell["metric"], cell["condition"])
    units = UNITS[asked.metric]
    if cell["unit"] not in units:
        raise InputError(f"unit {cell['unit']!r}: {asked.metric} is in {' or '.join(units)}")
    role = cell.get("role") or SET
    if role not in (SET, HELD_OUT):
        raise InputError(f"role {role!r}: it has to be {SET} or {HELD_OUT}")
    quality = cell.get("quality") or PUBLISHED
    if quality not in QUALITIES:
        raise InputError(f"quality {quality!r}: it has to be one of {', '.join(QUALITIES)}")
    return Target(
        study=cell.get("study") or stem,
        condition=cell["condition"],
        measurement=asked,
        expected=_above_zero(cell["expected"]) * units[cell["unit"]],
        unit=next(iter(units)),
        source=cell.get("source") or stem,
        quality=quality,
        group=cell.get("group") or usual_group(asked),
        is_set=role == SET,
    )


def _above_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise InputError(f"expected {text!r}: it has to be a number above 0")
    return number


def usual_group(asked: Measurement) -> str:
    """What a row belongs to by default: a memory when idle, or with a mix of traffic."""
    mix = f"{asked.mix[0]}:{asked.mix[1]}"
    return f"{asked.memory or ''} {'idle' if asked.metric == measurement.IDLE else mix}".lstrip()


def saturated(targets: list[Target]) -> list[Target]:
    """The loaded latencies at nearly the bandwidth that another row has for the same load."""
    highest = {
        replace(target.measurement, metric=measurement.LOADED): target.expected
        for target in targets
        if target.measurement.metric == measurement.BANDWIDTH
    }
    return [
        target
        for target in targets
        if (rate := target.measurement.rate_gb_per_s) is not None
        and target.measurement.curve in highest
        and rate >= measurement.SATURATED * highest[target.measurement.curve]
    ]


def held_out(targets: list[Target], groups: list[str]) -> list[Target]:
    """The same, with these groups held out; raises `InputError` for one that there is not."""
    there = list(dict.fromkeys(target.group for target in targets))
    for group in groups:
        if group not in there:
            raise InputError(f"--hold-out: {there_is_no('group', group, there)}")
    return [
        replace(target, is_set=False) if target.group in groups else target for target in targets
    ]


def text_of(path: Path) -> str:
    """The file's text, without the mark that spreadsheets put before it."""
    return documents.read_text(path).removeprefix("\ufeff")
