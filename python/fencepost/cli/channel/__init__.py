"""`fencepost channel`: shares of a memory pool for the processes of this machine."""

from fencepost.cli.channel import run, segments, serve

__all__ = ["run", "segments", "serve"]
