"""Streams in a switched CXL pool: why they hurt each other, and a transport that stops it.

`published` reads the figures; `points` runs synthetic traffic and keeps what came of it; `streams`
are the threads of the study; each other file is a part: its points, and the rows read off them.
"""

from fencepost.studies.memchannel.study import MEMCHANNEL

__all__ = ["MEMCHANNEL"]
