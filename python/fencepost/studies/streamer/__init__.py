"""STREAM on local, remote and CXL memory: one socket or both, plain memory or a pool.

`series` reads what was measured and names the points, `replays` says how each is simulated and
`sources` records it; `null_model` is what a simulator has to beat, and `method` tells how both are
compared; `groups`, `steady` and `claims` are the parts, and `beyond` has those of what the study
did not measure; `study` puts them together.
"""

from fencepost.studies.streamer.study import STREAMER

__all__ = ["STREAMER"]
