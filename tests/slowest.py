"""`python tests/slowest.py FOLDER`: the ten slowest tests of the runs whose reports are there.

Behind them how long each part took (tests/timed). A run of pytest leaves JUnit's XML, a run of
cargo what it printed: Rust's harness says how long each set of tests takes, not each test."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 10
_SET_OF_RUST = re.compile(
    r"^ *Running .*?\((?P<binary>\S+)-[0-9a-f]+\)$|finished in (?P<s>[\d.]+)s$"
)


def slowest(folder: Path) -> list[tuple[float, str]]:
    """(seconds, name), the slowest first."""
    times = [time for file in folder.glob("*.xml") for time in _of_pytest(file)]
    times += [time for file in folder.glob("*.txt") for time in _of_cargo(file)]
    return sorted(times, reverse=True)[:SHOWN]


def _of_pytest(file: Path) -> Iterator[tuple[float, str]]:
    for case in ElementTree.parse(file).iter("testcase"):
        yield float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}"


def _of_cargo(file: Path) -> Iterator[tuple[float, str]]:
    name = ""
    for line in file.read_text(errors="replace").splitlines():
        found = _SET_OF_RUST.search(line)
        if found and found["binary"]:
            name = f"all of {Path(found['binary']).name} (Rust)"
        elif found:
            yield float(found["s"]), name


if __name__ == "__main__":
    print(f"the {SHOWN} slowest tests:")
    for seconds, name in slowest(Path(sys.argv[1])):
        print(f"{seconds:8.1f} s  {name}")
    print("each part:")
    for file in sorted(Path(sys.argv[1]).glob("*.seconds")):
        print(f"{int(file.read_text()):6} s    {file.stem}")
