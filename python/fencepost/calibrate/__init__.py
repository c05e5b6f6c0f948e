"""Values of unpublished keys of a machine, found so that measured rows come out.

`data.py` and `mlc.py` read the rows, `measurement.py` has the simulator measure one, `free_key.py`
says which keys may be found at all. `search.py` evaluates machines and keeps them in a journal,
`ranges.py` finds how far each value could as well be elsewhere, and `calibration.py` puts these
together to the document that `machine_file.py`, `page.py` and `text.py` show.
"""
