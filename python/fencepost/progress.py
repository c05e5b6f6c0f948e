"""Live progress of replays on standard error: bars on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from fencepost import built
from fencepost.plural import many
from fencepost.runs.schedule import Underway

LINE_INTERVAL_SECONDS = 5.0
LONG_SECONDS = 30.0  # from here on it is worth building the simulator anew
ALL = "in all"


class Watch:
    """Call it with the replays; it decides when there is something to show. A context manager."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._started = self._last_line = time.monotonic()
        self._has_said_build = False

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

    def __call__(self, replays: Sequence[Underway]) -> None:
        seconds = time.monotonic() - self._started
        share, in_all = whole_state(replays, seconds)
        if not self._quiet and not self._has_said_build and seconds >= LONG_SECONDS:
            self._has_said_build = True
            if build := built.slower_than():
                self._console.print(f"by {build}", soft_wrap=True)
        if self._bars is not None:
            for replay in replays:
                self._show_bar(self._bars, replay)
            if ALL not in self._tasks:
                self._tasks[ALL] = self._bars.add_task(ALL, total=1.0, state="")
            self._bars.update(self._tasks[ALL], completed=share, state=in_all)
        elif not self._quiet and time.monotonic() - self._last_line >= LINE_INTERVAL_SECONDS:
            self._last_line = time.monotonic()
            for replay in replays:
                if replay.started is not None and replay.ended is None:
                    _, done, total = replay.progress()
                    percent = 100 * done // total if total else 0
                    self._console.print(
                        f"{replay.label}: {percent} %, {state(replay)}", soft_wrap=True
                    )
            self._console.print(in_all, soft_wrap=True)

    def _show_bar(self, bars: Progress, replay: Underway) -> None:
        if replay.label not in self._tasks:
            self._tasks[replay.label] = bars.add_task(replay.label, total=None, state="waiting")
        # What has ended knows no longer how much it did.
        _, done, total = (0, 1, 1) if replay.ended is not None else replay.progress()
        bars.update(
            self._tasks[replay.label], completed=done, total=total or None, state=state(replay)
        )


class WholeWatch:
    """One line for many replays, or whatever is done: how many, and the time that is left."""

    def __init__(self, console: Console, quiet: bool, what: str = "replays") -> None:
        self._console = console
        self._quiet = quiet
        self._what = what
        self._done_before: int | None = None
        self._started = time.monotonic()
        self._last_line = self._started
        self._bars: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "WholeWatch":
        if self._console.is_terminal and not self._quiet:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
            )
            self._bars = Progress(*columns, console=self._console, transient=True)
            self._task = self._bars.add_task(self._what, total=1.0, state="")
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

    def __call__(self, replays: Sequence[Underway]) -> None:
        if not self._quiet:
            self.show(*whole_state(replays, time.monotonic() - self._started))

    def show_count(self, done: int, in_all: int) -> None:
        """So many of about so many; what is done at the first call took no time."""
        if self._done_before is None:
            self._done_before = done
        text = f"{done} of about {in_all} {self._what}"
        new, seconds = done - self._done_before, time.monotonic() - self._started
        if new and done < in_all and seconds > 1:
            text += f", {seconds * (in_all - done) / new:.0f} s left"
        self.show(done / in_all if in_all else 1.0, text)

    def show_part(self, done: int, in_all: int, share: float) -> None:
        """So many of so many are done, and some are under way: `share` is the part of the whole."""
        text = f"{done} of {in_all} {self._what}, {share:.0%}"
        seconds = time.monotonic() - self._started
        if 0 < share < 1 and seconds > 1:
            text += f", {seconds * (1 - share) / share:.0f} s left"
        self.show(share, text)

    def show(self, share: float, text: str) -> None:
        """The part that is done, and what is said of it."""
        if self._quiet:
            return
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=share, state=text)
        elif time.monotonic() - self._last_line >= LINE_INTERVAL_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(text, soft_wrap=True)


def whole_state(replays: Sequence[Underway], seconds: float) -> tuple[float, str]:
    """The part that is done, and that in words with the time that is left until all are."""
    done = sum(replay.ended is not None for replay in replays)
    shares = [1.0 if replay.ended else _share(replay) for replay in replays]
    share = sum(shares) / len(shares) if shares else 1.0
    text = f"{done} of {many(len(replays), 'replay')}, {share:.0%}"
    if 0 < share < 1 and seconds > 1:
        text += f", {seconds * (1 - share) / share:.0f} s left"
    return share, text


def _share(replay: Underway) -> float:
    if replay.started is None:
        return 0.0
    _, done, total = replay.progress()
    return done / total if total else 0.0


def state(replay: Underway) -> str:
    """Simulated time, instructions and simulated MIPS, in a line; of what has ended, how long it
    took."""
    if replay.ended is not None:
        has_failed = replay.answer is not None and "error" in replay.run
        return f"{'failed' if has_failed else 'done'} after {replay.seconds():.1f} s"
    if replay.started is None:
        return "waiting"
    simulated_ps, done, total = replay.progress()
    seconds = replay.seconds()
    text = f"{simulated_ps / 1e9:.3f} ms simulated, {done / 1e6:.1f} of {total / 1e6:.1f} M instr."
    if seconds > 0 and done:
        text += f", {done / seconds / 1e6:.2f} MIPS"
    return text
