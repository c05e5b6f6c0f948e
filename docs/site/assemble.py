"""Lays out what Sphinx makes the site of: `.venv/bin/python docs/site/assemble.py FOLDER`.

The README is the front page; pages of docs/ lie beside it as in the repository, with what they link
to; a page for each command comes from the command line itself. Raises `BrokenLink` for a link to
nothing; Sphinx itself finds headings that are not there.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from markdown_it import MarkdownIt
from typer.cli import get_docs_for_click
from typer.main import get_command

from fencepost.cli import application, help_text

ROOT = Path(__file__).resolve().parents[2]
FRONT = Path("README.md")
FRONT_HERE = Path("index.md")

# What is in the menu under which heading; further pages of docs/ come last.
MENU = {
    "Begin": (
        "tutorial-architect",
        "tutorial-persistence",
        "tutorial-pool",
        "tutorial-research",
        "pages",
    ),
    "Use": (
        "results",
        "explain",
        "whatif",
        "regions",
        "timeline",
        "latency",
        "traffic",
        "sampling",
        "placement",
        "python",
        "performance",
        "deadlocks",
    ),
    "Machines": ("machines", "fabrics", "machine-models", "machine-keys", "calibration"),
    "Power cuts": (
        "crash-consistency",
        "crash-operations",
        "crash-examples",
        "litmus",
        "prove",
        "power",
    ),
    "Systems": (
        "persist-buffer",
        "primitives",
        "stream",
        "transport",
        "type2",
        "coherence",
        "reclaim",
    ),
    "Your machine": ("measure", "channel"),
    "Evidence": ("validation", "studies", "pcs", "streamer", "memchannel", "waiting"),
}
OTHERS = ("docs/development.md", "ARCHITECTURE.md", "workloads/primitives/README.md")

LINK = re.compile(r"(?P<before>!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\()(?P<target>[^)\s]+)\)")


class BrokenLink(Exception):
    """A page links to what is not there; the text says which."""


def pages() -> list[Path]:
    """The pages of the site that are in the repository, by their paths there."""
    docs = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md"))
    return [FRONT, *docs, *(Path(name) for name in OTHERS if not name.startswith("docs/"))]


def assemble(folder: Path) -> None:
    """Makes the folder anew."""
    shutil.rmtree(folder, ignore_errors=True)
    commands = dict(command_pages())
    for page in pages():
        text = _with_links(page, folder)
        if page == FRONT:
            text += f"\n{_menu(list(commands))}"
        _write(folder / _place_here(page), text)
    for name, text in commands.items():
        _write(folder / "commands" / f"{name}.md", text)


def command_pages() -> Iterator[tuple[str, str]]:
    """The pages of the commands, in the order in which a user meets them: name and Markdown."""
    application.load([])
    group = get_command(application.app)
    context = typer.Context(group, info_name="fencepost")
    assert isinstance(group, help_text.Group)
    for name in group.list_commands(context):
        command = group.commands[name]
        inner = typer.Context(command, info_name=name, parent=context)
        yield name, get_docs_for_click(obj=command, ctx=inner, name=name, call_prefix="fencepost")


def _with_links(page: Path, folder: Path) -> str:
    """The page with links as they are on the site. What it links to, if that is no page, is copied
    beside it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = text.split("\n")
    prose = set(range(len(lines))) - _lines_of_code(text)
    for number in prose:
        lines[number] = LINK.sub(lambda link: _link(page, link, folder), lines[number])
    return "\n".join(lines)


def _lines_of_code(text: str) -> set[int]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return {
        line
        for token in tokens
        if token.type in ("fence", "code_block") and token.map
        for line in range(*token.map)
    }


def _link(page: Path, link: re.Match[str], folder: Path) -> str:
    name, hash_mark, heading = link["target"].partition("#")
    if not name or "://" in name or name.startswith("mailto:"):
        return link[0]
    there = (ROOT / page.parent / name).resolve()
    if not there.is_relative_to(ROOT) or not there.exists():
        raise BrokenLink(f"{page}: {link[0]}: there is no {name}")
    target = there.relative_to(ROOT)
    if there.is_dir():
        return f"{link['text']} (`{target}` in the repository)"
    if target == FRONT:
        up = "../" * (len(page.parts) - 1)
        return f"{link['before']}{up}{FRONT_HERE}{hash_mark}{heading})"
    if target in pages():
        return link[0]
    copy = folder / target
    copy.parent.mkdir(parents=True, exist_ok=True)
    if there.suffix == ".md":  # no page of the site: its text as it is
        target = target.with_suffix(".md.txt")
        copy = folder / target
        heading = hash_mark = ""
        name += ".txt"
    shutil.copyfile(there, copy)
    return f"{link['before']}{name}{hash_mark}{heading})"


def _menu(commands: list[str]) -> str:
    listed = {name for names in MENU.values() for name in names}
    own = {page.stem for page in pages() if page.parts[0] == "docs"}
    parts = {
        head: [f"docs/{name}" for name in names if name in own] for head, names in MENU.items()
    }
    others = [name.removesuffix(".md") for name in OTHERS if Path(name) in pages()]
    further = [f"docs/{name}" for name in sorted(own - listed) if f"docs/{name}" not in others]
    parts |= {"Commands": [f"commands/{name}" for name in commands], "Inside": further + others}
    return "\n".join(
        "\n".join(["```{toctree}", ":hidden:", f":caption: {head}", "", *documents, "```", ""])
        for head, documents in parts.items()
    )


def _place_here(page: Path) -> Path:
    return FRONT_HERE if page == FRONT else page


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """1 if a link leads nowhere."""
    [folder] = map(Path, sys.argv[1:])
    try:
        assemble(folder)
    except BrokenLink as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
