"""The study as a whole: its parts in their order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fencepost.rows.lab import Lab
from fencepost.rows.page import Section
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells, Sources
from fencepost.studies.memchannel.adaptation import Adaptation
from fencepost.studies.memchannel.adapter import Adapter
from fencepost.studies.memchannel.beyond import Beyond
from fencepost.studies.memchannel.fabric import Fabric
from fencepost.studies.memchannel.fairness import Fairness
from fencepost.studies.memchannel.platform import Platform
from fencepost.studies.memchannel.prefetch import Prefetch
from fencepost.studies.memchannel.services import Services
from fencepost.studies.memchannel.shares import Shares
from fencepost.studies.memchannel.sources import ProgramSources
from fencepost.studies.memchannel.tiering import Tiering
from fencepost.studies.memchannel.topic import Topic
from fencepost.studies.memchannel.uncore import Uncore
from fencepost.studies.memchannel.victims import Victims
from fencepost.studies.study import CellStudy, Part

_VICTIMS = Victims()
TOPICS: tuple[Topic, ...] = (
    Platform(),
    Adapter(),
    Uncore(),
    Fabric(),
    Shares(),
    Prefetch(),
    _VICTIMS,
    Fairness(),
    Services(),
    Adaptation(),
    Tiering(),
    Beyond(),
)
_BY_NAME = {topic.part.name: topic for topic in TOPICS}


class Memchannel(CellStudy):
    """Contention in a switched pool, and a transport against it."""

    name = "memchannel"
    title = "Streams in a switched CXL pool, and a fair transport"
    parts = tuple(topic.part for topic in TOPICS)
    quick_parts = tuple(topic.part.name for topic in TOPICS)
    introduction = Path(__file__).with_name("introduction.md").read_text(encoding="utf-8")

    def sources(self, lab: Lab) -> Sources:
        """Records are made where they are missing."""
        return ProgramSources(lab)

    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        """Those of the part's topic."""
        return _BY_NAME[part].cells(lab)

    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        """Those of the part's topic that the lab wants."""
        lab.log(_BY_NAME[part].part.title)
        return [row for row in _BY_NAME[part].rows(runs, lab) if lab.wants(row.condition)]

    def opening(self, parts: Iterable[str], runs: Cells, lab: Lab) -> str:
        """The answer, where its part was run, then what the pages are about."""
        told = _VICTIMS.part.name in parts and lab.conditions is None
        return "\n".join([*([_VICTIMS.answer(runs, lab)] if told else []), self.introduction])

    def sections(self, part: Part, rows: list[Row], runs: Cells, lab: Lab) -> list[Section]:
        """One with the topic's tables and pictures, unless single rows are wanted."""
        topic = _BY_NAME[part.name]
        command = f"fencepost reproduce {self.name} --part {part.name}"
        of = (part.title, topic.description, command, rows)
        if lab.conditions is not None:
            return [Section(*of, is_brief=True, page=topic.page)]
        shown = (topic.tables(runs, lab), topic.pictures(runs, lab))
        more = topic.data(runs, lab)
        return [Section(*of, *shown, is_brief=True, data=more, page=topic.page)]


MEMCHANNEL = Memchannel()
