"""How files are laid out: length of lines, length of files, one sentence of Markdown a line.

.venv/bin/python -m tests.tidy            what is not so
.venv/bin/python -m tests.tidy --write    the same, with Markdown put right
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fencepost.sentences import one_a_line

ROOT = Path(__file__).parent.parent

FOLDERS = (
    *("crates", "docs", "experiments", "fuzz", "measure", "python", "recorder", "setup"),
    *("tests", "workloads"),
)
SUFFIXES = (".rs", ".c", ".h", ".cpp", ".py", ".pyi")
# The programs of the study of a host, as they were published.
NOT_OURS = ("experiments/host/programs",)
BUILT = {"target", "build", "out", "__pycache__"}

COLUMNS_MAX = 120
LINES_MAX = 600
LONG_BECAUSE = re.compile(r"^\s*(//[/!]?|#|\*|/\*) ?Long because: \S", re.MULTILINE)

# What a user reads stays whole, so that one finds it; tables have a row a line.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_OPEN_QUOTE = re.compile(r'"(?:[^"\\]|\\.)*\\?$')
_CONTINUED = re.compile(r"(^\s*|[^\\])\\$|\\n\\$")
_TABLE = re.compile(r"\s*//[/!] \|")


def sources() -> Iterator[Path]:
    """Source files of ours."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            own = path.relative_to(ROOT)
            is_ours = not BUILT & set(own.parts) and not str(own).startswith(NOT_OURS)
            if path.suffix in SUFFIXES and is_ours:
                yield path


def pages() -> list[Path]:
    """Pages in Markdown, and the texts that studies make pages of."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if not name.startswith(NOT_OURS)]


def too_wide(path: Path) -> Iterator[str]:
    """Its lines that are too long."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > COLUMNS_MAX and not is_excused(line):
            yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"


def is_excused(line: str) -> bool:
    """Whether a long line is a row of a table, or long for a text in quotes."""
    if line.lstrip().startswith(("//", "#", "*")):
        return bool(_TABLE.match(line))
    if _CONTINUED.search(line):
        return True
    return len(_OPEN_QUOTE.sub('""', _QUOTED.sub('""', line))) <= COLUMNS_MAX


def is_long_without_reason(path: Path) -> bool:
    """Whether it is a long file that does not say why."""
    text = path.read_text(encoding="utf-8")
    return text.count("\n") > LINES_MAX and not LONG_BECAUSE.search(text)


def loose_lines(path: Path) -> Iterator[str]:
    """Where a page has not one sentence a line."""
    text = path.read_text(encoding="utf-8")
    own, right = text.splitlines(), one_a_line(text).splitlines()
    for number, line in enumerate(own, 1):
        if number > len(right) or line != right[number - 1]:
            yield f"{path.relative_to(ROOT)}:{number}: from here on not one sentence a line"
            return


def main() -> int:
    """1 if something is not as it should be."""
    if "--write" in sys.argv[1:]:
        for page in pages():
            page.write_text(one_a_line(page.read_text(encoding="utf-8")), encoding="utf-8")
    found = [line for path in sources() for line in too_wide(path)]
    found += [line for page in pages() for line in loose_lines(page)]
    found += [f"{path}: too long" for path in sources() if is_long_without_reason(path)]
    print("\n".join(found) or "all is tidy")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
