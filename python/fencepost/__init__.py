"""What a persist costs on CXL memory that you do not own yet: the face of the simulator.

`cli` is the command line, `recording` starts the recorder, `experiment` replays a record on
machines under schemes and makes the result document, and everything a person reads is made
from that document: `figures` (what is compared), `table` and `report`. The simulator itself
is the compiled module `_core`, which takes and gives JSON. What programs import is in `api`.
"""

from fencepost._core import InputError, InternalError, __version__
from fencepost.api import Machine, Record, Result, compare, record

__all__ = [
    "InputError",
    "InternalError",
    "Machine",
    "Record",
    "Result",
    "__version__",
    "compare",
    "record",
]
