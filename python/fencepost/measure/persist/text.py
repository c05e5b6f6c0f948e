"""What was measured as tables: ns for each line, by the lines that share a fence."""

from collections.abc import Iterator
from typing import Any

from rich.table import Column, Table

from fencepost.measure.persist.measurement import Document

TITLES = {
    "persist": "store, flush, fence",
    "flush": "flush, fence",
    "update": "load, store, flush, fence",
    "twice": "store, flush, fence, twice on one line, both together",
    "store": "store, fence",
    "read": "load, each from the address that the one before gave",
}


def summary(document: Document) -> Iterator[str]:
    """What the machine is, what it lacks, and what its flushes do to a line."""
    about = document["platform"]
    yield f"{about['processor']}, {about['architecture']}, processor {about['cpu']}"
    yield f"memory: {about['memory']}{_without_pm(about)}"
    if about["missing"]:
        yield f"this processor has no {', '.join(about['missing'])}: skipped"
    ghz = f"{about['ticks_per_ns']:.3f} GHz"
    if about["counts_core_cycles"]:
        yield f"timer at {ghz}; cycles are the core's own"
    else:
        why = about["no_core_cycles_because"]
        yield f"cycles are the timer's, at {ghz}: the core's cannot be counted ({why})"
    noise = about["noise"]
    yield (
        f"timer cost, subtracted: {about['timer_ns']:.0f} ns a batch; "
        f"noise (10th to 90th percentile): {noise['median']:.1%} as a rule, {noise['worst']:.0%} "
        "at worst"
    )
    yield from _after_flush(about["after_flush"], "")
    if "simulated_on" in document:
        on = document["simulated_on"]
        yield from _after_flush(on["after_flush"], f"{on['machine']}, {on['scheme']}: ")


def _without_pm(about: Document) -> str:
    if about["memory"].startswith("DAX"):
        return ""
    mounts = about["dax_mounts"]
    if mounts:
        return (
            f" (persistent memory is mounted at {', '.join(mounts)}: give a file there by --file)"
        )
    return " (no DAX file system is mounted)"


def _after_flush(found: Document, where: str) -> Iterator[str]:
    for primitive, after in found.items():
        yield (
            f"{where}{primitive}: the line is {after['line']}: a load of it takes "
            f"{after['load_ns']:.1f} ns, {after['hit_ns']:.1f} ns without the flush, "
            f"{after['memory_ns']:.1f} ns from memory"
        )


def tables(document: Document) -> Iterator[tuple[str, Table]]:
    """A table for each kind of loop, with its title."""
    simulated = {one["name"]: one for one in document.get("simulated", [])}
    times = [result for result in document["results"] if result["unit"] == "ns"]
    for action, title in TITLES.items():
        own = [result for result in times if result["action"] == action]
        lines = sorted({result["lines"] for result in own})
        heads = [f"{count} line{'s' * (count > 1)}" for count in lines]
        table = Table(
            "primitive",
            "lines are",
            *(Column(head, justify="right") for head in heads),
            box=None,
            padding=(0, 2, 0, 0),
        )
        for key in dict.fromkeys(map(_row_key, own)):
            cells = {result["lines"]: result for result in own if _row_key(result) == key}
            primitive, state, threads = key
            many = f", {threads} threads" if threads > 1 else ""
            shown = [_cell(cells.get(count), simulated) for count in lines]
            table.add_row(primitive, f"{state}{many}", *shown)
        yield f"{title}: ns for each line{' (simulated)' if simulated else ''}", table


def _row_key(result: Document) -> tuple[str, str, int]:
    return result["primitive"], f"{result['state']}, {result['arrangement']}", result["threads"]


def _cell(result: Document | None, simulated: dict[str, Any]) -> str:
    if result is None:
        return ""
    lines = result["lines"]
    text = f"{result['value'] / lines:.1f} ± {result['half_width'] / lines:.1f}"
    if result["name"] in simulated:
        text += f" ({simulated[result['name']]['value'] / lines:.1f})"
    return text
