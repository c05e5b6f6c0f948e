"""The rooms of the code: imports run one way."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rooms import picture
from rooms.imports import HOUSES, ROOT, House, PythonHouse, arrows, circles

INCLUDE = re.compile(r'^#include (?:"(.*?)"|<(.*?)>)', re.MULTILINE)
# `folder/` or `path/file.rs`
NAMED = re.compile(r"`([\w./-]+(?:/|\.(?:rs|py|pyi|c|h|toml|md|csv|j2)))`")
MADE = {"out/", "build/"}  # by commands
ENGINES = re.compile(r"dr_|dr(mgr|reg|util|wrap|syms|vector)\b|qemu")


@pytest.mark.parametrize("house", HOUSES, ids=lambda house: house.name)
def test_no_rooms_import_each_other_in_a_circle(house: House) -> None:
    found = circles(arrows(house))
    ways = [
        f"{one.file}:{one.line}: {one.of} uses {one.to}"
        for circle in found
        for one in house.imports
        if {one.of, one.to} <= set(circle)
    ]
    assert found == [], "\n".join(ways)


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []


@pytest.mark.parametrize(
    ("house", "of", "to"),
    [
        ("simulator", "core", "cache"),  # crate::cache::{…}
        ("simulator", "host", "core"),
        ("kernel", "queue", "heap"),
        ("python", "studies", "validation"),
        ("the house", "crates/checker", "crates/sim"),
        ("the house", "python/fencepost", "crates/python"),
        (
            "recorder",
            "client",
            "encoding",
        ),  # found through the folders that headers are searched in
    ],
)
def test_imports_that_are_there_are_found(house: str, of: str, to: str) -> None:
    [own] = [each for each in HOUSES if each.name == house]
    assert to in arrows(own)[of]


@pytest.mark.parametrize(
    "text",
    [
        'from importlib import import_module\nimport_module("house.above")\n',
        'import importlib\nNAME = "house.above"\nimportlib.import_module(NAME)\n',
        'import importlib\nimportlib.import_module(f"house.above.{1}")\n',
        '__import__("house.above.inside")\n',
    ],
)
def test_an_import_by_name_is_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "above.py").write_text("from house import below\n")
    (tmp_path / "house" / "below.py").write_text(text)
    house = PythonHouse("made up", tmp_path / "house")
    assert circles(arrows(house)) == [["above", "below"]]


def test_the_encoding_includes_no_engine() -> None:
    """Of quoted headers only its own, the record format's and the compressor's; of others only
    those of the C library and the kernel."""
    folder = ROOT / "recorder"
    own = {path.name for room in ("encoding", "format") for path in (folder / room).glob("*.h")}
    files = [*(folder / "encoding").glob("*.[ch]")]
    assert len(files) > 50
    strangers = [
        f"{path.name}: {quoted or angled}"
        for path in files
        for quoted, angled in INCLUDE.findall(path.read_text())
        if (quoted and quoted not in own | {"zstd.h"}) or ENGINES.match(angled)
    ]
    assert strangers == []


def test_the_pictures_of_the_rooms_are_those_of_the_imports() -> None:
    again = ".venv/bin/python -m tests.rooms --write"
    text = ""
    for path in picture.PAGES:
        text += (page := path.read_text())
        assert picture.renewed(page) == page, f"renew it: {again}"
    drawn = re.findall("<!-- rooms of (.*) -->", text)
    assert sorted(drawn) == ["kernel", "python", "recorder", "simulator", "the house"]


def test_what_the_architecture_names_is_there() -> None:
    """Files and folders as the page names them: by the end of their path."""
    shown = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [Path(line) for line in shown.stdout.splitlines()]
    endings = set()
    for path in files:
        for at in range(len(path.parts)):
            endings.add("/".join(path.parts[at:]))
            endings.update(
                "/".join([*path.parts[at:end], ""]) for end in range(at + 1, len(path.parts))
            )
    pages = [ROOT / "docs" / "design.md", *picture.PAGES]
    whole = "".join(page.read_text().replace("](../", "](") for page in pages)
    text = re.sub("```.*?```", "", whole, flags=re.DOTALL)
    named = {*re.findall(NAMED, text), *re.findall(r"\]\(([^)#:]+)", text)}
    assert len(named) > 100
    assert sorted(named - endings - MADE) == []


def test_an_arrow_that_others_imply_is_not_drawn() -> None:
    reduced = picture.without_implied({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    assert reduced == {"a": {"b"}, "b": {"c"}, "c": set()}
