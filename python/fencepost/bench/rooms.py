"""Where a replay's time goes, room by room: `python -m fencepost.bench.rooms MACHINE RECORD …`.

Runs the example `replay` under callgrind, which counts the host's instructions by source line, with
inlined code counted where it was written; code of libraries belongs to the room that calls it, if
it is inlined there. The shares are then laid over the time that the replay takes without callgrind:
an instruction that waits for memory counts no more than any other. Needs `valgrind` and
`cargo build --release --example replay`.
"""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fencepost import scratch
from fencepost.tree import ROOT

REPLAY = ROOT / "target" / "release" / "examples" / "replay"
# A module of `sim`, or another crate.
ROOM = re.compile(r"crates/(?:sim/src/)?(\w+)")
COST = re.compile(r"[0-9+*-]\S* \d+")
LIBRARIES = "libraries"
REPLAYED = re.compile(r"(\d+) instructions in ([\d.]+) s")


def rooms(arguments: list[str]) -> Counter[str]:
    """Instructions of the host by room, of a replay with these arguments."""
    with scratch.made() as folder:
        output = folder / "callgrind.out"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        command = [*tool, str(REPLAY), *arguments]
        subprocess.run(command, check=True, capture_output=True)
        counted: Counter[str] = Counter()
        for room, instructions in costs(output):
            counted[room] += instructions
    return counted


def costs(output: Path) -> Iterator[tuple[str, int]]:
    """The own cost of each line of callgrind's `output`: (room, instructions of the host)."""
    files: dict[str, str] = {}
    function_room = line_room = LIBRARIES
    is_call = False
    for line in output.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fi", "fe", "cfi", "cfl"):
            number, _, path = value.partition(" ")
            found = ROOM.search(files.setdefault(number, path))
            if key in ("cfi", "cfl"):
                continue
            if key == "fl":
                function_room = found[1] if found else LIBRARIES
            line_room = found[1] if found else function_room
        elif key == "calls":
            is_call = True
        elif COST.match(line):
            # The line after `calls=` holds the cost of what was called, which is counted there.
            if not is_call:
                yield line_room, int(line.split()[1])
            is_call = False


def main(arguments: list[str]) -> None:
    """Prints a row for each room, the most expensive first."""
    if not (shutil.which("valgrind") and REPLAY.exists()):
        raise SystemExit(__doc__)
    done = subprocess.run([str(REPLAY), *arguments], check=True, capture_output=True, text=True)
    [(replayed, seconds)] = REPLAYED.findall(done.stderr)
    nanoseconds = float(seconds) * 1e9 / int(replayed)
    counted = rooms(arguments)
    total = counted.total()
    print(f"{total / int(replayed):.0f} instructions of the host for each, {nanoseconds:.1f} ns\n")
    print("| room | share | ns |\n|---|---|---|")
    for room, instructions in counted.most_common():
        share = instructions / total
        print(f"| {room} | {share:.1%} | {share * nanoseconds:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
