"""What a study is: cells to replay, rows that are read off them, and the sections of its page.

Most studies are a `CellStudy`, which says these three and nothing else. One that needs more (a
report of its own, programs of the user's) implements `Study` itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fencepost import reliability
from fencepost.evidence_shape import provenance
from fencepost.rows import misses
from fencepost.rows.lab import Lab
from fencepost.rows.page import Section, markdown
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells, Sources, Watch
from fencepost.runs.progress import unwatched
from fencepost.runs.simulator import simulator
from fencepost.runs.task import Run

Document = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of a study that can be asked for alone."""

    name: str
    title: str


@dataclass(frozen=True)
class Asked:
    """Which parts of a study, and whose programs if not its own."""

    parts: tuple[str, ...]
    programs_file: Path | None = None


class Outcome(ABC):
    """What came of the parts that were run."""

    rows: Sequence[Row]
    pictures: dict[str, str]  # SVG by file name, which begins with the name of the study

    @property
    @abstractmethod
    def document(self) -> Document:
        """What `--json` writes: `provenance`, `rows`, and whatever is the study's own."""

    @property
    @abstractmethod
    def markdown(self) -> str:
        """The page of the study, of an outcome of all parts."""

    @property
    def report(self) -> str | None:
        """A report for a browser (HTML), if the study has one."""
        return None

    @property
    def elapsed(self) -> list[str]:
        """What each part took, a line each."""
        return []

    @property
    @abstractmethod
    def runs(self) -> list[tuple[str, Run]]:
        """Each replay with its name."""

    @property
    def unreliable(self) -> list[str]:
        """The replays whose figures must not be used, with the reasons."""
        return [f"{name}: {reason}" for name, run in self.runs for reason in _reasons(run)]

    @property
    def is_reliable(self) -> bool:
        """Whether the figures of all replays can be used."""
        return reliability.are_reliable(run for _, run in self.runs)

    @property
    def failures(self) -> list[str]:
        """The replays that failed, with the reasons."""
        return [f"{name}: {run['error']}" for name, run in self.runs if "error" in run]


class Study(ABC):
    """A study: one folder of this room, and one line of its list."""

    name: str
    title: str
    parts: tuple[Part, ...]
    quick_parts: tuple[str, ...]
    takes_programs: bool = False  # whether --programs means anything to it
    can_be_set: bool = False  # whether it has rows that a machine may be calibrated to

    @abstractmethod
    def run(self, lab: Lab, asked: Asked, watch: Watch) -> Outcome:
        """Does what is missing of the parts, and reads everything off."""

    def check(self, asked: Asked) -> None:  # noqa: B027 -- most have nothing to check
        """Raises `InputError` for what is wrong before anything runs."""

    def set_rows(self) -> list[Row]:
        """The rows that a machine may be calibrated to, without ours."""
        return []

    def rows(self, lab: Lab) -> list[Row]:
        """The rows of all parts that `lab` wants, on its machines."""
        asked = Asked(tuple(part.name for part in self.parts))
        return [row for row in self.run(lab, asked, unwatched).rows if lab.wants(row.condition)]


class CellStudy(Study):
    """A study whose rows are read off replays of records."""

    introduction: str  # Markdown

    @abstractmethod
    def sources(self, lab: Lab) -> Sources:
        """Where its cells have their records, machines and options from."""

    @abstractmethod
    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        """The replays that a part needs."""

    @abstractmethod
    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        """What is read off the replays of a part."""

    def told(self, reason: str, runs: Cells, lab: Lab) -> str:
        """A reason of experiments/misses.csv, with numbers of these replays in their places."""
        return reason

    def opening(self, parts: Iterable[str], runs: Cells, lab: Lab) -> str:
        """What the page begins with (Markdown), if more than the introduction."""
        return self.introduction

    def sections(self, part: Part, rows: list[Row], runs: Cells, lab: Lab) -> list[Section]:
        """The sections of a part on the page: its rows unless the study has more to show."""
        command = f"fencepost reproduce {self.name} --part {part.name}"
        return [Section(part.title, "", command, rows)]

    def run(self, lab: Lab, asked: Asked, watch: Watch) -> Outcome:
        """Replays the cells of all parts together, then reads rows off."""
        kept = Cells(lab.store, self.sources(lab), lab.jobs, lab.executor)
        cells = [cell for part in asked.parts for cell in self.cells(part, lab)]
        kept.run(cells, watch)
        rows = {
            part: self._explained(self.rows_of(part, kept, lab), kept, lab) for part in asked.parts
        }
        chosen = [part for part in self.parts if part.name in asked.parts]
        sections = [
            section
            for part in chosen
            for section in self.sections(part, rows[part.name], kept, lab)
        ]
        runs = {cell: kept[cell] for cell in cells}
        opening = self.opening(asked.parts, kept, lab)
        return CellOutcome(self, lab.quick, opening, sections, runs, _pictures(sections))

    def _explained(self, rows: list[Row], runs: Cells, lab: Lab) -> list[Row]:
        """With the reasons of known misses; they are about the machines as they are."""
        if lab.changed:
            return rows
        explained = misses.explained(rows, misses.known_misses())
        return [replace(row, reason=self.told(row.reason, runs, lab)) for row in explained]


@dataclass(frozen=True)
class CellOutcome(Outcome):
    """What came of a `CellStudy`."""

    study: CellStudy
    is_quick: bool
    opening: str
    sections: list[Section]
    by_cell: dict[Cell, Run]
    pictures: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> Sequence[Row]:  # type: ignore[override]
        """Those of all sections."""
        return [row for section in self.sections for row in section.rows]

    @property
    def document(self) -> Document:
        """`provenance`, `rows`, and `runs` without their statistics."""
        return {
            "provenance": {
                **provenance(),
                "simulator": simulator()[:16],
                "study": self.study.name,
                "quick": self.is_quick,
            },
            "rows": [row.entry() for row in self.rows],
            "runs": [
                asdict(cell) | {"simulated_ns": run.get("simulated_ns"), "failed": "error" in run}
                for cell, run in self.by_cell.items()
            ],
        }

    @property
    def markdown(self) -> str:
        """The page."""
        study = self.study
        return markdown(study.name, study.title, self.opening, self.sections)

    @property
    def runs(self) -> list[tuple[str, Run]]:
        """By the labels of cells."""
        return [(cell.label, run) for cell, run in self.by_cell.items()]


def _pictures(sections: Iterable[Section]) -> dict[str, str]:
    return {name: one.svg for section in sections for name, one in section.pictures.items()}


def _reasons(run: Run) -> list[str]:
    return [] if "error" in run else reliability.reasons(run)
