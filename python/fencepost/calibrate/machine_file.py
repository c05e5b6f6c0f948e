"""The calibrated machine as a file that extends the one it was found from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost import machines
from fencepost._core import InputError
from fencepost.calibrate.free_key import steps
from fencepost.tree import MACHINES

Document = dict[str, Any]


def check_place(machine: str, output: Path) -> None:
    """Refuses a file from which the machine that it extends would not be found by its name."""
    name, source = machines.name_of(machine), machines.file_of(machine)
    if output.suffix != ".toml":
        raise InputError(f"-o {output}: machine files are TOML; name it {output}.toml")
    if output.stem == name:
        raise InputError(f"-o {output}: it extends {name}, and cannot have its name")
    beside = output.parent / f"{name}.toml"
    is_shipped = source.parent.resolve() == MACHINES.resolve()
    if not is_shipped and output.parent.resolve() != source.parent.resolve():
        raise InputError(f"-o {output}: it extends {source}, and has to lie beside it")
    if beside.exists() and not beside.samefile(source):
        raise InputError(f"-o {output}: it extends {name}, and {beside} is another one")


def text(document: Document, data: str) -> str:
    """The file; each value with what it was calibrated to, and where it could as well be."""
    [name] = document["provenance"]["machines"]
    found = document["error"]
    lines = [
        f"# {name}, with values found by fencepost calibrate so that measured rows come out.",
        "#",
        "# Where the numbers come from:",
        f"#   calibrated   to {found['set']['rows']} rows of {data}, which come out within "
        f"{_percent(found['set']['mean'])} in the mean, {_percent(found['set']['worst'])} at worst",
    ]
    if found["held_out"]["rows"]:
        lines.append(
            f"#   {found['held_out']['rows']} rows were held out: within "
            f"{_percent(found['held_out']['mean'])} in the mean, "
            f"{_percent(found['held_out']['worst'])} at worst"
        )
    lines += [
        f"extends = {_quoted(name)}",
        f"description = {_quoted(f'{name}, calibrated to {data}')}",
    ]
    for table, entries in _tables(document["values"]).items():
        lines += ["", f"[{table}]"]
        lines += [f"{step} = {entry['value']}  # {_source(entry, data)}" for step, entry in entries]
    return "\n".join(lines) + "\n"


def _tables(values: list[Document]) -> dict[str, list[tuple[str, Document]]]:
    tables: dict[str, list[tuple[str, Document]]] = {}
    for entry in values:
        *path, last = (
            step if step.isidentifier() else _quoted(step) for step in steps(entry["key"])
        )
        tables.setdefault(".".join(path), []).append((last, entry))
    return tables


def _source(entry: Document, data: str) -> str:
    span = f"fits about as well from {entry['low']} to {entry['high']}"
    if not entry["determined"]:
        return f"not determined by {data}: {span}"
    end = f", the {entry['at_end']} end of what was allowed" if entry["at_end"] else ""
    return f"calibrated to {data}{end}: {span}"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are among its own."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{part:.1%}"
