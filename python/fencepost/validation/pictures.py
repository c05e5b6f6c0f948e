"""Pictures of comparisons."""

from fencepost import plots
from fencepost.validation import Row

HELD, MISSED = "#2a7f62", "#c0392b"
BAND = 0.10  # drawn beside the diagonal


def ours_against_published(rows: list[Row], unit: str) -> str:
    """Ours against published on logarithmic axes, with lines at ±10 %."""
    figure = plots.new_figure()
    axes = figure.subplots()
    for holds, color, label in ((True, HELD, "holds"), (False, MISSED, "misses")):
        points = [row for row in rows if row.holds is holds and min(row.published, row.ours) > 0]
        published, ours = [row.published for row in points], [row.ours for row in points]
        axes.scatter(published, ours, s=14, color=color, label=f"{label} ({len(points)})")
    ends = [row.published for row in rows if row.published > 0]
    line = [min(ends), max(ends)]
    axes.plot(line, line, color="#444", linewidth=0.8)
    for factor in (1 - BAND, 1 + BAND):
        axes.plot(line, [end * factor for end in line], color="#aaa", linewidth=0.8, dashes=(4, 3))
    axes.set(xscale="log", yscale="log", xlabel=f"published {unit}", ylabel=f"our {unit}")
    axes.legend()
    return plots.svg(figure)
