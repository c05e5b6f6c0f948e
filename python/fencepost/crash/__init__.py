"""Crash states of the user's program: images that a power cut can leave, and the user's check.

`session` brings the parts together: a record with values, its crash states (`_core.CrashStates`),
the files (`images`), the command (`check`), what was done before (`journal`, `folder`), and what is
wrong (`minimise`, `violations`). `text` is what a user reads of it.
"""

from fencepost.crash.session import Request, explore

__all__ = ["Request", "explore"]
