"""What explorations say, whatever they explore: how far they are, totals, stories."""

import json
import os
from pathlib import Path
from typing import Any

from fencepost.cli import console


def free_bytes() -> int:
    """What can be had without swapping."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def observer(what: str, quiet: bool) -> Any:
    def observe(text: str) -> None:
        if not quiet:
            far = json.loads(text)
            waiting = far["states"] - far["expanded"]
            rate = far["states"] / far["seconds"]
            console.messages().print(
                f"{what}: {far['states']:,} states at depth {far['depth']}, {waiting:,} of them"
                f" to be expanded; {rate:,.0f} states/s, {far['bytes'] / 2**20:,.0f} MiB",
                markup=False,
            )

    return observe


def print_total(verb: str, total: dict[str, Any]) -> None:
    print(
        f"{verb}: {total['states']} states, {total['transitions']} transitions, depth"
        f" {total['depth']}, {total['seconds']:.1f} s, {total['states_per_second']:.0f} states/s,"
        f" {total['transitions_per_second']:.0f} transitions/s, {total['bytes'] / 2**20:.0f} MiB"
    )


def total_of(reports: list[dict[str, Any]]) -> dict[str, Any]:
    counted = ("states", "transitions")
    summed = {key: sum(report[key] for report in reports) for key in counted}
    largest = {
        key: max((report[key] for report in reports), default=0) for key in ("depth", "bytes")
    }
    seconds = sum(report["seconds"] for report in reports)
    rates = {f"{key}_per_second": summed[key] / seconds if seconds else 0.0 for key in counted}
    return {**summed, **largest, "seconds": seconds, **rates}


def print_story(story: dict[str, Any]) -> None:
    for number, step in enumerate(story["steps"], 1):
        print(f"{number:4}. " + step.replace("\n", "\n      "))
    numbers = f" [{', '.join(map(str, story['invariants']))}]" if "invariants" in story else ""
    print(f"      breaks `{story['predicate']}`{numbers}: {story['says']}")
