"""Runs what the simulator is for, on small programs, with the compiled core that is given.

python setup/train.py CORE FOLDER: the core is the shared library with counters, the folder is for
records.
"""

import contextlib
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

CORE, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])

PROGRAMS = {
    "fft": ["-m10", "-p4", "--persist-level", "coarse"],
    "hashmap": ["-t2", "-n3000", "--flush", "clwb"],
    "chase": ["-s", "1M", "-n", "20000"],
    "stream": ["-t2", "-s", "256K", "-r", "2", "--flush", "clwb"],
}
COMMANDS = [
    ["compare", "pcs-table1", "fft"],
    ["compare", "pcs-table1-4sw", "fft", "--schemes", "pb_adaptive"],
    ["run", "pcs-table1", "hashmap"],
    ["run", "pcs-table1", "stream", "--scheme", "pb"],
    ["run", "pcs-table1", "chase", "--scheme", "pb"],
    ["run", "gem5-o3", "chase", "--scheme", "nopb"],
    ["run", "gem5-o3", "stream", "--scheme", "nopb"],
    ["prove", "--scheme", "pb_adaptive", "--hosts", "2", "--writes", "2", "--jobs", "1"],
    ["prove", "--scheme", "pb", "--hosts", "2", "--writes", "2", "--jobs", "1"],
]


def main() -> None:
    """Loads the core in the place of the installed one, if there is one, and runs the commands."""
    spec = importlib.util.spec_from_file_location("fencepost._core", CORE)
    assert spec is not None and spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    sys.modules["fencepost._core"] = core
    spec.loader.exec_module(core)
    from fencepost import cli, recording, tree

    for program, arguments in PROGRAMS.items():
        command = [str(tree.WORKLOADS / program), *arguments]
        recording.record_to(FOLDER / f"{program}.fencepost", [], command, subprocess.DEVNULL)
    for command in COMMANDS:
        words = [f"{FOLDER / word}.fencepost" if word in PROGRAMS else word for word in command]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = cli.main([*words, "--quiet"])
        if code != 0:
            raise SystemExit(f"{' '.join(words)}: exit {code}\n{said.getvalue()}")


if __name__ == "__main__":
    main()
