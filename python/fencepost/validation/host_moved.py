"""How far the host's rows depend on where the stack lies, which the reference does not describe.

The environment of the programs grows, so that their stack moves down; nothing else changes.
"""

from fencepost.rows import page
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.validation.host_programs import MOVED_BYTES

SHOWN_FROM = 0.02  # part of the lowest; and more than SHOWN_COUNT of a count
SHOWN_COUNT = 2

TEXT = """### With the stack elsewhere

The same rows with the stack at {places} places, {step} bytes apart. The table has the least and the
most of ours where they differ by more than {percent:g} %, and how often the row holds. All other
tables use the first place.

"""


def section(lab: Lab, programs: tuple[str, ...]) -> str:
    """Markdown: the rows that move."""
    from fencepost.validation import host

    at_places = [host.rows(lab, programs, moved) for moved in MOVED_BYTES]
    lines = [
        "| point | metric | published | ours | least | most | holds |",
        "|---|---|---|---|---|---|---|",
    ]
    for rows in zip(*at_places, strict=True):
        if _moves(rows):
            row, ours = rows[0], [each.ours for each in rows]
            figures = [row.expected, row.ours, min(ours), max(ours)]
            cells = [row.condition, row.metric, *(page.figure_text(value, "") for value in figures)]
            holding = f"{sum(each.holds for each in rows)} of {len(rows)}"
            lines.append(f"| {' | '.join(cells)} | {holding} |")
    step = MOVED_BYTES[1] - MOVED_BYTES[0]
    return TEXT.format(places=len(MOVED_BYTES), step=step, percent=100 * SHOWN_FROM) + "\n".join(
        lines
    )


def _moves(rows: tuple[Row, ...]) -> bool:
    ours = [row.number for row in rows]
    return max(ours) - min(ours) > max(SHOWN_FROM * min(ours), SHOWN_COUNT)
