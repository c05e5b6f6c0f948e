"""Rows laid out for a person: Markdown pages, and the texts that tables and reports share.

`rows/layout.py` makes files of a page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fencepost.plural import many
from fencepost.rows.row import FOLLOWS, QUALITIES, SET, Row, last_line
from fencepost.rows.tolerance import Figure

COLUMNS = ("condition", "metric", "expected", "ours", "difference", "may differ by", "")


MANY = 4  # rows of one metric, from which on a list of them says what they have in common

MANY_ROWS = 8  # of one reason, from which on only their metrics are listed
MANY_METRICS = 12  # from which on a summary names only those with a miss

# What a reason may begin with, so that misses are counted by it.
_CAUSE = re.compile(r"\*\*([^*]+)\.\*\* ")
# Marks in the text of a page, which `rows/layout.py` reads: a section that is a page of its own,
# the table of a section's rows, and a table that only a program reads.
OWN_PAGE = "<!-- page: {} -->"
EVERY_POINT = "### Every point"
POINTS = "### Points"  # the same, where the page says elsewhere where they are
DATA_HEADING = "### Data: "


@dataclass(frozen=True)
class Picture:
    """An SVG with the title that stands under it."""

    title: str
    svg: str


@dataclass(frozen=True)
class Page:
    """A page beside the front page, for one section or for several in a row."""

    name: str  # of its file, without the ending
    title: str = ""  # none: that of its only section
    covers: str = ""  # what the front page says is on it; none: its title alone

    @property
    def mark(self) -> str:
        """What stands below the heading of each of its sections."""
        return OWN_PAGE.format(f"{self.name}: {self.title}" if self.title else self.name)


@dataclass(frozen=True)
class Section:
    """A part of a page: rows, and the tables (Markdown) and pictures (by file) beside them."""

    title: str
    description: str
    command: str  # that makes it again; empty where there is nothing to make
    rows: list[Row]
    tables: list[str] = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)
    is_brief: bool = False  # one line says how many rows hold; their data say what they follow from
    data: dict[str, str] = field(default_factory=dict)  # long tables (Markdown) by name
    page: Page | None = None  # where it is; None: the front page


def markdown(study: str, title: str, introduction: str, sections: Sequence[Section]) -> str:
    """A front page and its sections, those with a page of their own marked so.

    The pictures lie beside it.
    """
    everything = [row for section in sections for row in section.rows]
    parts = [f"# {title}\n", introduction, f"{last_line(study, everything)}\n", counts(everything)]
    if apart := [section for section in sections if section.page]:
        parts += ["## Part by part\n", pages(apart)]
    elif text := causes(everything):
        parts += ["Misses by cause; the reasons below have the counters:\n", text]
    for section in sections:
        parts += _section(section)
    return "\n".join(parts)


def _section(section: Section) -> list[str]:
    parts = [f"## {section.title}\n"]
    parts += [f"{section.page.mark}\n"] if section.page else []
    parts += [f"{section.description}\n"]
    parts += [f"Again: `{section.command}`\n"] if section.command else []
    if section.is_brief:
        parts += [in_a_line(section.rows)] if _with_ours(section.rows) else []
    elif judged(section.rows):
        parts.append(summary(section.rows))
    parts += [f"![{one.title}]({name})\n" for name, one in section.pictures.items()]
    parts += [f"{text.rstrip()}\n" for text in section.tables]
    for name, text in section.data.items():
        parts += [f"{DATA_HEADING}{name}\n", text]
    if section.rows:
        heading = POINTS if section.is_brief else EVERY_POINT
        parts += [f"{heading}\n", table(section.rows, has_notes=not section.is_brief)]
    if any(row.misses for row in section.rows):
        parts += ["### Misses\n", reasons(section.rows)]
    return parts


def pages(sections: Sequence[Section]) -> str:
    """The pages of these sections, with how many rows hold on each, and what the others miss by."""
    lines = ["| page | rows that hold | what misses |", "|---|---|---|"]
    for page in dict.fromkeys(section.page for section in sections if section.page):
        own = [section for section in sections if section.page == page]
        rows = judged([row for section in own for row in section.rows])
        title = page.title or own[0].title
        link = f"[{title}]({page.name}.md)" + (f": {page.covers}" if page.covers else "")
        hold = f"{sum(row.holds for row in rows)} of {len(rows)}" if rows else "–"
        lines.append(f"| {link} | {hold} | {_misses_in_short(rows)} |")
    return "\n".join(lines) + "\n"


def _misses_in_short(rows: Sequence[Row]) -> str:
    """The causes of the misses, or else their metrics, the most frequent first."""
    found: dict[str, int] = {}
    for row in rows:
        if row.misses:
            named = _CAUSE.match(row.reason)
            other = row.metric if row.reason else "unexplained"
            what = _within_a_sentence(named[1]) if named else other
            found[what] = found.get(what, 0) + 1
    most_first = sorted(found.items(), key=lambda item: -item[1])
    return "; ".join(f"{what} ({count})" for what, count in most_first)


def _within_a_sentence(text: str) -> str:
    """With a small letter first, but for what is written in capitals."""
    is_in_capitals = text[:2].isalpha() and text[:2].isupper()
    return text if is_in_capitals else text[:1].lower() + text[1:]


def figure_text(value: Figure, unit: str) -> str:
    """A figure for people: counts and what is large in whole numbers, the rest in four digits."""
    if value is None or isinstance(value, str):
        return value or "–"
    if unit in ("ratio", "fraction"):
        return f"{value:.3f}"
    text = f"{value:,.0f}" if value == round(value) or abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def expected_text(row: Row) -> str:
    """What is expected, with how if that is not equality."""
    relation = {"=": "", "is": "", "..": ""}.get(row.tolerance.relation, row.tolerance.relation)
    return f"{relation} {figure_text(row.expected, row.unit)}".lstrip()


def ours_text(row: Row) -> str:
    """Ours, with half the width of its confidence interval if it is an estimate."""
    text = figure_text(row.ours, row.unit)
    return text if row.half_width is None else f"{text} ±{figure_text(row.half_width, row.unit)}"


def difference_text(row: Row) -> str:
    """The difference for people: in percent, or absolute where it is compared with zero."""
    if row.difference is not None:
        return f"{row.difference:+.1%}"
    if isinstance(row.ours, str | None) or isinstance(row.expected, str | None):
        return ""
    return f"{row.ours - row.expected:+.4g}"


def holds_text(row: Row) -> str:
    """Yes, no, undecided, or – without data."""
    if row.ours is None or row.expected is None:
        return "–"
    return "undecided" if row.undecided else "yes" if row.holds else "no"


def marks(row: Row) -> str:
    """What has to be known about a row beside its figures."""
    if row.ours is None:
        return "no data"
    words = ["miss" if row.reason else "miss, unexplained"] if row.misses else []
    words += ["undecided"] if row.undecided else []
    words += ["set"] if row.role == SET else []
    words += ["follows"] if row.role == FOLLOWS and row.follows else []
    words += [row.note] if row.note else []
    return ", ".join(words)


def reasons(rows: Sequence[Row]) -> str:
    """The misses by reason, those without one first."""
    misses = sorted((row for row in rows if row.misses), key=lambda row: row.reason)
    lines = []
    for reason in dict.fromkeys(row.reason for row in misses):
        points = _points([row for row in misses if row.reason == reason])
        lines.append(f"- {points}: {reason or '**unexplained**'}\n")
    return "\n".join(lines)


def causes(rows: Sequence[Row]) -> str:
    """How many miss for each cause, the most first; nothing if no reason names one."""
    misses = [row for row in rows if row.misses]
    of_cause: dict[str, list[Row]] = {}
    for row in misses:
        if named := _CAUSE.match(row.reason):
            of_cause.setdefault(named[1], []).append(row)
    lines = []
    for cause, own in sorted(of_cause.items(), key=lambda item: -len(item[1])):
        metrics = "; ".join(dict.fromkeys(row.metric for row in own))
        lines.append(f"- {cause}: {len(own)} of {len(misses)} ({metrics})\n")
    return "".join(lines)


def _points(rows: Sequence[Row]) -> str:
    """The rows with their differences; of many with the same metric, what they have in common, and
    of many in all, their metrics."""
    if len(rows) > MANY_ROWS:
        return _metrics(rows)
    texts = []
    few: dict[str, list[str]] = {}
    for metric in dict.fromkeys(row.metric for row in rows):
        own = [row for row in rows if row.metric == metric]
        if len(own) < MANY:
            for row in own:
                said = f"{metric} {difference_text(row)}".rstrip()
                few.setdefault(row.condition, []).append(said)
            continue
        span = f" {differences}" if (differences := _differences(own)) else ""
        texts.append(
            f"{_shortened([row.condition for row in own])}: {len(own)} rows ({metric}{span})"
        )
    texts += [f"{condition} ({', '.join(metrics)})" for condition, metrics in few.items()]
    return "; ".join(texts)


def _metrics(rows: Sequence[Row]) -> str:
    """How many rows, of which metrics, and from which difference to which."""
    counts = dict.fromkeys(dict.fromkeys(row.metric for row in rows), 0)
    for row in rows:
        counts[row.metric] += 1
    span = f", {differences}" if (differences := _differences(rows)) else ""
    if len(counts) == 1:
        return f"{len(rows)} rows ({rows[0].metric}{span})"
    listed = ", ".join(f"{count} of {metric}" for metric, count in counts.items())
    return f"{len(rows)} rows ({listed}{span})"


def _differences(rows: Sequence[Row]) -> str:
    """From which to which, of the rows that have any."""
    known = (row for row in rows if difference_text(row))
    ends = sorted(known, key=lambda row: row.difference or 0.0)
    return f"{difference_text(ends[0])} to {difference_text(ends[-1])}" if ends else ""


def _shortened(conditions: Sequence[str]) -> str:
    """Conditions of one form with each word once, in the place where it stands."""
    places = [condition.split(", ") for condition in conditions]
    if len({len(words) for words in places}) > 1:
        return "; ".join(conditions)
    return ", ".join("/".join(dict.fromkeys(words)) for words in zip(*places, strict=True))


def judged(rows: Sequence[Row]) -> list[Row]:
    """Those of which something is expected; the others only show ours."""
    return [row for row in rows if row.expected is not None]


def counts(rows: Sequence[Row]) -> str:
    """How many hold, by what they are compared with."""
    lines = ["| compared with | hold | of |", "|---|---|---|"]
    for quality in QUALITIES:
        of_kind = [row for row in judged(rows) if row.quality == quality]
        lines.append(_count_line(quality, of_kind) if of_kind else "")
        held_out = [row for row in of_kind if row.is_held_out]
        if held_out:
            lines.append(_count_line("... of these held out", held_out))
    return "\n".join(filter(None, lines)) + "\n"


def _count_line(name: str, rows: Sequence[Row]) -> str:
    return f"| {name} | {sum(row.holds for row in rows)} | {len(rows)} |"


def summary(rows: Sequence[Row]) -> str:
    """How many hold, metric by metric; of many metrics, those with a miss."""
    known = judged(rows)
    metrics = list(dict.fromkeys((row.metric, row.quality) for row in known))
    total = ""
    if len(metrics) > MANY_METRICS:
        total = in_a_line(rows)
        missed = {(row.metric, row.quality) for row in known if not row.holds}
        metrics = [each for each in metrics if each in missed]
        if not metrics:
            return total
        total += "\nThe metrics that do not always hold:\n\n"
    lines = [
        "| metric | compared with | hold | of | held out: hold | of |",
        "|---|---|---|---|---|---|",
    ]
    for metric, quality in metrics:
        of_metric = [row for row in known if (row.metric, row.quality) == (metric, quality)]
        held_out = [row for row in of_metric if row.is_held_out]
        numbers = [sum(row.holds for row in of_metric), len(of_metric)]
        numbers += [sum(row.holds for row in held_out), len(held_out)]
        lines.append(f"| {metric} | {quality} | " + " | ".join(map(str, numbers)) + " |")
    return total + "\n".join(lines) + "\n"


def in_a_line(rows: Sequence[Row]) -> str:
    """How many hold."""
    known = _with_ours(rows)
    held_out = [row for row in known if row.is_held_out]
    text = f"{sum(row.holds for row in known)} of {many(len(known), 'row')} hold"
    if held_out and len(held_out) < len(known):
        text += f", {sum(row.holds for row in held_out)} of the {len(held_out)} held out"
    return f"{text}.\n"


def _with_ours(rows: Sequence[Row]) -> list[Row]:
    return [row for row in judged(rows) if row.ours is not None]


def table(rows: Sequence[Row], *, has_notes: bool = True) -> str:
    """Every row, with from what some follow: below them, or else among the marks of each."""
    head = f"| {' | '.join(COLUMNS[:-1])} | |"
    lines = [line(row, names_origin=not has_notes) for row in rows]
    text = "\n".join([head, "|---" * len(COLUMNS) + "|", *lines]) + "\n"
    if not has_notes:
        return text
    notes = []
    for why in dict.fromkeys(row.follows for row in rows if row.follows):
        notes += [f"- {name}: follows from {why}" for name in _names(rows, why)]
    return "\n".join([text, *notes]) + "\n" if notes else text


def _names(rows: Sequence[Row], why: str) -> list[str]:
    """The rows that follow from this; many of the same metric as one."""
    names = []
    of_it = [row for row in rows if row.follows == why]
    for metric in dict.fromkeys(row.metric for row in of_it):
        conditions = list(dict.fromkeys(row.condition for row in of_it if row.metric == metric))
        if len(conditions) >= MANY:
            conditions = [f"{_shortened(conditions)} ({len(conditions)} rows)"]
        names += [f"{condition}, {metric}" for condition in conditions]
    return names


def cells(row: Row) -> list[str]:
    """The cells of a row, in the order of `COLUMNS`."""
    allowed = ""
    if row.expected is not None and row.tolerance.relation in ("=", "~", ".."):
        within = row.tolerance.within + row.tolerance.half_range
        allowed = figure_text(float(f"{within:.3g}"), row.unit)
    texts = [expected_text(row), ours_text(row), difference_text(row), allowed, marks(row)]
    return [row.condition, row.metric, *texts]


def line(row: Row, *, names_origin: bool = False) -> str:
    """A row of the table of every point."""
    *texts, mark = cells(row)
    if names_origin and row.role == FOLLOWS and row.follows:
        mark = mark.replace("follows", f"follows from {row.follows}")
    mark = mark.replace("miss, unexplained", "**miss, unexplained**")
    if mark.startswith("miss"):
        mark = mark.replace("miss", "**miss**", 1)
    return f"| {' | '.join([*texts, mark])} |"
