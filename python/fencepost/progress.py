"""Live progress of replays on standard error: bars on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from fencepost.experiment import Replay

LINE_INTERVAL_SECONDS = 5.0


class Watch:
    """Call it with the replays; it decides when there is something to show. A context manager."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last_line = time.monotonic()

    def __enter__(self) -> "Watch":
        if self._console.is_terminal and not self._quiet:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[state]}"),
                console=self._console,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, replays: list[Replay]) -> None:
        if self._bars is not None:
            for replay in replays:
                self._show_bar(self._bars, replay)
        elif not self._quiet and time.monotonic() - self._last_line >= LINE_INTERVAL_SECONDS:
            self._last_line = time.monotonic()
            for replay in replays:
                if replay.started is not None and replay.ended is None:
                    _, done, total = replay.job.progress()
                    percent = 100 * done // total if total else 0
                    self._console.print(
                        f"{replay.label}: {percent} %, {state(replay)}", soft_wrap=True
                    )

    def _show_bar(self, bars: Progress, replay: Replay) -> None:
        if replay.label not in self._tasks:
            self._tasks[replay.label] = bars.add_task(replay.label, total=None, state="waiting")
        _, done, total = replay.job.progress()
        bars.update(
            self._tasks[replay.label],
            completed=total if replay.ended else done,
            total=total or None,
            state=state(replay),
        )


def state(replay: Replay) -> str:
    """Simulated time, instructions, simulated MIPS and the time that is left, in a line."""
    if replay.started is None:
        return "waiting"
    simulated_ps, done, total = replay.job.progress()
    seconds = replay.seconds()
    text = f"{simulated_ps / 1e9:.3f} ms simulated, {done / 1e6:.1f} of {total / 1e6:.1f} M instr."
    if seconds > 0 and done:
        text += f", {done / seconds / 1e6:.2f} MIPS"
        if replay.ended is None:
            text += f", {(total - done) * seconds / done:.0f} s left"
    return text
