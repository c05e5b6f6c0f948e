"""The comparison `persist`: {store, flush, fence} loops against ordering rules, and one module.

The records of two programs of experiments/persist, which are committed (`experiments/records`), are
replayed on machines with PM as local memory, behind a switch under every scheme, and like a
3D XPoint module.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from fencepost import schemes
from fencepost.figures import Run
from fencepost.recordings import record_alike
from fencepost.replay import options, resolved
from fencepost.rows.lab import Lab
from fencepost.rows.row import PARAMETERS, RULES, Row, near
from fencepost.tree import BUILD, EXPERIMENTS
from fencepost.validation import Comparison, Findings
from fencepost.validation.latencies import PUBLISHED, published
from fencepost.validation.persist_rules import path, repetition_ns

PROGRAMS = EXPERIMENTS / "persist" / "programs"
Document = dict[str, Any]

ARENA = "range:0x200000000000-0x210000000000"
XPOINT = "optane-like"
SCHEMES = {
    "pcs-table1-0sw": [schemes.VOLATILE],
    "pcs-table1": list(schemes.PUBLISHED),
    XPOINT: [schemes.VOLATILE],
}
QUICK = ("pcs-table1-0sw", XPOINT)

# The points of persist_loops.c, in its order.
INSTRUCTIONS = ("clflush", "clflushopt", "clwb", "non-temporal")
LINES = (1, 8, 64)
HEAT = ("hot", "cold")
LINES_IN_ALL = 256
REPETITIONS_MAX = 64

# Those of read_chase.c: lines in order of address, one line of each block in random order.
READS = {"sequential": 2048, "random": 512}

RULE_PART = 0.10  # of the time that the rules give, as for cycles of the host
SUM_NS = 0.01  # of a sum of latencies: flits in whole ps
PUBLISHED_PART = 0.01  # of what a parameter was set by


@dataclass(frozen=True)
class Point:
    """A loop on a machine under a scheme, and what came out; times in ns."""

    machine: str
    scheme: str
    instruction: str
    lines: int
    heat: str
    rule: float
    ours: float
    persist_ns: float

    @property
    def place(self) -> str:
        """Machine and scheme."""
        return f"{self.machine}, {self.scheme}"


def compare(lab: Lab) -> Findings:
    """Replays; rows of every point, and a table for each instruction."""
    loops, chase = records(lab)
    chosen = {name: SCHEMES[name] for name in (QUICK if lab.quick else SCHEMES)}
    points = [
        point
        for machine, schemes in chosen.items()
        for run in _runs(lab, loops, machine, schemes)
        for point in _points(machine, lab.resolved(machine), run)
    ]
    rows = [*_latency_rows(lab, points), *_module_rows(lab, points, chase)]
    rows += [_rule_row(point) for point in points]
    tables = [_table(instruction, points) for instruction in INSTRUCTIONS]
    return Findings(rows, tables)


def records(lab: Lab) -> list[Path]:
    """Of the loops, and of the reads."""
    return [lab.records / f"{name}.fencepost" for name in ("persist_loops", "read_chase")]


def record(lab: Lab) -> None:
    """Makes the records anew, in `lab.records`."""
    for made in records(lab):
        record_program(lab, made)


def record_program(lab: Lab, made: Path) -> None:
    """Makes one of them."""
    subprocess.run(["make", "--silent", "-C", str(PROGRAMS)], check=True)
    lab.log(f"recording {made.stem}")
    record_alike(made, BUILD / "persist" / made.stem, [], lab.folder)


def _runs(lab: Lab, record: Path, machine: str, schemes: list[str]) -> list[Run]:
    lab.log(f"replaying {record.stem} on {machine}")
    return lab.replayed(
        record, {machine: lab.resolved(machine)}, schemes, resolved(options(schemes, [ARENA]))
    )


def _points(machine: str, resolved: Document, run: Run) -> Iterator[Point]:
    order = product(INSTRUCTIONS, LINES, HEAT)
    for (instruction, lines, heat), region in zip(order, run["regions"], strict=True):
        repetitions = min(REPETITIONS_MAX, LINES_IN_ALL // lines)
        rule = repetition_ns(
            resolved, run["scheme"], instruction, lines, repetitions, heat == "cold"
        )
        yield Point(
            machine=machine,
            scheme=run["scheme"],
            instruction=instruction,
            lines=lines,
            heat=heat,
            rule=rule,
            ours=region["simulated_ns"] / repetitions,
            persist_ns=region["persist"]["latency_ns"]["mean"],
        )


def _latency_rows(lab: Lab, points: list[Point]) -> Iterator[Row]:
    """A persist alone: the sum of the latencies on its way."""
    for point in points:
        if (point.instruction, point.lines, point.heat) == ("clwb", 1, "hot"):
            expected = path(lab.resolved(point.machine), point.scheme).persist
            metric = "latency of a persist: the sum of its path"
            ours = point.persist_ns
            yield near(
                *("persist", point.place, metric, expected, ours, SUM_NS),
                unit="ns",
                quality=PARAMETERS,
                machine=point.machine,
            )


def _rule_row(point: Point) -> Row:
    metric = f"{point.instruction}, {point.lines} lines, {point.heat}"
    allowed = RULE_PART * point.rule
    return near(
        *("persist", point.place, metric, point.rule, point.ours, allowed),
        unit="ns",
        quality=RULES,
        machine=point.machine,
    )


def _module_rows(lab: Lab, points: list[Point], chase: Path) -> list[Row]:
    """What was published of a module: each of these rows set a parameter of its machine."""
    [adr] = [
        point.ours
        for point in points
        if (point.machine, point.instruction, point.lines, point.heat) == (XPOINT, "clwb", 1, "hot")
    ]
    [run] = _runs(lab, chase, XPOINT, [schemes.VOLATILE])
    ours = {
        f"{name} read": region["simulated_ns"] / count
        for (name, count), region in zip(READS.items(), run["regions"], strict=True)
    }
    ours["store + clwb + sfence to ADR"] = adr
    random_ns, sequential_ns = published("Optane DIMM random / sequential read")
    [adr_ns] = published("Optane store+flush+fence to ADR")
    of_a_module = {
        "store + clwb + sfence to ADR": adr_ns,
        "random read": random_ns,
        "sequential read": sequential_ns,
    }
    return [
        near(
            *("persist", XPOINT, metric, ns, ours[metric], PUBLISHED_PART * ns),
            is_set=True,
            unit="ns",
            machine=XPOINT,
            source=PUBLISHED.name,
        )
        for metric, ns in of_a_module.items()
    ]


def _table(instruction: str, points: list[Point]) -> str:
    """One instruction on every machine: ns for each line, ours and (rules)."""
    columns = [(lines, heat) for lines in LINES for heat in HEAT]
    head = [f"{lines} {'line' if lines == 1 else 'lines'}, {heat}" for lines, heat in columns]
    text = [
        f"**{instruction}**: ns for each line of a loop, in brackets by the rules\n",
        f"| machine, scheme | {' | '.join(head)} |",
        "|---" * (len(head) + 1) + "|",
    ]
    own = [point for point in points if point.instruction == instruction]
    for place in dict.fromkeys(point.place for point in own):
        at = {(point.lines, point.heat): point for point in own if point.place == place}
        cells = [
            f"{at[column].ours / column[0]:.1f} ({at[column].rule / column[0]:.1f})"
            for column in columns
        ]
        text.append(f"| {place} | {' | '.join(cells)} |")
    return "\n".join(text)


PERSIST = Comparison(
    "persist",
    "Persist instructions against ordering rules",
    "What do flush instructions and fences cost? Loops of {store to each of n lines, flush "
    "each, `sfence`} (`experiments/persist/programs`) run hot (lines dirty in the first level) "
    "and cold (lines in no cache), in ns for each repetition. The expected figures come from "
    "ordering rules. Stores leave the queue in program order; `clflush` runs one at a time; "
    "`clflushopt`, `clwb` and full combining buffers run as many at a time as "
    "`core.flushes_in_flight` allows. The latencies along the path and the entries of the "
    "persist buffer are added. Rows hold within 10 %. Three latencies are published figures of a "
    "real module, each marked **set**.",
    compare,
    record,
)
