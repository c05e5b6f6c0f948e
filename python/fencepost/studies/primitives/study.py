"""The study as a whole: its parts in their order, and its page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fencepost.rows.lab import Lab
from fencepost.rows.page import Page, Section
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells, Sources, Watch
from fencepost.studies.primitives import reasons
from fencepost.studies.primitives.benchmark import OPERATIONS, SET_SIZE, THREADS, left_out
from fencepost.studies.primitives.corun import Corun
from fencepost.studies.primitives.fabrics import Fabrics
from fencepost.studies.primitives.footprint import Footprint
from fencepost.studies.primitives.logs import Logs
from fencepost.studies.primitives.read_share import ReadShare
from fencepost.studies.primitives.sources import PrimitivesSources
from fencepost.studies.primitives.stalls import Stalls
from fencepost.studies.primitives.topic import MISS_RATE_WITHIN, WITHIN, Topic
from fencepost.studies.study import Asked, CellStudy, Outcome, Part

FABRICS = Fabrics()
TOPICS: tuple[Topic, ...] = (FABRICS, Footprint(), Logs(), ReadShare(), Stalls(), Corun())
_BY_NAME = {topic.part.name: topic for topic in TOPICS}

_HERE = Path(__file__).parent
INTRODUCTION = (_HERE / "introduction.md").read_text(encoding="utf-8")
METHOD = (
    (_HERE / "method.md")
    .read_text(encoding="utf-8")
    .format(
        within=f"{100 * WITHIN:.0f} %",
        miss_rate_within=MISS_RATE_WITHIN,
        set_size=SET_SIZE,
        operations=OPERATIONS,
        threads=THREADS["bst_p"],
    )
)


class Primitives(CellStudy):
    """Flush, fence and logging primitives."""

    name = "primitives"
    title = "What flush, fence and logging cost"
    introduction = INTRODUCTION
    parts = tuple(topic.part for topic in TOPICS)
    quick_parts = ("fabrics", "footprint", "stalls")

    def sources(self, lab: Lab) -> Sources:
        """Records are made where they are missing."""
        return PrimitivesSources(lab)

    def run(self, lab: Lab, asked: Asked, watch: Watch) -> Outcome:
        """Says what is left out, first."""
        if (reason := left_out()) is not None:
            lab.log(f"AArch64 is left out: {reason}")
        return super().run(lab, asked, watch)

    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        """Those of the part's topic."""
        return _BY_NAME[part].cells(quick=lab.quick)

    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        """Those of the part's topic."""
        return _BY_NAME[part].rows(runs, quick=lab.quick)

    def told(self, reason: str, runs: Cells, lab: Lab) -> str:
        """With the numbers of what was replayed."""
        return reasons.filled(reason, runs)

    def opening(self, parts: Iterable[str], runs: Cells, lab: Lab) -> str:
        """The decision, where its part was run, then what the page is about."""
        decided = FABRICS.part.name in parts
        texts = [FABRICS.decision(runs, quick=lab.quick)] if decided else []
        reason = left_out()
        return "\n".join(
            [*texts, INTRODUCTION, *([f"AArch64 is left out: {reason}.\n"] if reason else [])]
        )

    def sections(self, part: Part, rows: list[Row], runs: Cells, lab: Lab) -> list[Section]:
        """One with the topic's tables; behind the decision table, how the others are judged."""
        topic = _BY_NAME[part.name]
        command = f"fencepost reproduce {self.name} --part {part.name}"
        tables = topic.tables(runs, quick=lab.quick)
        pictures = topic.pictures(runs, quick=lab.quick)
        page = Page(f"{self.name}-{part.name}")
        own = Section(part.title, topic.description, command, rows, tables, pictures, page=page)
        return [own, Section("When a row holds", METHOD, "", [])] if topic is FABRICS else [own]


PRIMITIVES = Primitives()
