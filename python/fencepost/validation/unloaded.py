"""Unloaded latency: dependent reads, alone on the machine, against what was published of it."""

from functools import partial

from fencepost import plots
from fencepost.ask import latencies
from fencepost.ask.latencies import Document
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row, near
from fencepost.traffic import Machine
from fencepost.validation import Comparison, Findings
from fencepost.validation.latencies import PUBLISHED, machine, published

PART = 0.10
METRIC = "idle read latency"
HOP = "xconn-x8: a hop"

# machine, memory, the quantity's name and which of its numbers, sets a parameter
POINTS: tuple[tuple[str, str, str, int, bool], ...] = (
    ("pond-8", "dram", "local DRAM total", 0, True),
    ("pond-8", "expander", "pool of 8 / 16 / 32-64 sockets", 0, False),
    ("pond-16", "expander", "pool of 8 / 16 / 32-64 sockets", 1, False),
    ("pond-64", "expander", "pool of 8 / 16 / 32-64 sockets", 2, True),
    ("xconn-pool", "expander", "XConn B2 Apollo pool (two x8 ports) read latency", 0, False),
    ("xconn-x8", "expander", "one x8 port idle -> saturated by reads", 0, False),
    ("xconn-x8", "expander", "XConn XC50256 64 B minimum", 0, False),
    ("asic-expander", "dram", "LMbench 1 GB local DRAM", 0, True),
    ("asic-expander", "expander", "LMbench 1 GB CXL ASIC expander", 0, True),
    ("fpga-expander", "expander", "LMbench 1 GB CXL FPGA expander", 0, True),
)
QUICK = ("pond-8", "xconn-x8")


def compare(lab: Lab) -> Findings:
    """Every published latency of the machines, and where each nanosecond of ours goes."""
    wanted = [
        point
        for point in POINTS
        if (not lab.quick or point[0] in QUICK) and lab.wants(_condition(*point[:3]))
    ]
    places = list(dict.fromkeys((name, memory) for name, memory, *_ in wanted))
    lab.log(f"idle latency of {'; '.join(', '.join(place) for place in places)}")
    works = [partial(latencies.idle_point, machine(lab, name), memory) for name, memory in places]
    measured = dict(zip(places, lab.performed(*works), strict=True))
    rows = []
    for name, memory, quantity, number, sets in wanted:
        ours = measured[name, memory]["latency_ns"]["mean"]
        value = published(quantity)[number]
        point = _condition(name, memory, quantity)
        of = {"is_set": sets, "unit": "ns", "machine": name, "source": PUBLISHED.name}
        rows.append(near("unloaded", point, METRIC, value, ours, PART * value, **of))
    if (switched := measured.get(("xconn-x8", "expander"))) and lab.wants(HOP):
        rows.append(_hop(lab, switched))
    check_parts(measured)
    findings_pictures = (
        {}
        if not lab.is_whole
        else {
            "validation-unloaded.svg": Picture(
                "Read latency by where it is spent", _picture(measured)
            )
        }
    )
    tables = [_parts_table(measured)] if measured else []
    return Findings(rows, tables, findings_pictures)


def _condition(name: str, memory: str, quantity: str) -> str:
    return f"{name}, {memory}: {quantity}"


def _hop(lab: Lab, switched: Document) -> Row:
    """What the switch of xconn-x8 adds: its latency minus that without it."""
    resolved = machine(lab, "xconn-x8").resolved
    fabric = {"hosts": ["host0"], "switches": [], "devices": [], "expanders": ["mem0"]}
    without = Machine("xconn-x8", resolved | {"fabric": fabric | {"edges": ["host0 -> mem0"]}})
    [direct] = lab.performed(partial(latencies.idle_point, without, "expander"))
    ours = switched["latency_ns"]["mean"] - direct["latency_ns"]["mean"]
    [value] = published("per switch hop (XConn)")
    metric = "added latency"
    of = {"is_set": True, "unit": "ns", "machine": "xconn-x8", "source": PUBLISHED.name}
    return near("unloaded", HOP, metric, value, ours, PART * value, **of)


def check_parts(measured: dict[tuple[str, str], Document]) -> None:
    """The parts of each latency are the whole; anything else is a fault of the simulator."""
    for (name, memory), point in measured.items():
        parts, whole = sum(point["parts_ns"].values()), point["latency_ns"]["mean"]
        if abs(parts - whole) > 1e-6 * whole:
            raise AssertionError(
                f"{name}, {memory}: the parts are {parts} ns, the whole {whole} ns"
            )


def _stages(measured: dict[tuple[str, str], Document]) -> list[str]:
    """The stages in which any time was spent."""
    first = next(iter(measured.values()))["parts_ns"]
    points = measured.values()
    return [stage for stage in first if any(point["parts_ns"][stage] for point in points)]


def _parts_table(measured: dict[tuple[str, str], Document]) -> str:
    stages = _stages(measured)
    lines = [
        "### Where the time goes (mean, ns)\n",
        f"| machine | memory | {' | '.join(stages)} | sum | latency | median |",
        "|---" * (len(stages) + 5) + "|",
    ]
    for (name, memory), point in measured.items():
        parts = [point["parts_ns"][stage] for stage in stages]
        latency_ns = point["latency_ns"]
        figures = [*parts, sum(parts), latency_ns["mean"], latency_ns["p50"]]
        lines.append(f"| {name} | {memory} | {' | '.join(f'{ns:.1f}' for ns in figures)} |")
    return "\n".join(lines) + "\n"


def _picture(measured: dict[tuple[str, str], Document]) -> str:
    """The parts as bars, with what was published of each as marks."""
    figure = plots.new_figure(8.0, 4.4)
    axes = figure.subplots()
    bars = list(measured)
    left = [0.0] * len(bars)
    for stage in _stages(measured):
        parts = [measured[bar]["parts_ns"][stage] for bar in bars]
        axes.barh(range(len(bars)), parts, left=left, label=stage.replace("_", " "))
        left = [start + part for start, part in zip(left, parts, strict=True)]
    for name, memory, quantity, number, *_ in POINTS:
        place = bars.index((name, memory))
        axes.plot(published(quantity)[number], place, "k|", markersize=16)
    axes.set(xlabel="read latency (ns); marks: published", xlim=(0, 800))
    axes.set_yticks(range(len(bars)), [", ".join(bar) for bar in bars])
    axes.invert_yaxis()
    axes.legend(fontsize="small")
    return plots.svg(figure)


UNLOADED = Comparison(
    "unloaded",
    "Unloaded latency of local, direct and switched memory",
    "How long does one read of idle memory take? The rows are mean latencies of dependent "
    "reads of single lines at random places, refreshes included, as LMbench and MLC measure "
    "them. Each machine has one description for all its rows. Rows hold within 10 %. XConn "
    "publishes two figures, of the pool and of one idle port; ours is the same for both, "
    "because nothing on the path of a single read differs. DMSim also gives a remote socket, "
    "which is not modelled here and has no row.",
    compare,
)
