"""The socket's own caches: a thread that stays in the last level beside threads that do not."""

from __future__ import annotations

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel.adapter import stages
from fencepost.studies.memchannel.pictures import bars
from fencepost.studies.memchannel.points import point, results
from fencepost.studies.memchannel.published import without
from fencepost.studies.memchannel.streams import (
    CONTENDERS,
    LAST_LEVEL,
    LOCAL,
    PORT,
    chasing,
    streaming,
)
from fencepost.studies.memchannel.topic import CONTENTION, Topic, row
from fencepost.studies.study import Part

WHAT = "uncore contention"
HITS = "a thread that stays in the last level beside streams from CXL"
MIXED = "a thread on local memory beside streams from local memory and CXL"


class Uncore(Topic):
    """Latencies of hits, and of local memory."""

    part = Part("uncore", "Contention in the uncore")
    page = CONTENTION
    description = (
        "Every request holds an entry of the last level's request table until it is answered, hit "
        "or miss. "
        "Streams from a saturated port hold theirs long enough to fill the table, and then even "
        "hits queue for an entry."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Hits alone and beside, and local memory beside both kinds of streams."""
        half = CONTENDERS // 2
        mixed = [*streaming([LOCAL], half), *streaming(PORT, half)]
        alone, beside, local, both = results(
            lab,
            [
                point([chasing(LAST_LEVEL)]),
                point([chasing(LAST_LEVEL), *streaming()]),
                point([chasing(LOCAL)]),
                point([chasing(LOCAL), *mixed]),
            ],
        )
        low, high = without(WHAT, "latency")
        [ratio] = without(WHAT, "latency ratio")
        hit, waited = traffic.latency(alone, 0), traffic.latency(beside, 0)
        rise = traffic.latency(both, 0) / traffic.latency(local, 0)
        return [
            row(HITS, "latency alone", low, hit, "ns", is_set=True),
            row(HITS, "latency beside", high, waited, "ns", is_set=True),
            row(HITS, "latency ratio", high / low, waited / hit, "", follows="the two latencies"),
            row(MIXED, "latency ratio", ratio, rise, ""),
        ]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """A hit alone and beside the streams."""
        found = results(
            lab, [point([chasing(LAST_LEVEL)]), point([chasing(LAST_LEVEL), *streaming()])]
        )
        return {
            "memchannel-uncore.svg": bars(
                "A hit of the last level; marks are published",
                {"latency": [traffic.latency(one, 0) for one in found]},
                ["alone", "beside streams from CXL"],
                "ns",
                {"latency": without(WHAT, "latency")},
            )
        }

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Where the time of a hit goes."""
        alone, beside = results(
            lab, [point([chasing(LAST_LEVEL)]), point([chasing(LAST_LEVEL), *streaming()])]
        )
        return [stages({"alone": alone, "beside the others": beside})]
