"""Markdown with one sentence a line, so that a change of a page shows as the sentences it changes.

Every page that is written goes through `one_a_line`; what stands on the page stays the same.
"""

import re
from collections.abc import Iterator

# What ends in a full stop and no sentence; of the second kind only where a number follows.
ABBREVIATIONS = {"e.g", "i.e", "cf", "vs", "al", "approx", "resp"}
NUMBERED = {"no", "fig", "sec", "p", "pp", "vol", "ch"}

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+)(?=\S)")
# Headings, tables, quotations, HTML, links' definitions, lines.
_VERBATIM = re.compile(r"\s*(#{1,6}\s|\||>|<[!/a-z]|\[[^\]]+\]:\s|(-{3,}|\*{3,}|={3,})\s*$)")
# What would be a list, a heading, a quotation or a table at the beginning of a line.
_MARKUP = re.compile(r"(\d+[.)]|[-+*]|#{1,6}|=+)(\s|$)|[>|]|~~~|```")
# Inside of code and links no sentence ends.
_CODE_OR_LINK = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|\[[^\[\]]*\]\([^()\s]*\)")
_END = re.compile(r"[.!?][)\"”’*_\]]*\s+(?=\S)")
_CODE_INDENT = 4


def one_a_line(page: str) -> str:
    """The page with a line for each sentence of its paragraphs and list items."""
    return "\n".join(_lines(page.split("\n")))


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, which is one line."""
    masked = _CODE_OR_LINK.sub(lambda found: "x" * len(found.group()), text)
    found, start = [], 0
    for end in _END.finditer(masked):
        if _is_end(masked[: end.start() + 1], masked[: end.end()], text[end.end() :]):
            found.append(text[start : end.end()].rstrip())
            start = end.end()
    return [*found, text[start:]]


def _is_end(until: str, closed: str, behind: str) -> bool:
    """Whether a sentence ends with the mark that `until` ends with.

    `closed` has the quotes and brackets too that follow it; `behind` is what comes then.
    """
    if closed.count("(") > closed.count(")") or _MARKUP.match(behind):
        return False
    if behind[0].isalpha() and not behind[0].isupper():
        return False
    word = re.split(r"[\s(\[]", until)[-1].removesuffix(".")
    is_initial = len(word) == 1 and word.isupper()
    is_abbreviation = word.lower() in ABBREVIATIONS or word.endswith(".")
    is_numbered = word.lower() in NUMBERED and behind[0].isdigit()
    return not (until.endswith(".") and (is_initial or is_abbreviation or is_numbered))


def _lines(lines: list[str]) -> Iterator[str]:
    contents: list[int] = []  # where the text of each list item around this begins
    paragraph: list[str] = []
    lead, indent = "", ""
    is_fenced, is_after_blank, is_code = False, True, False

    def flush() -> Iterator[str]:
        if paragraph:
            text = " ".join(line.strip() for line in paragraph)
            for number, sentence in enumerate(sentences(text)):
                yield f"{indent if number else lead}{sentence}"
            paragraph.clear()

    for line in lines:
        is_fence = bool(_FENCE.match(line))
        depth = len(line) - len(line.lstrip())
        item = _ITEM.match(line)
        if line.strip() and not is_fenced and (is_after_blank or item or is_fence):
            while contents and depth < contents[-1]:
                contents.pop()
        if is_fenced or is_fence:
            yield from flush()
            yield line
            is_fenced ^= is_fence
            is_after_blank = False
            continue
        if not line.strip():
            yield from flush()
            yield line
            is_after_blank = True
            continue
        base = contents[-1] if contents else 0
        is_code = depth >= base + _CODE_INDENT and (is_after_blank or is_code) and not paragraph
        is_after_blank = False
        if is_code or _VERBATIM.match(line):
            yield from flush()
            yield line
        elif item:
            yield from flush()
            lead, indent = item.group(1), " " * len(item.group(1))
            contents.append(len(item.group(1)))
            paragraph.append(line[item.end() :])
        else:
            if not paragraph:
                lead = indent = line[:depth]
            paragraph.append(line)
    yield from flush()
