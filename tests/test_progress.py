"""What is shown of replays while they go: the time that is left is that of the whole command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fencepost import api, progress
from fencepost.progress import Watch, WholeWatch
from fencepost.runs.schedule import Underway
from fencepost.runs.task import Answer


def test_a_limited_comparison_shows_what_is_to_come_from_the_start(fft_record: Path) -> None:
    """Where the others stop is known only when nopb has come to the limit."""
    seen: list[list[Underway]] = []
    schemes = ["nopb", "pb", "pb_rf"]
    options: dict[str, Any] = {"schemes": schemes, "limit_pm_writes": 50}
    api.compare("pcs-table1", fft_record, **options, watch=lambda of: seen.append(list(of)))
    assert [[one.key.scheme for one in replays] for replays in seen] == [schemes] * len(seen)
    assert [one.after is None for one in seen[0]] == [True, False, False]
    assert all(one.ended is not None for one in seen[-1])


class Going:
    """A replay that has done a quarter."""

    started, ended = 0.0, None

    def progress(self) -> tuple[int, int, int]:
        return 10**9, 25_000_000, 100_000_000

    def seconds(self) -> float:
        return 10.0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_time_that_is_left_is_that_of_all(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times, 10.0))
    going: Any = Going()
    going.label = "nopb"
    task: Any = Going()
    waiting = [Underway(task, scheme) for scheme in ("pb", "pb_rf", "pb_adaptive")]
    console = Console(stderr=True, force_terminal=is_terminal, width=120)
    with Watch(console, quiet=False) as watch:
        watch([going, *waiting])
        if watch._bars is not None:
            watch._bars.refresh()
    shown = capsys.readouterr().err
    # A sixteenth of the whole is done in ten seconds.
    assert "0 of 4 replays, 6%, 150 s left" in shown
    assert shown.count(" s left") == 1 or is_terminal
    assert "30 s left" not in shown


@pytest.mark.parametrize(
    "run, said", [({}, "done after 2.5 s"), ({"error": "x"}, "failed after 2.5 s")]
)
def test_the_bar_of_a_replay_that_has_ended_stays_full(
    run: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ended:
        """A task knows its progress while it runs only."""

        def progress(self) -> tuple[int, int, int]:
            return 0, 0, 0

    task: Any = Ended()
    replay = Underway(task, "nopb", started=1.0, ended=3.5, answer=Answer(run, []))
    console = Console(stderr=True, force_terminal=True, width=120)
    with Watch(console, quiet=False) as watch:
        watch([replay])
        assert watch._bars is not None
        watch._bars.refresh()
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]|\r", "", capsys.readouterr().err)
    [line] = {line.strip() for line in shown.splitlines() if line.startswith("nopb")}
    assert "100 %" in line and line.endswith(said)


def test_what_is_left_of_parts_under_way_is_said_where_no_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times, 10.0))
    with WholeWatch(Console(stderr=True, width=120), quiet=False, what="tests") as watch:
        watch.show_part(1, 8, 0.25)
    assert capsys.readouterr().err == "1 of 8 tests, 25%, 30 s left\n"
