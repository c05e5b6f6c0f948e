"""Where numbers of bytes come from on this machine, or why they do not.

A source that is missing is said to be missing: nothing stands in for it but what the user asks for,
an emulated pool or the program's own reports.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.tree import Tree
from fencepost.tree import EXPERIMENTS

EVENTS = EXPERIMENTS / "channel" / "intel_cxl_events.csv"
# Models of family 6, as the kernel numbers them, by the platform of the events' table.
PLATFORMS = {143: "SPR", 207: "EMR", 173: "GNR", 174: "GNR", 175: "SRF", 182: "SRF"}


# What the library finds in the environment of a program.
EVENTS_SETTING = "FENCEPOST_CHANNEL_EVENTS"
RESCTRL, DOMAINS = "FENCEPOST_CHANNEL_RESCTRL", "FENCEPOST_CHANNEL_DOMAINS"
DOMAINS_MAX = 16

# Reads from CXL memory by a core: demand reads, reads for ownership and prefetches. Processors that
# know no supplier of that name call it that of persistent memory.
READS = {
    "OCR.READS_TO_CORE.CXL_MEM",
    "OCR.READS_TO_CORE.LOCAL_SOCKET_PMM",
    "OCR.READS_TO_CORE.REMOTE_PMM",
}
LINE_BYTES = 64
RAW = 4  # a processor's own event, for perf_event_open
PARANOID_MAX = 2  # beyond this, some kernels let nobody but root count anything


@dataclass(frozen=True)
class Source:
    """A source, and what it lacks here (empty where it can be read); `settings` are what a program
    has in its environment to read it."""

    name: str
    missing: str
    settings: Mapping[str, str] = field(default_factory=dict)


def examine(root: Path = Path("/"), events: Sequence[Mapping[str, Any]] = ()) -> list[Source]:
    """The sources of a machine whose kernel shows itself below `root`, the best first.

    `events` are those that the user has named instead of the table's.
    """
    return [_counter(root, events), _mbm(root)]


def choose(wanted: str, found: list[Source]) -> Source:
    """The source of this name, or for `auto` the first that can be read; raises `InputError`."""
    of_name = [source for source in found if wanted in ("auto", source.name)]
    for source in of_name:
        if not source.missing:
            return source
    raise InputError(explain(of_name))


def explain(sources: list[Source]) -> str:
    """Why no bandwidth is known here, and what to do."""
    told = "; ".join(f"{one.name}: {one.missing}" for one in sources)
    return (
        f"no source of bandwidth ({told}); have the program report what it uses "
        '(source = "reported" in --config, mchannel_account in the program), or try an emulated '
        "pool: --emulate GB/s, or emulate_gb_per_s in --config"
    )


def devices(root: Path = Path("/")) -> tuple[dict[str, Any], ...]:
    """The nodes of CXL memory, as devices that carry what the firmware says they are read with."""
    nodes = Topology(Tree(root)).of_kind("CXL")
    return tuple(
        {"name": f"node{node.number}", "capacity_gb_per_s": node.read_mb_per_s / 1000}
        for node in nodes
        if node.read_mb_per_s
    )


def remove_groups(settings: Mapping[str, str], fingerprint: int) -> None:
    """Removes the monitoring groups of threads that were killed; the kernel refuses no thread's."""
    if RESCTRL not in settings:
        return
    for group in (Path(settings[RESCTRL]) / "mon_groups").glob(f"fencepost-{fingerprint:016x}-*"):
        with suppress(OSError):
            if not (group / "tasks").read_text().strip():
                group.rmdir()


def _counter(root: Path, events: Sequence[Mapping[str, Any]]) -> Source:
    named = [
        tuple(event[key] for key in ("type", "config", "config1", "bytes")) for event in events
    ]
    missing = "" if named else _what_counters_lack(root)
    if not named and not missing:
        named = list(map(_as_perf_has_it, _reads(str(_platform(root)))))
    told = ",".join(":".join(map(str, event)) for event in named)
    return Source("counter", missing or _what_is_forbidden(root), {EVENTS_SETTING: told})


def _what_counters_lack(root: Path) -> str:
    platform = _platform(root)
    if platform is None:
        return "the table of events has no processor like this one; name one by [[event]]"
    if not _reads(platform):
        return f"the table of events has no reads of CXL by {platform}; name one by [[event]]"
    if not (root / "sys/bus/event_source/devices/cpu").is_dir():
        return f"the kernel offers no counters of this {platform}; a virtual machine may hide them"
    return ""


def _what_is_forbidden(root: Path) -> str:
    try:
        paranoid = int((root / "proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return "the kernel has no perf events"
    if paranoid > PARANOID_MAX and os.geteuid() != 0:
        return (
            f"kernel.perf_event_paranoid is {paranoid}; type: sysctl kernel.perf_event_paranoid=2"
        )
    return ""


def _mbm(root: Path) -> Source:
    resctrl = root / "sys/fs/resctrl"
    features = resctrl / "info/L3_MON/mon_features"
    if not features.is_file():
        return Source("mbm", "no monitoring of bandwidth in /sys/fs/resctrl; mount resctrl there")
    if "mbm_total_bytes" not in features.read_text().split():
        return Source("mbm", "resctrl does not monitor the bytes of memory here")
    if not os.access(resctrl / "mon_groups", os.W_OK):
        return Source("mbm", "no right to make groups in /sys/fs/resctrl/mon_groups")
    found = sorted((resctrl / "mon_data").glob("mon_L3_*"))[:DOMAINS_MAX]
    domains = ",".join(str(int(one.name.rpartition("_")[2])) for one in found)
    if not domains:
        return Source("mbm", "resctrl has no last level to monitor")
    return Source("mbm", "", {RESCTRL: str(resctrl), DOMAINS: domains})


def _reads(platform: str) -> list[dict[str, str]]:
    with EVENTS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["platform"] == platform]
    return [row for row in rows if row["event"] in READS]


def _as_perf_has_it(row: Mapping[str, str]) -> tuple[int, ...]:
    """The event's code and mask, and what is asked of the register that knows by whom a read was
    answered. The kernel takes the second of two such registers by itself."""
    code = int(row["event_code"].split(",")[0], 16) | int(row["umask"], 16) << 8
    return RAW, code, int(row["msr_value"], 16), LINE_BYTES


def _platform(root: Path) -> str | None:
    try:
        text = (root / "proc/cpuinfo").read_text()
    except OSError:
        return None
    first = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text.partition("\n\n")[0], re.MULTILINE))
    is_intel = first.get("vendor_id") == "GenuineIntel" and first.get("cpu family") == "6"
    return PLATFORMS.get(int(first.get("model", -1))) if is_intel else None
