"""docs/validation.md: every row of every comparison, its tables and its pictures."""

from fencepost.validation import REFERENCES, Comparison, Findings, Row, last_line

_INTRODUCTION = """Made by `make validate`. Every point, *compared with | ours | difference*. What \
a row is compared with is of several kinds, which no count mixes:

- **published**: measured by others. A row that was used to set a parameter of a machine is marked \
*set*; one that follows from such a row, or hangs on what was chosen because it is not public, \
*follows*; only the others are **held out**.
- **specification**: arithmetic on the rules of a standard.
- **parameters**: arithmetic on the values of a machine file: what they say comes out.
- **rules**: a second, much smaller model.
- **full detail**: our own replay, not sampled.

Misses are shown as misses. Why, as far as it is known, and how large a difference that explains, \
is in [`experiments/misses.csv`](../experiments/misses.csv); what misses by more or less counts as \
unexplained.

The programs of `experiments/` are not recorded here: their records are committed, in \
[`experiments/records`](../experiments/records), so their rows are the same on every machine \
([how they were made](../experiments/host/README.md#the-records)). Only *A sample against full \
detail* records its programs each time.
"""


def markdown(comparisons: list[tuple[Comparison, Findings]]) -> str:
    """The page. The pictures of the findings lie beside it."""
    everything = [row for _, findings in comparisons for row in findings.rows]
    parts = [
        "# Validation\n",
        _INTRODUCTION,
        f"{last_line(everything)}\n",
        _counts(everything),
    ]
    for comparison, findings in comparisons:
        parts += [f"## {comparison.title}\n", f"{comparison.description}\n"]
        parts += [f"Again: `fencepost validate {comparison.name}`\n", _summary(findings.rows)]
        parts += [f"![{name}]({name})\n" for name in findings.pictures]
        parts += [f"{table.rstrip()}\n" for table in findings.tables]
        parts += ["### Every point\n", _table(findings.rows)]
        if not all(row.holds for row in findings.rows):
            parts += ["### Misses\n", reasons(findings.rows)]
    return "\n".join(parts)


def figure_text(value: float, unit: str) -> str:
    """A figure for people: counts and what is large in whole numbers, the rest in four digits."""
    text = f"{value:,.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def difference_text(row: Row) -> str:
    """The difference for people: in percent, or absolute where it is compared with zero."""
    if row.difference is None:
        return f"{row.ours - row.published:+.4g}"
    return f"{row.difference:+.1%}"


def marks(row: Row) -> str:
    """What has to be known about a row beside its figures."""
    words = [] if row.holds else ["miss" if row.reason else "miss, unexplained"]
    words += ["set"] if row.sets_a_parameter else []
    words += ["follows"] if row.follows else []
    return ", ".join(words)


def reasons(rows: list[Row]) -> str:
    """The misses by reason, those without one first."""
    misses = sorted((row for row in rows if not row.holds), key=lambda row: row.reason)
    lines = []
    for reason in dict.fromkeys(row.reason for row in misses):
        points = [
            f"{row.point} ({row.metric} {difference_text(row)})"
            for row in misses
            if row.reason == reason
        ]
        lines.append(f"- {'; '.join(points)}: {reason or '**unexplained**'}\n")
    return "\n".join(lines)


def _counts(rows: list[Row]) -> str:
    """How many hold, by whose figure they are compared with."""
    lines = ["| compared with | hold | of |", "|---|---|---|"]
    for reference in REFERENCES:
        of_kind = [row for row in rows if row.reference == reference]
        lines.append(_count_line(reference, of_kind) if of_kind else "")
        held_out = [row for row in of_kind if row.is_held_out]
        if held_out:
            lines.append(_count_line("... of these held out", held_out))
    return "\n".join(filter(None, lines)) + "\n"


def _count_line(name: str, rows: list[Row]) -> str:
    return f"| {name} | {sum(row.holds for row in rows)} | {len(rows)} |"


def _summary(rows: list[Row]) -> str:
    lines = [
        "| metric | compared with | hold | of | held out: hold | of |",
        "|---|---|---|---|---|---|",
    ]
    for metric, reference in dict.fromkeys((row.metric, row.reference) for row in rows):
        of_metric = [row for row in rows if (row.metric, row.reference) == (metric, reference)]
        held_out = [row for row in of_metric if row.is_held_out]
        counts = [sum(row.holds for row in of_metric), len(of_metric)]
        counts += [sum(row.holds for row in held_out), len(held_out)]
        lines.append(f"| {metric} | {reference} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> str:
    head = "| point | metric | compared with | ours | difference | may differ by | |"
    text = "\n".join([head, "|---" * 7 + "|", *map(line, rows)]) + "\n"
    follows = dict.fromkeys((row.point, row.metric, row.follows) for row in rows if row.follows)
    notes = [f"- {point}, {metric}: follows from {why}" for point, metric, why in follows]
    return "\n".join([text, *notes]) + "\n" if notes else text


def line(row: Row) -> str:
    """A row of the table of every point."""
    figures = [figure_text(value, row.unit) for value in (row.published, row.ours)]
    mark = marks(row).replace("miss, unexplained", "**miss, unexplained**")
    if mark.startswith("miss"):
        mark = mark.replace("miss", "**miss**", 1)
    allowed = figure_text(float(f"{row.allowed:.3g}"), row.unit)
    cells = [row.point, row.metric, *figures, difference_text(row), allowed, mark]
    return f"| {' | '.join(cells)} |"
