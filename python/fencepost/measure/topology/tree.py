"""The files in which a kernel shows its machine, below a folder that is `/` as a rule."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tree:
    """`sys` and `proc` lie in `root`. What is missing is None: kernels differ in what they show."""

    root: Path = Path("/")

    def text(self, path: str | Path) -> str | None:
        """What a file says, without the end of its line."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str | Path) -> int | None:
        """What a file says as a number; `0x` begins a hexadecimal one."""
        try:
            return int(self.text(path) or "", 0)
        except ValueError:
            return None

    def numbers(self, path: str | Path) -> list[int]:
        """A list of the kernel's kind."""
        return listed(self.text(path) or "")

    def entries(self, path: str | Path, pattern: str) -> Iterator[tuple[Path, int]]:
        """Entries of a folder whose name matches, with the number that it has as its first group,
        by that number."""
        try:
            names = [entry.name for entry in (self.root / path).iterdir()]
        except OSError:
            names = []
        found = [(int(match[1]), name) for name in names if (match := re.fullmatch(pattern, name))]
        for number, name in sorted(found):
            yield (self.root / path / name).absolute(), number

    def real(self, path: str | Path) -> Path:
        """Where links lead; a device's folder lies in that of the device it hangs on."""
        return (self.root / path).resolve()


HERE = Tree()

NUMBER_MAX = 65_535


def listed(text: str) -> list[int]:
    """The numbers of a list as `0-3,8`, each once; none if it is no such list, or has numbers that
    no processor, node or count of threads has."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or int(high or low) > NUMBER_MAX:
            return []
        found += range(int(low), int(high or low) + 1)
    return list(dict.fromkeys(found))


def as_list(numbers: list[int]) -> str:
    """Those numbers as such a list; `none` if there are none."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    shown = [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    return ",".join(shown) or "none"
