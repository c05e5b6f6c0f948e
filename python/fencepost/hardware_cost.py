"""What persist buffers cost: bits of storage, comparators, and the energy to save what they hold.

The simulator counts them beside the state machine whose parts they are
(crates/sim/src/switch/persist_buffer/cost.rs says what each number is made of); energy is that of
`fencepost power` for each byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fencepost import _core, hold_up


@dataclass(frozen=True)
class HardwareCost:
    """Of one persist buffer, or of several together. Slots are one more than entries, to merge."""

    entries: int = 0
    slots: int = 0
    data_bits: int = 0  # with byte masks; in non-volatile cells
    tag_bits: int = 0  # with generation, order and state; in non-volatile cells
    volatile_bits: int = 0  # whether an entry was sent and when, its rank, whether it can be read
    policy_bits: int = 0  # what decides when to drain
    line_comparators: int = 0  # of line addresses, for a lookup
    rank_comparators: int = 0  # of ranks by last use
    policy_comparators: int = 0  # of counts and times
    drained_bytes: int = 0  # after a power cut at the worst time

    @property
    def bits(self) -> int:
        """All storage."""
        return self.data_bits + self.tag_bits + self.volatile_bits + self.policy_bits

    @property
    def comparators(self) -> int:
        """Of all kinds."""
        return self.line_comparators + self.rank_comparators + self.policy_comparators

    @property
    def energy_uj(self) -> float:
        """To drain after a power cut at the worst time."""
        return hold_up.microjoules(self.drained_bytes)


def of_buffer(scheme: str, entries: int) -> HardwareCost:
    """Of one persist buffer; nothing under a scheme without one. Raises `InputError`."""
    found: dict[str, int] | None = json.loads(_core.persist_buffer_cost(scheme, entries))
    return HardwareCost(entries, **found) if found else HardwareCost()


def of_run(run: dict[str, Any], machine: dict[str, Any]) -> HardwareCost:
    """Of all persist buffers that a run on a resolved machine simulated."""
    usual = machine["switch"]["persist_buffer"]["entries"]
    changed = machine["fabric"].get("switch", {})
    sizes = [
        changed.get(name, {}).get("persist_buffer", {}).get("entries", usual)
        for name, node in run["statistics"].items()
        if "persist_buffer" in node
    ]
    return _sum(of_buffer(run["scheme"], entries) for entries in sizes)


def _sum(costs: Iterable[HardwareCost]) -> HardwareCost:
    named = [vars(cost) for cost in costs]
    return HardwareCost(
        **{name: sum(cost[name] for cost in named) for name in vars(HardwareCost())}
    )
