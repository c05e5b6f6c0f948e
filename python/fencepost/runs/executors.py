"""Where replays run: any `concurrent.futures.Executor`.

By default that is a pool of threads in this process: the compiled core releases the interpreter's
lock, and replays of one record share its decoded code. The environment variable
`FENCEPOST_EXECUTOR=MODULE:CALLABLE` names another one: the callable is called without arguments and
gives an executor (of processes, of a cluster: Dask's `Client.get_executor` is one).
"""

import importlib
import os
from concurrent.futures import Executor, ThreadPoolExecutor

from fencepost._core import InputError

VARIABLE = "FENCEPOST_EXECUTOR"


def chosen(jobs: int) -> Executor:
    """The executor that the environment names, otherwise `jobs` threads. Raises `InputError`."""
    named = os.environ.get(VARIABLE)
    return _named(named) if named else ThreadPoolExecutor(max_workers=jobs)


def _named(text: str) -> Executor:
    module, _, name = text.partition(":")
    try:
        executor = getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise InputError(
            f"{VARIABLE}={text}: {error}; it has to be MODULE:CALLABLE, and the callable gives a "
            "concurrent.futures.Executor"
        ) from error
    if not isinstance(executor, Executor):
        kind = type(executor).__name__
        raise InputError(f"{VARIABLE}={text}: it gives a {kind}, no concurrent.futures.Executor")
    return executor
