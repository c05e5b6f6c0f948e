"""A page of rows as files of `docs/`: the front page, those of its parts, and long tables as CSV.

A page comes as one text with marks in it (`rows/page.py`); each part keeps its place in that text,
so that the order of the pages is that of the study.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from fencepost.plural import many
from fencepost.rows.page import DATA_HEADING, EVERY_POINT, OWN_PAGE, POINTS

WORDS_MAX = 1_500  # of a page; of one with more, long tables become files beside it
LONG = 24  # rows, of which a long table has more

# Pictures are built, not committed, but for those that README shows.
COMMITTED = frozenset(
    {"pcs-fig5.svg", "streamer-roofline.svg", "memchannel-victim.svg", "type2-host-memory.svg"}
)
_DATA = "data"  # the folder beside a page for tables that nobody reads from end to end
_PICTURE = re.compile(r"^!\[(.*)\]\(([\w.-]+\.svg)\)$", re.MULTILINE)
_OWN_PAGE = re.compile(OWN_PAGE.format(r"([\w-]+)(?:: (.*?))?"))
_RULE = re.compile(r"(\| ?:?-+:? ?)+\|")  # below the head of a table
_NO_LETTERS = re.compile(r"[^a-z0-9]+")


def files(name: str, text: str, pictures: str) -> dict[str, str]:
    """What a page becomes in `docs/`: the front page, the pages of its parts, and CSV files.

    The rows of all sections are one file; each long table is one of its own. `pictures` is the
    folder where the command that makes the page puts those that are not committed. The keys are
    paths below `docs/`.
    """
    data = f"{_DATA}/{name}.csv"
    lines: list[str] = []
    points: list[list[str]] = []
    written: dict[str, str] = {}
    section, rest = "", iter(with_pictures_apart(text, pictures).splitlines())
    for one in rest:
        if one.startswith("## "):
            section = one.removeprefix("## ")
        if one in (EVERY_POINT, POINTS):
            head, *rows = _rows_of_table(rest)
            points = points or [["section", *head[:-1], "marks"]]
            points += [[section, *cells] for cells in rows]
            if one == EVERY_POINT:
                lines += [f"[Every point]({data}): {many(len(rows), 'row')} of this section.", ""]
        elif one.startswith(DATA_HEADING):
            what = one.removeprefix(DATA_HEADING)
            path = f"{_DATA}/{name}-{_slug(what)}.csv"
            written[path] = _csv(list(_rows_of_table(rest)))
            lines += [f"[{what}]({path})", ""]
        else:
            lines.append(one)
    pages: dict[str, str] = {}
    for own, page in _parts_apart(name, lines).items():
        pages[f"{own}.md"] = _long_tables_apart(own, page, written)
    return pages | ({data: _csv(points)} if points else {}) | written


def with_pictures_apart(text: str, folder: str) -> str:
    """A page that says where its pictures are drawn, in the place of those that are not committed.

    `folder` is where the command that makes the page puts them.
    """

    def place(picture: re.Match[str]) -> str:
        title, name = picture.groups()
        return picture[0] if name in COMMITTED else f"*{title}*: drawn as `{folder}/{name}`"

    return _PICTURE.sub(place, text)


def _parts_apart(name: str, lines: list[str]) -> dict[str, list[str]]:
    """The lines of each page by its name: the front page, and those that sections are marked for.

    A page with a title of its own keeps the headings of its sections; otherwise its only section
    becomes the page.
    """
    front = lines[0].removeprefix("# ")
    pages: dict[str, list[str]] = {name: []}
    for section in _sections(lines):
        mark = next((found for one in section if (found := _OWN_PAGE.fullmatch(one))), None)
        if mark is None:
            pages[name] += section
            continue
        own, title = mark.groups()
        body = [one for one in section if one != mark[0]]
        body = body[:1] + body[2:]  # without the empty line below the mark
        up = [f"A part of [{front}]({name}.md).", ""]
        if not title:
            pages[own] = [body[0].removeprefix("#"), "", *up, *_raised(body[2:])]
        elif own in pages:
            pages[own] += body
        else:
            pages[own] = [f"# {title}", "", *up, *body]
    return pages


def _sections(lines: list[str]) -> Iterator[list[str]]:
    """What is before the first heading of the second level, and what each of these begins."""
    section: list[str] = []
    for one, is_code in _with_code(lines):
        if one.startswith("## ") and not is_code:
            yield section
            section = []
        section.append(one)
    yield section


def _raised(lines: list[str]) -> list[str]:
    """With each heading one level up."""
    return [
        one.removeprefix("#") if one.startswith("###") and not is_code else one
        for one, is_code in _with_code(lines)
    ]


def _with_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Each line with whether it is code."""
    is_code = False
    for one in lines:
        is_code ^= one.startswith("```")
        yield one, is_code


def _long_tables_apart(name: str, lines: list[str], written: dict[str, str]) -> str:
    """The page; of one with too many words, long tables become files in `written`, and links."""
    whole = "\n".join(lines).rstrip("\n") + "\n"
    if len(whole.split()) <= WORDS_MAX:
        return whole
    kept: list[str] = []
    heading = ""
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        if end - at - 2 > LONG:
            path = _free(f"{_DATA}/{name}{heading and '-'}{heading}", written)
            table = list(_rows_of_table(iter(lines[at:end])))
            written[path] = _csv(table)
            kept.append(f"[The table]({path}) has {many(len(table) - 1, 'row')}.")
        else:
            if lines[at].startswith("##"):
                heading = _slug(lines[at])
            end = max(end, at + 1)
            kept += lines[at:end]
        at = end
    return "\n".join(kept).rstrip("\n") + "\n"


def _free(path: str, written: dict[str, str]) -> str:
    """The path of a CSV file that is not written yet, with a number if need be."""
    number, found = 1, f"{path}.csv"
    while found in written:
        number += 1
        found = f"{path}-{number}.csv"
    return found


def _slug(title: str) -> str:
    return _NO_LETTERS.sub("-", title.lower().replace("'", "")).strip("-")


def _csv(rows: list[list[str]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()


def _rows_of_table(lines: Iterator[str]) -> Iterator[list[str]]:
    """The cells of a Markdown table that comes next, with its head and the line behind it."""
    has_begun = False
    for one in lines:
        if not one.startswith("|"):
            if has_begun:
                return
            continue
        if not _RULE.fullmatch(one):
            yield [cell.strip().replace("**", "") for cell in one.strip("|").split(" |")]
        has_begun = True
