"""Markdown of the study's page as HTML for its report, so that both say the same.

What the report draws itself takes the place of pictures, and links to other pages, which a single
file does not have, become their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


@dataclass(frozen=True)
class Picture:
    """Where a picture stands."""

    name: str  # its file
    alt: str  # what it shows


def pieces(text: str) -> list[Markup | Picture]:
    """The HTML up to the first picture, that picture, the HTML behind it, and so on."""
    parser = _parser()
    environment: dict[str, Any] = {}
    found: list[Markup | Picture] = []
    pending: list[Token] = []

    def flush() -> None:
        if pending:
            html = parser.renderer.render(pending, parser.options, environment)
            found.append(Markup(html))
            pending.clear()

    tokens = parser.parse(text, environment)
    at = 0
    while at < len(tokens):
        if picture := _picture(tokens[at : at + 3]):
            flush()
            found.append(picture)
            at += 3
        else:
            pending.append(tokens[at])
            at += 1
    flush()
    return found


def line(text: str) -> Markup:
    """The HTML of words within a paragraph."""
    return Markup(_parser().renderInline(text))


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", lambda *_: '<div class="wide"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("link_close", lambda *_: "</a>")
    return parser


def _picture(tokens: Sequence[Token]) -> Picture | None:
    """A picture that is a paragraph of its own."""
    if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
        return None
    children = tokens[1].children or []
    if [child.type for child in children] != ["image"]:
        return None
    return Picture(str(children[0].attrs["src"]), children[0].content)


def _link(_renderer: object, tokens: Sequence[Token], at: int, *_: object) -> str:
    target = str(tokens[at].attrs["href"])
    return f'<a href="{target}">' if target.startswith("#") else "<a>"
