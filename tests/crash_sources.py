"""Lines of the programs that tests of `crash` explore: as the source has them, and as found."""

from pathlib import Path
from typing import Any


def line_of(program: Path, remark: str) -> int:
    """The line that ends with that remark."""
    text = program.read_text().splitlines()
    return 1 + next(number for number, line in enumerate(text) if line.endswith(f"/* {remark} */"))


def line(store: dict[str, Any]) -> int:
    """The program's line that a store of a result lies in."""
    source = store["source"]
    found: int = source["frames"][source["program_frame"]]["line"]
    return found
