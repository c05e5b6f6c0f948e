"""`python tests/equal_builds.py WHEEL`: the wheel's replays are those of this clone's simulator.

Twenty replays by both, of records that are made here: every document is the same but for the time
that the replay took and how fast it was.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT / "build" / "workloads"
MAY_DIFFER = {"host_seconds", "mips"}
PROGRAMS = {
    "fft": ["fft", "-m8", "-p4", "--persist-level", "coarse"],
    "hashmap": ["hashmap", "-t2", "-n800", "--flush", "clwb"],
    "chase": ["chase", "-s", "1M", "-n", "3000", "-c", "2"],
    "queue": ["queue", "-t1", "-c1", "-n300", "--flush", "clflush"],
}
#: Five replays of each program.
COMMANDS = [
    ["compare", "pcs-table1", "--schemes", "nopb,pb,pb_rf"],
    ["run", "gem5-o3", "--scheme", "nopb"],
    ["run", "spr-cxl", "--scheme", "nopb", "--place", "heap=expander0"],
]


def main(wheel: str) -> int:
    """The number of documents that differ, as an exit code."""
    differing = replays = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(sys.executable, "-m", "venv", folder / "venv")
        _run(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel)
        ours, theirs = ROOT / ".venv/bin/fencepost", folder / "venv/bin/fencepost"
        for program, [binary, *arguments] in PROGRAMS.items():
            record = folder / f"{program}.fencepost"
            _run(ours, "record", "-o", record, "-q", "--", WORKLOADS / binary, *arguments)
            for command in COMMANDS:
                one, other = (_document(each, command, record, folder) for each in (ours, theirs))
                replays += len(one["runs"])
                if one != other:
                    differing += 1
                    print(f"{' '.join(command)} of {program}: the documents differ")
    print(f"equal builds: {replays} replays, {differing} documents that differ; here: {_build()}")
    return min(differing, 1)


def _build() -> str:
    """The build that the wheel's is compared with: after `make fast` they are alike."""
    ask = "from fencepost import _core; print(_core.BUILD)"
    done = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", ask], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def _document(fencepost: Path, command: list[str], record: Path, folder: Path) -> Any:
    output = folder / "document.json"
    word, machine, *options = command
    _run(fencepost, word, machine, record, *options, "--json", output, "--quiet")
    return _without(json.loads(output.read_text()))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(one) for key, one in value.items() if key not in MAY_DIFFER}
    return [_without(one) for one in value] if isinstance(value, list) else value


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
