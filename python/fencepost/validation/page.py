"""docs/validation.md and a page for each comparison: every row, its tables and its pictures."""

from fencepost.rows import page
from fencepost.validation import Comparison, Findings

_INTRODUCTION = """How far can you trust a figure? These pages compare each part of the \
simulator with published measurements, a standard, or a second model. Misses are shown as misses.

```sh
fencepost validate           # every comparison; `fencepost validate unloaded` takes seconds
```

The last line of its output is the verdict:
"""

_KINDS = """A count never mixes these kinds of row:

- **published**: compared with what others have measured. A row that set a parameter of a machine \
is marked *set*; one that follows from such a row, or from a value chosen because it is not \
public, is marked *follows*; all others are **held out**, and only they test the model.
- **specification**: compared with arithmetic on the rules of a standard.
- **parameters**: compared with arithmetic on the machine file: the simulator does what the file \
says.
- **rules**: compared with a second, much smaller model.
- **full detail**: a sampled replay compared with the same replay in full detail.

`make validate` writes these pages and [every row](data/validation.csv) with the expected figure, \
ours and the difference. The reason for each miss, and the range of differences that it explains, \
is in [`experiments/misses.csv`](../experiments/misses.csv); a miss outside that range counts as \
unexplained, and the command then exits with code 1.

The programs of `experiments/` are replayed from committed records \
([`experiments/records`](../experiments/records), \
[how they were made](../experiments/host/README.md#the-records)), so their rows are the same on \
every machine. Only the [comparison of sampling](validation-sample.md) records its programs \
each time.
"""


def markdown(comparisons: list[tuple[Comparison, Findings]]) -> str:
    """The front page and the pages of the comparisons. The pictures of the findings lie beside."""
    sections = [
        page.Section(
            comparison.title,
            comparison.description,
            f"fencepost validate {comparison.name}",
            findings.rows,
            findings.tables,
            findings.pictures,
            page=page.Page(f"validation-{comparison.name}"),
        )
        for comparison, findings in comparisons
    ]
    sections.append(page.Section("Kinds of rows", _KINDS.rstrip("\n"), "", []))
    return page.markdown("validate", "Validation", _INTRODUCTION, sections)
