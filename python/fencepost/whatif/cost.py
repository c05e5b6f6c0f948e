"""What persist buffers cost: bits of storage, and energy to save them when power fails."""

from fencepost import hold_up
from fencepost.figures import Run, member
from fencepost.report.power import LINE_BYTES


def of_run(run: Run) -> dict[str, float]:
    """Of all persist buffers that a run simulated: `entries`, `bits` of data, `energy_uj` if full.

    Tags, states and comparators are not counted; without a buffer it costs nothing.
    """
    entries = int(member(run, "persist_buffer.occupancy.entries") or 0)
    held = entries * LINE_BYTES
    return {"entries": entries, "bits": held * 8, "energy_uj": hold_up.microjoules(held)}
