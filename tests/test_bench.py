"""The benchmark's own arithmetic: repetitions, and the history that is kept."""

import pytest

from fencepost.bench import history, repeated


def test_a_figure_shows_its_repetitions_and_their_spread():
    figures = repeated([9.0, 10.0, 12.0], "mips")
    assert figures["mips"] == 10.0
    assert figures["mips_each"] == [9.0, 10.0, 12.0]
    assert figures["mips_spread"] == pytest.approx(0.3)


def test_the_history_has_one_line_for_each_commit_and_processor():
    first = {"commit": "a", "processor": "p", "fft": "1"}
    text = history.with_line("", first)
    assert text == "commit,processor,fft\na,p,1\n"
    text = history.with_line(text, first | {"fft": "2"})
    assert text == "commit,processor,fft\na,p,2\n"
    text = history.with_line(text, first | {"processor": "q"})
    assert text.splitlines()[1:] == ["a,p,2", "a,q,1"]


def test_a_new_figure_is_empty_in_the_lines_before():
    text = history.with_line("", {"commit": "a", "processor": "p", "fft": "1"})
    text = history.with_line(text, {"commit": "b", "processor": "p", "chase": "3"})
    assert text.splitlines() == ["commit,processor,fft,chase", "a,p,1,", "b,p,,3"]
