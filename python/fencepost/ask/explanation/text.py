"""The document of `fencepost explain` as text for the terminal.

An entry is where it is, over the whole width, and below it a row for each scheme.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from fencepost import figures, reliability, source_place, table, terminal
from fencepost.ask.explanation import causes
from fencepost.ask.explanation.document import NEAR
from fencepost.plural import many

Document = dict[str, Any]
Entry = tuple[str, list[list[str]]]  # where it is, and its rows

CAUSES_SHOWN = 3  # of what a line waits for, where there is room
LEAST_SHOWN = 0.005
# The last column is as long as there is room for.
SITE_COLUMNS = (
    (
        "scheme",
        "persists",
        "redundant",
        "latency",
        "latency",
        "fences",
        "of run",
        "queue",
        "persists",
    ),
    ("", "", "", "p50", "p99", "waited", "time", "held", "wait for"),
)
FENCE_COLUMNS = (
    ("scheme", "executed", "waited", "one wait", "one wait", "waits", "of run", "waits"),
    ("", "", "", "p50", "p99", "in all", "time", "for"),
)
MEMORIES = {"dram": "DRAM", "pm": "PM", "expander": "expander"}
OTHER = "other_"  # begins the name of an origin at another socket
INDENT = "     "  # of what does not fit on one line
WIDE = 120  # columns of a terminal that has room for three causes, and between columns


def show(document: Document, top: int, output: Console, messages: Console) -> None:
    """Everything on standard output, warnings and failures on standard error."""
    for line in lines(document, top, output.width):
        output.print(line, soft_wrap=True, markup=False)
    runs = document["runs"]
    said = reliability.gathered(runs, [run["scheme"] for run in runs])
    named = [{"machine": "", **run} for run in runs]
    for text in [*said, *table.differing_persists(named)]:
        terminal.print_line(messages, text)


def lines(document: Document, top: int, width: int) -> Iterator[str]:
    """Lines that persist, then fences, then loads and stores, those first that cost most; then each
    scheme in a line."""
    yield from terminal.wrapped(table.replayed(document["provenance"]), width)
    causes_shown = CAUSES_SHOWN if width >= WIDE else 1
    sites = [
        (
            f"{number}  {label(site)}",
            _as_one([_site_row(site, scheme, causes_shown) for scheme in site["schemes"]]),
        )
        for number, site in enumerate(document["sites"][:top], 1)
    ]
    yield ""
    marks = f"*: helps most there, or within {NEAR:.0%} of what does"
    if sites:
        counted = _counted(len(document["sites"]), top, "line", _what_lines_do(document["sites"]))
        yield from terminal.wrapped(f"{counted}; {marks}", width)
        yield from _listed(SITE_COLUMNS, sites, width)
    else:
        yield "no line flushes or stores around the caches"
    waiting = [fence for fence in document["fences"] if _has_waited(fence)]
    fences = [
        (label(fence), _as_one(_fence_rows(fence["schemes"], causes_shown)))
        for fence in waiting[:top]
    ]
    if fences:
        yield ""
        yield from terminal.wrapped(_counted(len(waiting), top, "fence", "that waited"), width)
        yield from _listed(FENCE_COLUMNS, fences, width)
    yield from _accesses(document["accesses"], top, width, causes_shown)
    yield ""
    for run in document["runs"]:
        if "error" not in run:
            yield from terminal.wrapped(summary(run), width, INDENT)


def _accesses(accesses: list[Document], top: int, width: int, origins_shown: int) -> Iterator[str]:
    """Lines whose loads or stores waited, with a column for each memory that lines came from.

    Where something came from another socket, the last column says what they waited for.
    """
    waiting = [one for one in accesses if any(of["wait_ns"] for of in one["schemes"].values())]
    if not waiting:
        return
    shown = waiting[:top]
    memories = [
        name
        for name in MEMORIES
        if any(of["from_memory"][name] for one in shown for of in one["schemes"].values())
    ]
    crosses = any(
        name.startswith(OTHER)
        for one in shown
        for of in one["schemes"].values()
        for name in of["origins"]
    )
    waits, for_what = (["waits"], ["for"]) if crosses else ([], [])
    columns = (
        ("scheme", "accesses", *("lines from" for _ in memories), "waits", "of run", *waits),
        ("", "", *(MEMORIES[name] for name in memories), "in all", "time", *for_what),
    )
    origins = origins_shown if crosses else 0
    entries = [
        (
            label(one),
            _as_one(
                [
                    _access_row(scheme, of, memories, origins)
                    for scheme, of in one["schemes"].items()
                ]
            ),
        )
        for one in shown
    ]
    yield ""
    counted = _counted(len(waiting), top, "line", "whose loads or stores waited")
    yield from terminal.wrapped(counted, width)
    yield from _listed(columns, entries, width)


def _access_row(scheme: str, of: Document, memories: list[str], origins: int) -> list[str]:
    """`origins` are shown of what its accesses waited for."""
    return [
        scheme,
        figures.shown(of["count"], "count"),
        *(figures.shown(of["from_memory"][name], "count") for name in memories),
        figures.shown(of["wait_ns"], "ns"),
        figures.shown(of["wait_share_rate"], "rate"),
        *([_origins(of, origins)] if origins else []),
    ]


def _origins(of: Document, count: int) -> str:
    waits = {name: origin["wait_ns"] for name, origin in of["origins"].items()}
    longest = sorted(waits, key=lambda name: -waits[name])[:count]
    shares = [(_origin(name), figures.ratio(waits[name], of["wait_ns"])) for name in longest]
    return ", ".join(f"{name} {share:.0%}" for name, share in shares if share) or "–"


def _origin(name: str) -> str:
    memory = name.removeprefix(OTHER)
    return ("other " if name != memory else "") + MEMORIES.get(memory, memory)


def _as_one(rows: list[list[str]]) -> list[list[str]]:
    """One row where all schemes show the same."""
    if len(rows) > 1 and all(row[1:] == rows[0][1:] for row in rows):
        return [["all alike", *rows[0][1:]]]
    return rows


def _what_lines_do(sites: list[Document]) -> str:
    persists = any(of["lines"] for site in sites for of in site["schemes"].values())
    verb = "persist" if persists else "flush"
    ending = "" if len(sites) != 1 else "s" if persists else "es"
    return f"that {verb}{ending}" + ("" if persists else ", and none of it is PM (--pm)")


def summary(run: Document) -> str:
    """A scheme in a line."""
    waits = ", ".join(
        f"{who} {figures.shown(run[f'{name}_ns'], 'ns')} "
        f"({figures.shown(run[f'{name}_share_rate'], 'rate')})"
        for who, name in (("fences", "waited"), ("loads", "loads_waited"))
    )
    persists = figures.shown(run["persist"]["count"], "count")
    cores = f"{run['busy_cores']} core" + ("s" if run["busy_cores"] != 1 else "")
    return (
        f"{run['scheme']}: {persists} persists, run time "
        f"{figures.shown(run['simulated_ns'], 'ns')} on {cores}; waits: {waits}"
    )


def label(entry: Document) -> str:
    """Where it is: the instruction, what it was inlined into, who called that."""
    pieces = list(source_place.briefly(entry["place"]))
    if entry["place"]["address"] == 0:
        pieces = [
            "between threads" if "synchronisation" in entry["kind"] else "at the end of a thread"
        ]
    if entry["called_from"]:
        pieces += source_place.briefly(entry["called_from"])
    kind = entry["kind"].replace("_", " ")
    first = f"{pieces[0]} ({'inserted ' if entry['is_inserted'] else ''}{kind})"
    return " ← ".join([first, *pieces[1:]])


def _counted(count: int, top: int, what: str, which: str) -> str:
    if count <= top:
        return f"{many(count, what)} {which}"
    return f"{top} of {many(count, what)} {which} (--top, --json)"


def _listed(
    headings: tuple[tuple[str, ...], ...], entries: list[Entry], width: int
) -> Iterator[str]:
    """Headings, and entries with their rows below them in columns."""
    rows = [*map(list, headings), *(row for _, rows in entries for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    space = "  " if width >= WIDE else " "
    folds = terminal.folded(widths, len(space), width, len(INDENT))
    alone = range(len(widths) - 1, len(widths))
    if alone in folds:
        # What it is stands before each cell, not above all.
        called = " ".join(heading[-1] for heading in headings)
        for _, listed in entries:
            listed[:] = [[*row[:-1], f"{called} {row[-1]}"] for row in listed]
    for fold in folds:
        if fold != alone:
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


def _fence_rows(schemes: Document, causes_shown: int) -> list[list[str]]:
    return [_fence_row(scheme, of, causes_shown) for scheme, of in schemes.items()]


def _fence_row(scheme: str, of: Document, causes_shown: int) -> list[str]:
    waits = [(f"line {wait['site'] + 1}", wait["wait_ns"]) for wait in of["waited_for"]]
    waits.append(("stores", of["stores_ns"]))
    longest = [
        f"{name} {share:.0%}"
        for name, wait_ns in sorted(waits, key=lambda wait: -wait[1])[:causes_shown]
        if (share := figures.ratio(wait_ns, of["waited_ns"])) and share >= LEAST_SHOWN
    ]
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
