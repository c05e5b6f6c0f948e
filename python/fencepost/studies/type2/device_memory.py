"""The device's memory: what bias costs the device, and what the host's accesses cost the host."""

from __future__ import annotations

from typing import Any

from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.studies.study import Part
from fencepost.studies.type2 import pictures
from fencepost.studies.type2.points import (
    DEVICE,
    DEVICE_BIAS,
    EXPANDER,
    Burst,
    bandwidth,
    elapsed,
    many,
    results,
)
from fencepost.studies.type2.topic import ACCESSES_PAGE, Topic, over, row

# As many lines as the device's cache of its memory has room for.
CACHED = 32 << 10
CORES = 16
# The device's, by their names in the study.
OF_DEVICE = {
    "NC-read": "nc_read",
    "CS-read": "cs_read",
    "NC-write": "nc_write",
    "CO-write": "co_write",
}
ACCESSES = {"ld": "load", "nt-ld": "nt_load", "st": "store", "nt-st": "nt_store"}


class DeviceMemory(Topic):
    """D2D and H2D."""

    part = Part("device-memory", "Device memory: bias, and the host over a Type-3 device")
    description = (
        "In host bias the device asks its host before it touches a line of its own memory that "
        "the host may have; in device bias it does not (`fabric.bias`). The host's accesses are "
        "looked up in the device's cache before memory is read, which a Type-3 device has not."
    )
    page = ACCESSES_PAGE

    def rows(self, lab: Lab) -> list[Row]:
        """What the device does to its memory, and what the host does."""
        return [*self._of_device(lab), *self._over_expander(lab), *self._of_host(lab)]

    def _of_device(self, lab: Lab) -> list[Row]:
        def both(access: str, found_in: str, **more: Any) -> tuple[Burst, Burst]:
            return (
                Burst("device", access, found_in, DEVICE, **more),
                Burst("device", access, found_in, DEVICE, sets=(DEVICE_BIAS,), **more),
            )

        loaded: dict[str, Any] = {"requests": many(lab), "repetitions": 2}
        found = results(
            lab,
            [
                *both("co_write", "own_cache", footprint_bytes=CACHED),
                *both("cs_read", "own_cache", footprint_bytes=CACHED),
                *both("nc_write", "memory", **loaded),
            ],
        )
        of_writes, of_reads, of_rates = found[:2], found[2:4], found[4:]
        hit = "device bias over host bias, DMC hit"
        rates = over(bandwidth(of_rates[1]), bandwidth(of_rates[0]))
        return [
            row("D2D write latency", hit, over(*map(elapsed, of_writes[::-1]))),
            row("D2D read latency", hit, over(*map(elapsed, of_reads[::-1]))),
            row("D2D write bandwidth", "device bias over host bias", rates),
        ]

    def _over_expander(self, lab: Lab) -> list[Row]:
        bursts = [
            Burst("own", access, "memory", memory)
            for access in ACCESSES.values()
            for memory in (DEVICE, EXPANDER)
        ]
        found = results(lab, bursts)
        rates = results(
            lab,
            [
                Burst(
                    "own", "load", "memory", memory, requests=many(lab), repetitions=2, cores=CORES
                )
                for memory in (DEVICE, EXPANDER)
            ],
        )
        return [
            *(
                row("H2D latency Type-2 over Type-3", name, over(elapsed(ours), elapsed(other)))
                for name, ours, other in zip(ACCESSES, found[::2], found[1::2], strict=True)
            ),
            row("H2D bandwidth Type-2 over Type-3", "all", over(*map(bandwidth, rates))),
        ]

    def _of_host(self, lab: Lab) -> list[Row]:
        of: dict[str, Any] = {"requests": many(lab), "repetitions": 2}
        found = results(
            lab,
            [
                Burst("own", "load", "memory", DEVICE, footprint_bytes=CACHED),
                Burst("own", "load", "device_owned", DEVICE, footprint_bytes=CACHED),
                Burst("own", "load", "device_modified", DEVICE, footprint_bytes=CACHED),
                Burst("own", "load", "pushed"),
                Burst("own", "load", "memory", DEVICE, **of),
                Burst("own", "load", "pushed", **of),
            ],
        )
        [memory, owned, modified, pushed, memory_rate, pushed_rate] = found
        return [
            row("H2D latency penalty", "line owned in DMC", over(elapsed(owned), elapsed(memory))),
            row(
                "H2D latency penalty",
                "line modified in DMC",
                over(elapsed(modified), elapsed(memory)),
            ),
            row("H2D latency after NC-P", "LLC", over(elapsed(pushed), elapsed(memory))),
            row("H2D bandwidth after NC-P", "LLC", bandwidth(pushed_rate) / bandwidth(memory_rate)),
        ]

    def pictures(self, lab: Lab) -> dict[str, Picture]:
        """What so many bytes take in memory: of the device by bias, of the host by device."""
        of_device = [
            pictures.Line(
                pictures.bursts_of_size("device", access, DEVICE, sets),
                f"C{color}",
                None if sets else name,
                "--" if sets else "-",
            )
            for color, (name, access) in enumerate(OF_DEVICE.items())
            for sets in ((), (DEVICE_BIAS,))
        ]
        of_host = [
            pictures.Line(
                pictures.bursts_of_size("own", access, memory),
                f"C{color}",
                name if memory == DEVICE else None,
                "-" if memory == DEVICE else "--",
            )
            for color, (name, access) in enumerate(ACCESSES.items())
            for memory in (DEVICE, EXPANDER)
        ]
        device = "The device to its own memory, in host bias (lines) and device bias (dashes)"
        host = "A core to the memory of the Type-2 device (lines) and a Type-3 device (dashes)"
        return {
            **pictures.against_size(lab, "type2-device-memory.svg", device, of_device),
            **pictures.against_size(lab, "type2-host-to-device.svg", host, of_host),
        }
