"""Finds imports in Rust, Python and C, as text: tests are left out."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, order=True)
class Import:
    """That a file of the room `of` uses the room `to`."""

    of: str
    to: str
    file: Path
    line: int


@dataclass(frozen=True)
class House:
    """A folder whose files and folders are rooms."""

    name: str
    folder: Path

    @cached_property
    def rooms(self) -> list[str]:
        return sorted({self.room_of(path) for path in self._files()})

    @cached_property
    def imports(self) -> list[Import]:
        """Those between two rooms."""
        return sorted(
            Import(room, to, Path(os.path.relpath(path, ROOT)), line)
            for path in self._files()
            for room in [self.room_of(path)]
            for to, line in self._used(path)
            if to != room
        )

    def room_of(self, path: Path) -> str:
        parts = path.relative_to(self.folder).parts
        return parts[0].partition(".")[0] if len(parts) == 1 else parts[0]

    def _files(self) -> Iterator[Path]:
        raise NotImplementedError

    def _used(self, path: Path) -> Iterator[tuple[str, int]]:
        """The rooms that a file names, with the lines."""
        raise NotImplementedError


def _line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


_RUST_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


class RustHouse(House):
    """The modules of a crate."""

    def _files(self) -> Iterator[Path]:
        files = [path for path in self.folder.rglob("*.rs") if path.name != "lib.rs"]
        left_out = {module for path in files for module in _test_modules(path)}
        for path in files:
            if left_out.isdisjoint([path.with_suffix(""), *path.parents]):
                yield path

    def _used(self, path: Path) -> Iterator[tuple[str, int]]:
        text = _RUST_NOISE.sub(_blank, path.read_text())
        text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]
        text = re.sub(r"#\[cfg\((?:test|doc)\)\]\s*use [^;]*;", _blank, text)
        own = [part.removesuffix(".rs") for part in path.relative_to(self.folder).parts]
        if own[-1] == "mod":
            own.pop()
        rooms = set(self.rooms)
        for found in re.finditer(r"\bcrate::(?=[\w{])|(?:\bsuper::)+(?=[\w{])", text):
            ups = found[0].count("super::")
            if ups and ups < len(own):
                continue
            for name in _names(text, found.end()):
                if name in rooms:
                    yield name, _line_of(text, found.start())


def _test_modules(path: Path) -> Iterator[Path]:
    """Modules that a file declares for tests alone, without a suffix."""
    is_root = path.stem in ("mod", "lib")
    below = path.parent if is_root else path.with_suffix("")
    declared = r"#\[cfg\(test\)\]\s*(?:pub(?:\(crate\))? )?mod (\w+);"
    for name in re.findall(declared, path.read_text()):
        yield below / name


def _names(text: str, place: int) -> Iterator[str]:
    """The first names of a path, or of each path between braces, that begins at `place`."""
    if text[place] != "{":
        yield re.compile(r"\w+").match(text, place)[0]  # type: ignore[index]
        return
    depth, begins = 0, False
    for token in re.finditer(r"[{},]|\w+", text[place:]):
        match token[0]:
            case "{":
                depth += 1
                begins = depth == 1
            case "}":
                depth -= 1
                if depth == 0:
                    return
            case ",":
                begins = depth == 1
            case name if begins:
                yield name
                begins = False


class PythonHouse(House):
    """The modules and packages of a package; an import by name (`import_module`) counts too."""

    def _files(self) -> Iterator[Path]:
        return (path for path in self.folder.rglob("*.py") if path != self.folder / "__init__.py")

    def _used(self, path: Path) -> Iterator[tuple[str, int]]:
        package = self.folder.name
        parents = [package, *path.relative_to(self.folder).parts[:-1]]
        tree = ast.parse(path.read_text(), path)
        imports_by_name = any(_is_import_by_name(node) for node in ast.walk(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name.split(".") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = parents[: len(parents) + 1 - node.level] if node.level else []
                start = start + (node.module.split(".") if node.module else [])
                names = [[*start, alias.name] for alias in node.names]
            elif imports_by_name and isinstance(node, ast.Constant):
                # Whichever text it is given: such a name may come from a constant or an argument.
                names = [node.value.split(".")] if isinstance(node.value, str) else []
            else:
                continue
            for name in names:
                if name[0] == package and len(name) > 1 and name[1] in self.rooms_known:
                    yield name[1], node.lineno

    @property
    def rooms_known(self) -> set[str]:
        return {path.stem for path in self.folder.iterdir() if path.suffix in ("", ".py")}


def _is_import_by_name(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)
    return name in ("import_module", "__import__")


class CHouse(House):
    """Folders of C files, one for each room."""

    def _files(self) -> Iterator[Path]:
        for folder in self.folder.iterdir():
            if folder.is_dir() and folder.name != "engine":
                yield from (path for path in folder.rglob("*") if path.suffix in (".c", ".h"))

    def _folders(self) -> Iterator[Path]:
        return (folder for folder in self.folder.iterdir() if folder.is_dir())

    def _used(self, path: Path) -> Iterator[tuple[str, int]]:
        text = path.read_text()
        for found in re.finditer(r'^#include "(.*?)"', text, re.MULTILINE):
            for base in (path.parent, *self._folders()):
                header = (base / found[1]).resolve()
                if header.is_file() and header.is_relative_to(self.folder):
                    yield self.room_of(header), _line_of(text, found.start())
                    break


class WholeHouse(House):
    """The crates, the Python package and the recorder, each one room: `sim` is in `crates`."""

    CRATE = re.compile(r"\bfencepost_(\w+)")
    BINDING = re.compile(
        r"^\s*(?:from fencepost import .*?\b_core\b|(?:from|import) fencepost\._core\b)",
        re.MULTILINE,
    )

    def _files(self) -> Iterator[Path]:
        for crate in sorted((self.folder / "crates").glob("*/src")):
            yield from crate.rglob("*.rs")
        yield from (self.folder / "python" / "fencepost").rglob("*.py")
        yield from (self.folder / "recorder").rglob("*.[ch]")

    def room_of(self, path: Path) -> str:
        first, second, *_ = path.relative_to(self.folder).parts
        return first if first == "recorder" else f"{first}/{second}"

    def _used(self, path: Path) -> Iterator[tuple[str, int]]:
        text = path.read_text()
        if path.suffix == ".rs":
            text = _RUST_NOISE.sub(_blank, text)
            for found in self.CRATE.finditer(text):
                if (room := f"crates/{found[1]}") in self.rooms:
                    yield room, _line_of(text, found.start())
        elif path.suffix == ".py":
            for found in self.BINDING.finditer(text):
                yield "crates/python", _line_of(text, found.start())


HOUSES: tuple[House, ...] = (
    WholeHouse("the house", ROOT),
    RustHouse("simulator", ROOT / "crates" / "sim" / "src"),
    RustHouse("kernel", ROOT / "crates" / "kernel" / "src"),
    RustHouse("checker", ROOT / "crates" / "checker" / "src"),
    PythonHouse("python", ROOT / "python" / "fencepost"),
    CHouse("recorder", ROOT / "recorder"),
)


def arrows(house: House) -> dict[str, set[str]]:
    """By each room, those that it imports."""
    found: dict[str, set[str]] = {room: set() for room in house.rooms}
    for one in house.imports:
        found[one.of].add(one.to)
    return found


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The largest sets of rooms that all lead to one another (strongly connected components)."""
    reached = {room: _reached(room, arrows) for room in arrows}
    found = []
    left = set(arrows)
    while left:
        room = min(left)
        together = {other for other in reached[room] if room in reached[other]} | {room}
        left -= together
        if len(together) > 1:
            found.append(sorted(together))
    return found


def _reached(room: str, arrows: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = [room]
    while ahead:
        for to in arrows.get(ahead.pop(), set()) - seen:
            seen.add(to)
            ahead.append(to)
    return seen
