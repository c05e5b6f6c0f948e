"""Windows spread over a program are recorded, and its time is estimated from them."""

from __future__ import annotations

import pytest
from recorder_programs import Recorder, Run

import fencepost as fp

ROUNDS = 60
EVERY, KEEP, WARM = 1_000_000, 50_000, 200_000
PLAN = "1M:30k:120k"  # means nothing here: the windows are as they were recorded


def recorded(recorder: Recorder, *options: object) -> Run:
    program = recorder.compile("phases", "-O1")
    run = recorder.record(program, str(ROUNDS), options=tuple(map(str, options)))
    assert run.returncode in (0, 1), run.stderr
    return run


def windows(recorder: Recorder, warm: int = WARM) -> Run:
    return recorded(recorder, "--every", EVERY, "--keep", KEEP, "--warm", warm)


def replayed(run: Run, sample: str | None = None) -> fp.Result:
    return fp.compare("pcs-table1", fp.Record(run.path), schemes=["nopb"], sample=sample)


@pytest.fixture
def whole(recorder: Recorder) -> fp.Result:
    return replayed(recorded(recorder))


def test_an_estimate_holds_the_time_of_the_whole_program(
    recorder: Recorder, whole: fp.Result
) -> None:
    run = windows(recorder)
    result = replayed(run, PLAN)
    [estimated], [measured] = result.document["runs"], whole.document["runs"]
    of_time = estimated["sampling"]["estimates"]["simulated_ns"]
    assert estimated["simulated_ns"] == of_time["value"]
    off = abs(of_time["value"] - measured["simulated_ns"])
    assert off < of_time["half_width"] < 0.5 * measured["simulated_ns"]
    # What the recorder counts of a program is what its whole record has.
    assert run.load().program_instructions == pytest.approx(measured["hosts"][0]["instructions"])
    [said] = [text for text in estimated["warnings"] if "estimated from windows" in text]
    assert f"what the {WARM} instructions before each window left there" in said


def test_windows_are_where_they_are_said_to_be(recorder: Recorder) -> None:
    run = windows(recorder)
    [estimated] = replayed(run, PLAN).document["runs"]
    sampling = estimated["sampling"]
    assert (sampling["period"], sampling["detail"], sampling["warmup"]) == (EVERY, KEEP, WARM)
    first = (EVERY - KEEP) // 2
    program = run.load().program_instructions
    assert program is not None
    assert [window[1] for window in sampling["intervals"]] == list(range(first, program, EVERY))
    assert all(window[2] == pytest.approx(KEEP, rel=0.01) for window in sampling["intervals"])
    # The phases differ.
    times = [window[3] for window in sampling["intervals"]]
    assert max(times) > 1.2 * min(times)


def test_a_run_without_a_sample_is_of_the_windows(recorder: Recorder) -> None:
    run = windows(recorder)
    [alone], [estimated] = replayed(run).document["runs"], replayed(run, PLAN).document["runs"]
    times = [window[3] for window in estimated["sampling"]["intervals"]]
    assert alone["simulated_ns"] == pytest.approx(sum(times))
    assert alone["sampling"] is None
    assert any("times are of these alone" in text for text in alone["warnings"])
    assert not any("times are of these alone" in text for text in estimated["warnings"])


def test_windows_alone_are_recorded(recorder: Recorder) -> None:
    warm, cold = windows(recorder).load(), windows(recorder, warm=0).load()
    of_windows = [
        sum(frame.instructions for frame in one.threads[0]) / one.program_instructions
        for one in (warm, cold)
        if one.program_instructions
    ]
    assert of_windows[0] < 0.5
    assert of_windows[1] < 0.25


def test_two_recordings_are_equal(recorder: Recorder) -> None:
    first = windows(recorder).path.read_bytes()
    assert windows(recorder).path.read_bytes() == first


def test_nothing_is_estimated_without_two_windows(recorder: Recorder) -> None:
    run = recorded(recorder, "--every", 60_000_000, "--keep", KEEP)
    with pytest.raises(fp.InputError, match=r"--sample needs two windows, and it has [01]"):
        replayed(run, PLAN)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--every", "10"), "--every N and --keep M are given together"),
        (("--keep", "10"), "--every N and --keep M are given together"),
        (("--every", "10", "--keep", "9", "--warm", "2"), "have to fit"),
        (("--every", "10", "--keep", "5", "--children"), "goes with none of --roi"),
        (("--every", "10", "--keep", "5", "--roi", "main:exit"), "goes with none of --roi"),
    ],
)
def test_options_that_do_not_fit_are_one_message(
    recorder: Recorder, options: tuple[str, ...], said: str
) -> None:
    run = recorder.record("true", options=options)
    assert run.returncode == 2
    assert said in run.stderr
