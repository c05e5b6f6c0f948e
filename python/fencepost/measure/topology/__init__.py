"""Sockets, NUMA nodes, DAX and CXL devices of a machine, as its kernel shows them in files.

`tree` reads those files below any folder, so that a copy of another machine's `/sys` can be read as
well; `nodes` has processors and nodes, `devices` what memory hangs on, `kinds` says of each node
what memory it is and how that is known, `document` and `text` are what users get.
"""
