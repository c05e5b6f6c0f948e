"""Measures the machine at hand, by programs of `measure/` that are ordinary users' programs.

`persist` runs the one that persists lines and makes a document of its samples; `simulated` records
the same program and replays it on a machine, so that both can be laid side by side.
"""
