"""The result of a sweep as one tidy table: a row a point, coordinates and figures as columns.

Every time is in ns, as the names of columns say; rates are from 0 to 1. A figure without data is
empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost._core import InputError, there_is_no
from fencepost.ask.sensitivity.ranges import typed
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.point import Value

Line = dict[str, Any]

POINT, RELIABLE, FAILED = "point", "reliable", "failed"
SPEEDUP = "speedup"
RUN_TIME = "simulated_ns"
BRIEF = (RUN_TIME, "persist.latency_ns.mean")  # what a terminal shows first


@dataclass(frozen=True)
class Baseline:
    """`AXIS=VALUE`: ratios are over the point that differs in that axis alone."""

    axis: str
    value: Value

    @classmethod
    def read(cls, text: str, table: Table) -> Baseline:
        """Raises `InputError`, also for a value that no point has."""
        coordinates = table.coordinates
        axis, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--baseline {text}: it has to be AXIS=VALUE, such as scheme=nopb")
        if axis not in coordinates:
            raise InputError(f"--baseline {text}: {there_is_no('axis', axis, list(coordinates))}")
        found = cls(axis, typed(value))
        others: dict[str, None] = {}
        for point in table.folder.points():
            own = point.coordinates.get(axis)
            if own == found.value:
                return found
            others[str(own)] = None
        raise InputError(f"--baseline {text}: {there_is_no('value', value, list(others))}")


@dataclass(frozen=True)
class Table:
    """Rows of a folder, read anew each time they are gone through."""

    folder: Folder
    baseline: Baseline | None = None

    @cached_property
    def coordinates(self) -> list[str]:
        """Names of the columns that say where a point is, of all plans that the folder had."""
        names: dict[str, None] = {}
        for point in self.folder.points():
            names.update(dict.fromkeys(point.coordinates))
        order = ["machine", "record", "scheme", *self.folder.plan.axes]
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    @property
    def figures(self) -> list[str]:
        """Names of the columns that say what came of it."""
        return list(self.folder.plan.extract)

    @property
    def ratios(self) -> list[str]:
        """Names of the columns over the baseline."""
        if self.baseline is None:
            return []
        over = [f"{name}/{self.baseline.axis}={self.baseline.value}" for name in self.figures]
        return [*([SPEEDUP] if RUN_TIME in self.figures else []), *over]

    @property
    def columns(self) -> list[str]:
        """All names."""
        return [POINT, *self.coordinates, *self.figures, *self.ratios, RELIABLE, FAILED]

    def lines(self) -> Iterator[Line]:
        """A dictionary for each point that has a row, in their order."""
        if self.baseline is None:
            yield from self._plain()
            return
        others = {self._place(line): line for line in self._plain() if self._is_base(line)}
        for line in self._plain():
            yield line | self._over(line, others.get(self._place(line)))

    def _plain(self) -> Iterator[Line]:
        rows = self.folder.results.all()
        row = next(rows, None)
        for point in self.folder.points():
            if row is not None and row[POINT] == point.number:
                if row["id"] != point.identity:
                    raise InputError(
                        f"{self.folder.path}: the row of point {point.number} is not of the point "
                        "that `points` has there"
                    )
                found = row.get("figures", {})
                yield {
                    POINT: point.number,
                    **point.coordinates,
                    **{name: found.get(name) for name in self.figures},
                    RELIABLE: row.get("reliable"),
                    FAILED: row.get("failed"),
                }
                row = next(rows, None)

    def _is_base(self, line: Line) -> bool:
        assert self.baseline is not None
        return bool(line.get(self.baseline.axis) == self.baseline.value)

    def _place(self, line: Line) -> tuple[tuple[str, Any], ...]:
        """Where a point is in all axes but the baseline's."""
        assert self.baseline is not None
        apart = {POINT, RELIABLE, FAILED, self.baseline.axis, *self.figures}
        return tuple((name, value) for name, value in line.items() if name not in apart)

    def _over(self, line: Line, base: Line | None) -> Line:
        assert self.baseline is not None
        found: Line = {}
        for name in self.figures:
            own, other = line[name], None if base is None else base[name]
            if name == RUN_TIME:
                found[SPEEDUP] = None if not own or other is None else other / own
            ratio = None if own is None or not other else own / other
            found[f"{name}/{self.baseline.axis}={self.baseline.value}"] = ratio
        return found


def chosen(table: Table, option: str, asked: Sequence[str] | None) -> list[str]:
    """The columns that somebody asked for by this option, or all; raises `InputError`."""
    if not asked:
        return table.columns
    known = table.columns
    for name in asked:
        if name not in known:
            raise InputError(f"{option} {name}: {there_is_no('column', name, known)}")
    return list(asked)


def brief(table: Table) -> list[str]:
    """The columns that a terminal has room for: coordinates that differ, and the first figures."""
    seen: dict[str, set[Any]] = {}
    for point in table.folder.points():
        for name, value in point.coordinates.items():
            values = seen.setdefault(name, set())
            if len(values) < 2:
                values.add(value)
    differ = [name for name in table.coordinates if len(seen[name]) > 1]
    usual = [name for name in BRIEF if name in table.figures]
    figures = usual or table.figures[: len(BRIEF)]
    ratios = [name for name in table.ratios if name == SPEEDUP]
    return [POINT, *differ, *figures, *ratios, RELIABLE, FAILED]


def grouped(lines: Iterable[Line], by: Sequence[str], figures: Sequence[str]) -> Iterator[Line]:
    """The mean of each figure, and of how many points, for each combination of these columns."""
    sums: dict[tuple[Any, ...], list[list[float]]] = {}
    for line in lines:
        into = sums.setdefault(tuple(line.get(name) for name in by), [[] for _ in figures])
        for known, name in zip(into, figures, strict=True):
            if isinstance(line.get(name), int | float):
                known.append(line[name])
    for place, found in sums.items():
        means = {
            name: sum(one) / len(one) if one else None
            for name, one in zip(figures, found, strict=True)
        }
        yield dict(zip(by, place, strict=True)) | {"points": max(map(len, found))} | means


def csv_text(lines: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Lines of a CSV file, the names of columns first."""
    yield _csv_line(dict(zip(columns, columns, strict=True)), columns)
    for one in lines:
        yield _csv_line(one, columns)


def _csv_line(line: Mapping[str, Any], columns: Sequence[str]) -> str:
    text = io.StringIO()
    values = [line.get(name) for name in columns]
    written = [str(value).lower() if isinstance(value, bool) else value for value in values]
    csv.writer(text, lineterminator="\n").writerow(written)
    return text.getvalue()


def write_parquet(lines: Iterable[Line], columns: Sequence[str], path: Path) -> None:
    """A Parquet file; raises `InputError` without the library for it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "--parquet needs pyarrow; type: pip install 'fencepost[parquet]', or take --csv"
        ) from None
    every = list(lines)
    arrays = {name: _array(pyarrow, [line.get(name) for line in every]) for name in columns}
    temporary = path.with_name(f".{path.name}.partial")
    try:
        pyarrow.parquet.write_table(pyarrow.table(arrays), temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _array(pyarrow: Any, values: list[Any]) -> Any:
    """A column, of texts where its values are of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) <= 1:
        return pyarrow.array(
            [float(one) if kinds == {int, float} and one is not None else one for one in values]
        )
    return pyarrow.array([None if one is None else str(one) for one in values])
