"""zswap and ksm done by a core, by a PCIe device and by the coherent device: rows of Redis."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.studies.study import Part
from fencepost.studies.type2.points import MACHINE
from fencepost.studies.type2.published import SOURCE
from fencepost.studies.type2.reclaim import beyond, tables
from fencepost.studies.type2.reclaim.cells import Cell, Cells, Estimate
from fencepost.studies.type2.reclaim.server import PROGRAM
from fencepost.studies.type2.reclaim.ycsb import WORKLOADS
from fencepost.studies.type2.topic import REDIS_PAGE, STUDY, NotModelled, Topic, not_modelled, row
from fencepost.tree import WORKLOADS as PROGRAMS

REDIS = "Redis p99 over Redis alone"
YCSB = "p99 over none"
SHARE = "share of CPU taken by ksm"
MISSES = "LLC miss rate under YCSB"
_MISS = "last_level_miss_rate"

# By condition: feature and backend.
REDIS_ROWS = {
    "zswap and ksm on the CPU": ("zswap and ksm", "cpu"),
    "zswap and ksm on PCIe": ("zswap and ksm", "pcie"),
    "zswap and ksm on CXL": ("zswap and ksm", "cxl"),
    "zswap on the CPU": ("zswap", "cpu"),
    "zswap on CXL": ("zswap", "cxl"),
    "ksm on the CPU": ("ksm", "cpu"),
    "ksm on CXL": ("ksm", "cxl"),
}
NO_SUCH_DEVICE = {
    (YCSB, "mean of YCSB; DSA"): "DSA",
    (YCSB, "mean of YCSB; SmartNIC (STYX)"): "SmartNIC",
    (SHARE, "DSA"): "DSA",
    (MISSES, "DSA"): "DSA",
    ("xxhash of a 4 KB page", "DSA"): "DSA",
    ("xxhash of a 4 KB page", "SmartNIC"): "SmartNIC",
}


def workloads(lab: Lab) -> list[str]:
    """Those that rows are means over."""
    return ["A"] if lab.quick else list(WORKLOADS)


class Reclaim(Topic):
    """zswap and ksm."""

    part = Part("reclaim", "zswap and ksm for Redis")
    description = (
        "A recorded redis-server under YCSB on one core, which it shares with kswapd and ksmd; "
        "p99 of its operations over that of Redis alone, mean of the workloads and of five seeds. "
        "[reclaim.md](reclaim.md) says how it is modelled."
    )
    page = REDIS_PAGE

    def rows(self, lab: Lab) -> list[Row]:
        """Each row of the file about Redis, YCSB and hashing."""
        names = [(REDIS, condition) for condition in REDIS_ROWS]
        names += [(YCSB, "mean of YCSB; ksm on the CPU"), (SHARE, "on the CPU")]
        names += [(MISSES, "no ksm"), (MISSES, "ksm on the CPU")]
        trends = [condition for _, condition, *_ in TRENDS]
        if not lab.wants_any({*(condition for _, condition in [*names, *NO_SUCH_DEVICE]), *trends}):
            return []
        if lacking := missing():
            why = f"{lacking} is missing"
            without = [not_modelled(*name, why) for name in names]
            return without + [_trend_not_modelled(*of[:3], why) for of in TRENDS] + _others()
        cells = Cells(lab)
        over = workloads(lab)

        def slower(metric: str, condition: str, feature: str, backend: str) -> Row:
            one = cells.slower(*(Cell(workload, feature, backend) for workload in over))
            return row(metric, condition, **of_row(one))

        def mean(metric: str, condition: str, feature: str, path: str) -> Row:
            by = "none" if feature == "none" else "cpu"
            asked = [Cell(workload, feature, by) for workload in over]
            one = cells.mean(asked, lambda result, _: 100 * float(result[path]))
            return row(metric, condition, one.value, half_width=one.half_width)

        found = [slower(REDIS, condition, *of) for condition, of in REDIS_ROWS.items()]
        found += [
            slower(YCSB, "mean of YCSB; ksm on the CPU", "ksm", "cpu"),
            mean(SHARE, "on the CPU", "ksm", "ksmd_share"),
            mean(MISSES, "no ksm", "none", "last_level_miss_rate"),
            mean(MISSES, "ksm on the CPU", "ksm", "last_level_miss_rate"),
        ]
        found += _trends(cells, over)
        found += _others()
        return found if lab.quick or lab.conditions else [*found, *beyond.rows(cells, over)]

    def tables(self, lab: Lab) -> list[str]:
        """What is behind the rows."""
        if missing():
            return []
        cells = Cells(lab)
        found = [tables.costs(cells), tables.pages(lab, workloads(lab))]
        found += [tables.slower(cells, workloads(lab)), tables.features(cells)]
        found.append(tables.stacks(cells))
        if lab.quick:
            return found
        beside = (
            *(tables.places, tables.engines, tables.causes),
            *(tables.loads_and_limits, tables.kernels),
        )
        return [*found, *(one(cells) for one in beside)]


def of_row(one: Estimate) -> dict[str, Any]:
    """Members of a row whose unit is known."""
    return {name: value for name, value in one.figures().items() if name != "unit"}


FLAT = 0.02  # a change by less is none


def trend(before: float, after: float) -> str:
    """By the sign of the slope."""
    change = after / before - 1 if before else float("inf") if after else 0.0
    return "flat" if abs(change) <= FLAT else "rises" if change > 0 else "falls"


# Para-ksm's devices are DSA; ours do the same work. Metric, what becomes what, and what is read off
# the cells of feature and backend.
TRENDS = (
    (SHARE, "ksm from the CPU to PCIe", "falls", "ksmd_share", ("ksm", "cpu"), ("ksm", "pcie")),
    (SHARE, "ksm from the CPU to CXL", "falls", "ksmd_share", ("ksm", "cpu"), ("ksm", "cxl")),
    (MISSES, "from no ksm to the CPU", "rises", _MISS, ("none", "none"), ("ksm", "cpu")),
    (MISSES, "ksm from the CPU to PCIe", "falls", _MISS, ("ksm", "cpu"), ("ksm", "pcie")),
    (MISSES, "ksm from the CPU to CXL", "falls", _MISS, ("ksm", "cpu"), ("ksm", "cxl")),
)


def _trends(cells: Cells, workloads: Sequence[str]) -> list[Row]:
    """Signs of what Para-ksm's figures for a core and for DSA differ by."""
    found = []
    for metric, condition, expected, path, before, after in TRENDS:

        def mean(feature: str, by: str, path: str = path) -> float:
            asked = [Cell(workload, feature, by) for workload in workloads]
            return float(cells.mean(asked, lambda result, _: float(result[path])).value)

        values = mean(*before), mean(*after)
        ours = trend(*values)
        details = {"before": values[0], "after": values[1]}
        more: dict[str, Any] = {"source": SOURCE, "machine": MACHINE, "details": details}
        found.append(
            Row(STUDY, condition, _trend_of(metric), expected, ours, Tolerance("is"), **more)
        )
    return found


def _trend_not_modelled(metric: str, condition: str, expected: str, why: str) -> Row:
    of = (STUDY, condition, _trend_of(metric), expected, None, Tolerance("is"))
    return NotModelled(*of, source=SOURCE, reason=why)


def _trend_of(metric: str) -> str:
    return f"{metric}: trend"


def missing() -> str | None:
    """What has to be installed and is not."""
    if shutil.which(PROGRAM) is None:
        return PROGRAM
    if not (PROGRAMS / "page_work").exists():
        return "page_work, which needs the compressors' libraries,"
    return None


def _others() -> list[Row]:
    return [
        not_modelled(metric, condition, f"the machine has no {device}")
        for (metric, condition), device in NO_SUCH_DEVICE.items()
    ]
