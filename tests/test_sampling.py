"""Sampled replay from the command line: estimates, what is marked, what is refused."""

import copy

import pytest

from fencepost import _core, difference, figures, table
from fencepost.cli.invocation import DEFAULT_SAMPLE, split
from fencepost.replay import options, resolved


def plan_of(sample):
    return resolved(options(["nopb"], sample=sample))["sample"]


def test_a_plan_is_written_out_in_the_provenance():
    assert plan_of("1M:20k") == "1000000:20000:20000"
    assert plan_of(None) is None


@pytest.mark.parametrize("plan", ["1M", "1M:0", "1k:600:600", "a:b", "1M:2k:3k:4k"])
def test_a_plan_that_is_none_is_refused(plan):
    with pytest.raises(_core.InputError, match=f"--sample {plan}: "):
        plan_of(plan)


def test_an_option_without_a_plan_takes_the_usual_one():
    assert split(["run", "m", "r", "--sample"])[0] == ["run", "m", "r", "--sample", DEFAULT_SAMPLE]
    own, program = split(["run", "m", "--sample", "--quiet", "--", "p", "--sample"])
    assert own == ["run", "m", "--sample", DEFAULT_SAMPLE, "--quiet"]
    assert program == ["p", "--sample"]
    assert split(["run", "--sample", "1M:5k", "m", "r"])[0][2:] == ["1M:5k", "m", "r"]
    assert split(["run", "--sample", "5k", "m", "r"])[0][2:] == ["5k", "m", "r"]
    assert split(["run", "--sample", "2sw.toml", "r"])[0][2:] == [DEFAULT_SAMPLE, "2sw.toml", "r"]


def sampled(result, scale):
    """The fixture as if it had been sampled, every interval off by `scale` times as much."""
    document = copy.deepcopy(result)
    for run in document["runs"]:
        time = run["simulated_ns"]
        errors = [scale * time * part for part in (-0.02, 0.01, 0.03, -0.02)]
        run["sampling"] = {
            "plan": "1000:10:10",
            "period": 1000,
            "detail": 10,
            "warmup": 10,
            "coefficients": 1,
            "estimates": {
                "simulated_ns": {"value": time, "half_width": time / 20},
                "persist_buffer.write_coalescing_rate": {"value": 0.25, "half_width": 0.125},
            },
            "intervals": [[0, 0, 10, 1.0, error] for error in errors],
        }
    return document


def test_a_figure_that_is_estimated_shows_its_confidence_interval(result):
    estimated = sampled(result, 1.0)
    runs = estimated["runs"]
    figure = {figure.key: figure for figure in figures.HEADLINE}
    assert table.cell(figure["simulated_ns"], runs[1], estimated).endswith("±5.0%")
    assert "±" not in table.cell(figure["persist.count"], runs[1], estimated)
    runs[1]["persist_buffer"]["write_coalescing_rate"] = 0.25
    rate = figure["persist_buffer.write_coalescing_rate"]
    assert table.cell(rate, runs[1], estimated) == "25.0 ±12.5 %"
    assert table.title(sampled(result, 1.0)).endswith("95 % confidence intervals.")
    assert "±" not in table.cell(figure["simulated_ns"], result["runs"][1], result)


def test_a_speed_up_is_as_sure_as_both_runs_go_wrong_alike(result):
    runs = sampled(result, 1.0)["runs"]
    speedup = {figure.key: figure for figure in figures.HEADLINE}["speedup"]
    assert speedup.half_width(runs[1], runs[0]) == pytest.approx(0.0, abs=1e-9)
    other = sampled(result, -1.0)["runs"][1]
    # Twice the errors of one: t(3) * sqrt(4/3 * sum of squares), of the ratio.
    expected = 2 * 3.18245 * (4 / 3 * 0.0018) ** 0.5 * speedup.value(other, runs[0])
    assert speedup.half_width(other, runs[0]) == pytest.approx(expected, rel=1e-4)
    assert speedup.half_width(other, result["runs"][0]) is None


def test_a_difference_says_which_result_was_sampled(result):
    found = difference.between(result, sampled(result, 1.0))
    assert found["sampled"] == [False, True]


def test_a_program_that_is_too_short_is_refused(fencepost, fft_record):
    refused = fencepost("run", "pcs-table1", fft_record, "--sample", "1G:1k", "--quiet")
    assert refused.returncode == 2
    assert "at least 2 periods are needed" in refused.stderr
    refused = fencepost(
        "run", "pcs-table1", fft_record, "--sample", "1k:10", "--limit-pm-writes", "5", "-q"
    )
    assert refused.returncode == 2
    assert "exclude each other" in refused.stderr
