"""What changes where the host behaves like hardware and not like the reference simulator.

The same records as for the host comparison, on `machines/gem5-o3` and `machines/gem5-o3-hardware`.
Every rule in which the two differ is also switched alone, which says whose work a change is.
"""

from typing import Any

from fencepost._core import InputError
from fencepost.rows.lab import Lab
from fencepost.validation.host_programs import ARGUMENTS, Resolved, points_on

REFERENCE_MACHINE = "gem5-o3"
HARDWARE_MACHINE = "gem5-o3-hardware"

# What is switched together, by its heading: the keys of one rule.
RULES = {
    "prefetch for ownership": ("core.prefetch_for_ownership",),
    "overlapping flushes": ("core.flushes_in_flight", "core.flush_holds_stores"),
    "persistent domain": ("core.flush_acknowledged_by",),
    "clflush no fence": ("core.clflush_order",),
    "cheap fences": ("core.sfence_order", "core.fence_cycles"),
    "clwb keeps right": ("core.clwb_leaves",),
    "no store sets": ("core.store_sets.enabled",),
    "DRAM by commands": ("dram.scheduling",),
    "whole operations": ("core.widest_operation_bytes", "core.operand_operations"),
}


CHANGES_FROM = 0.005  # part of the cycles; a rule that changes less is left out

TEXT = """### With real hardware's behaviour

`machines/gem5-o3-hardware` has the sizes and latencies of `gem5-o3`, and follows real processors
where the reference simulator has rules of its own. The first columns of the table are cycles on
both and their ratio; each other column is that ratio with one rule alone switched, empty below half
a percent. {unchanged}

- **Prefetch for ownership.** The reference requests a store's line only when the store is the
  oldest, so it pays for every miss in full, one after the other. With the prefetch the misses of
  all queued stores overlap. This rule changes most, wherever stores miss.
- **Overlapping flushes.** The reference sends one flush at a time and holds the stores behind it.
  With ten in flight, a batch waits for about one of them. Where each flush has its own fence,
  nothing overlaps and nothing changes.
- **Persistent domain.** The reference acknowledges a flush where the memory bus orders it. Here the
  write goes to the controller and its completion comes back, so each fence waits longer. That
  about doubles the time of a persist whose line is cached, and adds little where a miss is waited
  for as well.
- **clflush no fence.** The reference executes `clflush` as `clflushopt` and a full fence. Without
  that fence, an `mfence` that follows anyway costs a few cycles less.
- **Cheap fences.** The reference executes every fence as the oldest instruction, which takes a few
  cycles of its pipeline. An `sfence` that waits in the store queue lets later instructions commit.
- **clwb keeps right.** In the reference a core gives up ownership of a line that `clwb` wrote back,
  so the next store to it misses. With the prefetch that miss is hidden as well.
- **No store sets.** The reference makes loads wait for stores that they once overtook, and compares
  addresses in units of 16 bytes. Two pointers that share such a unit on the stack turn two chains
  into one.
- **DRAM by commands.** The reference's controller chooses a request with all of its commands, 28 ns
  before its RD or WR could follow without a gap. Choosing each command when it can be issued lets
  accesses to an open row overtake until that row is precharged, and opens fewer rows: the three
  streams of the 512 KB triad use the same banks.
- **Whole operations.** The reference uses a separate micro-operation for each immediate and each
  instruction pointer, and keeps a vector register in halves. The copy loop of five instructions
  takes nine micro-operations there, more than are dispatched in a cycle.

The ratios do not multiply: once one wait is hidden, another that overlapped it becomes visible.

"""


def section(lab: Lab) -> str:
    """Markdown: the table of what changes, and why."""
    resolved = switched_machines(lab)
    points: list[str] = []
    cycles: dict[str, list[float]] = {name: [] for name in resolved}
    for published, regions in points_on(resolved, lab, tuple(ARGUMENTS)):
        points.append(", ".join(published[key] for key in ("program", "memory", "point")))
        for name, region in regions.items():
            cycles[name].append(region["simulated_ns"] * resolved[name]["core"]["clock_ghz"])
    changed = [index for index in range(len(points)) if _changes(index, cycles)]
    unchanged = (
        f"{len(points) - len(changed)} of {len(points)} points do not change by half a percent "
        "under any rule and are left out."
    )
    return TEXT.format(unchanged=unchanged) + _table(points, cycles, changed)


def _changes(index: int, cycles: dict[str, list[float]]) -> bool:
    reference = cycles[REFERENCE_MACHINE][index]
    return any(abs(of[index] / reference - 1) >= CHANGES_FROM for of in cycles.values())


def switched_machines(lab: Lab) -> Resolved:
    """By name: the reference machine, the hardware one, and the first with one rule of the second.

    Raises `InputError` if a key differs between the two that belongs to no rule.
    """
    reference = lab.resolved(REFERENCE_MACHINE)
    hardware = lab.resolved(HARDWARE_MACHINE)
    values = _flat(hardware)
    differing = {key for key, value in _flat(reference).items() if values[key] != value}
    differing.discard("description")
    of_rules = {key for keys in RULES.values() for key in keys}
    if differing != of_rules:
        names = ", ".join(sorted(differing ^ of_rules))
        message = f"{HARDWARE_MACHINE}: rules and differences are not the same: {names}"
        raise InputError(message)
    resolved = {REFERENCE_MACHINE: reference, HARDWARE_MACHINE: hardware}
    for rule, keys in RULES.items():
        sets = [f"{key}={_toml(values[key])}" for key in keys]
        resolved[rule] = lab.resolved(REFERENCE_MACHINE, *sets)
    return resolved


def _table(points: list[str], cycles: dict[str, list[float]], shown: list[int]) -> str:
    """Per point the cycles on both machines, their ratio, and the ratio of each rule alone."""
    head = ["point", "gem5-o3", "hardware", "ratio", *RULES]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for index in shown:
        reference = cycles[REFERENCE_MACHINE][index]
        hardware = cycles[HARDWARE_MACHINE][index]
        alone = [_ratio(cycles[rule][index] / reference) for rule in RULES]
        figures = [f"{reference:,.0f}", f"{hardware:,.0f}", f"{hardware / reference:.2f}"]
        lines.append(f"| {' | '.join([points[index], *figures, *alone])} |")
    return "\n".join(lines)


def _ratio(ratio: float) -> str:
    """Nothing where the rule alone changes less than half a percent."""
    return f"{ratio:.2f}" if abs(ratio - 1) >= CHANGES_FROM else ""


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
