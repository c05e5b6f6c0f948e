"""`fencepost measure stream`: the bandwidth of this machine's memories, near and far.

`point` is one placement of threads and arrays as data; `threads` and `memories` turn it into
processors and NUMA nodes, or say what the machine lacks; `study` has the points of the published
study. `program` runs `build/measure/stream` for them, in turn; `document` makes estimates of what
it printed, `simulated` replays the same program on a machine, and the rest shows it.
"""
