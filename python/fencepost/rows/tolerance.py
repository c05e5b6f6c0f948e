"""How near ours has to be to what is expected."""

from __future__ import annotations

from dataclasses import dataclass

Figure = float | str | None


@dataclass(frozen=True)
class Tolerance:
    """`=` and `~` hold within `within`, `<` and `>` strictly; `is` is for words: a trend, an order.

    `lowest..highest` is a range that is expected as a whole, widened by `within` on both sides;
    what is expected is then its middle.
    """

    relation: str = "="
    within: float = 0.0
    half_range: float = 0.0

    def accepts(self, expected: Figure, ours: Figure) -> bool:
        """Whether ours is near enough; never without data."""
        if isinstance(expected, str) or isinstance(ours, str):
            return ours == expected
        if expected is None or ours is None:
            return False
        match self.relation:
            case "=" | "~" | "..":
                # Most figures are decimal fractions: what lies on the border holds.
                apart = abs(ours - expected)
                return apart <= self._reach or round(apart, 9) <= self._reach
            case ">":
                return ours > expected
            case "<":
                return ours < expected
        raise ValueError(f"an unknown relation: {self.relation}")

    def edges(self, expected: Figure) -> list[float]:
        """Where it begins or ceases to hold."""
        if expected is None or isinstance(expected, str):
            return []
        return [expected - self._reach, expected + self._reach]

    @property
    def _reach(self) -> float:
        return self.within + self.half_range if self.relation in ("=", "~", "..") else 0.0


def between(low: float, high: float, within: float) -> Tolerance:
    """Of a range that was published, of which the expected figure is the middle."""
    return Tolerance("..", within, (high - low) / 2)
