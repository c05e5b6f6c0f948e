"""The document of `fencepost explain` as text for the terminal.

An entry is where it is, over the whole width, and below it a row for each scheme.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from fencepost import figures, reliability, source_place, table, terminal
from fencepost.explain import causes
from fencepost.explain.document import NEAR
from fencepost.plural import many

Document = dict[str, Any]
Entry = tuple[str, list[list[str]]]  # where it is, and its rows

SITES_SHOWN = 3
LEAST_SHOWN = 0.005
# The last column is as long as there is room for.
SITE_COLUMNS = (
    ("scheme", "persists", "redundant", "p50", "p99", "fences", "of run", "queue", "persists"),
    ("", "", "", "", "", "waited", "time", "held", "wait for"),
)
FENCE_COLUMNS = (
    ("scheme", "executed", "waited", "p50", "p99", "in all", "of run", "for"),
    ("", "", "", "", "", "", "time", ""),
)
INDENT = "     "  # of what does not fit on one line
WIDE = 120  # columns of a terminal that has room for three causes, and between columns


def show(document: Document, top: int, output: Console, messages: Console) -> None:
    """Everything on standard output, warnings and failures on standard error."""
    for line in lines(document, top, output.width):
        output.print(line, soft_wrap=True, markup=False)
    runs = document["runs"]
    for text in reliability.gathered(runs, [run["scheme"] for run in runs]):
        terminal.print_line(messages, text)


def lines(document: Document, top: int, width: int) -> Iterator[str]:
    """Lines that persist, then fences, those first that cost most; then each scheme in a line."""
    yield from terminal.wrapped(table.replayed(document["provenance"]), width)
    causes_shown = 3 if width >= WIDE else 1
    sites = [
        (
            f"{number}  {label(site)}",
            [_site_row(site, scheme, causes_shown) for scheme in site["schemes"]],
        )
        for number, site in enumerate(document["sites"][:top], 1)
    ]
    yield ""
    marks = f"*: helps most there, or within {NEAR:.0%} of what does"
    counted = _counted(
        len(document["sites"]),
        top,
        "line",
        "persist" if len(document["sites"]) != 1 else "persists",
    )
    yield from terminal.wrapped(f"{counted}; {marks}", width)
    yield from _listed(SITE_COLUMNS, sites, width)
    waiting = [fence for fence in document["fences"] if _has_waited(fence)]
    fences = [
        (label(fence), [_fence_row(scheme, of) for scheme, of in fence["schemes"].items()])
        for fence in waiting[:top]
    ]
    if fences:
        yield ""
        yield from terminal.wrapped(_counted(len(waiting), top, "fence", "waited"), width)
        yield from _listed(FENCE_COLUMNS, fences, width)
    yield ""
    for run in document["runs"]:
        if "error" not in run:
            yield from terminal.wrapped(summary(run), width, INDENT)


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


def label(entry: Document) -> str:
    """Where it is: the instruction, what it was inlined into, who called that."""
    pieces = list(source_place.briefly(entry["place"]))
    if entry["place"]["address"] == 0:
        pieces = ["at the end of a thread"]
    if entry["called_from"]:
        pieces += source_place.briefly(entry["called_from"])
    kind = entry["kind"].replace("_", " ")
    first = f"{pieces[0]} ({'inserted ' if entry['is_inserted'] else ''}{kind})"
    return " ← ".join([first, *pieces[1:]])


def _counted(count: int, top: int, what: str, which: str) -> str:
    if count <= top:
        return f"{many(count, what)} that {which}"
    return f"{top} of {many(count, what)} that {which} (--top, --json)"


def _listed(
    headings: tuple[tuple[str, ...], ...], entries: list[Entry], width: int
) -> Iterator[str]:
    """Headings, and entries with their rows below them in columns."""
    rows = [*map(list, headings), *(row for _, rows in entries for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    space = "  " if width >= WIDE else " "
    folds = terminal.folded(widths, len(space), width, len(INDENT))
    for fold in folds:
        yield from (_row(list(heading), widths, space, fold) for heading in headings)
    yield "─" * min(sum(widths) + len(space) * len(widths), width)
    for where, rows in entries:
        yield from terminal.wrapped(where, width, INDENT)
        yield from (_row(row, widths, space, fold) for row in rows for fold in folds)


def _row(cells: list[str], widths: list[int], space: str, columns: range) -> str:
    """A line of a row: the first and the last column stand left, the others right."""
    last = len(cells) - 1
    shown = [
        cells[column].ljust(widths[column])
        if column in (0, last)
        else cells[column].rjust(widths[column])
        for column in columns
    ]
    indent = INDENT if columns[0] else ""
    return (indent + space + space.join(shown)).rstrip()


def _site_row(site: Document, scheme: str, causes_shown: int) -> list[str]:
    of = site["schemes"][scheme]
    latency = of["persist"]["latency_ns"]
    redundant = of["redundant"]
    share = figures.ratio(redundant, of["lines"])
    return [
        f"{scheme} *" if scheme in site["near_best"] else scheme,
        figures.shown(of["persist"]["count"], "count"),
        f"{redundant:,} ({share:.0%})" if redundant and share else "–",
        *(figures.shown(latency[name], "ns") for name in ("p50", "p99")),
        figures.shown(of["fence_wait_ns"], "ns"),
        figures.shown(of["fence_wait_share_rate"], "rate"),
        figures.shown(of["held_share_rate"], "rate"),
        _causes(of["causes"], causes_shown),
    ]


def _causes(of: Document, count: int) -> str:
    largest = sorted(of, key=lambda name: -(of[name]["share_rate"] or 0))[:count]
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
        figures.shown(of["stall"]["latency_ns"]["p50"], "ns"),
        figures.shown(of["stall"]["latency_ns"]["p99"], "ns"),
        figures.shown(of["waited_ns"], "ns"),
        figures.shown(of["waited_share_rate"], "rate"),
        ", ".join(longest) or "–",
    ]
