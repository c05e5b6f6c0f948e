"""The plan that `fencepost sweep init` writes."""

PLAN = """\
# fencepost sweep FILE replays every combination; docs/sweeps.md says what else a plan can have.
machine = ["{machine}"]
record = ["{record}"]                      # fencepost record -o FILE -- PROGRAM
scheme = ["nopb", "pb", "pb_rf"]

[axes]                                          # keys of the machine, or options of a replay
"switch.persist_buffer.entries" = "4..64"       # powers of two; or a list: [4, 16, 64]
"pm.write_ns" = [200, 500, 1000]

# where = ["switch.persist_buffer.entries >= 8"]
# repetitions = 3                               # with random delays of thread starts
"""


def plan(machine: str, record: str) -> str:
    """A plan of this machine and record."""
    return PLAN.format(machine=machine, record=record)
