"""What both versions run: commands of `fencepost` that write a document, over the same records.

The records of the programs of experiments/ are committed; those of workloads, whose threads run
otherwise each time they are recorded, are made once by the present recorder and kept.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from fencepost.tree import RECORDS, WORKLOADS
from fencepost.validation.host_programs import ARENA, ARGUMENTS

from .versions import FOLDER, OURS, Version

WORKLOAD_RECORDS = FOLDER / "records"

PROGRAMS = {
    "fft": ["fft", "-m12", "-p4", "--persist-level", "coarse", "--flush", "clflush"],
    "hashmap": ["hashmap", "-t4", "-n4000", "--flush", "clwb"],
    "stream": ["stream", "-t4", "-s", "256K", "-r", "2", "--flush", "clwb"],
}
_FFT, _HASHMAP, _STREAM = (str(WORKLOAD_RECORDS / f"{name}.fencepost") for name in PROGRAMS)

SCHEMES = ("--schemes", "nopb,pb,pb_rf,pb_adaptive")
# `sample` records, and several threads never run the same way twice.
VALIDATED = ("media", "unloaded", "loaded", "flits")
VALIDATED_FROM_RECORDS = ("host", "persist")


def _committed(name: str) -> tuple[str, ...]:
    return (str(RECORDS / f"{name}.fencepost"), "--pm", ARENA)


RUNS: dict[str, tuple[str, ...]] = {
    "fft": ("compare", "pcs-table1", _FFT, *SCHEMES),
    "hashmap": ("compare", "pcs-table1", _HASHMAP, *SCHEMES),
    "stream": ("compare", "pcs-table1", _STREAM, *SCHEMES),
    "fft-sync": ("run", "pcs-table1", _FFT, "--scheme", "pb", "--persist", "sync"),
    "fft-sampled": ("run", "pcs-table1", _FFT, "--scheme", "pb_rf", "--sample", "200k:20k:20k"),
    "two-hosts": (
        *("compare", "pcs-table1-2hosts", "--host", f"0={_FFT}", "--host", f"1={_STREAM}"),
        *("--schemes", "nopb,pb"),
    ),
    **{name: ("run", "gem5-o3", *_committed(name), "--scheme", "nopb") for name in ARGUMENTS},
    "hardware": ("run", "gem5-o3-hardware", *_committed("mb_queue"), "--scheme", "nopb"),
    "persist_loops": ("compare", "pcs-table1", *_committed("persist_loops"), *SCHEMES),
    "read_chase": ("run", "optane-like", *_committed("read_chase"), "--scheme", "nopb"),
    "latency-switch": ("latency", "pcs-table1", "--measure-us", "20"),
    "latency-expander": ("latency", "xconn-x8", "--mix", "2:1", "--measure-us", "20"),
}


class NoDocument(Exception):
    """A command wrote none; says which, and why."""


def runs_of(base: Version) -> dict[str, tuple[str, ...]]:
    """By name the commands that `base` can run."""
    validated = VALIDATED + (VALIDATED_FROM_RECORDS if base.has_committed_records else ())
    return RUNS | {f"validate-{name}": ("validate", name) for name in validated}


def record_workloads() -> None:
    """Makes the records that are not there yet."""
    WORKLOAD_RECORDS.mkdir(parents=True, exist_ok=True)
    for name, (program, *arguments) in PROGRAMS.items():
        record = WORKLOAD_RECORDS / f"{name}.fencepost"
        if not record.exists():
            command = ["record", "-o", str(record), "--", str(WORKLOADS / program), *arguments]
            done = _fencepost(OURS, command)
            if not record.exists():
                raise NoDocument(f"{name} was not recorded: {done.stderr.strip()}")


def result(version: Version, name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    """The document that the command writes, and its exit code: it is a result too."""
    file = FOLDER / f"{name}.{version.name}.json"
    file.unlink(missing_ok=True)
    done = _fencepost(version, [*arguments, "--json", str(file)])
    if not file.exists():
        raise NoDocument(f"{version.name}: fencepost {' '.join(arguments)}: {done.stderr.strip()}")
    return {"exit_code": done.returncode, **json.loads(file.read_text(encoding="utf-8"))}


def _fencepost(version: Version, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*version.command, *arguments],
        cwd=FOLDER,
        env=version.environment,
        capture_output=True,
        text=True,
        check=False,
    )
