"""Pictures of rows, in one style for all studies."""

from fencepost import plots
from fencepost.rows.row import Row

HELD, MISSED = "#2a7f62", "#c0392b"
BAND = 0.10  # drawn beside the diagonal


def ours_against_expected(rows: list[Row], unit: str) -> str:
    """Ours against what is expected on logarithmic axes, with lines at ±10 %."""
    figure = plots.new_figure()
    axes = figure.subplots()
    for holds, color, label in ((True, HELD, "holds"), (False, MISSED, "misses")):
        points = [
            (row.expected, row.ours)
            for row in rows
            if row.holds is holds
            and isinstance(row.expected, float)
            and isinstance(row.ours, float)
        ]
        points = [point for point in points if min(point) > 0]
        expected, ours = [point[0] for point in points], [point[1] for point in points]
        axes.scatter(expected, ours, s=14, color=color, label=f"{label} ({len(points)})")
    ends = [row.expected for row in rows if isinstance(row.expected, float) and row.expected > 0]
    line = [min(ends), max(ends)] if ends else []
    axes.plot(line, line, color="#444", linewidth=0.8)
    for factor in (1 - BAND, 1 + BAND):
        axes.plot(line, [end * factor for end in line], color="#aaa", linewidth=0.8, dashes=(4, 3))
    axes.set(xscale="log", yscale="log", xlabel=f"published {unit}", ylabel=f"our {unit}")
    axes.legend()
    return plots.svg(figure)
