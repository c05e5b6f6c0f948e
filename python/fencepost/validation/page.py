"""docs/validation.md: every row of every comparison, and a picture of each."""

from collections.abc import Iterable
from itertools import groupby
from math import log10

from fencepost.validation import Comparison, Row, last_line

WIDTH, HEIGHT, MARGIN = 640, 480, 60
DECADE_STEP = 1


def markdown(comparisons: list[tuple[Comparison, list[Row]]]) -> str:
    """The page. Pictures lie beside it, as `picture_name` says."""
    everything = [row for _, rows in comparisons for row in rows]
    parts = [
        "# Validation\n",
        "Made by `make validate`. Every published point, *published | ours | difference*; a row "
        "that was used to set a parameter of the machine is marked **set**, all others were held "
        "out. Misses are shown as misses, with the reason as far as it is known.\n",
        f"{last_line(everything)}\n",
    ]
    for comparison, rows in comparisons:
        parts += [f"## {comparison.title}\n", f"{comparison.description}\n", _summary(rows)]
        parts += [f"![ours over published]({picture_name(comparison)})\n"]
        for point, of_point in groupby(rows, lambda row: row.point):
            parts.append(_table(point, list(of_point)))
        parts.append(_reasons(rows))
    return "\n".join(parts)


def picture_name(comparison: Comparison) -> str:
    """The file name of a comparison's picture."""
    return f"validation-{comparison.name}.svg"


def difference_text(row: Row) -> str:
    """The difference for people: in percent, or absolute where nothing was published but zero."""
    if row.difference is None:
        return f"{row.ours - row.published:+.0f}"
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


def _table(point: str, rows: list[Row]) -> str:
    lines = [
        f"**{point}**\n",
        "| metric | published | ours | difference | |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        marks = [] if row.holds else ["**miss**" if row.reason else "**miss, unexplained**"]
        marks += ["set"] if row.sets_a_parameter else []
        lines.append(
            f"| {row.metric} | {row.published:,.0f} | {row.ours:,.0f} | {difference_text(row)} | "
            f"{', '.join(marks)} |"
        )
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


def picture(rows: list[Row]) -> str:
    """Ours against published on logarithmic axes, cycles only, with lines at ±10 % (SVG)."""
    points = [row for row in rows if row.metric == "cycles" and row.published > 0 and row.ours > 0]
    values = [value for row in points for value in (row.published, row.ours)]
    low, high = int(log10(min(values))), int(log10(max(values))) + 1
    place = _Axes(low, high)
    marks = "".join(
        f'<circle cx="{place.x(row.published):.1f}" cy="{place.y(row.ours):.1f}" r="3.5" '
        f'class="{"held" if row.holds else "miss"}"><title>{row.point}: {row.published:,.0f} '
        f"published, {row.ours:,.0f} ours</title></circle>"
        for row in points
    )
    lines = "".join(
        place.line(factor, name) for factor, name in ((1, "same"), (1.1, "band"), (0.9, "band"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
        "<style>.held{fill:#2a7f62}.miss{fill:#c0392b}.same{stroke:#444}.band{stroke:#aaa;"
        "stroke-dasharray:4 3}.axis{stroke:#888}text{fill:#333}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f"{place.frame()}{lines}{marks}</svg>\n"
    )


class _Axes:
    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        return MARGIN + (log10(value) - self.low) / (self.high - self.low) * (WIDTH - 2 * MARGIN)

    def y(self, value: float) -> float:
        part = (log10(value) - self.low) / (self.high - self.low)
        return HEIGHT - MARGIN - part * (HEIGHT - 2 * MARGIN)

    def line(self, factor: float, name: str) -> str:
        ends = [10.0**self.low, 10.0**self.high]
        points = [(self.x(value), self.y(value * factor)) for value in ends]
        (x1, y1), (x2, y2) = points
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{name}"/>'

    def frame(self) -> str:
        return "".join(self._decades()) + (
            f'<text x="{WIDTH / 2}" y="{HEIGHT - 15}" text-anchor="middle">published cycles</text>'
            f'<text x="18" y="{HEIGHT / 2}" text-anchor="middle" '
            f'transform="rotate(-90 18 {HEIGHT / 2})">our cycles</text>'
        )

    def _decades(self) -> Iterable[str]:
        bottom, left = HEIGHT - MARGIN, MARGIN
        for decade in range(self.low, self.high + 1, DECADE_STEP):
            x, y = self.x(10.0**decade), self.y(10.0**decade)
            label = f"10<tspan dy='-5' font-size='9'>{decade}</tspan>"
            yield f'<line x1="{x}" y1="{bottom}" x2="{x}" y2="{bottom + 5}" class="axis"/>'
            yield f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{label}</text>'
            yield f'<line x1="{left - 5}" y1="{y}" x2="{left}" y2="{y}" class="axis"/>'
            yield f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{label}</text>'
        yield f'<line x1="{left}" y1="{bottom}" x2="{WIDTH - MARGIN}" y2="{bottom}" class="axis"/>'
        yield f'<line x1="{left}" y1="{MARGIN}" x2="{left}" y2="{bottom}" class="axis"/>'
