"""How full the persist buffers were over time, as an SVG drawing."""

from typing import Any

from fencepost.figures import Run
from fencepost.report.plane import Axis, Plane, duration, linear

View = dict[str, Any]


def occupancy(runs: list[Run], columns: list[View]) -> View | None:
    """A line for each run with persist buffers; none if there is no such run.

    Time runs from the beginning of the first region of interest on.
    """
    found = [
        # Dashes only tell machines apart here: in so many steps they are hard to follow.
        (column if column["machine"] else column | {"dash": 0}, run["persist_buffer"]["occupancy"])
        for column, run in zip(columns, runs, strict=True)
        if run.get("persist_buffer") and run["persist_buffer"]["occupancy"].get("over_time")
    ]
    if not found:
        return None
    lengths = [len(of["over_time"]["mean"]) * of["over_time"]["interval_ns"] for _, of in found]
    entries = max(of["entries"] for _, of in found)
    plane = Plane(linear(max(lengths), duration), _up(entries))
    return plane.chart(
        [{"column": column, "path": _path(plane, of["over_time"])} for column, of in found]
    )


def _up(entries: int) -> Axis:
    """To the size of the buffer, in quarters of it if they are whole."""
    if entries % 4:
        return linear(entries, "{:g}".format)
    quarters = [quarter * entries // 4 for quarter in range(5)]
    return Axis(0, entries, [(number, str(number)) for number in quarters])


def _path(plane: Plane, series: View) -> str:
    interval = series["interval_ns"]
    ends = [((index + 1) * interval, mean) for index, mean in enumerate(series["mean"])]
    return plane.steps(0.0, ends)
