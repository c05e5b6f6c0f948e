"""The programs of a study: a TOML file that lists them, and their records."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencepost import documents, recording, recordings
from fencepost._core import InputError
from fencepost.built import needed
from fencepost.rows.lab import Lab
from fencepost.tree import EXPERIMENTS, WORKLOADS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN_LIST = EXPERIMENTS / "pcs" / "programs.toml"

LEVELS = ("fine", "coarse", "barrier")  # how often the program persists, the headline first
AS_GIVEN = "as given"  # a program without `{level}`
SYNC = "sync"  # no persists of its own; inserted at synchronisation

FLUSH = "clflush"  # the study: clflush and mfence

_MEMBERS = {"name", "command", "pm", "persist", "roi"}


@dataclass(frozen=True)
class Program:
    """One program of the list, in all its variants."""

    name: str
    command: tuple[str, ...]
    pm: tuple[str, ...] = ("heap",)
    persist: str = "program"
    roi: str | None = None  # --roi of recording, for a program without markers

    @property
    def levels(self) -> tuple[str, ...]:
        """The variants with persists of its own, the headline first."""
        return LEVELS if any("{level}" in word for word in self.command) else (AS_GIVEN,)

    @property
    def has_sync(self) -> bool:
        """Whether it can be told not to persist, so that persists can be inserted instead."""
        return any("{flush}" in word for word in self.command)

    def arguments(self, variant: str) -> list[str]:
        """The command's words behind the program, for a level or `SYNC`."""
        level = LEVELS[-1] if variant == SYNC else variant
        flush = "none" if variant == SYNC else FLUSH
        words = (word.replace("{level}", level) for word in self.command[1:])
        return [word.replace("{flush}", flush) for word in words]

    def persisted(self, variant: str) -> str:
        """`--persist` of a replay."""
        return "sync" if variant == SYNC else self.persist


def read(path: Path) -> list[Program]:
    """Reads a list of programs; raises `InputError` with what is wrong, and where."""
    try:
        document = tomllib.loads(documents.read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from error
    entries = document.pop("program", None)
    if document:
        raise InputError(f"{path}: unknown key `{next(iter(document))}`; there is only [[program]]")
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path}: no [[program]] with `name` and `command`")
    programs = [_program(path, number, entry) for number, entry in enumerate(entries, 1)]
    names = [program.name for program in programs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path}: two programs are called `{name}`")
    return programs


def _program(path: Path, number: int, entry: Any) -> Program:
    where = f"{path}: program {number}"
    if not isinstance(entry, dict):
        raise InputError(f"{where}: not a table; write [[program]]")
    if unknown := sorted(entry.keys() - _MEMBERS):
        members = ", ".join(sorted(_MEMBERS))
        raise InputError(f"{where}: unknown key `{unknown[0]}`; there are: {members}")
    name = entry.get("name")
    if not isinstance(name, str) or not name or "/" in name:
        raise InputError(f"{where}: `name` is a text without slashes")
    pm = entry.get("pm", ["heap"])
    for key, words in (("command", entry.get("command")), ("pm", pm)):
        is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not is_list or not words:
            raise InputError(f'{where} ({name}): `{key}` is a list of texts: ["a", "b"]')
    persist = entry.get("persist", "program")
    if not isinstance(persist, str):
        raise InputError(f"{where} ({name}): `persist` is program, sync or every:N")
    roi = entry.get("roi")
    if roi is not None and not (isinstance(roi, str) and ":" in roi):
        raise InputError(
            f"{where} ({name}): `roi` is START:STOP, function names or instruction counts"
        )
    return Program(name, tuple(entry["command"]), tuple(pm), persist, roi)


def check(programs: list[Program], is_own: bool) -> None:
    """That all programs are there, before anything is run."""
    for program in programs:
        _ = _binary(program, is_own)


def record(program: Program, variant: str, lab: Lab, is_own: bool) -> Path:
    """The record of a variant, made where the folder has none of exactly this command."""
    binary = _binary(program, is_own)
    arguments = program.arguments(variant)
    if is_own:
        # A folder keeps one record of each program.
        return recordings.recorded(replace(lab, folder=lab.folder / variant), binary, arguments)
    options = ["--roi", program.roi, "--warm", "all"] if program.roi else []
    told = repr((options, arguments)).encode()
    digest = hashlib.sha256(told + binary.read_bytes()).hexdigest()[:12]
    path = lab.folder / f"{program.name}-{digest}.fencepost"
    if not path.exists():
        lab.log(f"recording {program.name}")
        recording.record_to(path, options, [str(binary), *arguments], subprocess.DEVNULL)
    return path


def _binary(program: Program, is_own: bool) -> Path:
    if is_own:
        return needed(WORKLOADS / program.command[0])
    found = shutil.which(program.command[0])
    if found is None:
        raise InputError(f"{program.name}: {program.command[0]}: no such program")
    return Path(found).resolve()
