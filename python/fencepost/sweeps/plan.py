"""A plan: which replays a sweep consists of, as a TOML file says it.

Machines, records and schemes are crossed with each other and with what `axes` and `sampling` give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import figures, schemes
from fencepost._core import InputError, there_is_no
from fencepost.commands import IN_PLANS
from fencepost.documents import read_text
from fencepost.replay import DECLARED
from fencepost.runs.axes import PLACEMENT
from fencepost.sweeps import figure_paths, values
from fencepost.sweeps.constraint import Constraint
from fencepost.sweeps.toml_file import Node

# What the rows have unless the plan says otherwise: the figures of `compare`; ratios over a
# baseline are made of these when a table is read.
USUAL = tuple(figure.key for figure in figures.HEADLINE if not figure.is_over_baseline)
COST = tuple(f"cost.{name}" for name in ("entries", "bits", "comparators", "energy_uj"))
EXTRACTED_MAX = 64  # figures of a row, which has 4 KB

KEEPS = ("row", "full")
# Axes that are no keys of a machine; `placement` is rules of --place with spaces between them.
NAMED_AXES = (PLACEMENT.name, *(name for name in IN_PLANS if not DECLARED[name].is_several))

KEYS = (
    "machine",
    "record",
    "scheme",
    "set",
    "axes",
    "sampling",
    "where",
    "repetitions",
    "options",
    "extract",
    "keep",
    "limits",
)
SECONDS_MAX = 1e7
MEGABYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Recorded:
    """Records of one entry of the plan: one for each host of a machine."""

    name: str
    hosts: tuple[Path, ...]


@dataclass(frozen=True)
class Sampling:
    """How values of axes are combined; `points` and `seed` are for samples."""

    how: str = "grid"
    points: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Limits:
    """What a point may take; None: as long, or as much memory, as it needs."""

    seconds: float | None = None
    memory_mb: int | None = None


@dataclass(frozen=True)
class Plan:
    """What the file says, checked as far as that is possible without machines and records."""

    text: str  # of the file
    machines: tuple[str, ...]  # names of machines/, or paths
    records: tuple[Recorded, ...]
    schemes: tuple[str, ...] | None  # None: all that a machine can run
    sets: tuple[str, ...]
    axes: Mapping[str, values.Axis]
    sampling: Sampling
    where: tuple[Constraint, ...]
    repetitions: int
    options: Mapping[str, Any] = field(default_factory=dict)
    extract: tuple[str, ...] = USUAL
    keep: str = "row"
    limits: Limits = Limits()
    nodes: Mapping[str, Node] = field(default_factory=dict)  # of the file, for messages

    @property
    def is_repeated(self) -> bool:
        """Whether points differ in their seed alone."""
        return self.repetitions > 1


def read(path: Path) -> Plan:
    """Reads a plan; paths in it are relative to its folder. Raises `InputError`."""
    return parsed(read_text(path), str(path), path.parent)


def parsed(text: str, file: str, folder: Path) -> Plan:
    """The same of a text that is called `file` in messages."""
    root = Node.parsed(text, file)
    nodes = root.table(KEYS)
    for needed in ("machine", "record"):
        if needed not in nodes:
            root.refuse(f"`{needed}` is missing, as in {needed} = {_EXAMPLES[needed]}")
    axes = _axes(nodes)
    sampling = _sampling(nodes, axes)
    where = tuple(Constraint.read(node) for node in nodes["where"]) if "where" in nodes else ()
    options = _options(nodes, axes)
    repetitions = nodes["repetitions"].whole(1, 100_000) if "repetitions" in nodes else 1
    if repetitions > 1 and ("seed" in axes or "seed" in options):
        nodes["repetitions"].refuse("they have seeds of their own; leave out `seed`")
    return Plan(
        text,
        _machines(nodes["machine"], folder),
        tuple(_recorded(node, folder) for node in _several(nodes["record"])),
        _schemes(nodes.get("scheme")),
        tuple(nodes["set"].texts()) if "set" in nodes else (),
        axes,
        sampling,
        where,
        repetitions,
        options,
        _extract(nodes.get("extract")),
        nodes["keep"].choice(KEEPS) if "keep" in nodes else "row",
        _limits(nodes.get("limits")),
        nodes,
    )


_EXAMPLES = {"machine": '["pcs-table1"]', "record": '["fft.fencepost"]'}


def _machines(node: Node, folder: Path) -> tuple[str, ...]:
    """Names, and paths as they are from here."""
    found = []
    for one in node:
        text = one.text()
        is_path = "/" in text or text.endswith(".toml")
        found.append(str(folder / text) if is_path else text)
    if not found or len(set(found)) < len(found):
        node.refuse("it has to have machines, each once")
    return tuple(found)


def _several(node: Node) -> list[Node]:
    found = node.elements()
    if not found:
        node.refuse("it has no record")
    return found


def _recorded(node: Node, folder: Path) -> Recorded:
    """A path, or `{name, hosts}`."""
    if not node.is_table:
        path = Path(node.text())
        return Recorded(path.name.removesuffix(".fencepost"), (folder / path,))
    members = node.table(("name", "hosts"))
    if members.keys() != {"name", "hosts"}:
        node.refuse('it needs a name and hosts: {name = "pair", hosts = ["a.fencepost", …]}')
    hosts = tuple(folder / path for path in members["hosts"].texts())
    return Recorded(members["name"].text(), hosts)


def _schemes(node: Node | None) -> tuple[str, ...] | None:
    if node is None:
        return None
    found = tuple(one.choice(schemes.EVERY) for one in node)
    if not found or len(set(found)) < len(found):
        node.refuse("it has to have schemes, each once; leave it out for all")
    return found


def _axes(nodes: Mapping[str, Node]) -> dict[str, values.Axis]:
    if "axes" not in nodes:
        return {}
    found = {}
    for name, node in nodes["axes"].table().items():
        # Keys of machines have a dot: nobody takes one for the name of an option.
        if "." not in name and name not in NAMED_AXES:
            node.refuse(
                f"{there_is_no('axis', name, list(NAMED_AXES))}, or a key of a machine in "
                'quotation marks, such as "switch.persist_buffer.entries"'
            )
        found[name] = values.read(node)
    return found


def _sampling(nodes: Mapping[str, Node], axes: Mapping[str, values.Axis]) -> Sampling:
    members = nodes["sampling"].table(("how", "points", "seed")) if "sampling" in nodes else {}
    how = members["how"].choice(values.HOW) if "how" in members else "grid"
    if how in values.SAMPLED:
        if "points" not in members:
            nodes["sampling"].refuse(f"{how} needs `points`: how many there are to be")
        if not axes:
            nodes["sampling"].refuse("there is nothing to sample: `axes` are missing")
    elif "points" in members:
        members["points"].refuse(f"a {how} has as many as its axes give; leave it out")
    for name, axis in axes.items():
        if isinstance(axis, values.Between) and how not in values.SAMPLED:
            nodes["axes"].table()[name].refuse(
                f"a {how} needs values; `from` and `to` are for sampling.how = "
                f"{', '.join(values.SAMPLED)}"
            )
    lengths = {len(axis.written) for axis in axes.values() if isinstance(axis, values.Values)}
    if how == "zip" and len(lengths) > 1:
        nodes["sampling"].refuse("the axes of a zip have to have equally many values")
    points = members["points"].whole(1, values.POINTS_MAX) if "points" in members else 0
    seed = members["seed"].whole(0, (1 << 63) - 1) if "seed" in members else 0
    return Sampling(how, points, seed)


def _options(nodes: Mapping[str, Node], axes: Mapping[str, values.Axis]) -> dict[str, Any]:
    members = nodes["options"].table(IN_PLANS) if "options" in nodes else {}
    found: dict[str, Any] = {}
    for name, node in members.items():
        if name in axes or (name == "place" and PLACEMENT.name in axes):
            node.refuse("an axis varies it; give it one or the other way")
        declared = DECLARED[name]
        value = node.texts() if declared.is_several else node.scalar()
        try:
            found[name] = declared.checked(name, value)
        except InputError as error:
            node.refuse(str(error).partition(": ")[2])
    return found


def _extract(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return USUAL
    names = tuple(node.texts())
    if not names:
        node.refuse("it has no figure; leave it out for the usual ones")
    if len(names) > EXTRACTED_MAX:
        node.refuse(f"at most {EXTRACTED_MAX} figures fit into a row; `keep` whole documents")
    for number, name in enumerate(names):
        if name in names[:number]:
            node.refuse(f"{name} is given twice")
        if name in ("point", "reliable", "failed"):
            node.refuse(f"{name} is a column of every table")
        if name.startswith("cost."):
            if name not in COST:
                node.refuse(there_is_no("cost", name, list(COST)))
        elif why := figure_paths.wrong(name):
            node.refuse(why)
    return names


def _limits(node: Node | None) -> Limits:
    members = {} if node is None else node.table(("seconds", "memory_mb"))
    seconds = members["seconds"].number(0.1, SECONDS_MAX) if "seconds" in members else None
    memory = members["memory_mb"].whole(64, MEGABYTES_MAX) if "memory_mb" in members else None
    return Limits(seconds, memory)
