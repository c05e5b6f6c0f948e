"""The study as a whole: its parts in their order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from fencepost.rows.lab import Lab
from fencepost.rows.page import Section
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells, Sources
from fencepost.studies.study import CellStudy, Part
from fencepost.studies.type2.device_memory import DeviceMemory
from fencepost.studies.type2.host_memory import HostMemory
from fencepost.studies.type2.peers import Peers
from fencepost.studies.type2.reclaim.topic import Reclaim
from fencepost.studies.type2.topic import Topic

TOPICS: tuple[Topic, ...] = (HostMemory(), DeviceMemory(), Peers(), Reclaim())
_BY_NAME = {topic.part.name: topic for topic in TOPICS}


class NoRecords:
    """The study replays no program."""

    def record(self, cell: Cell) -> NoReturn:
        """Never asked."""
        raise NotImplementedError(cell)

    machine = asked = instructions = record


class Type2(CellStudy):
    """A Type-2 device beside an emulated one, a Type-3 device and a PCIe device."""

    name = "type2"
    title = "CXL Type-2 devices"
    parts = tuple(topic.part for topic in TOPICS)
    quick_parts = tuple(topic.part.name for topic in TOPICS)
    introduction = Path(__file__).with_name("introduction.md").read_text(encoding="utf-8")

    def sources(self, lab: Lab) -> Sources:
        """There are no records."""
        return NoRecords()

    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        """None: bursts are no replays."""
        return []

    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        """Those of the part's topic that the lab wants."""
        lab.log(_BY_NAME[part].part.title)
        return [row for row in _BY_NAME[part].rows(lab) if lab.wants(row.condition)]

    def opening(self, parts: Iterable[str], runs: Cells, lab: Lab) -> str:
        """The introduction, and how many rows about accesses hold that were held out."""
        if lab.conditions is not None:
            return self.introduction
        timed = [_BY_NAME[part] for part in parts if not isinstance(_BY_NAME[part], Reclaim)]
        rows = [row for topic in timed for row in topic.rows(lab)]
        return self.introduction + held_out(rows)

    def sections(self, part: Part, rows: list[Row], runs: Cells, lab: Lab) -> list[Section]:
        """One with the topic's tables and pictures, unless single rows are wanted."""
        topic = _BY_NAME[part.name]
        command = f"fencepost reproduce {self.name} --part {part.name}"
        of = (part.title, topic.description, command, rows)
        if lab.conditions is not None:
            return [Section(*of, page=topic.page)]
        return [Section(*of, topic.tables(lab), topic.pictures(lab), page=topic.page)]


def held_out(rows: Iterable[Row]) -> str:
    """The share of rows that hold, of those about latency and bandwidth that were held out."""
    known = [row for row in rows if row.is_held_out and None not in (row.ours, row.expected)]
    if not known:
        return ""
    hold = sum(row.holds for row in known)
    return (
        f"Of the {len(known)} held-out rows about latency and bandwidth, {hold} hold: "
        f"{hold / len(known):.0%}.\n"
    )


TYPE2 = Type2()
