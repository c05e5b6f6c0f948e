"""docs/validation.md: every row of every comparison, its tables and its pictures."""

from fencepost.rows import page
from fencepost.validation import Comparison, Findings

_INTRODUCTION = """Made by `make validate`; every point, with what is expected, ours and the \
difference, is in [data/validation.csv](data/validation.csv). What is expected is of several \
kinds, which no count mixes:

- **published**: measured by others. A row that was used to set a parameter of a machine is marked \
*set*; one that follows from such a row, or hangs on what was chosen because it is not public, \
*follows*; only the others are **held out**.
- **specification**: arithmetic on the rules of a standard.
- **parameters**: arithmetic on the values of a machine file: what they say comes out.
- **rules**: a second, much smaller model.
- **full detail**: our own replay, not sampled.

Misses are shown as misses. Why, as far as it is known, and how large a difference that explains, \
is in [`experiments/misses.csv`](../experiments/misses.csv); what misses by more or less counts as \
unexplained.

The programs of `experiments/` are not recorded here: their records are committed, in \
[`experiments/records`](../experiments/records), so their rows are the same on every machine \
([how they were made](../experiments/host/README.md#the-records)). Only *A sample against full \
detail* records its programs each time.
"""


def markdown(comparisons: list[tuple[Comparison, Findings]]) -> str:
    """The page. The pictures of the findings lie beside it."""
    sections = [
        page.Section(
            comparison.title,
            comparison.description,
            f"fencepost validate {comparison.name}",
            findings.rows,
            findings.tables,
            findings.pictures,
        )
        for comparison, findings in comparisons
    ]
    return page.markdown("validate", "Validation", _INTRODUCTION, sections)
