"""The pictures of the rooms in ARCHITECTURE.md and docs/rooms-*.md: an arrow from a room to those
that it imports."""

from __future__ import annotations

import re

from .imports import HOUSES, ROOT, House, arrows

PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("rooms-*.md"))]


def renewed(page: str) -> str:
    """The page with pictures of today's imports, each between two marks."""
    for house in HOUSES:
        begin, end = f"<!-- rooms of {house.name} -->\n", f"<!-- end of {house.name} -->\n"
        place = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        drawn = begin + mermaid(house) + end
        page = place.sub(lambda _, drawn=drawn: drawn, page)
    return page


def mermaid(house: House) -> str:
    """The rooms of a house as a diagram in Markdown."""
    found = without_implied(arrows(house))
    lines = [f"  {room} --> {to}" for room, used in sorted(found.items()) for to in sorted(used)]
    joined = {room for room, used in found.items() if used} | set().union(*found.values())
    alone = [f"  {room}" for room in sorted(set(found) - joined)]
    return "\n".join(["```mermaid", "graph TD", *lines, *alone, "```"]) + "\n"


def without_implied(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without arrows that a longer way implies: what is left reaches as much (a transitive
    reduction; there are no circles)."""
    reach: dict[str, set[str]] = {}

    def below(room: str) -> set[str]:
        if room not in reach:
            reach[room] = set()
            reach[room] = arrows[room].union(*(below(to) for to in arrows[room]))
        return reach[room]

    return {
        room: {to for to in used if not any(to in below(other) for other in used - {to})}
        for room, used in arrows.items()
    }
