"""What a plan says, for the report of its sweep."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.sweeps.folder import Folder
from fencepost.sweeps.plan import Plan
from fencepost.sweeps.values import Axis, Between

Rows = list[tuple[str, str]]

VALUES_MAX = 8  # of an axis, that are all said


def rows(plan: Plan) -> Rows:
    """Names and values, of what the plan says and what it leaves as usual."""
    schemes = ", ".join(plan.schemes) if plan.schemes else "all that a machine can run"
    said = [
        ("machines", ", ".join(plan.machines)),
        ("records", ", ".join(recorded.name for recorded in plan.records)),
        ("schemes", schemes),
        *((name, axis_text(axis)) for name, axis in plan.axes.items()),
        ("how axes are combined", _sampling(plan)),
    ]
    return [*said, *_particular(plan)]


def provenance(folder: Folder) -> Rows:
    """What the rows were computed by, and of."""
    said = folder.said
    found = [("Fencepost", said["fencepost"]), ("simulator", said["simulator"])]
    found += [(f"machine {one}", name.partition("/")[0]) for one, name in said["machines"].items()]
    return found + [(f"record {one}", ", ".join(hosts)) for one, hosts in said["records"].items()]


def axis_text(axis: Axis) -> str:
    """The values that an axis takes."""
    if isinstance(axis, Between):
        how = ", by factors" if axis.is_log else ""
        return f"{axis.low:g} to {axis.high:g}{how}{', whole numbers' if axis.is_whole else ''}"
    texts = [text or "(none)" for text in axis.written]
    if len(texts) <= VALUES_MAX:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, …, {texts[-1]} ({len(texts):,} values)"


def _sampling(plan: Plan) -> str:
    how, points, seed = plan.sampling.how, plan.sampling.points, plan.sampling.seed
    words = how.replace("_", " ")
    return f"{words}, {points:,} points, seed {seed}" if points else words


def _particular(plan: Plan) -> Iterator[tuple[str, str]]:
    """What most plans leave out."""
    if plan.where:
        yield "where", "; ".join(constraint.node.text() for constraint in plan.where)
    if plan.is_repeated:
        yield "repetitions", str(plan.repetitions)
    if plan.sets:
        yield "machine changes", ", ".join(plan.sets)
    for name, value in plan.options.items():
        yield name, ", ".join(value) if isinstance(value, list) else str(value)
