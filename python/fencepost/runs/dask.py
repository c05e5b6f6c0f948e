"""Dask runs the replays: FENCEPOST_EXECUTOR=fencepost.runs.dask:executor.

The cluster is the one that Dask's own settings name (DASK_SCHEDULER_ADDRESS), or one on this
machine. Its workers need the same Fencepost, and for a sweep the folder under the same path.
"""

import logging
from concurrent.futures import Executor
from typing import Any


def executor() -> Executor:
    """An executor on a Dask cluster; `distributed` is not installed with Fencepost."""
    import dask
    from distributed import Client

    # That a scheduler is gone is to be known within seconds.
    dask.config.set({"distributed.comm.timeouts.connect": "5s"})
    # The driver says that in one line; Dask's log would show a stack of calls beside it.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    client = Client(set_as_default=False)
    made: Any = client.get_executor()
    # Its own would wait for a scheduler that is gone.
    made.shutdown = lambda **_: client.close(timeout=2)
    found: Executor = made
    return found
