"""The topology of a resolved machine, as the rows of a short summary."""

from typing import Any


def rows(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """(what, how) pairs: the machine in a line, its fabric, and how it is connected."""
    fabric = machine["fabric"]
    found = [("what", machine["description"])]
    for kind in ("hosts", "switches", "devices", "expanders", "edges", "local_edges"):
        if fabric.get(kind):
            found.append((kind.replace("_", " "), ", ".join(fabric[kind])))
    return found
