"""A TOML file whose mistakes are told with file, line and key, as those of machine files are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fencepost import _core, documents
from fencepost._core import InputError, there_is_no

Scalar = bool | int | float | str


@dataclass(frozen=True)
class Node:
    """A value of the file, and where it stands."""

    file: str
    key: str  # dotted, as it is named in messages; empty for the whole file
    tree: dict[str, Any]  # of `_core.toml_read`

    @classmethod
    def read(cls, path: Path) -> Node:
        """The whole file; raises `InputError` for a syntax error."""
        return cls.parsed(documents.read_text(path), str(path))

    @classmethod
    def parsed(cls, text: str, file: str) -> Node:
        """The same of a text that is called `file` in messages."""
        try:
            return cls(file, "", json.loads(_core.toml_read(text)))
        except InputError as error:
            raise InputError(f"{file}:{error}") from None

    def refuse(self, why: str) -> NoReturn:
        """Raises `InputError` about this value."""
        named = f"{self.key}: " if self.key else ""
        raise InputError(f"{self.file}:{self.tree['line']}: {named}{why}")

    def table(self, known: Collection[str] | None = None) -> dict[str, Node]:
        """Its members; refuses what is no table, and keys that are not `known`."""
        if "table" not in self.tree:
            self.refuse("it has to be a table")
        members = {
            key: Node(self.file, f"{self.key}.{key}" if self.key else key, tree)
            for key, tree in sorted(self.tree["table"].items(), key=lambda one: one[1]["line"])
        }
        for key, node in members.items():
            if known is not None and key not in known:
                node.refuse(there_is_no("key", key, sorted(known)))
        return members

    @property
    def is_table(self) -> bool:
        """Whether it has members."""
        return "table" in self.tree

    @property
    def is_array(self) -> bool:
        """Whether it has elements."""
        return "array" in self.tree

    def elements(self) -> list[Node]:
        """Those of an array; a value alone counts as an array of one."""
        if "array" not in self.tree:
            return [self]
        return [Node(self.file, self.key, tree) for tree in self.tree["array"]]

    @property
    def value(self) -> Any:
        """As Python has it: scalars, lists and dictionaries."""
        if "table" in self.tree:
            return {key: node.value for key, node in self.table().items()}
        if "array" in self.tree:
            return [node.value for node in self.elements()]
        return self.tree["value"]

    def scalar(self) -> Scalar:
        """A value that is neither table nor array."""
        value = self.tree.get("value")
        if not isinstance(value, bool | int | float | str):
            self.refuse("it has to be a number, a text, true or false")
        return value

    def text(self) -> str:
        """Refuses what is no text."""
        value = self.tree.get("value")
        if not isinstance(value, str):
            self.refuse("it has to be a text")
        return value

    def texts(self) -> list[str]:
        """One text or an array of texts."""
        return [node.text() for node in self.elements()]

    def whole(self, least: int, most: int) -> int:
        """A whole number within these bounds."""
        value = self.tree.get("value")
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(f"it has to be a whole number from {least:,} to {most:,}")
        return value

    def number(self, least: float, most: float) -> float:
        """A number within these bounds."""
        value = self.tree.get("value")
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse("it has to be a number")
        if not least <= value <= most:
            self.refuse(f"it has to be from {least:g} to {most:g}")
        return float(value)

    def choice(self, choices: Collection[str]) -> str:
        """One of these texts."""
        value = self.text()
        if value not in choices:
            self.refuse(there_is_no("choice", value, sorted(choices)))
        return value

    def __iter__(self) -> Iterator[Node]:
        return iter(self.elements())
