"""The device and a core of the other socket, which emulates it, on the host's memory."""

from __future__ import annotations

from typing import Any

from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.studies.study import Part
from fencepost.studies.type2 import pictures
from fencepost.studies.type2.points import (
    DEVICE,
    MACHINE,
    MANY,
    Burst,
    bandwidth,
    elapsed,
    many,
    results,
)
from fencepost.studies.type2.topic import ACCESSES_PAGE, Topic, over, row, shown

# What the device does, and what the core does that emulates it.
PAIRS = {
    "NC-read": ("nc_read", "nt_load"),
    "CS-read": ("cs_read", "load"),
    "NC-write": ("nc_write", "nt_store"),
    "CO-write": ("co_write", "store"),
}
PLACES = {"LLC hit": "last_level", "LLC miss": "memory"}

LATENCY = "D2H latency over an emulated device"
CEILING = "D2H write of 16 x 64 B (ceiling of the load generator: 64 B x 400 MHz)"
HIT = ("hit in the device's cache of host memory", "276 cycles at 2.4 GHz")
LAST_LEVEL = ("D2H hit in LLC", "276+544+200 cycles at 2.4 GHz")

# The study compares its port with one link of the processor's three, in all of its 18 lanes, of
# which 16 have data.
UPI_RAW = 18 / 16 / 3

# A line at a time, near each other, so that they have room in the device's cache.
ALONE: dict[str, Any] = {"requests": 1, "footprint_bytes": 64 << 10}


class HostMemory(Topic):
    """D2H."""

    part = Part("host-memory", "Host memory: the device over a core of the other socket")
    description = (
        "Bursts of 16 requests, each for a line of its own anywhere in 32 MiB, from the first "
        "request to the last answer. A core of the other socket emulates the device: NC reads by "
        "non-temporal loads, CS reads by loads, NC writes by non-temporal stores, CO writes by "
        "stores. SimCXL's two rows set the absolute scale: calibrated, not measured. "
        f"The ceiling of the load generator is that of {MANY:,} writes: sixteen are all issued "
        "before the first is answered, so their bandwidth would be a latency."
    )
    page = ACCESSES_PAGE

    def rows(self, lab: Lab) -> list[Row]:
        """Eight ratios, two that set the scale, two bandwidths."""
        pairs = [(kind, place) for kind in PAIRS for place in PLACES]
        bursts = [
            Burst(by, PAIRS[kind][by != "device"], PLACES[place])
            for kind, place in pairs
            for by in ("device", "other")
        ]
        found = results(lab, bursts)
        ratios = [
            row(
                LATENCY,
                f"{kind} {place}",
                over(elapsed(ours), elapsed(emulated)),
                is_set=(kind, place) == ("NC-read", "LLC hit"),
            )
            for (kind, place), ours, emulated in zip(pairs, found[::2], found[1::2], strict=True)
        ]
        hit, last_level, writes = results(
            lab,
            [
                Burst("device", "cs_read", "own_cache", **ALONE),
                Burst("device", "cs_read", "last_level", **ALONE),
                Burst("device", "nc_write", "memory", requests=many(lab), repetitions=2),
            ],
        )
        machine = lab.resolved(MACHINE)
        link = machine["link"]["bandwidth_gb_per_s"]
        rows = [
            *ratios,
            row(*HIT, elapsed(hit), is_set=True),
            row(*LAST_LEVEL, elapsed(last_level), is_set=True),
            row(CEILING, "", bandwidth(writes)),
            row(
                "raw bandwidth over UPI",
                "emulated device",
                over(link, machine["socket_link"]["bandwidth_gb_per_s"] * UPI_RAW),
                follows="socket_link.bandwidth_gb_per_s and link.bandwidth_gb_per_s of the machine",
            ),
        ]
        return [*rows, *self._stages(lab)] if lab.is_whole else rows

    def _stages(self, lab: Lab) -> list[Row]:
        """ns of each burst, and where a request's time goes on average."""
        kinds = ("nc_read", "cs_read", "co_read", "nc_write", "co_write", "nc_p_write")
        bursts = [Burst("device", kind, place) for kind in kinds for place in PLACES.values()]
        found = []
        for burst, result in zip(bursts, results(lab, bursts), strict=True):
            name = f"{burst.access}, {burst.found_in.replace('_', ' ')}"
            found.append(shown("burst of 16", name, elapsed(result), unit="ns"))
            for stage, time in result["parts_ns"].items():
                if time:
                    metric = f"a request's {stage.replace('_', ' ')}"
                    found.append(shown(metric, name, time, unit="ns"))
        return found

    def pictures(self, lab: Lab) -> dict[str, Picture]:
        """Latency and bandwidth against the number of requests."""
        return pictures.against_requests(lab, f"{DEVICE}-host-memory", PAIRS)
