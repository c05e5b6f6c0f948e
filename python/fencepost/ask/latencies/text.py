"""Latencies as text, in the layout that Intel MLC prints."""

from collections.abc import Iterator

from fencepost.ask.latencies import Document

RULE = "=" * 26


def lines(document: Document) -> Iterator[str]:
    """Idle latency of each kind of memory, then a table for each mix of reads and writes."""
    [name] = document["provenance"]["machines"]
    yield f"Measuring idle latencies for random access (in ns) on {name}..."
    for idle in document["idle"]:
        yield f"\t{idle['memory']}\t{idle['latency_ns']['mean']:7.1f}"
    yield from _coherent(document.get("coherent", []))
    options = document["provenance"]["options"]
    yield ""
    yield f"Measuring Loaded Latencies of {options['memory']}"
    first, *others = options["hosts"]
    where = f" on each of {', '.join([first, *others])}" if others else ""
    threads = f"{options['threads']} threads with {options['outstanding']} requests outstanding"
    yield f"Using {threads}{where}"
    if others:
        yield f"Latency of {first}, bandwidth of all"
    for curve in document["curves"]:
        yield f"Using {traffic_type(curve)} traffic type"
        yield "Inject\tLatency\tBandwidth"
        yield "Delay\t(ns)\tMB/sec"
        yield RULE
        for point in curve["points"]:
            latency = point["latency_ns"]["mean"]
            shown = f"{latency:7.2f}" if latency is not None else "      –"
            megabytes = point["bandwidth_gb_per_s"] * 1000
            yield f" {point['inject_delay']:05d}\t{shown}\t{megabytes:10.1f}"
        yield ""


def _coherent(points: list[Document]) -> Iterator[str]:
    """A table for each accelerator and memory: its requests, by where their lines are found."""
    tables: dict[tuple[str, str], list[Document]] = {}
    for point in points:
        tables.setdefault((point["device"], point["memory"]), []).append(point)
    for (device, memory), measured in tables.items():
        places = list(dict.fromkeys(point["found_in"] for point in measured))
        yield ""
        yield f"Measuring requests of {device} to {memory} (in ns), by where the line is found"
        yield "\t".join(["Request ", *(f"{place.replace('_', ' '):>10}" for place in places)])
        for access in dict.fromkeys(point["access"] for point in measured):
            of = {
                point["found_in"]: point["latency_ns"]
                for point in measured
                if point["access"] == access
            }
            yield "\t".join([f"{access:10}", *(f"{of[place]:10.1f}" for place in places)])
        if memory == device:
            yield f"nc_p_write pushes lines of the host's memory alone: of {memory}, use nc_write"


def has_gaps(document: Document) -> bool:
    """Whether there is a point at which no read was measured."""
    points = [point for curve in document["curves"] for point in curve["points"]]
    return any(point["latency_ns"]["mean"] is None for point in points)


def traffic_type(curve: Document) -> str:
    """What MLC calls a mix of reads and writes."""
    if curve["writes"] == 0:
        return "Read-only"
    if curve["reads"] == 0:
        return "Write-only"
    return f"{curve['reads']}:{curve['writes']} Reads-Writes"
