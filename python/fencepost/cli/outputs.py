"""What a command is about to write, looked at before it does any work.

A mistyped name must not cost the input: a record may have taken hours to make.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from fencepost._core import InputError

Outputs = Mapping[str, Path | None]


def check(outputs: Outputs, inputs: Iterable[Path] = ()) -> None:
    """Refuses an output that is an input, or another output; `outputs` are named by option."""
    wanted = [(option, path) for option, path in outputs.items() if path is not None]
    for number, (option, path) in enumerate(wanted):
        for given in inputs:
            if _is_same(path, given):
                raise InputError(
                    f"{option} {path}: that would overwrite the input {given}; name another file"
                )
        for other, earlier in wanted[:number]:
            if _is_same(path, earlier):
                raise InputError(f"{option} {path}: {other} {earlier} is the same file")


def check_svg(option: str, path: Path | None) -> None:
    """Refuses a picture whose name promises another format than the one we write."""
    if path is not None and path.suffix.lower() != ".svg":
        raise InputError(f"{option} {path}: pictures are SVG; name it {path.with_suffix('.svg')}")


def executable(program: list[str]) -> list[Path]:
    """The file of that program, if there is one; as an input."""
    found = shutil.which(program[0])
    return [Path(found)] if found else []


def _is_same(path: Path, other: Path) -> bool:
    """Whether both name one file, also by links, and also where it does not exist yet."""
    try:
        return path.samefile(other)
    except OSError:
        return path.resolve() == other.resolve()
