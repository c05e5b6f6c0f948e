"""Rows on disk: one small file a point, written whole, and packs of a thousand.

A row is a line `LENGTH SHA256` and then so many bytes of JSON, so that one that a full disk or a
dead node has cut off is known. A pack is a thousand rows behind each other, in order; it is checked
before the files that it replaces go, and never changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost._core import InputError
from fencepost.sweeps.who import here

Row = dict[str, Any]

ROW_BYTES_MAX = 4096
OF_A_PACK = 1000
COMMIT_SECONDS = 0.5  # how long a finished row waits for others, to be made durable with them


class Damaged(Exception):
    """A file that has no whole row; the text says why."""


class Differs(Exception):
    """A point came to something else the second time, which no replay may do."""


def encoded(row: Row) -> bytes:
    """A row with its length and checksum."""
    text = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > ROW_BYTES_MAX:
        raise InputError(
            f"a row has {len(text):,} bytes, and at most {ROW_BYTES_MAX:,} are kept; extract fewer "
            'figures, or keep = "full"'
        )
    return f"{len(text)} {hashlib.sha256(text).hexdigest()}\n".encode() + text + b"\n"


def decoded(content: bytes) -> Iterator[Row]:
    """The rows of a file or a pack; raises `Damaged` at the first that is not whole."""
    at = 0
    if not content:
        raise Damaged("it is empty")
    while at < len(content):
        head, _, _ = content[at : at + 100].partition(b"\n")
        length, _, digest = head.partition(b" ")
        if not (length.isdigit() and len(digest) == 64):
            raise Damaged("it does not begin with the length and checksum of a row")
        start = at + len(head) + 1
        text = content[start : start + int(length)]
        at = start + int(length) + 1
        if at > len(content) or content[at - 1 : at] != b"\n":
            raise Damaged("it is cut off")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            raise Damaged("its checksum is not that of its content")
        yield json.loads(text)


@dataclass(frozen=True)
class Results:
    """The folder `results`."""

    folder: Path

    def file(self, number: int) -> Path:
        """Where the row of a point is until it is packed."""
        return self._part(number // OF_A_PACK) / f"{number}.json"

    def _part(self, pack: int) -> Path:
        return self.folder / f"{pack:02x}"

    def _pack(self, pack: int) -> Path:
        return self.folder / f"{pack:02x}.pack"

    def done(self) -> Iterator[int]:
        """The numbers of all points that have a row, by the names of files alone."""
        singles: dict[int, set[int]] = {}
        packs = set()
        for entry in _entries(self.folder):
            name, dot, kind = entry.name.partition(".")
            try:
                number = int(name, 16)
            except ValueError:
                continue
            if dot and kind == "pack":
                packs.add(number)
            elif not dot:
                files = _entries(Path(entry.path))
                names = (one.name.removesuffix(".json") for one in files)
                singles[number] = {int(name) for name in names if name.isdigit()}
        for number in sorted(packs | singles.keys()):
            first = number * OF_A_PACK
            if number in packs:
                yield from range(first, first + OF_A_PACK)
            else:
                yield from sorted(singles[number])

    def read(self, number: int) -> Row | None:
        """The row of a point, if there is a whole one. Raises `InputError` for a damaged pack."""
        try:
            return _only(self.file(number).read_bytes(), number)
        except FileNotFoundError:
            pass
        except Damaged:
            return None
        part = number // OF_A_PACK
        if not self._pack(part).exists():
            return None
        return list(self._whole(self._pack(part), _numbers(part)))[number % OF_A_PACK]

    def all(self) -> Iterator[Row]:
        """Every row in the order of points; raises `InputError` for one that is damaged."""
        names = [entry.name for entry in _entries(self.folder)]
        packs = {int(name[:-5], 16) for name in names if name.endswith(".pack")}
        parts = {int(name, 16) for name in names if not name.endswith(".pack")}
        for part in sorted(packs | parts):
            if self._pack(part).exists():
                yield from self._whole(self._pack(part), _numbers(part))
                continue
            files = (one.name.removesuffix(".json") for one in _entries(self._part(part)))
            for number in sorted(int(name) for name in files if name.isdigit()):
                path = self.file(number)
                # Another driver may just have made a pack of them.
                if path.exists():
                    yield from self._whole(path, [number])
                elif (row := self.read(number)) is not None:
                    yield row

    def _whole(self, path: Path, numbers: Sequence[int]) -> Iterator[Row]:
        try:
            rows = list(decoded(path.read_bytes()))
            if [row["point"] for row in rows] != list(numbers):
                raise Damaged("it has not the rows that its name says")
        except Damaged as damaged:
            raise InputError(
                f"{path}: {damaged}; remove it, and the sweep makes it again"
            ) from None
        yield from rows

    def remove(self, number: int) -> None:
        """Takes the row of a point away, out of its pack too, so that it is made again."""
        part = number // OF_A_PACK
        if (pack := self._pack(part)).exists():
            for row in self._whole(pack, _numbers(part)):
                if row["point"] != number:
                    write(self.file(row["point"]), encoded(row), here().name)
            sync(self._part(part))
            pack.unlink()
        self.file(number).unlink(missing_ok=True)

    def pack(self, part: int) -> bool:
        """Makes a pack of a thousand points, if all of them have a row; a row that is damaged goes,
        so that it is made again."""
        numbers, path = _numbers(part), self._pack(part)
        if not path.exists():
            rows = []
            for number in numbers:
                try:
                    rows.append(_only(self.file(number).read_bytes(), number))
                except FileNotFoundError:
                    return False
                except Damaged:
                    self.file(number).unlink()
                    return False
            write(path, b"".join(map(encoded, rows)), here().name)
            sync(self.folder)
        list(self._whole(path, numbers))
        for number in numbers:
            self.file(number).unlink(missing_ok=True)
        return True


def _numbers(part: int) -> range:
    """The points of a pack."""
    return range(part * OF_A_PACK, (part + 1) * OF_A_PACK)


def _only(content: bytes, number: int) -> Row:
    """The row of a point's own file; raises `Damaged`."""
    rows = list(decoded(content))
    if [row["point"] for row in rows] != [number]:
        raise Damaged("it has not the row that its name says")
    return rows[0]


@dataclass
class Writer:
    """Writes rows whole and durably: those that end within a moment together."""

    results: Results
    name: str  # of this writer, among all
    committed: Callable[[int], None] = lambda _: None  # called for each row once it is durable
    _pending: dict[int, Path] = field(default_factory=dict)  # the temporary file of each point
    _since: float = 0.0

    def write(self, row: Row) -> None:
        """Takes a row; it is durable after the next `commit`. Raises `OSError`, and `Differs` if
        another worker has come to something else."""
        number, content = row["point"], encoded(row)
        there = self.results.read(number)
        if there is not None and "failed" in there and "failed" not in row:
            self.results.remove(number)  # somebody else has had less time, or memory
        elif there is not None:
            if not agree(there, row):
                raise Differs(f"point {number} came to {there} before, and to {row} now")
            self.committed(number)
            return
        target = self.results.file(number)
        if not self._pending:
            self._since = time.monotonic()
        self._pending[number] = _temporary(target, content, self.name)

    @property
    def has_room(self) -> bool:
        """Whether a row can be written at present, as long as rows can be."""
        try:
            _temporary(self.results.folder / "room", bytes(ROW_BYTES_MAX), self.name).unlink()
        except OSError:
            return False
        return True

    @property
    def is_due(self) -> bool:
        """Whether rows have waited long enough."""
        return bool(self._pending) and time.monotonic() - self._since >= COMMIT_SECONDS

    def commit(self) -> None:
        """Makes all rows durable and visible; raises `OSError`."""
        pending, self._pending = self._pending, {}
        for number, temporary in pending.items():
            self._publish(number, temporary)
        for folder in {path.parent for path in pending.values()} | {self.results.folder}:
            sync(folder)
        for number in pending:
            self.committed(number)
        for part in {number // OF_A_PACK for number in pending}:
            if len(list(_entries(self.results.file(part * OF_A_PACK).parent))) >= OF_A_PACK:
                self.results.pack(part)

    def _publish(self, number: int, temporary: Path) -> None:
        """Gives a row its name, unless another worker was first."""
        target = self.results.file(number)
        try:
            try:
                os.link(temporary, target)
            except FileExistsError:
                self._compare(target, temporary)
            except OSError:  # a file system without links
                if target.exists():
                    self._compare(target, temporary)
                else:
                    temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def _compare(self, target: Path, temporary: Path) -> None:
        """What another worker has written meanwhile, with ours; one that is damaged is replaced."""
        ours = next(decoded(temporary.read_bytes()))
        try:
            theirs = _only(target.read_bytes(), ours["point"])
        except Damaged:
            temporary.replace(target)
            return
        if not agree(theirs, ours):
            raise Differs(f"{target}: another worker has come to something else")


def agree(one: Row, other: Row) -> bool:
    """Whether two rows of a point say the same, in the figures that both have: a plan may want
    others meanwhile. A failure agrees with everything: it depends on limits."""
    if "failed" in one or "failed" in other:
        return bool(one["id"] == other["id"])
    plain = [
        {name: value for name, value in row.items() if name != "figures"} for row in (one, other)
    ]
    both = one["figures"].keys() & other["figures"].keys()
    return plain[0] == plain[1] and all(one["figures"][n] == other["figures"][n] for n in both)


def write(path: Path, content: bytes, name: str) -> None:
    """Writes a file whole; raises `OSError`. `name` is the writer's, among all."""
    _temporary(path, content, name).replace(path)


def _temporary(path: Path, content: bytes, name: str) -> Path:
    """A durable file beside `path`; an error of the file system, also at closing, is `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{name}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, temporary files left out; nothing if it is not there."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except FileNotFoundError:
        return
