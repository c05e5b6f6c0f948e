"""Builds the programs: one call of ninja for all that are asked for."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .cases import FAR, PROGRAMS, WORKING, Case, every_case

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "waits"

BUSY = FOLDER / "busy"

_CPLUSPLUS = {"gcc": "g++", "clang": "clang++"}

# Functions are looked up before the regions of interest, not in a thread's first wait.
_LINKING = "-pthread -Wl,-z,now"

_RULES = f"""\
folders = -I{ROOT}/workloads -I{ROOT}/workloads/common -I{HERE}/programs
flags = -g -pthread -Wall -Wextra -Werror $folders
rule c
  command = $compiler -std=gnu11 $flags $options -MMD -MF $out.d -c -o $out $in
  depfile = $out.d
rule cpp
  command = $compiler -std=c++20 $flags $options -MMD -MF $out.d -c -o $out $in
  depfile = $out.d
rule link
  command = $compiler {_LINKING} $options -o $out $in -lm
build busy.o: c {HERE}/busy.c
  compiler = gcc
  options = -O2
build busy: link busy.o
  compiler = gcc
build work.o: c {HERE}/programs/work.c
  compiler = gcc
  options = -O1
build work_far.o: c {HERE}/programs/work.c
  compiler = gcc
  options = -O1 -D_GNU_SOURCE -DFAR
"""


def missing_package(case: Case) -> str | None:
    """What of setup/packages.txt the case needs and this system lacks."""
    if shutil.which(_CPLUSPLUS[case.compiler]) is None:
        return case.compiler
    is_openmp_of_clang = case.compiler == "clang" and "-fopenmp" in case.program.options
    if is_openmp_of_clang and not Path("/usr/lib/x86_64-linux-gnu/libomp5.so").exists():
        return "libomp-dev"
    return None


def built(cases: Iterable[Case]) -> dict[Case, Path]:
    """The programs of these cases, and what keeps processors busy, up to date."""
    cases = list(cases)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rules = FOLDER / "build.ninja"
    text = _RULES + "".join(map(_statements, every_case((*PROGRAMS, *FAR, *WORKING))))
    names = ["busy", *(f"{case.name}/program" for case in cases)]
    ninja = ["ninja", "-C", str(FOLDER), *names]
    with (FOLDER / "lock").open("w") as lock:  # several processes run the tests
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not rules.exists() or rules.read_text() != text:
            rules.write_text(text)
        finished = subprocess.run(ninja, check=False, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stdout
    return {case: FOLDER / case.name / "program" for case in cases}


def _statements(case: Case) -> str:
    """How the case is built, of an object for each of its sources."""
    program = case.program
    options = [f"-{case.level}", *program.options]
    if case.wait is not None:
        options.append(f"-DWAIT={case.wait.upper()}")
    variables = f"  options = {' '.join(options)}\n"
    compilers = {".c": case.compiler, ".cpp": _CPLUSPLUS[case.compiler]}
    statements, objects = "", ["work_far.o" if program in FAR else "work.o"]
    for source in map(Path, program.sources):
        objects.append(f"{case.name}/{source.stem}.o")
        statements += f"build {objects[-1]}: {source.suffix[1:]} {HERE / source}\n{variables}"
        statements += f"  compiler = {compilers[source.suffix]}\n"
    statements += f"build {case.name}/program: link {' '.join(objects)}\n{variables}"
    return statements + f"  compiler = {compilers[source.suffix]}\n"
