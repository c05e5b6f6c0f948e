"""`fencepost prove`: counts, mutants, stories, and what it refuses."""

import csv
import json
import signal
import subprocess

import pytest

from fencepost import schemes
from installed import FENCEPOST, ROOT

SMALL = ["--entries", 1, "--addresses", 1, "--hosts", 1, "--writes", 2, "--crashes", 1]


def test_a_proof_prints_its_counts_and_writes_them(fencepost, tmp_path):
    done = fencepost("prove", *SMALL, "--scheme", "pb", "--json", "p.json", check=True)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("proved: 1452 states, 3202 transitions, depth 27, ")
    document = json.loads((tmp_path / "p.json").read_text())
    counts = [document[key] for key in ("states", "transitions", "depth")]
    assert counts == [1452, 3202, 27]
    assert document["seconds"] > 0
    for key in ("states", "transitions"):
        rate = document[f"{key}_per_second"]
        assert rate == pytest.approx(document[key] / document["seconds"])
        assert f", {rate:.0f} {key}/s, " in last
    assert document["proofs"][0]["bounds"]["entries"] == 1


def test_pm_may_declare_a_failure(fencepost):
    done = fencepost("prove", *SMALL, "--failures", 1, check=True)
    first, last = done.stdout.splitlines()
    assert "1 power cuts, a declared failure of PM: 3064 states" in first
    assert last.startswith("proved: 3064 states, 7682 transitions, depth 28, ")


def test_all_bounds_are_printed(fencepost):
    own = ["--scheme", "pb_rf", "--threshold", 1, "--preset", 1, "--inputs", 2, "--reads", 0]
    more = ["--partial-writes", "--reads-in-turn", "--without", "hosts", "--without", "slots"]
    done = fencepost("prove", *SMALL, *own, *more, "--duplicates", 2, check=True)
    bounds = done.stdout.split(" states, ")[0].rpartition(": ")[0]
    assert bounds == (
        "pb_rf, single: 1 entries, threshold 1, preset 1, 1 addresses, 1 hosts with 2 writes and "
        "0 reads each, 2 in flight, 2 places for requests and 1 for acknowledgements in the input, "
        "2 repeated acknowledgements, reads in turn, partial writes, without slots and hosts, "
        "1 power cuts, no failure of PM"
    )
    plain = fencepost("prove", *SMALL, check=True).stdout.splitlines()[0]
    assert "threshold" not in plain and "whole lines, 1 power cuts, no failure of PM: " in plain


def test_several_schemes_are_added_up(fencepost):
    options = ["--scheme", "nopb", "--scheme", "pb", "--scheme", "pb_rf"]
    done = fencepost("prove", *SMALL, *options, check=True)
    assert done.stdout.splitlines()[-1].startswith("proved: 1918 states, 3977 transitions,")


def documented():
    """Options, scheme and counts of each row of the data file."""
    with (ROOT / "docs" / "data" / "prove.csv").open(newline="") as data:
        for row in csv.DictReader(data):
            counts = f"{row['states']} states, {row['transitions']} transitions, "
            yield row["options"], row["scheme"], f"{counts}depth {row['depth']}, "


def test_the_counts_of_the_default_bounds_on_the_page_are_those_of_the_data_file():
    page = (ROOT / "docs" / "prove-reference.md").read_text()
    table = page.partition("| scheme | states | transitions | depth |\n")[2].partition("\n\n")[0]
    rows = [row.replace(",", "").strip("| ").split(" | ") for row in table.splitlines()[1:]]
    assert len(rows) == len(schemes.EVERY)
    of_file = {scheme: counts for options, scheme, counts in documented() if not options}
    for scheme, states, transitions, depth in rows:
        said = f"{states} states, {transitions} transitions, depth {depth}, "
        assert of_file[scheme] == said


def test_the_default_bounds_are_among_the_documented_counts():
    assert {("", scheme) for scheme in schemes.EVERY} <= {row[:2] for row in documented()}


def largest_apart(rows):
    """Rows of more than ten million states take most of the time, and gigabytes."""
    for options, scheme, counts in rows:
        is_large = int(counts.partition(" ")[0]) > 10_000_000
        marks = [pytest.mark.exhaustive] if is_large else []
        yield pytest.param(options, scheme, counts, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "scheme", "counts"), list(largest_apart(documented())))
def test_the_documented_counts_come_out_again(options, scheme, counts, fencepost):
    arguments = ["prove", *options.split(), "--scheme", scheme, "--quiet"]
    done = fencepost(*arguments, check=True, timeout=1800)
    assert done.stdout.splitlines()[-1].startswith(f"proved: {counts}")


@pytest.mark.slow
def test_a_chain_is_proved_with_the_links_of_its_hosts_too(fencepost):
    arguments = ["--topology", "chain", "--entries", 1, "--addresses", 1, "--hosts", 1]
    arguments += ["--crashes", 1, "--without", "arrival"]
    for scheme in ("nopb", "pb", "pb_rf", "pb_adaptive"):
        arguments += ["--scheme", scheme]
    done = fencepost("prove", *arguments, check=True)
    assert done.stdout.splitlines()[-1].startswith("proved: ")


def test_a_mutant_is_killed_and_its_story_told(fencepost):
    done = fencepost("prove", "--mutant", "first-switch-acknowledges", check=True)
    assert done.stdout.splitlines()[-1] == "killed 1 of 1"
    assert "breaks `read_latest` [5, 11]" in done.stdout
    assert "   1. host " in done.stdout


def test_all_mutants_are_killed(fencepost, tmp_path):
    done = fencepost("prove", "--mutant", "all", "--json", "m.json", check=True)
    mutants = json.loads((tmp_path / "m.json").read_text())["mutants"]
    assert len(mutants) >= 20
    assert done.stdout.splitlines()[-1] == f"killed {len(mutants)} of {len(mutants)}"
    for mutant in mutants:
        assert mutant["counterexample"]["predicate"] == mutant["predicate"], mutant["name"]


def test_the_list_has_every_invariant(fencepost):
    listed = fencepost("prove", "--list", check=True).stdout
    numbers = [line.split("  ")[0].strip() for line in listed.splitlines()]
    served = {int(number) for text in numbers if text for number in _numbers(text)}
    assert served >= set(range(1, 13))


def _numbers(text):
    return [part for part in text.replace(",", " ").split() if part.isdigit()]


def test_without_memory_enough_nothing_is_proved(fencepost, tmp_path):
    bounds = ["--entries", 1, "--hosts", 2, "--writes", 1, "--crashes", 1]
    done = fencepost("prove", *bounds, "--memory-gib", 0.00233, "--json", "p.json", "--quiet")
    assert done.returncode == 1
    assert "pb: more than 2 MiB would be needed, and " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("not proved: ")
    assert (
        json.loads((tmp_path / "p.json").read_text())["proofs"][0]["ended_early"] == "out_of_memory"
    )


def test_an_interrupt_ends_it_at_once_and_leaves_no_file(tmp_path):
    command = [FENCEPOST, "prove", "--json", "p.json"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    # It explores as soon as it says how far it is.
    assert "states at depth" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("topology", ["chain", "shared"])
def test_two_switches_are_proved_too(fencepost, topology):
    hosts = 2 if topology == "shared" else 1
    bounds = ["--entries", 1, "--addresses", 1, "--hosts", hosts, "--writes", 1, "--crashes", 1]
    done = fencepost("prove", *bounds, "--topology", topology, "--scheme", "pb_rf", check=True)
    assert done.stdout.splitlines()[-1].startswith("proved: ")


def test_what_cannot_be_explored_is_refused(fencepost_here):
    for arguments, message in (
        (["--entries", 9], "entries: 9 is not 1 to 4"),
        (
            ["--inputs", 3, "--acknowledgement-inputs", 2],
            "inputs and acknowledgement inputs: 5 are more than 4 together",
        ),
        (
            ["--scheme", "pbrf"],
            "there is no scheme `pbrf`; did you mean `pb_rf`? There are: nopb, pb, pb_rf, pb_adap",
        ),
        (["--failures", 2], "failures: 2 is not 0 to 1"),
        (["--topology", "ring"], "there is no topology `ring`; there are: single, chain, shared"),
        (["--without", "luck"], "there is no reduction `luck`"),
        (["--mutant", "gremlin"], "there is no mutant `gremlin`; there are: all, "),
        (
            ["--memory-gib", "nan"],
            "--memory-gib nan: it has to be a number from 0.001 to",
        ),
        (["--writes", -1], "--writes -1: it has to be a whole number from 0 to 255"),
        (["--crashes", 300], "--crashes 300: it has to be a whole number from 0 to 255"),
        (["--mutant", "all", "--entries", 2], "a mutant has bounds of its own"),
        (["--mutant", "all", "--memory-gib", 1], "--memory-gib: a mutant is small"),
        (["--mutant", "all", "-j", 2], "--jobs: a mutant is small"),
        (
            ["--scheme", "pb_rf", "--threshold", 9, "--entries", 2],
            "--threshold 9: no more than 2 entries are occupied; it can be 0 to 2",
        ),
        (["--scheme", "pb", "--threshold", 1], "--threshold: only pb_rf has one, and --scheme is"),
        (["--scheme", "pb", "--scheme", "nopb", "--preset", 0], "--preset: only pb_rf has one"),
    ):
        done = fencepost_here("prove", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
