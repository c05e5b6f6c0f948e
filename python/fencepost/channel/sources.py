"""Where numbers of bytes could come from on this machine, and why they do not.

A source that is missing is said to be missing: nothing stands in for it but what the user asks for,
an emulated pool or the program's own reports.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from fencepost.tree import EXPERIMENTS

EVENTS = EXPERIMENTS / "channel" / "intel_cxl_events.csv"
# Models of family 6, as the kernel numbers them, by the platform of the events' table.
PLATFORMS = {143: "SPR", 207: "EMR", 173: "GNR", 174: "GNR", 175: "SRF", 182: "SRF"}


@dataclass(frozen=True)
class Source:
    """A source, and what it lacks here; empty where it could be read."""

    name: str
    missing: str


def examine(root: Path = Path("/")) -> list[Source]:
    """The sources of a machine whose kernel shows itself below `root`."""
    return [Source("counter", _counter(root)), Source("mbm", _mbm(root))]


def explain(sources: list[Source]) -> str:
    """Why no bandwidth is known here, and what to do."""
    told = "; ".join(f"{one.name}: {one.missing}" for one in sources)
    return (
        f"no source of bandwidth ({told}); have the program report what it uses "
        '(source = "reported" in --config, mchannel_account in the program), or try an emulated '
        "pool: --emulate GB/s"
    )


def _counter(root: Path) -> str:
    platform = _platform(root)
    if platform is None:
        return "the table of events has no processor like this one"
    if platform not in {row["platform"] for row in _events()}:
        return f"the table of events has none of {platform}"
    if not (root / "sys/bus/event_source/devices/cpu").is_dir():
        return f"the kernel offers no counters of this {platform}; a virtual machine may hide them"
    return f"reading those of {platform} is not built yet"


def _mbm(root: Path) -> str:
    features = root / "sys/fs/resctrl/info/L3_MON/mon_features"
    if not features.is_file():
        return "no monitoring of bandwidth in /sys/fs/resctrl"
    if "mbm_total_bytes" not in features.read_text().split():
        return "resctrl does not monitor the bytes of memory here"
    return "reading resctrl is not built yet"


def _platform(root: Path) -> str | None:
    try:
        text = (root / "proc/cpuinfo").read_text()
    except OSError:
        return None
    first = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text.partition("\n\n")[0], re.MULTILINE))
    is_intel = first.get("vendor_id") == "GenuineIntel" and first.get("cpu family") == "6"
    return PLATFORMS.get(int(first.get("model", -1))) if is_intel else None


def _events() -> list[dict[str, str]]:
    with EVENTS.open(newline="") as file:
        return list(csv.DictReader(file))
