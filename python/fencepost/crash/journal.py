"""What has been checked already, by content: a run that was stopped goes on from there.

Long output of checks lies in files of its own, one for each content.
"""

import fcntl
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.crash.check import Verdict
from fencepost.crash.output import bytes_of, end_of
from fencepost.documents import read_text

FORMAT = 1

# The folder of outputs, beside the journal.
OUTPUTS = "outputs"


def is_begun(path: Path) -> bool:
    """Whether any image was checked: until then it does not matter what was asked."""
    return len(_whole_lines(path)) > 1


class Journal:
    """A file of one JSON object a line: what was asked, then one verdict after the other."""

    def __init__(self, path: Path, asked: dict[str, Any]) -> None:
        self._verdicts: dict[str, Verdict] = {}
        self._outputs = path.parent / OUTPUTS
        self._lock = _locked(path.with_suffix(".lock"))
        header = {"format": FORMAT, **asked}
        kept = _whole_lines(path)
        if not is_begun(path):  # whatever was asked, this is the beginning
            kept = []
        if kept:
            _compare(path, _header(path, kept[0]), header)
            self._verdicts = dict(_entry(path, line) for line in kept[1:])
        # Rewritten without what a kill may have left half-written.
        temporary = path.with_suffix(".new")
        temporary.write_text("".join(line + "\n" for line in kept or [json.dumps(header)]))
        temporary.rename(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.resumed = len(self._verdicts)

    def get(self, image: str) -> Verdict | None:
        return self._verdicts.get(image)

    def add(self, image: str, verdict: Verdict) -> Verdict:
        """Kept from now on, whatever happens to this process; gives it as it is kept."""
        shown = end_of(verdict.output)
        if shown != verdict.output:
            verdict = Verdict(verdict.outcome, shown, self._keep(verdict.output))
        self._verdicts[image] = verdict
        entry = {"image": image, "outcome": verdict.outcome}
        if verdict.output:
            entry["output"] = verdict.output
        if verdict.kept:
            entry["kept"] = verdict.kept
        os.write(self._file, (json.dumps(entry) + "\n").encode())
        return verdict

    def _keep(self, output: str) -> str:
        """Writes it whole or not at all; gives its name, seen from the folder of the journal."""
        content = bytes_of(output + "\n")
        file = self._outputs / f"{hashlib.sha256(content).hexdigest()[:16]}.txt"
        if not file.exists():
            self._outputs.mkdir(exist_ok=True)
            temporary = file.with_suffix(f".{threading.get_ident()}.new")
            temporary.write_bytes(content)
            temporary.rename(file)
        return str(file.relative_to(self._outputs.parent))

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)


def _locked(path: Path) -> int:
    """A lock that goes with the process that has it, however that ends."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError(f"{path.parent}: another exploration is at work there") from None
    return lock


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines = read_text(path, errors="replace").split("\n")
    return lines[:-1]


def _header(path: Path, line: str) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or "format" not in header:
        raise InputError(f"{path}: it is not a journal of fencepost crash")
    return header


def _entry(path: Path, line: str) -> tuple[str, Verdict]:
    try:
        entry = json.loads(line)
        verdict = Verdict(entry["outcome"], entry.get("output", ""), entry.get("kept"))
        return entry["image"], verdict
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: it is damaged; choose another --out, or delete {path.parent}"
        ) from error


def _compare(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for key in now:
        if before.get(key) != now[key]:
            raise InputError(
                f"{path.parent}: an exploration with another {key} was begun there "
                f"({before.get(key)}, not {now[key]}); choose another --out, or delete it"
            )
