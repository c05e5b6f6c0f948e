"""The same program, recorded and replayed on a machine: one region of interest for each point."""

from collections.abc import Iterable
from typing import Any

from fencepost import api, scratch
from fencepost._core import InputError
from fencepost.measure.persist import measurement
from fencepost.measure.persist.interval import Estimate
from fencepost.measure.persist.measurement import Document, Point, Settings
from fencepost.recordings import record_alike

# More than the part of one thread.
ARENA_BYTES_MAX = 1 << 30

# A replay is the same each time; the round before it warms the caches, outside of any region.
ROUNDS = Settings(rounds=1, warm_up=1, threads=1)


def add(document: Document, machine: api.Machine, scheme: str) -> None:
    """Adds `simulated` to a document that `measurement.measure` made: what one thread does."""
    regions = _replay(machine, scheme)
    times = times_of(regions)
    measured = {result["name"]: result for result in document["results"] if result["unit"] == "ns"}
    document["simulated"] = [
        {
            "name": point.name,
            "value": time,
            "unit": "ns",
            "difference": _difference(time, measured[point.name]["value"]),
        }
        for point, time in times.items()
    ]
    document["simulated_on"] = {
        "machine": machine.label,
        "scheme": scheme,
        "after_flush": measurement.after_flush({p: Estimate(t, 0, 0, 1) for p, t in times.items()}),
    }


def _difference(simulated: float, measured: float) -> float | None:
    """As a part of what was measured; None where that is lost in what the timer takes."""
    return simulated / measured - 1 if measured > 0 else None


def _replay(machine: api.Machine, scheme: str) -> list[tuple[Point, float]]:
    """The points with the simulated time of their regions, in ns."""
    measurement.check_built()
    output = measurement.read(measurement.run(ROUNDS.arguments()))
    arena = int(output.said["arena"], 16)
    pm = f"range:{arena:#x}-{arena + ARENA_BYTES_MAX:#x}"
    with scratch.made() as folder:
        record = folder / "persist.fencepost"
        record_alike(record, measurement.PROGRAM, ROUNDS.arguments(), folder)
        result = api.compare(machine, record, schemes=[scheme], pm=[pm])
    [run] = result.runs
    if "error" in run:
        raise InputError(f"{machine.label}: {run['error']}")
    regions: Iterable[dict[str, Any]] = run["regions"]
    return [
        (point, region["simulated_ns"]) for point, region in zip(output.ticks, regions, strict=True)
    ]


def times_of(regions: list[tuple[Point, float]]) -> dict[Point, float]:
    """For each group of lines, without what the timer takes."""
    timer = next(time for point, time in regions if point.is_timer)
    return {point: (time - timer) / point.groups for point, time in regions if not point.is_timer}
