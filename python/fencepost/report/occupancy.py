"""How full the persist buffers were over time, as an SVG drawing."""

from typing import Any

from fencepost.figures import Run
from fencepost.report.plane import Plane, duration, linear

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
    plane = Plane(linear(max(lengths), duration), linear(entries, lambda number: f"{number:g}"))
    return plane.chart(
        [{"column": column, "path": _path(plane, of["over_time"])} for column, of in found]
    )


def _path(plane: Plane, series: View) -> str:
    interval = series["interval_ns"]
    ends = [((index + 1) * interval, mean) for index, mean in enumerate(series["mean"])]
    return plane.steps(0.0, ends)
