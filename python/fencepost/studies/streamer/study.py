"""The study as a whole: its parts in their order, and its page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fencepost.rows.lab import Lab
from fencepost.rows.page import Page, Section
from fencepost.rows.row import Row
from fencepost.runs.cells import Cell, Cells, Sources
from fencepost.studies.streamer import reasons
from fencepost.studies.streamer.beyond.durable import Durable
from fencepost.studies.streamer.beyond.forward import Forward
from fencepost.studies.streamer.beyond.interleaved import Interleaved
from fencepost.studies.streamer.beyond.sharing import Sharing
from fencepost.studies.streamer.beyond.solver import Solver
from fencepost.studies.streamer.claims import Claims
from fencepost.studies.streamer.figures import Figures
from fencepost.studies.streamer.groups import Group, Unknown, row_of
from fencepost.studies.streamer.method import method
from fencepost.studies.streamer.series import measured, setup_2, without_data
from fencepost.studies.streamer.sources import StreamerSources
from fencepost.studies.streamer.steady import Steady
from fencepost.studies.streamer.topic import Topic
from fencepost.studies.study import CellStudy, Part

GROUPS: tuple[Group | Unknown, ...] = (
    Group(Part("1a", "App-Direct on local memory"), "One socket, its own DDR5, in a pool."),
    Group(
        Part("1b", "App-Direct on far memory"),
        "One socket, the other one's DDR5 or the expander's DDR4, in a pool.",
    ),
    Group(
        Part("1c", "App-Direct with both sockets computing"),
        "`close` fills socket 0 before it takes cores of socket 1, `spread` takes both in turn.",
    ),
    Group(Part("2a", "Far memory as a NUMA node"), "One socket, plain memory."),
    Unknown(
        Part("2b", "NUMA nodes with both sockets computing"),
        "Plain memory. No measurements of these points are published.",
        tuple(without_data()),
    ),
)
TOPICS: tuple[Topic, ...] = (
    *GROUPS,
    Unknown(
        Part("setup2", "Setup 2: two sockets with DDR4"),
        "All groups but for CXL memory. No measurements of these points are published.",
        tuple(setup_2()),
    ),
    Figures(GROUPS),
    Claims(),
    Steady(),
    Durable(),
    Forward(),
    Interleaved(),
    Sharing(),
    Solver(),
)
_BY_NAME = {topic.part.name: topic for topic in TOPICS}

_APP_DIRECT = Page("streamer-app-direct", "App-Direct: arrays in a pool", "groups 1a, 1b and 1c")
_NUMA = Page("streamer-numa", "Plain memory of a NUMA node", "group 2a")
_UNMEASURED = Page(
    "streamer-unmeasured",
    "Points that nobody published, and the study's figures",
    "group 2b, Setup 2, Figures 5 to 9",
)
_CLAIMS = Page("streamer-claims", "What the study claims", "its text, its data, and the arrays")
_DURABLE = Page("streamer-durable", "Durable STREAM and a solver with checkpoints")
_FORWARD = Page(
    "streamer-forward",
    "Faster, more and shared expanders",
    "what the study hopes for",
)
_PAGES = {
    **dict.fromkeys(("1a", "1b", "1c"), _APP_DIRECT),
    "2a": _NUMA,
    **dict.fromkeys(("2b", "setup2", "figures"), _UNMEASURED),
    **dict.fromkeys(("claims", "steady"), _CLAIMS),
    **dict.fromkeys(("durable", "cg"), _DURABLE),
    **dict.fromkeys(("forward", "interleave", "sharing"), _FORWARD),
}


INTRODUCTION = Path(__file__).with_name("introduction.md").read_text(encoding="utf-8")


class Streamer(CellStudy):
    """STREAM on local, remote and CXL memory."""

    name = "streamer"
    title = "STREAM on local, remote and CXL memory"
    introduction = INTRODUCTION
    can_be_set = True
    parts = tuple(topic.part for topic in TOPICS)
    quick_parts = ("1a", "1b", "1c", "2a", "claims")

    def set_rows(self) -> list[Row]:
        """Group 2a and the ten-thread points of 1a."""
        return [row_of(one, None) for one in measured() if one.point.is_set]

    def sources(self, lab: Lab) -> Sources:
        """Records are made where they are missing."""
        return StreamerSources(lab)

    def cells(self, part: str, lab: Lab) -> Iterable[Cell]:
        """Those of the part's topic."""
        return _BY_NAME[part].cells(lab)

    def rows_of(self, part: str, runs: Cells, lab: Lab) -> list[Row]:
        """Those of the part's topic."""
        return _BY_NAME[part].rows(runs, lab)

    def told(self, reason: str, runs: Cells, lab: Lab) -> str:
        """With counters of these replays."""
        return reasons.filled(reason, runs)

    def sections(self, part: Part, rows: list[Row], runs: Cells, lab: Lab) -> list[Section]:
        """One with the topic's tables and pictures, unless single rows are wanted; before the first
        topic, how they are compared.
        """
        topic = _BY_NAME[part.name]
        command = f"fencepost reproduce {self.name} --part {part.name}"
        of = (part.title, topic.description, command, rows)
        if lab.conditions is not None:
            return [Section(*of)]
        tables, pictures = topic.tables(runs, lab), topic.pictures(runs, lab)
        own = Section(*of, tables, pictures, page=_PAGES[part.name])
        if topic is TOPICS[0]:
            return [Section("How rows are compared", method(runs), "", []), own]
        return [own]


STREAMER = Streamer()
