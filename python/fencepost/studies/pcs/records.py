"""The records of a study's programs: made where they are missing, opened once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from statistics import fmean

from fencepost import documents
from fencepost.api import Record
from fencepost.rows.lab import Lab
from fencepost.runs.cells import Watch
from fencepost.runs.progress import Progress
from fencepost.studies.pcs import programs
from fencepost.studies.pcs.programs import Program

Key = tuple[str, str]  # program and variant


class Records:
    """By program and variant; `make` records those that are missing."""

    def __init__(self, lab: Lab, listed: list[Program], is_own: bool) -> None:
        self._lab = lab
        self._programs = {program.name: program for program in listed}
        self._is_own = is_own
        self._opened: dict[Key, Record] = {}
        self._log = lab.folder / "recorded.json"  # what recording took, in seconds, by file
        self._seconds: dict[str, float] = {}
        if self._log.exists():
            self._seconds = json.loads(self._log.read_text(encoding="utf-8"))

    def __getitem__(self, key: Key) -> Record:
        """The record of a variant, recorded if need be."""
        if key not in self._opened:
            started = time.time_ns()
            program, variant = self._programs[key[0]], key[1]
            record = Record(programs.record(program, variant, self._lab, self._is_own))
            if record.path.stat().st_mtime_ns >= started:
                self._seconds[self._name(record)] = (time.time_ns() - started) / 1e9
                documents.write_json(self._log, self._seconds)
            self._opened[key] = record
        return self._opened[key]

    def make(self, keys: Iterable[Key], watch: Watch) -> None:
        """Records what is missing, saying how long that will take."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._opened]
        progress = Progress(len(wanted), what="records")
        for number, key in enumerate(wanted):
            expected = [self._expected(other) for other in wanted[number:]]
            progress.done = number
            progress.worked = time.monotonic() - progress.started
            # What is not known takes what others took.
            known = [one for one in expected if one is not None] or [self._usual()]
            progress.work = progress.worked + fmean(known) * len(expected)
            progress.running = [" ".join(word for word in key if word != programs.AS_GIVEN)]
            watch(progress)
            _ = self[key]

    def instructions(self, key: Key) -> int:
        """Of the whole record."""
        counted: int = self[key].provenance["instructions"]
        return counted

    def seconds(self, key: Key) -> float:
        """What recording took; 0 if that was not here."""
        return self._seconds.get(self._name(self[key]), 0.0)

    def _expected(self, key: Key) -> float | None:
        """What recording takes: what it took for another variant of the program."""
        took = [self.seconds(other) for other in self._opened if other[0] == key[0]]
        return max(took) if took and max(took) > 0 else None

    def _usual(self) -> float:
        took = [seconds for key in self._opened if (seconds := self.seconds(key))]
        return fmean(took) if took else 0.0

    def _name(self, record: Record) -> str:
        return str(record.path.relative_to(self._lab.folder))
