"""What there was to save if power had failed, as far as a result document says it."""

from collections.abc import Callable
from typing import Any

from fencepost import figures, hold_up
from fencepost.figures import Run

LINE_BYTES = 64

Row = dict[str, Any]


def is_found(runs: list[Run]) -> bool:
    """Whether the worst instant was looked for (`--power`)."""
    return any(run.get("power") for run in runs)


def rows(runs: list[Run], machines: dict[str, Any]) -> list[Row]:
    """What was found at the worst instant of each run; where nobody looked for it, bounds of it.

    Nothing where no run ever had anything to save.
    """
    if not is_found(runs):
        return _bounds(runs, machines)
    found = [run.get("power") for run in runs]
    return _found(found) if any(one and one["needed_uj"] > 0 for one in found) else []


def _found(found: list[dict[str, Any] | None]) -> list[Row]:
    """The worst instant, what there is to save then, and how long and how much that takes."""

    def row(label: str, cell: Callable[[dict[str, Any]], str]) -> Row:
        return {"label": label, "cells": ["–" if one is None else cell(one) for one in found]}

    def of_buffer(name: str) -> list[Row]:
        def fullest(power: dict[str, Any]) -> str:
            of = {one["switch"]: one for one in power["fullest"]}.get(name)
            return "–" if of is None else f"{_amount(of['bytes'])} at {_time(of['time_ps'])}"

        return [
            row(
                f"{name}, its persist buffer then",
                lambda one: _amount(dict(one["buffer_bytes"]).get(name)),
            ),
            row(f"{name}, at its fullest", fullest),
        ]

    def phase(power: dict[str, Any], name: str) -> str:
        of = power["needed"][name]
        return f"{of['bytes']:,} bytes in {_time(of['duration_ps'])}"

    def shutdown(power: dict[str, Any]) -> str:
        if power["is_dirty_shutdown"] is None:
            return "–"
        if power["budget_uj"] is None:
            return f"dirty: {'; '.join(power['errors'])}"
        verdict = "dirty: {} µJ are not enough" if power["is_dirty_shutdown"] else "clean: {} µJ do"
        return verdict.format(f"{power['budget_uj']:,.10g}")

    known = [one for one in found if one is not None]
    switches = dict.fromkeys(name for one in known for name, _ in one["buffer_bytes"])
    listed = [
        row("the worst instant", lambda one: _time(one["time_ps"])),
        row("dirty in the caches then", lambda one: _amount(one["cache_bytes"])),
    ]
    for name in switches:
        listed += of_buffer(name)
    listed += [
        row("flush, phase 1: caches written back", lambda one: phase(one, "phase_1")),
        row("flush, phase 2: devices and buffers", lambda one: phase(one, "phase_2")),
        row(
            "hold-up needed",
            lambda one: f"{one['needed_uj']:,.1f} µJ, {figures.shown(one['hold_up_ns'], 'ns')}",
        ),
    ]
    if any(one["is_dirty_shutdown"] is not None for one in known):
        listed.append(row("shutdown, with the machine's hold-up source", shutdown))
    return listed


def _bounds(runs: list[Run], machines: dict[str, Any]) -> list[Row]:
    """For each persist buffer its fullest in each run, and what the caches of all hosts hold."""
    fullest = [_fullest(run) for run in runs]
    switches = list(dict.fromkeys(name for found in fullest for name in found))
    found = [
        {
            "label": f"{name}, its persist buffer at its fullest",
            "cells": [_amount(of_run.get(name)) for of_run in fullest],
        }
        for name in switches
    ]
    if switches:
        caches = [_cache_bytes(machines[run["machine"]]) for run in runs]
        cells = [_amount(held) for held in caches]
        found.append({"label": "last-level caches, if all of it were dirty", "cells": cells})
        sources = [machines[run["machine"]].get("hold_up") for run in runs]
        if any(sources):
            cells = [
                _verdict(source, sum(of_run.values()), held)
                for source, of_run, held in zip(sources, fullest, caches, strict=True)
            ]
            found.append({"label": "shutdown, with the machine's hold-up source", "cells": cells})
    return found


def _verdict(source: dict[str, float] | None, buffers: int, caches: int | None) -> str:
    """Whether the energy of a hold-up source is enough: for the persist buffers at their fullest,
    and for all of the caches too. Between the two the caches decide, which this does not know."""
    if source is None:
        return "–"
    energy = source["energy_uj"]
    if hold_up.microjoules(buffers) > energy:
        return f"dirty: {energy:g} µJ are not enough for the persist buffers"
    if caches is None or hold_up.microjoules(buffers + caches) > energy:
        return f"clean for the persist buffers; {energy:g} µJ may not be enough for the caches"
    return f"clean: {energy:g} µJ are enough for all"


def _fullest(run: Run) -> dict[str, int]:
    """Bytes in the persist buffer of each switch, when they were most."""
    found = {}
    for name, node in run["statistics"].items():
        levels = node.get("persist_buffer", {}).get("occupancy", {}).get("level_ps")
        if levels is not None:
            held = max((int(level) for level, ps in levels.items() if ps > 0), default=0)
            found[name] = held * LINE_BYTES
    return found


def _cache_bytes(machine: dict[str, Any]) -> int | None:
    """The size of the last-level caches of all hosts; none if the machine says nothing of them."""
    shared = [level for level in machine.get("cache", {}).values() if level["shared"]]
    if not shared:
        return None
    largest = max(level["size_kib"] for level in shared)
    return int(largest * 1024) * len(machine["fabric"]["hosts"])


def _amount(held: int | None) -> str:
    if held is None:
        return "–"
    return f"{held:,} bytes, {hold_up.microjoules(held):,.1f} µJ"


def _time(ps: int) -> str:
    return figures.shown(ps / 1000, "ns")
