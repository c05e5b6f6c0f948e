"""The folder of an exploration (`--out`): what an earlier one left there, what becomes of it."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fencepost import documents, recording
from fencepost._core import InputError
from fencepost.crash import journal
from fencepost.crash.check import executable

JOURNAL = "journal.jsonl"
RECORD = "record.fencepost"
PROGRAM = "program.json"
RESULT = "crash.json"


def own_files(folder: Path) -> list[Path]:
    """What an exploration reads there if it goes on."""
    return [folder / name for name in (JOURNAL, RECORD, PROGRAM)]


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Makes it, if it is not there; raises `InputError` if nothing can be written there.

    If the work inside is refused or interrupted before anything was found, what was made for it
    goes again.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: nothing can be written there")
    try:
        yield
    except (InputError, KeyboardInterrupt):
        with suppress(OSError):  # one that holds something stays
            for one in missing:
                one.rmdir()
        raise


def is_begun_anew(folder: Path, *, is_recorded_again: bool, is_seen_again: bool) -> bool:
    """Whether the exploration there was finished, and another takes its place: program or check may
    have been mended. One that the user or a fault ended goes on, and so does one `is_seen_again` of
    which the user only wants to see other violations.

    Raises `InputError` where that would only seem to do the same once more: a program that finds
    its pool as it left it does something else, and what failed would be forgotten.
    """
    result = folder / RESULT
    if is_seen_again or not result.exists():
        return False
    found = _read(result)
    is_up = (found.get("time") or {}).get("is_up")
    if found.get("interrupted") or found.get("error") or is_up:
        return False
    if is_recorded_again:
        _refuse_on_old_pool(folder, result, found)
    return True


def forget(folder: Path) -> None:
    """Removes what an exploration found there, when nothing stands against the next one."""
    (folder / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(folder / journal.OUTPUTS, ignore_errors=True)
    for image in folder.glob("*.image"):
        _remove(image)
    for recovery in folder.glob("recovery-*"):
        shutil.rmtree(recovery, ignore_errors=True)
    (folder / RESULT).unlink(missing_ok=True)


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Puts a result in the place of the one before, whose other images are not needed any more."""
    documents.write_json(folder / RESULT, result)
    failing = (result[kind] for kind in ("violations", "ignored", "unexplained"))
    needed = {one["image"] for several in failing for one in several}
    for image in folder.glob("*.image"):
        if image.name not in needed:
            _remove(image)


def _remove(image: Path) -> None:
    """That of a pool of several files is a folder."""
    if image.is_dir():
        shutil.rmtree(image, ignore_errors=True)
    else:
        image.unlink()


def _refuse_on_old_pool(folder: Path, result: Path, found: dict[str, Any]) -> None:
    try:
        failing = int(found["counts"]["failing"])
        files = [Path(file["path"]) for file in found["pools"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(result) from error
    left = [str(file) for file in files if file.exists()]
    if failing and left:
        holds = "still holds" if len(left) == 1 else "still hold"
        raise InputError(
            f"{folder}: a finished exploration there has found violations, and {', '.join(left)} "
            f"{holds} what the program left, so the program would go on from that; remove the "
            "pool, or choose another --out; to leave out a violation that you know and see the "
            "next one, add --ignore FILE:LINE"
        )


def is_recorded(folder: Path, program: list[str], pm: str) -> bool:
    """Whether the record that an exploration there was begun with is of this program.

    Raises `InputError` if it is of another one, and images of it were checked.
    """
    if not (folder / RECORD).exists():
        return False
    made_by = folder / PROGRAM
    if made_by.exists() and _read(made_by) == _made(program, pm):
        return True
    if journal.is_begun(folder / JOURNAL):
        raise InputError(
            f"{folder}: an exploration of another program, or of other arguments of it, was begun "
            "there and not finished; choose another --out, or delete it"
        )
    return False


def record(folder: Path, program: list[str], pm: str) -> None:
    """Records the program for an exploration there; if that is refused or interrupted, nothing is
    left."""
    (folder / RECORD).unlink(missing_ok=True)
    documents.write_json(folder / PROGRAM, _made(program, pm))
    try:
        recording.record_to(folder / RECORD, ["--values", "--pm", pm], program)
    except (InputError, KeyboardInterrupt):
        (folder / PROGRAM).unlink()
        raise


def _made(program: list[str], pm: str) -> dict[str, Any]:
    return {"program": program, "pm": pm, "executable": executable(program[0])}


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(documents.read_text(path, errors="replace"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path) from error
    if not isinstance(document, dict):
        raise _damaged(path)
    return document


def _damaged(path: Path) -> InputError:
    return InputError(
        f"{path}: it is damaged, so what was explored there is not known; choose another --out, or "
        f"delete {path.parent}"
    )
