"""The values that an axis takes: lists, ranges, and distributions to sample from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from fencepost._core import InputError
from fencepost.ask.sensitivity import ranges
from fencepost.sweeps.toml_file import Node, Scalar

HOW = ("grid", "zip", "random", "latin_hypercube", "sobol")
SAMPLED = HOW[2:]
VALUES_MAX = 100_000  # of one axis
POINTS_MAX = 10_000_000  # of a plan: the folder's files would be more than a file system likes


@dataclass(frozen=True)
class Values:
    """Of one axis, in order, each as it would be written behind `--set KEY=`."""

    written: tuple[str, ...]

    def at(self, share: float) -> str:
        """The value at this place (0 to below 1) of the axis."""
        return self.written[min(int(share * len(self.written)), len(self.written) - 1)]


@dataclass(frozen=True)
class Between:
    """Any number from `low` to `high`: for sampling alone."""

    low: float
    high: float
    is_log: bool
    is_whole: bool

    def at(self, share: float) -> str:
        """The value at this place (0 to below 1)."""
        if self.is_whole:  # each whole number has a part of the same width
            low, high = self.low - 0.5, self.high + 0.5
        else:
            low, high = self.low, self.high
        if self.is_log:
            low = max(low, self.low * 0.5)
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            value = low + share * (high - low)
        if self.is_whole:
            return str(int(min(max(round(value), self.low), self.high)))
        return repr(float(f"{value:.6g}"))


Axis = Values | Between


def read(node: Node) -> Axis:
    """From a plan: an array, one value, a range as text (`4..256`), or `{from, to}`."""
    if node.is_table:
        return _between(node)
    if not node.is_array and isinstance(node.value, str) and ".." in node.value:
        return Values(_range(node))
    written = tuple(scalar_text(one.scalar()) for one in node)
    if not written:
        node.refuse("it has no value")
    if len(written) > VALUES_MAX:
        node.refuse(f"it has {len(written):,} values; at most {VALUES_MAX:,} can be")
    seen: set[str] = set()
    for value in written:
        if value in seen:
            node.refuse(f"{value or 'the empty text'} is given twice")
        seen.add(value)
    return Values(written)


def scalar_text(value: Scalar) -> str:
    """A value as it is written behind `--set KEY=`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(node: Node) -> tuple[str, ...]:
    try:
        return ranges.read(f"{node.key}={node.value}").values
    except InputError as error:
        node.refuse(str(error).partition(": ")[2])


def _between(node: Node) -> Between:
    members = node.table(("from", "to", "log", "whole"))
    if not {"from", "to"} <= members.keys():
        node.refuse("it needs `from` and `to`")
    low, high = (members[name].number(-1e15, 1e15) for name in ("from", "to"))
    for name in ("log", "whole"):
        if name in members and not isinstance(members[name].value, bool):
            members[name].refuse("it has to be true or false")
    is_log, is_whole = (
        bool(members[name].value) if name in members else False for name in ("log", "whole")
    )
    if "whole" not in members:
        is_whole = isinstance(members["from"].value, int) and isinstance(members["to"].value, int)
    if high <= low:
        node.refuse("`to` has to be above `from`")
    if is_log and low <= 0:
        members["from"].refuse("it has to be above 0 where `log` is true")
    return Between(low, high, is_log, is_whole)


def combinations(
    axes: Sequence[Axis], how: str, points: int, seed: int
) -> Iterator[tuple[str, ...]]:
    """The values of all axes for each point, in order; the same for the same seed everywhere."""
    if how in SAMPLED:
        for shares in _shares(len(axes), how, points, seed):
            yield tuple(axis.at(float(share)) for axis, share in zip(axes, shares, strict=True))
        return
    listed = [axis.written for axis in axes if isinstance(axis, Values)]
    if how == "zip" and listed:
        yield from zip(*listed, strict=True)
    else:
        yield from itertools.product(*listed)


def size(axes: Sequence[Axis], how: str, points: int) -> int:
    """How many combinations there are."""
    if how in SAMPLED:
        return points
    lengths = [len(axis.written) for axis in axes if isinstance(axis, Values)]
    return min(lengths, default=1) if how == "zip" else math.prod(lengths)


def _shares(axes: int, how: str, points: int, seed: int) -> Iterator[Sequence[float]]:
    """Places in the unit cube, a row a point."""
    if how == "sobol":
        yield from _sobol(axes, points, seed)
        return
    # The bit generator is named, so that another version of numpy gives the same points.
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    if how == "random":
        for _ in range(points):
            yield random.random(axes).tolist()
        return
    # One point in each of as many equal parts of each axis, in an order of its own (McKay 1979).
    orders = [random.permutation(points) for _ in range(axes)]
    for number in range(points):
        within = random.random(axes)
        yield [(order[number] + part) / points for order, part in zip(orders, within, strict=True)]


def _sobol(axes: int, points: int, seed: int) -> Iterator[Sequence[float]]:
    try:
        from scipy.stats import qmc
    except ImportError:
        raise InputError(
            "sampling.how = sobol needs scipy; type: pip install 'fencepost[sobol]', or choose "
            "latin_hypercube"
        ) from None
    sequence = qmc.Sobol(axes, scramble=True, seed=seed)
    for start in range(0, points, 1024):
        count = min(1024, points - start)
        # Whole blocks of a power of two keep the balance of the sequence.
        yield from sequence.random(1024)[:count].tolist()
