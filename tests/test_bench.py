"""The benchmark's own arithmetic: repetitions, targets, the history that is kept."""

import json
from collections import Counter

import pytest

from fencepost.bench import history, page, recording, repeated, replay, study
from fencepost.bench.rooms import costs
from fencepost.bench.targets import Target, targets
from fencepost.studies.pcs import pcs


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


def test_a_target_is_a_lower_or_an_upper_bound():
    assert Target("speed", 20.0, 20).holds and not Target("speed", 19.9, 20).holds
    cost = Target("cost", 1.3, 1.2, at_most=True)
    assert cost.to_json() == {"name": "cost", "measured": 1.3, "at_most": 1.2, "holds": False}
    assert cost.line() == "cost: 1.3, at most 1.2: MISSED"


def test_every_target_reads_figures_that_the_bench_has():
    document = {
        "replay": {"fft_1core": {"mips": 21.0}, "fft_8core": {"mips": 9.0}},
        "reference": {
            "geometric_mean_ratio": 100.0,
            "lowest_ratio_below_400_kips": 39.0,
            "lowest_ratio_from_400_kips": 21.0,
        },
        "fabric": {
            "hosts_1": {"messages_per_second": 2.4e6},
            "hosts_1024": {"messages_per_second": 2.0e6},
        },
        "crash": {"hashmap_8mb": {"images_per_minute": 1200.0}},
        "prove": {
            "one_processor": {"transitions_per_second": 1.2e6},
            "all_processors": {"transitions_per_second": 2.5e6},
        },
        "coherence": {"one_processor": {"transitions_per_second": 0.9e6}},
        "record": {"fft": {"slowdown": 26.0, "slowdown_max": 25}},
        "memory": {"short": {"peak_mb": 100.0}, "long": {"peak_mb": 105.0}},
        "study": {"quick_seconds": 59.0, "figures_5_to_7_seconds": 301.0},
        "sweep": {
            "overhead": 0.06,
            "peak_mb": {"1000": 50.0, "100000": 54.0},
            "status_seconds": 1.9,
        },
        "seconds": 300.0,
    }
    assert [target.name for target in targets(document) if not target.holds] == [
        "MIPS of fft on 8 cores, under each scheme",
        "times the reference's speed, on each row below 400 kips",
        "... on all processors",
        "million transitions of coherence a second, one processor",
        "recording fft, times native",
        "share that a sweep adds to its replays",
        "seconds of its Figures 5 to 7",
    ]
    document["study"]["everything_seconds"] = 1801.0
    missed = [target.name for target in targets(document) if not target.holds]
    assert missed[-1] == "seconds of all of it, when it was made last"


@pytest.mark.parametrize("of", [recording, replay])
def test_programs_that_are_not_built_for_aarch64_are_skipped_with_the_reason(
    of, tmp_path, monkeypatch, capsys
):
    def names():
        listed = of.programs() if of is replay else of.programs(tmp_path)
        return {program.name for program in listed}

    monkeypatch.setattr(of, "missing", lambda _: None)
    everything = names()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(of, "missing", lambda _: "no compiler")
    left = names()
    assert len(left) == len(everything) - 1
    assert all("aarch64" in name for name in everything - left)
    assert "rbt_aarch64: skipped, no compiler" in capsys.readouterr().out


def test_the_time_of_the_whole_study_is_that_of_this_build(tmp_path):
    file = tmp_path / "pcs.json"
    assert study.of_whole(file, "this") is None
    said = {
        "parts": [part.name for part in pcs.PARTS],
        "quick": False,
        "programs_file": None,
        "simulator": "this",
    }
    elapsed = [{"seconds": 100.0}, {"seconds": 20.5}]
    file.write_text(json.dumps({"provenance": said, "elapsed": elapsed}))
    assert study.of_whole(file, "this") == 120.5
    assert study.of_whole(file, "another") is None
    for other in ({"parts": ["schemes"]}, {"quick": True}, {"programs_file": "list.toml"}):
        file.write_text(json.dumps({"provenance": said | other, "elapsed": elapsed}))
        assert study.of_whole(file, "this") is None


def test_rooms_counts_each_line_once_and_inlined_code_where_it_was_written(tmp_path):
    output = tmp_path / "callgrind.out"
    output.write_text(
        "fl=(1) /src/crates/sim/src/core/issue.rs\nfn=(1) issue\n10 5\n"
        "fi=(6) /src/crates/isa/src/micro_op/mod.rs\n15 2\n"
        "fi=(2) /rustc/library/core/src/cmp.rs\n20 3\n"
        "fi=(3) /src/crates/sim/src/cache/array.rs\n30 7\n"
        "fe=(1)\n+1 2\n"
        "cfi=(4) /src/crates/sim/src/device/pm.rs\ncfn=(2) pm\ncalls=1 40\n50 1000\n\n"
        "fl=(4)\nfn=(2)\n40 900\n"
        "fl=(5) malloc.c\nfn=(3) malloc\n1 100\n"
    )
    counted: Counter[str] = Counter()
    for room, instructions in costs(output):
        counted[room] += instructions
    assert counted == {"core": 10, "isa": 2, "cache": 7, "device": 900, "libraries": 100}


def test_the_page_gets_every_figure_and_keeps_the_rest(tmp_path):
    document = {
        "host": {"processor": "P", "processors": 2},
        "noise": {"before": {"spread": 0.1}, "after": {"spread": 0.25}},
        "replay": {"fft_8core": {"mips": 12.34, "mips_spread": 0.05, "peak_mb": 68.0}},
        "memory": {"queue_1": {"peak_mb": 97.0, "instructions": 10**8}},
        "record": {"fft": {"slowdown": 17.1, "bytes_per_instruction": 0.006}},
        "reference": {"geometric_mean_ratio": 36.0},
        "fabric": {"hosts_1": {"messages_per_second": 2.5e6, "requests_per_second": 6.25e5}},
        "crash": {"hashmap_8mb": {"images_per_minute": 2500.0}},
        "prove": {"all_processors": {"transitions_per_second": 2.5e6, "processors": 2}},
        "coherence": {"one_processor": {"transitions_per_second": 3.1e6, "processors": 1}},
        "targets": [Target("cost", 1.3, 1.2, at_most=True).to_json()],
    }
    path = tmp_path / "page.md"
    path.write_text(f"before\n{page.BEGINS}old\n{page.ENDS}\nafter\n")
    page.write(document, path)
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    for cell in (
        "2 × P; the same work varied by up to 25%",
        "| fft on 8 cores | 12.3 | 5% | 68 |",
        "97 MB for 100 million instructions",
        "2,500 images a minute",
        "2.50 million transitions a second on 2 processors",
        "two cores: 3.10 million transitions a second on 1 processor.",
        "| million requests a second | 0.62 |",
        "| cost | 1.3 | at most 1.2 | **missed** |",
    ):
        assert cell in text
    page.write(document, path)
    assert path.read_text() == text
