"""What the study leaves open, or what can be read in two ways: each varied alone.

Under each, programs are replayed again, to a tenth of the study's limit, so that claims can be
judged again; the same replays without a change stand beside them, with a few starts of the threads:
what differs between these no assumption decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost import machines
from fencepost.studies.pcs.replays import MACHINE, Cell
from fencepost.studies.pcs.study import SCHEMES, SWITCHES, Study

PM_WRITES = 10_000  # of each replay: a tenth of the study's

STARTS = 4  # of what is not changed

# Two programs take three quarters of the time that all take to get there, and persist the least.
LEFT_OUT = ("raytrace", "volrend")

# The parts of the study that these replays make claims from.
PARTS = {"schemes", "switches"}


@dataclass(frozen=True)
class Assumption:
    """What the study does not give, and how else it could be: a value on one side of the machine's
    own or on both.
    """

    key: str
    label: str
    low: str | None
    high: str | None
    also: str = ""  # `KEY=VALUE` that goes with it

    @property
    def taken(self) -> str:
        """The machine's own value, which is in its file, with the reason for it."""
        found = _of_machine(self.key)
        return f"{found:g}" if isinstance(found, float) else str(found).lower()

    @property
    def values(self) -> list[str]:
        """What is tried."""
        return [value for value in (self.low, self.high) if value is not None]

    def change(self, value: str) -> str:
        """`KEY=VALUE`, or two of them with a space between."""
        return f"{self.key}={value} {self.also}".rstrip()


def _of_machine(key: str) -> object:
    found: object = machines.resolve(MACHINE, [])
    for name in key.split("."):
        assert isinstance(found, dict)
        found = found[name]
    return found


def cores() -> int:
    """Those of the machine."""
    found = _of_machine("core.count")
    assert isinstance(found, int)
    return found


# A service time of 10 ns is what the four stages of the switch take; an answer of 33 ns is what the
# published ratio of one switch to none asks for.
ASSUMPTIONS = (
    Assumption("switch.persist_buffer.reads_bypass", "reads pass the controller by", None, "false"),
    Assumption("switch.persist_buffer.service_ns", "controller service time, ns", None, "10"),
    Assumption(
        "switch.persist_buffer.service_ns",
        "controller service time, reads in turn, ns",
        None,
        "10",
        also="switch.persist_buffer.reads_bypass=false",
    ),
    Assumption("switch.persist_buffer.tag_access_ns", "tag access, ns", "0.2", "2.5"),
    Assumption("switch.persist_buffer.data_access_ns", "data access, ns", "0.4", "5"),
    Assumption("switch.persist_buffer.input_entries", "PI depth", "4", "64"),
    Assumption("switch.persist_buffer.output_entries", "PO depth", "2", "32"),
    Assumption("switch.pipeline_stage_ns", "stage of the switch, ns", "1", "10"),
    Assumption("link.latency_ns", "ports of a link, one way, ns", "12.5", "50"),
    Assumption("link.bandwidth_gb_per_s", "link, GB/s", "16", "126"),
    Assumption("link.request_with_data_credits", "credits for writes", "4", "64"),
    Assumption("host_bridge.latency_ns", "host bridge, one way, ns", "5", "40"),
    Assumption("pm.ack_at", "PM acknowledges at", None, "media"),
    Assumption("pm.queue_answer_ns", "answer of PM's write queue, ns", "0", "33"),
    Assumption("pm.banks", "banks of the PM", "4", "64"),
    Assumption("pm.write_queue_entries", "write queue of the PM", "110", "512"),
    Assumption("core.rob_entries", "reorder buffer", "96", "512"),
    Assumption("core.flushes_in_flight", "flushes under way", "1", "20"),
    Assumption("core.prefetch_for_ownership", "prefetch for ownership", "false", None),
    Assumption("cache.l1d.mshrs", "misses under way in L1", "4", "32"),
)

CHANGES = [one.change(value) for one in ASSUMPTIONS for value in one.values]


def taken(study: Study) -> Study:
    """The study with nothing changed, to the limit of this part."""
    return study.without(LEFT_OUT).under(None, PM_WRITES)


def starts(study: Study) -> list[Study]:
    """The same with each start."""
    return [taken(study).at_start(seed) for seed in range(STARTS)]


def under(study: Study, change: str) -> Study:
    """The study with that change, to the limit of this part."""
    return study.without(LEFT_OUT).under(change, PM_WRITES)


def cells(study: Study) -> Iterator[Cell]:
    """The replays of this part."""
    for view in (*starts(study), *(under(study, change) for change in CHANGES)):
        for name in view.names:
            for scheme in SCHEMES:
                yield view.cell(name, scheme)
        yield from (
            cell for cell in view.behind_switches() if cell.machine in (SWITCHES[0], SWITCHES[1])
        )
