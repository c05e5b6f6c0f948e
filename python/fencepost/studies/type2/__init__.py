"""A CXL Type-2 device beside what it could be replaced by, compared with what was published.

`published` reads the figures; `points` runs bursts of coherent requests and transfers, and keeps
what came of them; each other file is a part: its points, and the rows read off them.
"""

from fencepost.studies.type2.study import TYPE2

__all__ = ["TYPE2"]
