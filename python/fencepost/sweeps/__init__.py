"""Sweeps: thousands of replays as a folder, computed anywhere, and read as one table.

A plan (`plan`, TOML) names machines, records, axes and samples; `expansion` makes points of it,
each the description of one replay (`point`). A folder (`folder`) holds plan, points, records and
machines by content, and what has come of each point so far: rows (`rows`), attempts (`ledger`) and
claims (`claims`). The folder is the only truth: whoever finds a point without a row may compute it
(`compute`), in a child process that may die (`worker`, `supervisor`), on a cluster (`slurm`) or
through any executor (`executor`). `driver` decides what is left to do and shows how far it is;
`table` reads the rows, `columns` as arrays, of which `lines`, `front` and `sensitivity` make charts
and `page` the report.
"""
