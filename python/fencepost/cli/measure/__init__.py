"""`fencepost measure`: what the machine at hand does, beside what a simulated one does."""

from fencepost.cli.measure import persist, stream, topology

__all__ = ["persist", "stream", "topology"]
