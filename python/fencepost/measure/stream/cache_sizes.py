"""Which arrays exceed a simulated machine's caches, and which caches given arrays exceed.

STREAM's rule is of the last levels: each array is at least four times as long as all of them. What
a last level does not include counts too: all three arrays are at least four times as long as all
private caches of a level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fencepost.measure.stream.memories import ARRAYS, CACHES_LEAST, ELEMENT_BYTES

Document = dict[str, Any]

KIB = 1024
LINE_BYTES = 64
INSTRUCTIONS = "l1i"
FIRST = "l1d"


@dataclass(frozen=True)
class Caches:
    """Those of a resolved machine."""

    document: Document

    @property
    def elements(self) -> int:
        """So many in an array exceed them."""
        return max(self._elements(name, level["size_kib"]) for name, level in self._counted)

    def fitting(self, elements: int) -> tuple[list[str], int]:
        """Keys (`PATH=VALUE`) of caches that arrays exceed, and how many elements these have: as
        asked, or the fewest for which such caches can be built. First levels stay as they are."""
        length = max(elements, *map(self._fewest, (name for name, _ in self._counted)))
        sizes = {
            name: self._size_kib(name, length)
            for name, level in reversed(self._counted)
            if name != FIRST and self._elements(name, level["size_kib"]) > length
        }
        return [f"cache.{name}.size_kib={size}" for name, size in sizes.items()] + [
            f"cache.{self._last}.snoop_filter.entries={entries}"
            for entries in self._filter_entries(sizes)
        ], length

    @cached_property
    def _counted(self) -> list[tuple[str, Document]]:
        """The last level, and what it does not include of those above."""
        levels = list(self.document["cache"].items())
        if levels[-1][1]["inclusive"]:
            return levels[-1:]
        return [(name, level) for name, level in levels if name != INSTRUCTIONS]

    @property
    def _last(self) -> str:
        return self._counted[-1][0]

    @property
    def _cores(self) -> int:
        return int(self.document["core"]["count"])

    @property
    def _sockets(self) -> int:
        return int(self.document.get("sockets", {}).get("count", 1))

    def _elements(self, name: str, size_kib: int) -> int:
        """In an array that exceeds caches of that size."""
        level = self.document["cache"][name]
        caches = self._sockets if level["shared"] else self._cores
        arrays = 1 if name == self._last else ARRAYS
        return -(-CACHES_LEAST * size_kib * KIB * caches // (arrays * ELEMENT_BYTES))

    def _fewest(self, name: str) -> int:
        """In an array that exceeds the smallest caches; one that includes a first level has that
        one's size at least."""
        level, first = self.document["cache"][name], self.document["cache"][FIRST]["size_kib"]
        least = first if name == FIRST or level["inclusive"] else 1
        smallest = next(size for size in _sizes_kib(level["ways"]) if size >= least)
        return self._elements(name, min(smallest, level["size_kib"]))

    def _size_kib(self, name: str, elements: int) -> int:
        """As large as it can be, in sets of its ways, a power of two of them."""
        level, found = self.document["cache"][name], 0
        for size in _sizes_kib(level["ways"]):
            if size >= level["size_kib"] or self._elements(name, size) > elements:
                break
            found = size
        return int(found)

    def _filter_entries(self, sizes: dict[str, int]) -> Iterator[int]:
        """Of a smaller filter that still knows every line of its socket's private caches."""
        snoop_filter = self.document["cache"][self._last].get("snoop_filter")
        if snoop_filter is None or not sizes:
            return
        private = [
            sizes.get(name) or int(level["size_kib"])
            for name, level in self._counted
            if not level["shared"]
        ]
        lines = sum(private) * KIB // LINE_BYTES * self._cores // self._sockets
        entries = int(snoop_filter["ways"])
        while entries < lines:
            entries *= 2
        if entries < snoop_filter["entries"]:
            yield entries


def _sizes_kib(ways: int) -> Iterator[int]:
    """All that sets of so many ways can have, a power of two of them, in whole KiB."""
    lines = ways
    while True:
        if lines * LINE_BYTES % KIB == 0:
            yield lines * LINE_BYTES // KIB
        lines *= 2
