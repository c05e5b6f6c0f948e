"""Where replays run: any `concurrent.futures.Executor`.

By default that is a pool of threads in this process: the compiled core releases the interpreter's
lock, and replays of one record share its decoded code. The environment variable
`FENCEPOST_EXECUTOR=MODULE:CALLABLE` names another one: the callable is called without arguments and
gives an executor, once for each process.
"""

import atexit
import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from fencepost._core import InputError

VARIABLE = "FENCEPOST_EXECUTOR"

Result = TypeVar("Result")


@contextmanager
def chosen(jobs: int, given: Executor | None = None) -> Iterator[tuple[Executor, int | None]]:
    """An executor, and how many tasks it is given at once; None for one with a queue of its own.

    It is the one that is given, otherwise the one that the environment names, otherwise `jobs`
    threads. Raises `InputError`.
    """
    given = given or named_by_environment()
    if given is not None:
        yield given, None
        return
    with ThreadPoolExecutor(max_workers=jobs) as threads:
        yield threads, jobs


def named_by_environment() -> Executor | None:
    """The executor that the environment names, if it names one; raises `InputError`."""
    named = os.environ.get(VARIABLE)
    return _named(named) if named else None


@contextmanager
def in_process(given: Executor | None = None) -> Iterator[Executor]:
    """The chosen executor if it is threads of this process, otherwise a thread of its own.

    For work on a state that cannot be sent to another process. An executor that the environment
    names is made to see what it is.
    """
    with chosen(1, given) as (executor, _):
        if isinstance(executor, ThreadPoolExecutor):
            yield executor
            return
    with ThreadPoolExecutor(max_workers=1) as thread:
        yield thread


def performed(
    works: Iterable[Callable[[], Result]], jobs: int = 1, given: Executor | None = None
) -> list[Result]:
    """What comes of each, in their order, by the chosen executor.

    A work is a `functools.partial` of a module's function, so that any executor can take it. Raises
    what the first that fails raises, and does not begin the others.
    """
    with chosen(jobs, given) as (executor, _):
        started = [executor.submit(work) for work in works]
        try:
            return [future.result() for future in started]
        except BaseException:
            for future in started:
                future.cancel()
            raise


@cache
def _named(text: str) -> Executor:
    module, _, name = text.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise InputError(
            f"{VARIABLE}={text}: {error}; it has to be MODULE:CALLABLE, and the callable gives a "
            "concurrent.futures.Executor"
        ) from error
    try:
        executor = made()
    except Exception as error:
        raise InputError(f"{VARIABLE}={text}: {error}") from error
    if not isinstance(executor, Executor):
        kind = type(executor).__name__
        raise InputError(f"{VARIABLE}={text}: it gives a {kind}, no concurrent.futures.Executor")
    _made.append(executor)
    # Before modules are taken down, in which some executors would still look something up.
    atexit.register(end)
    return executor


_made: list[Executor] = []


def end() -> None:
    """Ends the executor that the environment named, if it was made. A command does so itself: the
    threads of some would be waited for before anything that is done at the exit."""
    _named.cache_clear()
    while _made:
        _made.pop().shutdown(cancel_futures=True)
