"""What a persist costs on CXL memory that you do not own yet: the face of the simulator.

`cli` is the command line, `recording` starts the recorder, `replay` has the options of a replay and
what decides its result, `runs` replays records on machines and makes the result document, and
everything a person reads is made from that document: `figures` (what is compared), `table` and
`report`. `rows` is what the simulator is compared with, `studies` and `validation` are where rows
come from, `evidence` finds them by name. The simulator itself is the compiled module `_core`, which
takes and gives JSON. What programs import is in `api` and `evidence`.
"""

# As `typing` has it, without importing that: the command imports this before interrupts are looked
# after (`start`), and nothing here takes time.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from fencepost import evidence
    from fencepost._core import InputError, InternalError, __version__
    from fencepost.api import (
        Explanation,
        Machine,
        Record,
        Result,
        Sensitivity,
        Sweep,
        compare,
        explain,
        record,
        sweep,
        whatif,
    )

__all__ = [
    "Explanation",
    "InputError",
    "InternalError",
    "Machine",
    "Record",
    "Result",
    "Sensitivity",
    "Sweep",
    "__version__",
    "compare",
    "evidence",
    "explain",
    "record",
    "sweep",
    "whatif",
]


_OF_THE_CORE = ("InputError", "InternalError", "__version__")


def __getattr__(name: str) -> object:
    # When it is asked for: the command line has no use for `api`, and each command would start
    # later.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _OF_THE_CORE:
        from fencepost import _core

        return getattr(_core, name)
    if name == "evidence":
        import importlib

        return importlib.import_module("fencepost.evidence")
    from fencepost import api

    return getattr(api, name)
