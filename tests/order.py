"""Files of tests that take long come first, so that workers end together.

python tests/order.py REPORT: writes what a report of pytest says of each file (JUnit's XML) to
tests/durations.json, in whole seconds; files below a second are left out.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

DURATIONS = Path(__file__).with_name("durations.json")


def longest_first(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """By file; files that took as long, and new ones, stay in their order."""
    known: dict[str, int] = json.loads(DURATIONS.read_text())
    here = DURATIONS.parent

    def seconds(item: pytest.Item) -> int:
        return known.get(item.path.relative_to(here).as_posix(), 0)

    return sorted(items, key=lambda item: -seconds(item))


def _durations(report: Path) -> dict[str, int]:
    times: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        parts = str(case.get("classname")).split(".")[1:]  # behind `tests`
        times["/".join(parts) + ".py"] += float(case.get("time", 0))
    whole = {file: round(seconds) for file, seconds in times.items() if seconds >= 1}
    return dict(sorted(whole.items(), key=lambda pair: (-pair[1], pair[0])))


if __name__ == "__main__":
    DURATIONS.write_text(json.dumps(_durations(Path(sys.argv[1])), indent=1) + "\n")
