"""What the pages of STREAM say in prose follows from their tables and data."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from functools import cache
from statistics import fmean

import pytest

from fencepost.studies.streamer.null_model import null_model, null_model_of_all
from fencepost.studies.streamer.series import measured
from installed import ROOT

DOCS = ROOT / "docs"
KERNELS = ("copy", "scale", "add", "triad")
LOCAL, REMOTE, CXL = "DDR5 of socket 0", "DDR5 of socket 1", "CXL DDR4"
MEASURED, OURS = "expected", "ours"  # columns
THREADS = {1: "1 thread", 10: "10 threads"}


def text(page: str) -> str:
    """In one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def assert_says(page: str, *sentences: str) -> None:
    for sentence in sentences:
        assert sentence in text(page), f"{page} does not say: {sentence}"


@cache
def data() -> list[dict[str, str]]:
    with (DOCS / "data" / "streamer.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(row: dict[str, str], column: str) -> float:
    return float(row[column].partition(" ")[0].replace(",", ""))


def off(row: dict[str, str]) -> float:
    return number(row, OURS) / number(row, MEASURED) - 1


def of(condition: str, metric: str, column: str = OURS) -> float:
    [row] = [row for row in data() if (row["condition"], row["metric"]) == (condition, metric)]
    return number(row, column)


def rates(condition: str, column: str = OURS) -> list[float]:
    return [of(condition, f"{kernel} bandwidth", column) for kernel in KERNELS]


def points() -> list[dict[str, str]]:
    """Bandwidths that were measured."""
    return [
        row
        for row in data()
        if re.match(r"(1a|1b|1c|2a), ", row["condition"])
        and row["metric"].endswith(" bandwidth")
        and "twice the arrays" not in row["condition"]
    ]


def set_points() -> list[dict[str, str]]:
    return [row for row in points() if "set" in row["marks"].split(", ")]


def held_out() -> list[dict[str, str]]:
    return [row for row in points() if not {"set", "follows"} & set(row["marks"].split(", "))]


def mean_off(rows: Iterable[dict[str, str]]) -> str:
    return f"{100 * fmean(abs(off(row)) for row in rows):.1f}"


def lost_percent(less: str, more: str, column: str) -> list[float]:
    pairs = zip(rates(less, column), rates(more, column), strict=True)
    return [100 * (1 - one / other) for one, other in pairs]


def ends(values: list[float], digits: int = 0) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}".replace("-", "−")


def table_below(page: str, line: str) -> dict[str, list[str]]:
    """The cells of each line by its first one."""
    _, found, after = (DOCS / page).read_text(encoding="utf-8").partition(f"{line}\n\n")
    assert found, f"{page} has no line: {line}"
    rows = [one.strip("| ").split(" | ") for one in after.partition("\n\n")[0].splitlines()]
    return {first: cells for first, *cells in rows[2:]}


DURABLE_MODES = ("none", "kernel", "block:512", "transaction")


def durable(
    memory: str, mode: str, threads: int, what: str = "GB/s, the mean of the kernels"
) -> str:
    line = f"{what}, with {THREADS[threads]}, by `--persist`:"
    return table_below("streamer-durable.md", line)[memory][DURABLE_MODES.index(mode)]


def test_the_readmes_table_of_persist_buffers_is_that_of_the_study() -> None:
    memories = {
        "none": "PM, no switch",
        "volatile": "PM behind a switch, nopb",
        "`pb`, 16 entries": "PM behind a switch, pb",
        "`pb_rf`, 16 entries": "PM behind a switch, pb_rf",
        "`pb_rf`, 256 entries": "PM behind a switch, pb_rf, 256 entries",
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    own = readme.partition("| switch | one thread | ten threads |\n")[2].partition("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in own.splitlines()[1:]]
    assert [name for name, *_ in lines] == list(memories)
    for name, *cells in lines:
        assert cells == [durable(memories[name], "block:512", threads) for threads in (1, 10)]
    found = {name: [float(cell) for cell in cells] for name, *cells in lines}
    one, ten = found["`pb`, 16 entries"]
    assert one > found["volatile"][0] and ten < found["volatile"][1]
    assert_says(
        "README.md", "Sixteen entries of `pb` help a single thread, but ten threads fill them"
    )


def test_far_memories_are_slower_by_what_the_page_says() -> None:
    far, other = (f"{memory}, socket 0, 10 threads" for memory in (CXL, REMOTE))
    pool, plain = (f"1b, {far}", f"1b, {other}"), (f"2a, {far}", f"2a, {other}")
    local = f"1a, {LOCAL}, socket 0, 10 threads"
    copy, _, add, _ = rates(plain[1], MEASURED)
    assert_says(
        "docs/stream.md",
        f"gives {ends(lost_percent(pool[1], local, MEASURED))} % less than the socket's own",
        f"gives {ends(lost_percent(pool[0], local, MEASURED))} % less than the socket's own",
        f"{ends(lost_percent(*pool, MEASURED))} % less than the other socket's in that mode, "
        f"and {ends(lost_percent(*plain, MEASURED))} % less as plain memory",
        f"come to {copy * 32 / 16:.1f} and {add * 40 / 24:.1f} GB/s of memory traffic",
    )


@pytest.mark.parametrize(
    ("memory", "name"), [(REMOTE, "the other socket's DDR5"), (CXL, "CXL DDR4")]
)
def test_a_pool_costs_what_the_page_says(memory: str, name: str) -> None:
    cells = []
    for threads, digits in ((1, 0), (10, 1)):
        where = f"{memory}, socket 0, {THREADS[threads]}"
        theirs, ours = (
            ends(lost_percent(f"1b, {where}", f"2a, {where}", column), digits)
            for column in (MEASURED, OURS)
        )
        cells.append(f"{theirs} % ({ours} %)")
    assert_says("docs/stream.md", f"| {name} | {' | '.join(cells)} |")


def test_resolving_an_element_takes_the_instructions_that_the_page_says() -> None:
    page = (DOCS / "streamer-claims.md").read_text(encoding="utf-8")
    for way, said in (("each element by D_RW", "48"), ("by pointers", "3")):
        counts = re.findall(rf"\| pool, {way} \| [\d.]+ \| ([\d.]+) \|", page)
        assert len(counts) == 4 and {f"{float(count):.0f}" for count in counts} == {said}
    assert_says("docs/stream.md", "takes 48 instructions in all", "and 3 where a pointer")


def test_threads_of_the_other_socket_lower_bandwidth_as_the_page_says() -> None:
    (ten, ten_ours), (twenty, twenty_ours) = (
        [
            f"{fmean(rates(f'1c, {LOCAL}, sockets 0 and 1, close, {threads} threads', column)):.1f}"
            for column in (MEASURED, OURS)
        ]
        for threads in (10, 20)
    )
    assert_says(
        "docs/stream.md",
        f"ten threads of its own {ten} GB/s ({ten_ours} simulated), the mean of the kernels, and "
        f"{twenty} ({twenty_ours}) when",
    )


def test_the_simulation_is_as_close_as_the_page_says() -> None:
    held = [one for one in measured() if one.is_held_out]
    nulls = [f"{100 * model.mean_error(held):.1f}" for model in (null_model(), null_model_of_all())]
    within = sum(abs(off(row)) <= 0.1 for row in points())
    cxl_few = [
        row for row in set_points() if re.match(rf"2a, {CXL}, .* [123] threads?$", row["condition"])
    ]
    fast = [off(row) for row in points() if row["condition"].startswith(f"1b, {CXL}, socket 1")]
    copies = [
        of(f"1b, {CXL}, socket {socket}, 1 thread", "copy bandwidth", MEASURED) for socket in (1, 0)
    ]
    assert_says(
        "docs/stream.md",
        f"all {len(points())} measured points with the simulated ones; {within} are within 10 %",
        f"The {len(held_out())} held-out points are {mean_off(held_out())} % off on average",
        f"is {nulls[0]} % off where it is fitted to the same rows as the machine, and {nulls[1]} %",
        f"The {len(set_points())} rows of the calibrated groups are worse than the held-out ones: "
        f"{mean_off(set_points())} % on average, and {mean_off(cxl_few)} % for plain CXL memory",
        f"App-Direct is up to {100 * max(fast):.0f} % too fast",
        f"(one thread copies {copies[0]:.1f} GB/s in a pool, and {copies[1]:.1f} from socket 0)",
    )


def test_a_single_length_is_off_by_what_the_page_says() -> None:
    page = (DOCS / "streamer-claims.md").read_text(encoding="utf-8")
    after = page.partition("| a usual length off its mean, % |\n")[2].partition("\n\n")[0]
    offs = [float(line.strip("| ").split(" | ")[-1]) for line in after.splitlines()[1:]]
    assert len(offs) == 24
    doubled = [row["difference"] for row in data() if "twice the arrays" in row["condition"]]
    changes = [abs(float(change.rstrip("%"))) for change in doubled]
    assert len(changes) == 24
    [large] = [change for change in changes if change > 2]
    assert_says(
        "docs/stream.md",
        f"A single length is up to {max(offs):.1f} % off its mean",
        "23 of 24 means over five lengths change by less than 2 %",
        f"the other by {large} %",
    )


def test_prefetchers_leave_the_largest_error_of_the_set_rows() -> None:
    one = f"2a, {CXL}, socket 0, 1 thread"
    own = [off(row) for row in set_points() if row["condition"] == one]
    assert max(abs(off(row)) for row in set_points()) == max(own)
    span = f"{ends([100 * value for value in own])} % too fast"
    assert_says("docs/streamer.md", f"{span}, the largest error of the set rows")
    assert_says("docs/stream.md", span, "five things that are not public")
    listed = text("docs/streamer.md").partition("Five things are not public:")[2]
    assert listed.partition("**The null model**")[0].count(" - ") == 5


def test_the_search_left_most_to_one_thread_of_socket_0() -> None:
    first, *others = (
        f"2a, {CXL}, socket {place}"
        for place in (
            "0, 1 thread",
            "0, 10 threads",
            "1, 1 thread",
            "1, 4 threads",
            "1, 10 threads",
        )
    )
    squares = {
        condition: [
            math.log(1 + off(row)) ** 2 for row in points() if row["condition"] == condition
        ]
        for condition in (first, *others)
    }
    everything = [square for own in squares.values() for square in own]
    assert sum(squares[first]) > sum(everything) / 2
    left = f"{100 * math.sqrt(fmean(everything)):.0f} %"
    assert_says("docs/streamer.md", f"leave {left}, most of it one thread of socket 0")


def test_durable_streams_cost_what_the_page_says() -> None:
    alone, switch = "PM, no switch", "PM behind a switch, nopb"
    large = "PM behind a switch, pb_rf, 256 entries"
    latency = "Mean persist latency in ns"
    none, *by_mode = (durable(alone, mode, 1) for mode in DURABLE_MODES)
    before = float(durable(alone, "none", 10))
    block, transaction = (
        f"{100 * (1 - float(durable(alone, mode, 10)) / before):.0f} %"
        for mode in ("block:512", "transaction")
    )
    kept, waited = (durable(one, "block:512", 1, latency) for one in (large, switch))
    ten = [f"{int(durable(one, 'block:512', 10, latency)):,}" for one in (large, switch)]
    blocks = {
        memory: durable(memory, "block:512", 1) for memory in ("PM behind a switch, pb", large)
    }
    assert_says(
        "docs/stream-study.md",
        f"`block:512` costs {block}. Transactions cost {transaction}",
        f"{none} GB/s without a persist, and {by_mode[0]}, {by_mode[1]} and {by_mode[2]} in the",
        f"gain from `pb`: {blocks['PM behind a switch, pb']} GB/s instead of "
        f"{durable(switch, 'block:512', 1)} behind",
        f"gets {blocks[large]} GB/s from it, and a persist takes {kept} instead of {waited} ns",
        f"a persist takes {ten[0]} ns with it and {ten[1]} without",
    )


def test_better_expanders_gain_what_the_page_says() -> None:
    gains = {
        name: float(cells[-1])
        for name, cells in table_below("streamer-forward.md", "GB/s with 10 threads:").items()
    }
    more_reads = [gains["32 reads in flight"], gains["64 reads in flight"]]
    assert_says(
        "docs/stream-study.md",
        f"DDR5-5600 gives {gains['DDR5-5600']:.1f} times the prototype's bandwidth",
        f"alone give at most {100 * (max(more_reads) - 1):.0f} %",
        f"four of them give {gains['four channels']:.1f} times, two DDR5 DIMMs with 64 reads in "
        f"flight {gains['two DDR5-5600 DIMMs, 64 reads']:.2f} times",
    )


def test_mixes_of_expanders_give_what_the_page_says() -> None:
    def mean(mix: str) -> float:
        return fmean(rates(f"interleave, {mix}, 10 threads"))

    one, local = mean("1 expander"), mean("local")
    assert mean("2 expanders, 1:1") / one == pytest.approx(2, abs=0.05)
    assert mean("local and 1 expander, 1:1") < local
    assert_says(
        "docs/stream-study.md",
        f"two give twice the bandwidth of one, four {mean('4 expanders, 1:1:1:1') / one:.1f} times",
        f"with 4:1 they are {100 * (mean('local and 1 expander, 4:1') / local - 1):.0f} % faster",
    )


def test_hosts_that_share_an_expander_get_what_the_page_says() -> None:
    one, two = (
        of(f"sharing, STREAM on {hosts}, 10 threads each", "mean bandwidth")
        for hosts in ("one host", "two hosts")
    )
    assert two == pytest.approx(one, rel=0.02)
    assert_says("docs/stream-study.md", f"moves {two:.1f} GB/s in all, as one host alone does")


def iterations(placement: str, threads: int) -> list[int]:
    line = f"Microseconds of an iteration with {THREADS[threads]}, by `--persist`:"
    return [int(cell) for cell in table_below("streamer-durable.md", line)[placement]]


def test_checkpoints_cost_what_the_page_says() -> None:
    local, far = "all local", "vectors local, pool on the expander"
    added, longer = {}, {}
    for threads in (1, 10):
        for place in (local, far):
            none, checkpoint, iteration = iterations(place, threads)
            more = checkpoint - none
            added[place, threads] = f"{more} µs ({100 * more / none:.0f} %)"
            longer[place, threads] = f"{iteration / none:.1f}"
    dearer = sorted(
        (far_checkpoint - far_none) / (checkpoint - none)
        for threads in (1, 10)
        for far_none, far_checkpoint, _ in [iterations(far, threads)]
        for none, checkpoint, _ in [iterations(local, threads)]
    )
    buffered = iterations("the same behind a switch, pb_rf", 10)[1]
    assert_says(
        "docs/stream-study.md",
        f"costs {dearer[0]:.1f} to {dearer[1]:.1f} times as much as one to local memory",
        f"adds {added[far, 10]} to an iteration of ten threads if the pool is on the expander, "
        f"and {added[local, 10]} if it is local",
        f"With one thread it adds {added[far, 1]} and {added[local, 1]}",
        f"with ten threads, iterations take {longer[far, 10]} times as long with the pool on the "
        f"expander, and {longer[local, 10]} times with everything local; with one thread, "
        f"{longer[far, 1]} and {longer[local, 1]} times",
        f"an iteration of ten threads takes {buffered} µs instead of {iterations(far, 10)[1]}",
    )
