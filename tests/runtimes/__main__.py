"""What recording runtimes costs: ``.venv/bin/python -m tests.runtimes [NAME...]``.

Prints a row for each program: processor time natively, while it is recorded, and for finding its
order when it has ended. Times of start-up are rows of their own. `NUMPY_PYTHON` names an
interpreter that has numpy; without it, its row is left out.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORDER = HERE.parents[1] / "build" / "recorder"
NUMPY = os.environ.get("NUMPY_PYTHON", "")
PROGRAMS = {
    "node -e 0": ["node", "-e", "0"],
    "java -version": ["java", "-version"],
    "python -c 0": [sys.executable, "-c", "0"],
    "node": ["node", "objects.js", "20"],
    "java -Xint": ["java", "-Xint", "-cp", ".", "Work", "6"],
    "java": ["java", "-cp", ".", "Work", "60"],
    "numpy": [NUMPY, "product_and_sort.py", "30"],
    "python": [sys.executable, "interpreted.py", "35"],
}
# In the place of the program that finds the order: says how much processor time that took.
TIMED_ORDER = """#!/bin/sh
"$0.timed" "$@"
code=$?
times >"$0.times"
exit $code
"""


def seconds(text: str) -> float:
    """Of what `times` prints of user and system time."""
    minutes_and_seconds = [part.rstrip("s").split("m") for part in text.split()]
    return sum(60 * int(minutes) + float(rest) for minutes, rest in minutes_and_seconds)


def processor_seconds(command: list[str], folder: Path) -> tuple[float, bytes]:
    """What a program and its children took, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, ended.stdout


def main(names: list[str]) -> None:
    """Measures them one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(RECORDER, folder / "recorder", ignore=shutil.ignore_patterns("objects"))
        order = folder / "recorder" / "lib" / "fencepost-order"
        order.rename(f"{order}.timed")
        order.write_text(TIMED_ORDER)
        order.chmod(0o755)
        for program in HERE.iterdir():
            if program.is_file():
                shutil.copy(program, folder)
        if "java" in names or "java -Xint" in names:
            subprocess.run(["javac", "Work.java"], cwd=folder, check=True)
        print("| program | native (s) | recording (s) | times native | order (s) |")
        print("|---|---|---|---|---|", flush=True)
        for program in names:
            command = PROGRAMS[program]
            if not command[0]:
                continue
            native, expected = processor_seconds(command, folder)
            record = [
                str(folder / "recorder" / "fencepost-record"),
                "-o",
                "x.fencepost",
                "--",
                *command,
            ]
            both, printed = processor_seconds(record, folder)
            assert printed == expected, f"{program}: recorded, it printed something else"
            found = seconds(Path(f"{order}.times").read_text().splitlines()[-1])
            recording = both - found
            row = [f"{native:.2f}", f"{recording:.1f}", f"{recording / native:.0f}", f"{found:.1f}"]
            print("|", " | ".join([program, *row]), "|", flush=True)
            (folder / "x.fencepost").unlink()


if __name__ == "__main__":
    main(sys.argv[1:] or list(PROGRAMS))
