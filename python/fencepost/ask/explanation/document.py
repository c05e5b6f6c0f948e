"""The document of `fencepost explain`: lines of the program, with every scheme side by side."""

from typing import Any

from fencepost import figures, reliability
from fencepost.ask.explanation import causes
from fencepost.runs.axes import baseline_scheme

# Of waiting: what is nearer than this to the best may be ahead with the next start of the threads.
NEAR = 0.01

Document = dict[str, Any]
Identity = tuple[Any, ...]


def of_result(result: Document) -> Document:
    """From runs that counted their persist sites; these may be runs of one machine only."""
    [machine] = result["provenance"]["machines"].values()
    runs = {run["scheme"]: run for run in result["runs"]}
    counted = {scheme: run["persist_sites"] for scheme, run in runs.items() if "error" not in run}
    bridge_ns = machine["host_bridge"]["latency_ns"]
    flushes = _by_identity({scheme: sites["flushes"] for scheme, sites in counted.items()})
    sites = [
        _identified(by_scheme)
        | {
            "schemes": {
                scheme: _flush(site, runs[scheme], bridge_ns) for scheme, site in by_scheme.items()
            }
        }
        for by_scheme in flushes.values()
    ]
    order = sorted(range(len(sites)), key=lambda number: _weight(sites[number]), reverse=True)
    places = {
        (scheme, site["number"]): order.index(number)
        for number, by_scheme in enumerate(flushes.values())
        for scheme, site in by_scheme.items()
    }
    fences = [
        _identified(by_scheme)
        | {
            "schemes": {
                scheme: _fence(fence, runs[scheme], scheme, places)
                for scheme, fence in by_scheme.items()
            }
        }
        for by_scheme in _by_identity(
            {scheme: sites["fences"] for scheme, sites in counted.items()}
        ).values()
    ]
    accesses = [
        _identified(by_scheme)
        | {"schemes": {scheme: _access(one, runs[scheme]) for scheme, one in by_scheme.items()}}
        for by_scheme in _by_identity(
            {scheme: runs[scheme]["accesses"] for scheme in counted}
        ).values()
    ]
    over = baseline_scheme(result["provenance"])
    return {
        "provenance": result["provenance"],
        "runs": [_run(run) for run in runs.values()],
        "sites": [sites[number] | _best(sites[number], over) for number in order],
        "fences": sorted(fences, key=_fence_weight, reverse=True),
        "accesses": sorted(accesses, key=_access_weight, reverse=True),
    }


def busy_cores(run: Document) -> int:
    """Cores of all hosts that executed anything in the time that counts."""
    return sum(core["instructions"] > 0 for core in _cores(run))


def _cores(run: Document) -> list[Document]:
    return [
        core
        for host in run["statistics"].values()
        for name, core in host.items()
        if name.startswith("core") and isinstance(core, dict)
    ]


def _run(run: Document) -> Document:
    if "error" in run:
        return {"scheme": run["scheme"], "error": run["error"]}
    of_fences = run["persist_sites"]["fences"]
    waited_ns = round(sum(fence["waited_ns"] for fence in of_fences), 3)
    of_loads = [access for access in run["accesses"] if access["kind"] == "load"]
    loads_ns = round(sum(load["wait_ns"] for load in of_loads), 3)
    stack = run["latency_stacks"]["persist"]
    return {
        **{name: run[name] for name in ("scheme", "ended", "simulated_ns", "instructions")},
        **{name: run[name] for name in ("persist", "fence_stall")},
        **reliability.members(run),
        "latency_ns": stack["latency_ns"],
        "parts_ns": stack["parts"],
        "busy_cores": busy_cores(run),
        "loads": sum(core["loads"] + core["forwarded_loads"] for core in _cores(run)),
        "stores": sum(core["stores"] for core in _cores(run)),
        "waited_ns": waited_ns,
        "waited_share_rate": _share(waited_ns, run),
        "loads_waited_ns": loads_ns,
        "loads_waited_share_rate": _share(loads_ns, run),
    }


def _flush(site: Document, run: Document, bridge_ns: float) -> Document:
    persist = site["persist"]
    return {
        **{name: site[name] for name in ("lines", "outside_pm", "redundant")},
        "redundant_behind_writes": site["redundant_behind_writes"],
        "persist": {name: persist[name] for name in ("count", "latency_ns")},
        "latency_ns": site["latency_ns"],
        "parts_ns": site["parts_ns"],
        "causes": causes.of_parts(site["parts_ns"], persist["count"], bridge_ns),
        "held_ns": site["held_ns"],
        "held_share_rate": _share(site["held_ns"], run),
        "fence_wait_ns": site["fence_wait_ns"],
        "fence_wait_share_rate": _share(site["fence_wait_ns"], run),
        # A fence may wait while the store queue is held: one does not add to the other.
        "wait_ns": max(site["held_ns"], site["fence_wait_ns"]),
    }


def _fence(
    fence: Document, run: Document, scheme: str, places: dict[tuple[str, int], int]
) -> Document:
    waited_for = [
        {"site": places[scheme, wait["number"]], "wait_ns": wait["wait_ns"]}
        for wait in fence["waited_for"]
    ]
    return {
        "executions": fence["executions"],
        "stall": {name: fence["stall"][name] for name in ("count", "latency_ns")},
        **{name: fence[name] for name in ("stall_ns", "waited_ns", "stores_ns")},
        "waited_share_rate": _share(fence["waited_ns"], run),
        "waited_for": sorted(waited_for, key=lambda wait: -wait["wait_ns"]),
    }


def _access(access: Document, run: Document) -> Document:
    return {
        **{name: access[name] for name in ("count", "from_memory", "wait_ns", "origins")},
        "wait_share_rate": _share(access["wait_ns"], run),
    }


def _share(ns: float, run: Document) -> float | None:
    """Of the time of all cores that did anything: no instant of a core is counted twice in `ns`."""
    return figures.ratio(ns, run["simulated_ns"] * busy_cores(run))


def _by_identity(entries: dict[str, list[Document]]) -> dict[Identity, dict[str, Document]]:
    """For each line of the program its entry under each scheme."""
    found: dict[Identity, dict[str, Document]] = {}
    for scheme, listed in entries.items():
        for entry in listed:
            found.setdefault(_identity(entry), {})[scheme] = entry
    return found


def _identity(entry: Document) -> Identity:
    called_from = entry["called_from"]
    caller = None if called_from is None else _where(called_from)
    return entry["kind"], entry["is_inserted"], _where(entry["place"]), caller


def _where(place: Document) -> Identity:
    """As the core puts instructions together: by source where that is known, else by address."""
    if any(frame["line"] is not None for frame in place["frames"]):
        frames = tuple(
            (frame["function"], frame["file"], frame["line"]) for frame in place["frames"]
        )
        return place["module"], frames
    return place["module"], place["offset"] if place["module"] else place["address"]


def _identified(by_scheme: dict[str, Document]) -> Document:
    first = next(iter(by_scheme.values()))
    return {name: first[name] for name in ("kind", "is_inserted", "place", "called_from")}


def _weight(site: Document) -> tuple[float, float, int]:
    """What it costs where it costs most."""
    of_schemes = site["schemes"].values()
    return (
        max(of_scheme["wait_ns"] for of_scheme in of_schemes),
        max(of_scheme["latency_ns"] for of_scheme in of_schemes),
        max(of_scheme["lines"] for of_scheme in of_schemes),
    )


def _fence_weight(fence: Document) -> float:
    return max(float(of_scheme["waited_ns"]) for of_scheme in fence["schemes"].values())


def _access_weight(access: Document) -> tuple[float, int, int]:
    of_schemes = access["schemes"].values()
    return (
        max(float(of_scheme["wait_ns"]) for of_scheme in of_schemes),
        max(sum(of_scheme["from_memory"].values()) for of_scheme in of_schemes),
        max(of_scheme["count"] for of_scheme in of_schemes),
    )


def _best(site: Document, baseline: str) -> Document:
    """The scheme that helps most there: the one under which it costs least waiting.

    Where two are alike in that, the one whose persists take less time in all; then the one that
    was asked for first. `near_best` are all that are too near to it to be told apart.
    """
    schemes = site["schemes"]
    best = min(schemes, key=lambda name: (schemes[name]["wait_ns"], schemes[name]["latency_ns"]))
    # Where nothing waits, what the persists themselves take decides.
    decides = ["wait_ns"] if schemes[best]["wait_ns"] else ["wait_ns", "latency_ns"]
    near = [
        name
        for name, of in schemes.items()
        if all(of[key] <= schemes[best][key] * (1 + NEAR) for key in decides)
    ]
    over = schemes.get(baseline)
    saves = None if over is None else round(over["wait_ns"] - schemes[best]["wait_ns"], 3)
    return {"best": best, "near_best": near, "best_saves_ns": saves}
