"""The way of one persist as a picture: each part of its latency stack where it happened."""

import io
from typing import Any

PERSISTS = ("flush", "non_temporal_store")

COLOURS = {
    "core": "#3f4853",
    "cache": "#8d99a6",
    "host_bridge": "#b7c0c9",
    "link_wait": "#6f8fd8",
    "link": "#c9a227",
    "switch_pipeline": "#2b6cb0",
    "arbitration": "#3aa6a0",
    "pb_wait": "#e07b39",
    "pb_access": "#c2413b",
    "device_queue": "#8e5bbf",
    "media": "#d98ba8",
    "media_write": "#d98ba8",
    "to_core": "#3f4853",
}


def picture(requests: dict[str, Any], run: str) -> str:
    """An SVG drawing of the first persist (of the first request, if there is none)."""
    # Only here, because most commands draw nothing and should start quickly.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    first = next(
        (request for request in requests["requests"] if request["cause"] in PERSISTS),
        requests["requests"][0],
    )
    drains = [request for request in requests["requests"] if first["name"] in request["drains"]]
    slices = [(request, part) for request in (first, *drains) for part in request["slices"]]
    start = min(part["from_ps"] for _, part in slices)
    span = (max(part["until_ps"] for _, part in slices) - start) / 1000
    places = list(dict.fromkeys((part["component"], part["track"]) for _, part in slices))
    with rc_context({"svg.hashsalt": "fencepost", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 1.3 + 0.34 * len(places)), layout="constrained")
        axes = figure.subplots()
        rows = [places.index((part["component"], part["track"])) for _, part in slices]
        labelled: set[int] = set()
        for request, part in slices:
            row = places.index((part["component"], part["track"]))
            begin = (part["from_ps"] - start) / 1000
            length = (part["until_ps"] - part["from_ps"]) / 1000
            named = part["doing"] if part["doing"] in COLOURS else "core"
            hatch = "///" if request is not first else None
            axes.barh(
                row, length, left=begin, height=0.6, color=COLOURS[named], hatch=hatch,
                edgecolor="white", linewidth=0.6,
            )  # fmt: skip
            # Where another slice of the row follows closely, its label is on the right.
            is_left = row not in labelled and rows.count(row) > 1 and begin > span / 8
            labelled.add(row)
            axes.annotate(
                f"{part['doing'].replace('_', ' ')} {length:.1f}",
                (begin if is_left else begin + length, row),
                xytext=(-3 if is_left else 3, 0), textcoords="offset points",
                ha="right" if is_left else "left", va="center", fontsize=7, color="#1c2127",
            )  # fmt: skip
        axes.set_yticks(
            range(len(places)), [f"{component}: {track}" for component, track in places]
        )
        axes.invert_yaxis()
        axes.set_xlabel("ns since it began" + ("; hatched: its drain" if drains else ""))
        axes.set_title(f"A {first['cause'].replace('_', ' ')} of line {first['line']:#x} on {run}")
        axes.margins(x=0.12)
        axes.spines[["top", "right"]].set_visible(False)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return svg.getvalue()
