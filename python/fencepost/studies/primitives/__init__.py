"""Flush, fence and logging primitives on x86-64 and AArch64, and PM behind CXL switches.

`benchmark` names what is run and `sources` records it; each topic (`corun`, `fabrics`,
`footprint`, `logs`, `read_share`, `stalls`) is one question of the study with its cells, rows and
tables; `reasons` has the numbers of why rows miss; `study` puts them together.
"""

from fencepost.studies.primitives.study import PRIMITIVES

__all__ = ["PRIMITIVES"]
