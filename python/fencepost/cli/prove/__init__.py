"""`fencepost prove`: protocols explored exhaustively, and their mutants."""

from fencepost.cli.prove import coherence, persist_buffer

__all__ = ["coherence", "persist_buffer"]
