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

ARRAYS = ["measure/stream", "--elements", "20000", "--repetitions", "2", "--threads", "4"]
CORE, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])

#: Records by name: program, from `build/`, and arguments. Without PMDK `pool` ends at once.
RECORDS = {
    "fft": ["workloads/fft", "-m12", "-p4", "--persist-level", "coarse"],
    "hashmap": ["workloads/hashmap", "-t2", "-n8000", "--flush", "clwb"],
    "misses": ["workloads/chase", "-s", "4M", "-n", "30000", "-c", "2"],
    "hits": ["workloads/chase", "-s", "64K", "-n", "150000"],
    "stream": ["workloads/stream", "-t2", "-s", "256K", "-r", "2", "--flush", "clwb"],
    "queue": ["workloads/queue", "-t1", "-c1", "-n6000", "--flush", "clflush"],
    "arrays": [*ARRAYS, "--stores", "ordinary"],
    "pool": [*ARRAYS, "--pool-in-memory", "--access", "d_rw"],
}
#: Two sockets, whose caches arrays of 20,000 elements exceed.
SOCKETS = ["spr-cxl", "--set", "cache.l2.size_kib=32", "--set", "cache.l3.size_kib=120"]
#: None takes much longer than the others: what takes little of all the time would be compiled as if
#: nobody waited for it. With PM at `range:0x0-0x1000`, where there is nothing, all is DRAM.
COMMANDS = [
    ["compare", "pcs-table1", "fft"],
    ["compare", "pcs-table1-4sw", "fft", "--schemes", "pb_adaptive"],
    ["compare", "pcs-table1", "hashmap"],
    ["run", "pcs-table1", "stream", "--scheme", "pb"],
    ["run", "pcs-table1", "misses", "--scheme", "pb"],
    ["run", "pcs-table1", "fft", "--scheme", "pb_rf", "--sample", "50k:2k:2k"],
    ["run", "gem5-o3", "misses", "--scheme", "nopb"],
    ["run", "gem5-o3", "hits", "--scheme", "nopb"],
    ["run", "gem5-o3", "stream", "--scheme", "nopb"],
    ["run", "gem5-o3", "hashmap", "--scheme", "nopb"],
    ["run", "gem5-o3", "queue", "--scheme", "nopb"],
    ["run", "gem5-o3", "queue", "--scheme", "nopb", "--pm", "range:0x0-0x1000"],
    ["run", *SOCKETS, "arrays", "--scheme", "nopb", "--place", "heap=expander0"],
    ["run", *SOCKETS, "pool", "--scheme", "nopb", "--place", "file:*fencepost-stream*=dram1"],
    ["latency", "xconn-pool", "--delay", "200", "--mix", "2:1", "--measure-us", "100"],
    ["prove", "--scheme", "pb", "--hosts", "2", "--writes", "2", "--jobs", "1"],
    ["prove", "--scheme", "pb_adaptive", "--hosts", "2", "--writes", "1", "--jobs", "1"],
]


def main() -> None:
    """Loads the core in the place of the installed one, if there is one, and runs the commands."""
    spec = importlib.util.spec_from_file_location("fencepost._core", CORE)
    assert spec is not None and spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    sys.modules["fencepost._core"] = core
    spec.loader.exec_module(core)
    from fencepost import cli, recording, tree

    for name, [program, *arguments] in RECORDS.items():
        command = [str(tree.BUILD / program), *arguments]
        recording.record_to(FOLDER / f"{name}.fencepost", [], command, subprocess.DEVNULL)
    for command in COMMANDS:
        words = [f"{FOLDER / word}.fencepost" if word in RECORDS else word for word in command]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = cli.main([*words, "--quiet"])
        if code != 0:
            raise SystemExit(f"{' '.join(words)}: exit {code}\n{said.getvalue()}")


if __name__ == "__main__":
    main()
