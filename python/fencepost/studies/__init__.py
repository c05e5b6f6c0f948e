"""Studies: published evaluations, rebuilt and laid beside their figures.

Each is a folder here with its cells, rows and sections (`study.py`), and a line of `STUDIES`.
"""

from collections.abc import Callable

from fencepost._core import InputError, there_is_no
from fencepost.rows import Lab, Row
from fencepost.studies.memchannel import MEMCHANNEL
from fencepost.studies.pcs import PCS
from fencepost.studies.primitives import PRIMITIVES
from fencepost.studies.streamer import STREAMER
from fencepost.studies.study import Study
from fencepost.studies.type2 import TYPE2
from fencepost.validation.comparisons import COMPARISONS

Source = Callable[[Lab], list[Row]]  # of one study or comparison

STUDIES: list[Study] = [
    PCS,
    PRIMITIVES,
    STREAMER,
    MEMCHANNEL,
    TYPE2,
]


def study(name: str) -> Study:
    """The study of that name; raises `InputError`."""
    for one in STUDIES:
        if one.name == name:
            return one
    raise InputError(there_is_no("study", name, [one.name for one in STUDIES]))


def source(name: str) -> Source:
    """What gives the rows of a study, or of a comparison of `validate`; raises `InputError`."""
    sources = {one.name: one.rows for one in STUDIES}
    sources |= {one.name: one.rows for one in COMPARISONS.values()}
    if name not in sources:
        raise InputError(there_is_no("study or comparison", name, list(sources)))
    return sources[name]
