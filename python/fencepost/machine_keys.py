"""Every key of a machine file as pages (Markdown), made from the simulator's schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencepost.sentences import one_a_line

Schema = dict[str, Any]

AGAIN = "fencepost machine keys --docs docs"
FRONT = "machine-keys.md"


@dataclass(frozen=True)
class Part:
    """A page beside the front page: which tables it has, by the first part of their names."""

    name: str
    title: str
    tables: tuple[str, ...]


PARTS = (
    Part("core", "cores", ("core", "branch_predictor")),
    Part(
        "caches",
        "caches, TLBs and sockets",
        ("cache", "host_bridge", "sockets", "socket_link", "tlb"),
    ),
    Part("fabric", "links, switches, fabrics", ("fabric", "link", "switch")),
    Part("dram", "DRAM and expanders", ("dram", "expander")),
    Part("pm", "persistent memory", ("pm", "persist", "platform")),
    Part(
        "devices",
        "accelerators and PCIe devices",
        ("accelerator", "type2", "pcie", "page_engine", "linux", "swap_device"),
    ),
)

INTRODUCTION = f"""\
# The keys of a machine file

A key is written in a machine file (`[core]`, then `rob_entries = 512`), or set for one run
(`--set core.rob_entries=512`).
`fencepost machine keys` prints all of them, `fencepost machine show MACHINE` what a machine has.
[machines.md](machines.md) says how machine files work.

These pages are made from the simulator's own schema, by `{AGAIN}`.
"""


def page(schema: Schema) -> str:
    """All keys on one page: one section for each table of a machine file, a row for each key."""
    return _laid_out(INTRODUCTION, schema, list(_tables(schema, schema, "")))


def pages(schema: Schema) -> dict[str, str]:
    """The same as a front page and one for each part of a machine, by file name."""
    of_part: dict[Part | None, list[tuple[str, Schema]]] = {None: []}
    for path, table in _tables(schema, schema, ""):
        first = path.partition(".")[0]
        part = next((part for part in PARTS if first in part.tables), None)
        of_part.setdefault(part, []).append((path, table))
    written = {}
    rows = ["| page | tables |", "|---|---|"]
    for part in PARTS:
        name, own = f"machine-keys-{part.name}.md", of_part[part]
        named = ", ".join(f"`[{path}]`" for path, _ in own)
        rows.append(f"| [{part.title}]({name}) | {named} |")
        head = (
            f"# The keys of a machine file: {part.title}\n\n"
            f"The keys of {part.title}, with ranges and defaults.\n"
            f"[{FRONT}]({FRONT}) has the other tables, and says how a key is set.\n"
            f"Made by `{AGAIN}`.\n"
        )
        written[name] = _laid_out(head, schema, own)
    front = "\n".join([INTRODUCTION, *rows, "", "The rest is below.\n"])
    return {FRONT: _laid_out(front, schema, of_part[None]), **written}


def _laid_out(head: str, schema: Schema, tables: list[tuple[str, Schema]]) -> str:
    lines = [head]
    for path, table in tables:
        lines += [f"## `[{path}]`" if path else "## At the top", ""]
        if path and table.get("description"):
            lines += [_sentence(table["description"]), ""]
        if table["properties"]:
            lines += ["| key | value | meaning |", "|---|---|---|"]
        required = table.get("required", [])
        for name, node in table["properties"].items():
            if _table_of(schema, node) is None:
                optional = "" if name in required or not path else _default(node)
                meaning = _sentence(node.get("description", "")) + optional + _choices(schema, node)
                lines.append(f"| `{name}` | {_value(schema, node)} | {meaning} |")
        lines.append("")
    return one_a_line("\n".join(lines).rstrip() + "\n")


def _tables(schema: Schema, table: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    if any(_table_of(schema, node) is None for node in table["properties"].values()):
        yield path, table
    for name, node in table["properties"].items():
        inner = _table_of(schema, node)
        if inner is not None:
            placeholder = "" if "properties" in _resolved(schema, node) else ".NAME"
            here = f"{path}.{name}" if path else name
            # What one component has of its kind is described there.
            if not _is_override(node):
                yield from _tables(schema, inner, here + placeholder)
            elif not placeholder:
                yield here, {"description": node["description"], "properties": {}}


def _resolved(schema: Schema, node: Schema) -> Schema:
    for choice in node.get("anyOf", []):
        if choice.get("type") != "null":
            return _resolved(schema, choice)
    if "$ref" in node:
        found: Schema = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return found
    return node


def _table_of(schema: Schema, node: Schema) -> Schema | None:
    """The table that a key holds, or that each of its names holds; None for a plain value."""
    node = _resolved(schema, node)
    if "properties" in node:
        return node
    inner = node.get("additionalProperties")
    return _table_of(schema, inner) if isinstance(inner, dict) else None


def _is_override(node: Schema) -> bool:
    """Whether a key holds some of the keys of another table, or each of its names does."""
    inner = node.get("additionalProperties")
    kinds = [inner] if isinstance(inner, dict) else node.get("anyOf", [])
    return any(str(kind.get("$ref", "")).endswith("Overrides") for kind in kinds)


def _value(schema: Schema, node: Schema) -> str:
    node = _resolved(schema, node)
    choices = [choice["const"] for choice in node.get("oneOf", []) if "const" in choice]
    choices += node.get("enum", [])
    if choices:
        return ", ".join(f'`"{choice}"`' for choice in choices)
    # Where a key may be absent, `null` is a type besides.
    types = node.get("type", "")
    type_name = types if isinstance(types, str) else next(one for one in types if one != "null")
    if type_name == "array":
        return "list of texts"
    names = {"number": "number", "integer": "integer", "boolean": "`true`, `false`"}
    kind = names.get(type_name, "text")
    if "minimum" in node and "maximum" in node:
        return f"{kind}, {node['minimum']:g} to {_number(node['maximum'])}"
    return kind


def _choices(schema: Schema, node: Schema) -> str:
    """What each of a key's named values means."""
    choices = _resolved(schema, node).get("oneOf", [])
    described = [choice for choice in choices if "const" in choice and choice.get("description")]
    return "".join(
        f"<br>`{choice['const']}`: {_sentence(choice['description'])}" for choice in described
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _default(node: Schema) -> str:
    return f" Default `{node['default']}`." if "default" in node else " Optional."


def _sentence(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
