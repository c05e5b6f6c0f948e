"""Runs: what is replayed, where, and where results are kept.

A `Task` (task.py) is a `Replay` (machine, axes, records, options: replay.py of the package) with
its records opened. `Schedule` (schedule.py) puts tasks through any `concurrent.futures.Executor`
(executors.py), to which points of synthetic traffic go too. A `Store` (store.py) keeps results by
what decides them, so that interrupted work goes on where it stopped. A `Plan` (experiment.py) is
the cross product of machines and axes (axes.py) that a command asks for, an `Experiment` the same
with records; `Cells` (cells.py) are the single replays of a study.
"""
