"""What both versions run: commands of `fencepost` that write a document, over the same records.

The records of the programs of experiments/ are committed; those of workloads, whose threads run
otherwise each time they are recorded, are made once by the present recorder and kept.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from typing import Any

from fencepost.tree import RECORDS, WORKLOADS
from fencepost.validation.host_programs import ARENA, ARGUMENTS

from .versions import FOLDER, OURS, Version

WORKLOAD_RECORDS = FOLDER / "records"

PROGRAMS = {
    "fft": ["fft", "-m12", "-p4", "--persist-level", "coarse", "--flush", "clflush"],
    "hashmap": ["hashmap", "-t4", "-n4000", "--flush", "clwb"],
    "stream": ["stream", "-t4", "-s", "256K", "-r", "2", "--flush", "clwb"],
    "aarch64": [
        *("aarch64/primitives/queue", "--flush", "civac", "--set-size", "tiny"),
        *("--operations", "300"),
    ],
}
_FFT, _HASHMAP, _STREAM, _AARCH64 = (
    str(WORKLOAD_RECORDS / f"{name}.fencepost") for name in PROGRAMS
)

# A study records its programs itself, which the base cannot: ours does, and goes first.
STUDY = FOLDER / "study"
_LIST = STUDY / "programs.toml"
_STUDIED = ["queue", "-t1", "-c1", "-n400", "--flush", "{flush}"]

SCHEMES = ("--schemes", "nopb,pb,pb_rf,pb_adaptive")
# `sample` records, and several threads never run the same way twice.
VALIDATED = ("media", "unloaded", "loaded", "flits")
VALIDATED_FROM_RECORDS = ("host", "persist", "clx")


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
    "placed": (
        *("compare", "asic-expander", _STREAM, "--place", "heap=dram0/expander0:interleave=3/1"),
        *("--place", "stack=expander0", "--threads", "close"),
    ),
    "placed-behind-a-switch": ("run", "xconn-x8", _HASHMAP, "--place", "heap=pool"),
    "sockets": (
        *("run", "spr-cxl", _STREAM, "--place", "heap=dram0/dram1:interleave=1/1"),
        *("--threads", "spread"),
    ),
    "aarch64": ("compare", "primitives-nvm", _AARCH64, "--place", "all=pm0"),
    "reproduce": (
        *("reproduce", "pcs", "--programs", str(_LIST), "--part", "schemes"),
        *("--out", str(STUDY)),
    ),
    "latency-switch": ("latency", "pcs-table1", "--measure-us", "20"),
    "latency-expander": ("latency", "xconn-x8", "--mix", "2:1", "--measure-us", "20"),
}


# What a base has to have for a run, beside what `is_known` finds out: one of these.
NEEDED = {"aarch64": ("crates/isa/src/aarch64", "crates/sim/src/isa/aarch64")}


class NoDocument(Exception):
    """A command wrote none; says which, and why."""


def runs_of(base: Version) -> dict[str, tuple[str, ...]]:
    """By name the commands that `base` can run."""
    validated = VALIDATED + (VALIDATED_FROM_RECORDS if base.has_committed_records else ())
    runs = RUNS | {f"validate-{name}": ("validate", name) for name in validated}
    return {
        name: arguments
        for name, arguments in runs.items()
        if is_known(base, arguments)
        and any((base.root / path).exists() for path in NEEDED.get(name, ("",)))
    }


def is_known(version: Version, arguments: tuple[str, ...]) -> bool:
    """Whether a version has the command, its options, and the machine or the rows it is about."""
    command, about, *words = arguments
    said = _help(version, command)
    if not said:
        return False
    if command in ("validate", "reproduce"):
        is_there = re.search(rf"\b{re.escape(about)}\b", said) is not None
    else:
        is_there = (version.root / "machines" / f"{about}.toml").exists()
    options = {word for word in words if word.startswith("--")}
    return is_there and options <= set(re.findall(r"--[\w-]+", said))


@cache
def _help(version: Version, command: str) -> str:
    return _fencepost(version, [command, "--help"]).stdout


def record_workloads() -> None:
    """Makes the records that are not there yet, and writes the list of the study's programs."""
    STUDY.mkdir(parents=True, exist_ok=True)
    words = json.dumps([str(WORKLOADS / _STUDIED[0]), *_STUDIED[1:]])
    _LIST.write_text(f'[[program]]\nname = "queue"\ncommand = {words}\n', encoding="utf-8")
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
    shutil.rmtree(STUDY / "results", ignore_errors=True)  # each version replays
    done = _fencepost(version, [*arguments, "--json", str(file)])
    if not file.exists():
        raise NoDocument(f"{version.name}: fencepost {' '.join(arguments)}: {done.stderr.strip()}")
    return {"exit_code": done.returncode, **json.loads(file.read_text(encoding="utf-8"))}


def _fencepost(version: Version, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [*version.command, *arguments],
        cwd=FOLDER,
        env=version.environment,
        capture_output=True,
        text=True,
        check=False,
    )
