"""The site of `make docs`: links lead somewhere, nothing comes from outside, phones show it too."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from installed import FENCEPOST, ROOT
from pages import needs_browser, show

sys.path.insert(0, str(ROOT / "docs" / "site"))
import assemble

BIN = FENCEPOST.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the commands that the Makefile has."""
    folder = tmp_path_factory.mktemp("site")
    rule = (ROOT / "Makefile").read_text().partition("\ndocs: setup-dev\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^\t@(\$\(BIN\)/.*)$", rule, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        own = command.replace("$(BIN)", str(BIN)).replace("build/site", str(folder / "pages"))
        words = shlex.split(own.replace("out/site", str(folder / "site")))
        done = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "site"


def html_of(page: Path) -> Path:
    return Path("index.html") if page == assemble.FRONT else page.with_suffix(".html")


@pytest.mark.slow
def test_every_page_and_every_command_is_there_and_in_the_menu(site: Path) -> None:
    front = (site / "index.html").read_text()
    own = [str(html_of(page)) for page in assemble.pages()]
    own += [f"commands/{name}.html" for name in assemble.application.COMMANDS]
    for name in own:
        assert (site / name).is_file()
        assert name == "index.html" or f'href="{name}"' in front


@pytest.mark.slow
def test_nothing_is_fetched_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        fetched = re.findall(
            r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="([^"]*)"', page.read_text()
        )
        assert fetched
        assert [address for address in fetched if "//" in address] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()[^;)]*//", style.read_text()), style


@pytest.mark.slow
def test_tables_of_data_are_linked_from_a_page(site: Path) -> None:
    linked = {
        Path(address).name
        for page in site.rglob("*.html")
        for address in re.findall(r'href="([^"]*_downloads/[^"]*)"', page.read_text())
    }
    tables = {path.name for path in (ROOT / "docs" / "data").iterdir()}
    assert tables and tables - linked == set()


@pytest.mark.slow
def test_the_search_knows_what_pages_say(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    for document in ("docs/crash-consistency", "commands/crash", "docs/machine-keys-dram"):
        assert f'"{document}"' in index


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index", "docs/machine-keys", "commands/compare"])
def test_a_browser_shows_pages_without_scrolling_sideways(
    site: Path, name: str, width: int
) -> None:
    shown = show(site / f"{name}.html", width, "light")
    assert shown.complaints == []
    assert shown.width <= width
    assert len(shown.colours) > 3


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(
    ("name", "width"), [("index", 1280), ("index", 390), ("docs/results", 1280)]
)
def test_code_fits_into_its_boxes(site: Path, name: str, width: int) -> None:
    """Commands at any width, what they print where there is room for it."""
    assert show(site / f"{name}.html", width, "light").boxes == 0


def test_a_link_to_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "ROOT", tmp_path)
    monkeypatch.setattr(assemble, "OTHERS", ())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\n[b](b.md)\n")
    (tmp_path / "README.md").write_text("# R\n\n[a](docs/a.md)\n")
    with pytest.raises(assemble.BrokenLink, match=r"docs/a.md: \[b\]\(b.md\): there is no b.md"):
        assemble.assemble(tmp_path / "site")


def test_links_lead_to_what_the_site_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "ROOT", tmp_path)
    monkeypatch.setattr(assemble, "OTHERS", ())
    (tmp_path / "docs" / "data").mkdir(parents=True)
    (tmp_path / "docs" / "data" / "a.csv").write_text("a\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "README.md").write_text("# I\n")
    (tmp_path / "docs" / "a.md").write_text(
        "[r](../README.md#x) [d](data/a.csv) [f](data) [i](../inner/README.md#y)\n"
        "```\n[code](nowhere)\n```\n"
    )
    (tmp_path / "README.md").write_text("# R\n")
    assemble.assemble(tmp_path / "site")
    assert (tmp_path / "site" / "docs" / "a.md").read_text() == (
        "[r](../index.md#x) [d](data/a.csv) f (`docs/data` in the repository)"
        " [i](../inner/README.md.txt)\n```\n[code](nowhere)\n```\n"
    )
    assert (tmp_path / "site" / "docs" / "data" / "a.csv").read_text() == "a\n"
    assert (tmp_path / "site" / "inner" / "README.md.txt").read_text() == "# I\n"
