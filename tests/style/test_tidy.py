"""Lines of source have a limit, Markdown has one sentence a line, long files say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import tidy
from fencepost.sentences import one_a_line, sentences

# Files that are to become shorter, or to say why they do not. None may be added.
LONG: set[str] = set()


def name(path: Path) -> str:
    return str(path.relative_to(tidy.ROOT))


def test_no_line_of_source_is_too_wide() -> None:
    paths = list(tidy.sources())
    assert len(paths) > 400
    assert [line for path in paths for line in tidy.too_wide(path)] == []


def test_a_long_file_says_why() -> None:
    long = {name(path) for path in tidy.sources() if tidy.is_long_without_reason(path)}
    assert long - LONG == set(), "say why (`Long because: …`), or make two files of it"
    assert LONG - long == set(), "these are not on the list any more"


@pytest.mark.parametrize("page", tidy.pages(), ids=name)
def test_pages_have_one_sentence_a_line(page: Path) -> None:
    again = ".venv/bin/python -m tests.tidy --write"
    assert list(tidy.loose_lines(page)) == [], f"type: {again}"


@pytest.mark.parametrize("page", tidy.pages(), ids=name)
def test_pages_that_are_laid_out_show_the_same(page: Path) -> None:
    """As they are, and with lines that break elsewhere."""
    text = page.read_text()
    fences = [number for number, line in enumerate(text.split("\n")) if "```" in line]
    wrapped = "\n".join(
        line if sum(fence <= number for fence in fences) % 2 else _wrapped(line)
        for number, line in enumerate(text.split("\n"))
    )
    assert _shown(wrapped) == _shown(text)
    assert one_a_line(wrapped) == one_a_line(text)
    assert one_a_line(one_a_line(text)) == one_a_line(text)


def _wrapped(line: str) -> str:
    """A line of prose in two, where a space is."""
    if not line[:1].isalpha() or "`" in line or "|" in line:
        return line
    before, space, behind = line.partition(" ")
    if not behind[:1].isalpha():
        return line
    return f"{before}\n{behind}" if space else line


def _shown(text: str) -> str:
    """The page as HTML; a line break in a paragraph is a space."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token in tokens:
        for child in token.children or []:
            if child.type == "softbreak":
                child.type, child.content = "text", " "
    renderer = MarkdownIt("commonmark").enable("table").renderer
    return str(renderer.render(tokens, MarkdownIt("commonmark").options, {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It takes 2.5 ns. 16 entries do.", ["It takes 2.5 ns.", "16 entries do."]),
        ("See e.g. Pond, cf. Fig. 3. Then go on.", ["See e.g. Pond, cf. Fig. 3.", "Then go on."]),
        ("(It is. So.) Then.", ["(It is. So.)", "Then."]),
        ("`a. B` is code. `c` too.", ["`a. B` is code.", "`c` too."]),
        ("A [link. Here](x.md). Next.", ["A [link. Here](x.md).", "Next."]),
        ("**Bold.** Then *more.* End.", ["**Bold.**", "Then *more.*", "End."]),
        ("of the file. `x` it is, as Smith says", ["of the file.", "`x` it is, as Smith says"]),
        ("by A. Smith. Then", ["by A. Smith.", "Then"]),
        ("It has three. 1. is no list", ["It has three. 1. is no list"]),
        ("It is so. - is no item", ["It is so. - is no item"]),
        ("what follows. then goes on", ["what follows. then goes on"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_what_is_no_paragraph_stays_as_it_is() -> None:
    page = """# A title. With two

| a. B | c |
|---|---|
| One. Two. | Three. |

- An item. Of two
  lines.

  Its second paragraph. Also two.

      code. In an item
1. A number. Another
   line

```text
Code. Here.
```

    More code. Here.

<!-- a comment. Here -->
The end. Of
it.
"""
    assert (
        one_a_line(page)
        == """# A title. With two

| a. B | c |
|---|---|
| One. Two. | Three. |

- An item.
  Of two lines.

  Its second paragraph.
  Also two.

      code. In an item
1. A number.
   Another line

```text
Code. Here.
```

    More code. Here.

<!-- a comment. Here -->
The end.
Of it.
"""
    )


def test_what_is_too_wide_and_what_is_excused(tmp_path: Path) -> None:
    long = "x" * 121
    assert not tidy.is_excused(f"// {long}")
    assert not tidy.is_excused(f'/// "{long}"')
    assert not tidy.is_excused(f'let {long} = "x";')
    assert tidy.is_excused(f'    let x = "{long}";')
    assert tidy.is_excused(f'    let x = "{long} \\')
    assert tidy.is_excused(f"//! | {long} |")
