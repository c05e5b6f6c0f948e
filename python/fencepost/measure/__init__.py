"""Measures the machine at hand, by programs of `measure/` and `workloads/stream/` that are ordinary
users' programs: what persists cost (`persist`), what its memories carry (`stream`), and what there
is (`topology`). `platform` says which machine it is."""
