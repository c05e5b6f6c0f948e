"""Completion of command lines by shells: `fencepost --install-completion` (typer).

A shell then runs `fencepost` without arguments, and says in the environment what has been typed.
"""

import os

ASKED = "_FENCEPOST_COMPLETE"
TYPED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # bash; zsh, fish and PowerShell


def words() -> list[str] | None:
    """The words behind `fencepost` that have been typed; None where no shell asks."""
    if ASKED not in os.environ:
        return None
    line = next((os.environ[name] for name in TYPED if name in os.environ), "")
    return line.split()[1:]
