"""The document of `fencepost explain` as tables for the terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import figures, source_place, table
from fencepost.explain import causes

Document = dict[str, Any]

CAUSES_SHOWN = 3
SITES_SHOWN = 3
LEAST_SHOWN = 0.005


def show(document: Document, top: int, output: Console, messages: Console) -> None:
    """The tables on standard output, warnings and failures on standard error."""
    output.print(sites(document, top))
    if document["fences"]:
        output.print(fences(document, top))
    for run in document["runs"]:
        if "error" not in run:
            output.print(summary(run), soft_wrap=True)
    said: dict[str, list[str]] = {}
    for run in document["runs"]:
        for warning in run.get("warnings", []):
            said.setdefault(f"warning: {warning}", []).append(run["scheme"])
        if "error" in run:
            said.setdefault(f"error: {run['error']}", []).append(run["scheme"])
    for text, names in said.items():
        where = "" if len(names) == len(document["runs"]) else f" ({', '.join(names)})"
        messages.print(f"{text}{where}", soft_wrap=True, markup=False, highlight=False)


def sites(document: Document, top: int) -> Table:
    """Lines that persist, those first that cost most waiting; * marks what helps most."""
    listed = document["sites"]
    counted = _counted(len(listed), top, "lines that persist")
    title = f"{table.replayed(document['provenance'])}\n{counted}"
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    shown.add_column("#", justify="right")
    shown.add_column("line")
    shown.add_column("scheme")
    headings = ("persists", "redundant", "mean", "p50", "p99", "fences\nwaited", "of run\ntime")
    for heading in (*headings, "held the\nqueue"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("its persists waited for")
    for number, site in enumerate(listed[:top], 1):
        rows = [_site_row(site, scheme) for scheme in site["schemes"]]
        _add_rows(shown, [[str(number), piece] for piece in label(site)], rows)
    return shown


def fences(document: Document, top: int) -> Table:
    """Fences, those first that wait longest, with what they wait for."""
    listed = [fence for fence in document["fences"] if _has_waited(fence)]
    title = _counted(len(listed), top, "fences that waited")
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    shown.add_column("fence")
    shown.add_column("scheme")
    for heading in ("executed", "waited", "mean", "p99", "in all", "of run time"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("for")
    for fence in listed[:top]:
        rows = [_fence_row(scheme, of) for scheme, of in fence["schemes"].items()]
        _add_rows(shown, [[piece] for piece in label(fence)], rows)
    return shown


def summary(run: Document) -> str:
    """A scheme in a line."""
    waited = figures.shown(run["waited_ns"], "ns")
    share = figures.shown(run["waited_share_rate"], "rate")
    persists = figures.shown(run["persist"]["count"], "count")
    cores = f"{run['busy_cores']} core" + ("s" if run["busy_cores"] != 1 else "")
    return (
        f"{run['scheme']}: {persists} persists, run time "
        f"{figures.shown(run['simulated_ns'], 'ns')}; fences waited {waited}, {share} of the "
        f"time of {cores}"
    )


def label(entry: Document) -> list[str]:
    """Where it is, a piece a line: the instruction, what it was inlined into, who called that."""
    pieces = list(source_place.briefly(entry["place"]))
    if entry["place"]["address"] == 0:
        pieces = ["at the end of a thread"]
    if entry["called_from"]:
        pieces += source_place.briefly(entry["called_from"])
    kind = entry["kind"].replace("_", " ")
    first = f"{pieces[0]} ({'inserted ' if entry['is_inserted'] else ''}{kind})"
    return [first, *(f"  ← {piece}" for piece in pieces[1:])]


def _counted(count: int, top: int, what: str) -> str:
    return f"{count} {what}" if count <= top else f"{top} of {count} {what} (--top, --json)"


def _add_rows(shown: Table, pieces: list[list[str]], rows: list[list[str]]) -> None:
    """The rows of one entry, with the pieces of its label beside them; a number stands once."""
    height = max(len(pieces), len(rows))
    for place in range(height):
        label_cells = pieces[place] if place < len(pieces) else [""] * len(pieces[0])
        if place > 0 and len(label_cells) > 1:
            label_cells = ["", *label_cells[1:]]
        row = rows[place] if place < len(rows) else []
        shown.add_row(*label_cells, *row, end_section=place == height - 1)


def _site_row(site: Document, scheme: str) -> list[str]:
    of = site["schemes"][scheme]
    latency = of["persist"]["latency_ns"]
    redundant = of["redundant"]
    share = figures.ratio(redundant, of["lines"])
    return [
        f"{scheme} *" if scheme == site["best"] else scheme,
        figures.shown(of["persist"]["count"], "count"),
        f"{redundant:,} ({share:.0%})" if redundant and share else "–",
        *(figures.shown(latency[name], "ns") for name in ("mean", "p50", "p99")),
        figures.shown(of["fence_wait_ns"], "ns"),
        figures.shown(of["fence_wait_share_rate"], "rate"),
        figures.shown(of["held_share_rate"], "rate"),
        _causes(of["causes"]),
    ]


def _causes(of: Document) -> str:
    largest = sorted(of, key=lambda name: -(of[name]["share_rate"] or 0))[:CAUSES_SHOWN]
    shares = [(name, of[name]["share_rate"]) for name in largest if of[name]["share_rate"]]
    return ", ".join(f"{causes.LABELS[name]} {share:.0%}" for name, share in shares) or "–"


def _has_waited(fence: Document) -> bool:
    return any(of["stall"]["count"] for of in fence["schemes"].values())


def _fence_row(scheme: str, of: Document) -> list[str]:
    longest = [
        f"line {wait['site'] + 1} {share:.0%}"
        for wait in of["waited_for"][:SITES_SHOWN]
        if (share := figures.ratio(wait["wait_ns"], of["waited_ns"])) and share >= LEAST_SHOWN
    ]
    stores = figures.ratio(of["stores_ns"], of["waited_ns"])
    if stores and stores >= LEAST_SHOWN:
        longest.append(f"stores {stores:.0%}")
    return [
        scheme,
        figures.shown(of["executions"], "count"),
        figures.shown(of["stall"]["count"], "count"),
        figures.shown(of["stall"]["latency_ns"]["mean"], "ns"),
        figures.shown(of["stall"]["latency_ns"]["p99"], "ns"),
        figures.shown(of["waited_ns"], "ns"),
        figures.shown(of["waited_share_rate"], "rate"),
        ", ".join(longest) or "–",
    ]
