"""What goes beyond the STREAM study, with its programs on machines that it had not.

`fabrics` are the machines, as settings on top of `spr-cxl`; `durable`, `forward`, `interleaved`,
`sharing` and `solver` are the parts.
"""
