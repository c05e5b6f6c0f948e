"""What was measured in STREAM's own layout, as tables, and as CSV."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from rich.table import Column, Table

from fencepost.measure.stream.point import KERNELS

Document = dict[str, Any]

CSV_COLUMNS = (
    *("group", "mode", "memory", "memory_is", "sockets", "affinity", "smt", "first_touch"),
    *("access", "stores", "persist", "threads", "kernel", "value", "half_width", "repetitions"),
    *("average_s", "least_s", "most_s", "validated"),
)
# STREAM gives a rate of all runs and no interval.
STREAM_HEAD = "Function    Best Rate MB/s  Avg time     Min time     Max time"


def summary(document: Document) -> Iterator[str]:
    """What the machine is, what is missing, and what was left out."""
    about = document["platform"]
    options = document["provenance"]["options"]
    yield f"{about['processor']}, {about['architecture']}"
    yield (
        f"three arrays of {about['elements']:,} doubles; {options['runs']} runs of "
        f"{options['repetitions']} repetitions, the first left out"
    )
    if any(one["mode"] == "app-direct" for one in document["results"]):
        yield f"libpmemobj of PMDK {about['libpmemobj'] or 'of unknown version'}"
    yield from about["notes"]
    for name in about["missing"]:
        yield f"missing: {name}"
    for skipped in about["skipped"]:
        yield f"skipped: {skipped['name']}: {skipped['reason']}"
    yield from dict.fromkeys(map(_persisted, document["results"]))


def _persisted(result: Document) -> str:
    study = " (as in the study, App-Direct says where arrays lie and not that they last)"
    nothing = study if result["mode"] == "app-direct" and result["persist"] == "none" else ""
    option = f"{result['mode']}, --persist {result['persist']}"
    return f"persisted, {option}: {result['persisted']}{nothing}"


def stream_layout(document: Document) -> Iterator[str]:
    """For each point the table that STREAM prints."""
    for title, results in _by_point(document).items():
        yield ""
        pages = results[0]["pages"]
        where = ", ".join(f"node {node} {part:.0%}" for node, part in pages.items())
        yield f"{title} ({results[0]['memory_is']}{'; pages on ' + where if where else ''})"
        yield STREAM_HEAD
        for one in results:
            rate = 1000 * max(one["values"])
            times = "".join(f"  {one[name]:11.6f}" for name in ("average_s", "least_s", "most_s"))
            yield f"{one['kernel'].capitalize() + ':':<12}{rate:14.1f}{times}"
        right = all(one["validated"] for one in results)
        yield "Solution validates: every element is right" if right else "Solution is WRONG"


def _by_point(document: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for one in document["results"]:
        found.setdefault(one["name"].partition(": ")[2], []).append(one)
    return found


def table(document: Document) -> Table:
    """A row for each point, the mean of the runs' best rates with half the 95 % interval; in
    brackets what was simulated."""
    simulated = {one["name"]: one["value"] for one in document.get("simulated", [])}
    made = Table("GB/s", *(Column(name, justify="right") for name in KERNELS), **_PLAIN)
    for title, results in _by_point(document).items():
        cells = []
        for one in results:
            text = f"{one['value']:.2f} ± {one['half_width']:.2f}"
            if one["name"] in simulated:
                text += f" ({simulated[one['name']]:.2f})"
            cells.append(text)
        made.add_row(title, *cells)
    return made


_PLAIN: dict[str, Any] = {"box": None, "padding": (0, 2, 0, 0)}


def against_table(found: Document) -> Table:
    """Rates of this measurement over those of the other."""
    made = Table(f"over {found['file']}", Column("ratio", justify="right"), "", **_PLAIN)
    for one in found["ratios"]:
        said = {True: "differs", False: "no difference is shown", None: "undecided"}[one["differs"]]
        half = "" if one["half_width"] is None else f" ± {one['half_width']:.3f}"
        made.add_row(one["name"], f"{one['value']:.3f}{half}", said)
    return made


def against_notes(found: Document, elements: int) -> Iterator[str]:
    """What makes the two hard to compare."""
    if found["elements"] != elements:
        there = found["elements"]
        shown = "arrays of unknown length" if there is None else f"arrays of {there:,} elements"
        yield f"{found['file']}: {shown}, here of {elements:,}"
    for where, names in (("here", found["only_here"]), (found["file"], found["only_there"])):
        if names:
            yield f"only in {where}: {'; '.join(names)}"


def as_csv(document: Document) -> str:
    """A line for each result; rates in GB/s, sockets with + between them."""
    file = io.StringIO()
    writer = csv.DictWriter(file, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for one in document["results"]:
        writer.writerow(one | {"sockets": "+".join(map(str, one["sockets"]))})
    return file.getvalue()
