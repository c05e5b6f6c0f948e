"""The journal of a search, where an interrupt meets it."""

import os
import signal
from pathlib import Path

import optuna
import pytest

from fencepost.calibrate import search


def test_an_interrupt_while_the_journal_is_unlocked_waits_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def unlink_and_interrupt(path: str) -> None:
        unlink(path)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)

    path = tmp_path / "search.journal"
    with search.journal(path) as storage, pytest.raises(KeyboardInterrupt):
        # Optuna's lock goes by being renamed and removed, and at an exception it removes it again.
        monkeypatch.setattr(os, "unlink", unlink_and_interrupt)
        optuna.create_study(storage=storage, study_name="one")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes().count(b"\n") == 1
