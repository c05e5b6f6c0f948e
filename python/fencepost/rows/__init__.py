"""What the simulator is compared with, row by row, misses included.

`row.py` is the one type for everything that is compared; `lab.py` says on which machines ours are
made, and `page.py` lays rows out for a person.
"""

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row, last_line, near
from fencepost.rows.tolerance import Tolerance, between

__all__ = ["Lab", "Row", "Tolerance", "between", "last_line", "near"]
