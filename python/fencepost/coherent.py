"""Bursts of coherent requests on a machine with accelerators, and transfers by its PCIe device.

docs/type2.md has the members of both and of their results.
"""

import json
from typing import Any

from fencepost import _core
from fencepost.traffic import Machine

Result = dict[str, Any]

REQUESTS = 16
REPETITIONS = 256
FOOTPRINT_BYTES = 32 << 20
NEAR_BYTES = 16 << 10  # has room in the device's caches

# Where lines of a burst can be found (docs/type2.md).
PLACES = (
    *("memory", "last_level", "own_cache", "own_modified", "other_cache", "pushed"),
    *("device_owned", "device_modified"),
)

DEVICE_ACCESSES = (
    "nc_read",
    "cs_read",
    "co_read",
    "nc_write",
    "co_write",
    "nc_p_write",
    "flush_line",
    "flush_host_memory_cache",
    "flush_device_memory_cache",
)
CORE_ACCESSES = ("load", "nt_load", "store", "nt_store", "flush")


def device(
    name: str, access: str, *, observes: bool = False, barrier: bool = False
) -> dict[str, Any]:
    """The load generator of an accelerator.

    With `observes`, weakly ordered writes count as done when they are globally observed; with
    `barrier`, a burst is over when all of its requests are.
    """
    asked = {"by": "device", "name": name, "access": access, "observes": observes}
    return {**asked, "barrier": True} if barrier else asked


def core(access: str, *, socket: str = "own", cores: int = 1) -> dict[str, Any]:
    """Cores of the memory's `own` socket, or of the `other` one."""
    return {"by": "core", "socket": socket, "access": access, "cores": cores}


def bursts(
    machine: Machine,
    requester: dict[str, Any],
    found_in: str,
    *,
    memory: str = "dram",
    requests: int = REQUESTS,
    footprint_bytes: int = FOOTPRINT_BYTES,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> Result:
    """What came of bursts, one after the other, of so many requests each."""
    of = (requests, footprint_bytes, repetitions, seed)
    asked = _asked(requester, found_in, memory, *of)
    text = _core.bursts_measure(machine.name, machine.text, asked)
    result: Result = json.loads(text)
    return result


def follow(
    machine: Machine,
    requester: dict[str, Any],
    found_in: str,
    *,
    memory: str = "dram",
    requests: int = 1,
    footprint_bytes: int = NEAR_BYTES,
    seed: int = 0,
) -> tuple[bytes, Result]:
    """One burst of a device, followed: a Perfetto trace, and the same requests as a document
    (docs/timeline.md)."""
    asked = _asked(requester, found_in, memory, requests, footprint_bytes, 1, seed)
    trace, text = _core.bursts_follow(machine.name, machine.text, asked)
    result: Result = json.loads(text)
    return trace, result


def _asked(
    requester: dict[str, Any],
    found_in: str,
    memory: str,
    requests: int,
    footprint_bytes: int,
    repetitions: int,
    seed: int,
) -> str:
    """Bursts as the simulator takes them."""
    return json.dumps(
        {
            "requester": requester,
            "found_in": found_in,
            "memory": memory,
            "requests": requests,
            "footprint_bytes": footprint_bytes,
            "repetitions": repetitions,
            "seed": seed,
        }
    )


def transfers(machine: Machine, by: str, size: int, count: int = 1) -> Result:
    """So many transfers of `size` bytes by `mmio_read`, `mmio_write`, `dma` or `device_dma`."""
    asked = {"by": by, "bytes": size, "count": count}
    result: Result = json.loads(_core.pcie_measure(machine.name, machine.text, json.dumps(asked)))
    return result
