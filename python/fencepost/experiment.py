"""One record, replayed on machines under schemes, side by side; the result document of it.

A replay is one thread inside the compiled core, which releases the interpreter's lock, so
that as many run at once as `--jobs` allows while this thread shows their progress.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from fencepost import __version__, _core
from fencepost.documents import FORMAT_VERSION

WATCH_INTERVAL_SECONDS = 0.1


@dataclass
class Replay:
    """One run to be: what a progress display shows of it while it goes."""

    label: str
    machine: str
    scheme: str
    job: _core.Job
    started: float | None = None
    ended: float | None = None

    def seconds(self) -> float:
        """Host seconds so far."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started


@dataclass(frozen=True)
class Experiment:
    """A record, the machines by name (resolved), and the options as the core resolved them."""

    record: _core.Record
    record_name: str
    machines: dict[str, dict[str, Any]]
    options: dict[str, Any]

    def replays(self) -> list[Replay]:
        """The replays, machine by machine, scheme by scheme; raises `_core.InputError`."""
        options = json.dumps(self.options)
        several = len(self.machines) > 1
        return [
            Replay(
                f"{name} {scheme}" if several else scheme,
                name,
                scheme,
                _core.Job(name, json.dumps(machine), self.record, scheme, options),
            )
            for name, machine in self.machines.items()
            for scheme in self.options["schemes"]
        ]

    def run(self, jobs: int, watch: Callable[[list[Replay]], None]) -> dict[str, Any]:
        """Runs all replays; `watch` is called every tenth of a second and once at the end.

        A replay that fails by a fault of the simulator is an entry with `error`; wrong input
        found on the way (a damaged record) raises `_core.InputError` and ends the others.
        """
        replays = self.replays()
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            futures = [pool.submit(_run_one, replay) for replay in replays]
            try:
                _wait_for(futures, lambda: watch(replays))
            except BaseException:
                for future in futures:
                    future.cancel()
                for replay in replays:
                    replay.job.cancel()
                raise
        watch(replays)
        return {"provenance": self.provenance(), "runs": [future.result() for future in futures]}

    def provenance(self) -> dict[str, Any]:
        """What is needed to run this again; nothing that differs between two replays."""
        return {
            "format_version": FORMAT_VERSION,
            "fencepost": __version__,
            "record": {"name": self.record_name} | json.loads(self.record.provenance()),
            "options": self.options,
            "machines": self.machines,
        }


def _run_one(replay: Replay) -> dict[str, Any]:
    replay.started = time.monotonic()
    try:
        run: dict[str, Any] = json.loads(replay.job.run())
    except _core.InternalError as error:
        run = {"error": str(error)}
    finally:
        replay.ended = time.monotonic()
    return run | {"machine": replay.machine, "scheme": replay.scheme}


def _wait_for(futures: list[Future[dict[str, Any]]], watch: Callable[[], None]) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=WATCH_INTERVAL_SECONDS)
        for future in done:
            future.result()
        watch()
