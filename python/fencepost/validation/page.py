"""docs/validation.md: every row of every comparison, its tables and its pictures."""

from fencepost.validation import Comparison, Findings, Row, last_line


def markdown(comparisons: list[tuple[Comparison, Findings]]) -> str:
    """The page. The pictures of the findings lie beside it."""
    everything = [row for _, findings in comparisons for row in findings.rows]
    parts = [
        "# Validation\n",
        "Made by `make validate`. Every published point, *published | ours | difference*; a row "
        "that was used to set a parameter of the machine is marked **set**, all others were held "
        "out. Misses are shown as misses, with the reason as far as it is known.\n",
        f"{last_line(everything)}\n",
    ]
    for comparison, findings in comparisons:
        parts += [f"## {comparison.title}\n", f"{comparison.description}\n"]
        parts += [f"Again: `fencepost validate {comparison.name}`\n", _summary(findings.rows)]
        parts += [f"![{name}]({name})\n" for name in findings.pictures]
        parts += [f"{table.rstrip()}\n" for table in findings.tables]
        parts += ["### Every point\n", _table(findings.rows), _reasons(findings.rows)]
    return "\n".join(parts)


def figure_text(value: float, unit: str) -> str:
    """A figure for people: counts and what is large in whole numbers, the rest in four digits."""
    text = f"{value:,.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def difference_text(row: Row) -> str:
    """The difference for people: in percent, or absolute where nothing was published but zero."""
    if row.difference is None:
        return f"{row.ours - row.published:+.4g}"
    return f"{row.difference:+.1%}"


def _summary(rows: list[Row]) -> str:
    lines = ["| metric | hold | of | held out: hold | of |", "|---|---|---|---|---|"]
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        held_out = [row for row in of_metric if not row.sets_a_parameter]
        counts = [sum(row.holds for row in of_metric), len(of_metric)]
        counts += [sum(row.holds for row in held_out), len(held_out)]
        lines.append(f"| {metric} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> str:
    lines = [
        "| point | metric | published | ours | difference | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        marks = [] if row.holds else ["**miss**" if row.reason else "**miss, unexplained**"]
        marks += ["set"] if row.sets_a_parameter else []
        figures = [figure_text(value, row.unit) for value in (row.published, row.ours)]
        cells = [row.point, row.metric, *figures, difference_text(row), ", ".join(marks)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _reasons(rows: list[Row]) -> str:
    misses = [row for row in rows if not row.holds]
    lines = ["### Misses\n"]
    for reason in dict.fromkeys(row.reason for row in misses):
        points = [f"{row.point} ({row.metric})" for row in misses if row.reason == reason]
        points = (
            points
            if reason
            else [f"{row.point} ({row.metric})" for row in rows if row.is_unexplained]
        )
        lines.append(f"- {reason or 'Unexplained'}: {'; '.join(points)}\n")
    return "\n".join(lines) if misses else ""
