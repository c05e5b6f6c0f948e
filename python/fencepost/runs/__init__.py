"""Runs: what is replayed, where, and where results are kept.

A `Task` (task.py) is one replay as data: a resolved machine, the records of its hosts, the value of
each axis (axes.py), and options. `Schedule` (schedule.py) puts tasks through any
`concurrent.futures.Executor` (executors.py), to which points of synthetic traffic go too. A
`Store` (store.py) keeps results by what decides them, so that interrupted work goes on where it
stopped. `Experiment` (experiment.py) is the cross product of machines and axes that `run`,
`compare`, `explain` and `whatif` replay; `Cells` (cells.py) are the single replays of a study.
"""
