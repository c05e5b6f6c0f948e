"""A latency distribution as an SVG drawing: the share of requests that took at most so long."""

from typing import Any

from fencepost.report.plane import Axis, Plane, duration, logarithmic

Curve = tuple[Any, list[list[float]]]

SHORTEST_NS = 0.1  # that the axis begins with
SHARES = Axis(0, 1, [(share, f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)])


def distribution(curves: list[Curve]) -> dict[str, Any]:
    """The chart; the time axis is logarithmic.

    Each curve is what it is drawn as and points (nanoseconds, fraction), ascending; empty ones
    are left out.
    """
    times = [ns for _, points in curves for ns, _ in points]
    plane = Plane(logarithmic(max(min(times), SHORTEST_NS), max(times), duration), SHARES)
    return plane.chart(
        [{"column": column, "path": _steps(plane, points)} for column, points in curves if points]
    )


def _steps(plane: Plane, points: list[list[float]]) -> str:
    path = [f"M{plane.at((points[0][0], 0))}"]
    for ns, fraction in points:
        path.append(f"H{plane.x(ns):.1f}V{plane.y(fraction):.1f}")
    return "".join(path)
