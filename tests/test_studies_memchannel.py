"""The transport study: every published figure has a row, and effects come out of the machine."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost import traffic
from fencepost._core import InputError
from fencepost.evidence import Lab
from fencepost.rows.layout import WORDS_MAX
from fencepost.rows.page import Section, pages
from fencepost.rows.row import SET
from fencepost.studies.memchannel import metrics, study
from fencepost.studies.memchannel.points import Point, point, results
from fencepost.studies.memchannel.programs import Tenant, Together, check_all_ran
from fencepost.studies.memchannel.published import names, with_transport, without
from fencepost.studies.memchannel.streams import PORT, anywhere, chasing, streaming
from fencepost.studies.memchannel.study import TOPICS
from fencepost.studies.memchannel.tiering import Tiering
from fencepost.studies.memchannel.topic import order, row
from fencepost.studies.memchannel.victims import ANSWER
from installed import Fencepost

SHORT_NS = 20_000.0


def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, lambda _: None)


def short(streams: list[traffic.Stream], *sets: str) -> Point:
    return point(streams, measure_ns=SHORT_NS, warm_up_ns=SHORT_NS, sets=sets)


def test_numbers_of_a_cell_are_read_in_their_order() -> None:
    assert without("uncore contention", "latency") == [50.1, 669.4]
    assert without("stride 2 (x64B)", "read lat / read bw / write lat / write bw") == [
        15.6,
        15.3,
        13.2,
        18.0,
    ]
    assert with_transport("Silo YCSB-A", "avg / tail latency reduction") == [28.6, 8.7]
    with pytest.raises(KeyError):
        without("uncore contention", "colour")


# Of the experiment, not of what came of it; and what was computed from other rows of the file.
CONDITIONS = {
    ("Table 1", "threads"),
    ("fairness runs", "threads per application"),
    ("prefetch experiment", "NOPs between accesses"),
    ("TPP comparison", "local to remote capacity"),
}
COMPUTED = {
    ("in-fabric HoL", "share of 4KB under strict round robin of lines"),
    ("victim latency rise", "ratio"),
    ("MICA+Silo one x8 port", "port utilisation"),
    ("MICA+Silo two x8 ports", "port utilisation"),
}


def asked_of_published() -> list[re.Pattern[str]]:
    """What the topics ask the file for, as patterns: of a text that is put together any part."""
    patterns = []
    for file in Path(study.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [getattr(part, "value", None) for part in parts]
            if any(isinstance(one, str) and re.search("[A-Za-z]", one) for one in texts):
                found = (re.escape(one) if isinstance(one, str) else ".+" for one in texts)
                patterns.append(re.compile("".join(found)))
    return patterns


def test_every_published_figure_is_asked_for_by_a_topic() -> None:
    text = (
        Path(__file__).parents[1] / "experiments/memchannel/memchannel_published.csv"
    ).read_text()
    assert len(names()) == len(text.strip().splitlines()) - 1
    assert set(names()) > CONDITIONS | COMPUTED
    patterns = asked_of_published()
    for row_of_file in set(names()) - CONDITIONS - COMPUTED:
        for word in filter(None, row_of_file):
            assert any(pattern.fullmatch(word) for pattern in patterns), row_of_file


def test_values_hold_within_fifteen_percent_and_percentages_within_five_points() -> None:
    assert row("c", "m", 200.0, 229.0, "ns").holds
    assert not row("c", "m", 200.0, 231.0, "ns").holds
    assert row("c", "m", 10.0, 14.9, "%").holds
    assert not row("c", "m", 10.0, 15.1, "%").holds
    assert order("c", "m", "less", "less").holds
    assert not order("c", "m", "less", "not less").holds


def test_what_is_not_modelled_is_neither_a_hit_nor_a_miss(tmp_path: Path) -> None:
    rows = Tiering().rows({}, lab(tmp_path))  # type: ignore[arg-type]
    assert [one.note for one in rows] == ["not modelled"] * 3
    assert not any(one.misses or one.holds for one in rows)


def test_a_tenant_that_ends_early_is_noticed() -> None:
    together = Together((Tenant("bwaves", 1, 9, 64), Tenant("stream", 2, 9, 32)), 4, 5)

    def run(*system_calls: int) -> dict[str, Any]:
        cores = {f"core{core}": {"system_calls": calls} for core, calls in enumerate(system_calls)}
        return {"statistics": {"host0": cores}}

    check_all_ran(run(0, 0, 0), together)
    for calls, ended in (((0, 0, 2), 1), ((0, 2, 2), 2)):
        with pytest.raises(InputError, match=f"stream:2:9:32: {ended} of its threads end before"):
            check_all_ran(run(*calls), together)


def test_jains_index_is_one_of_equals_and_a_part_where_one_has_all() -> None:
    assert metrics.jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert metrics.jain([3.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert metrics.jain([0.0]) == 1.0


def test_a_share_has_settled_after_its_last_value_that_is_a_tenth_off() -> None:
    history = [[1.0, 9.0], [2.0, 2.0], [3.0, 4.2], [4.0, 4.1], [5.0, 4.0], [6.0, 9.0]]
    assert metrics.settled_after(history, 0.0, 5.0) == 2.0
    assert metrics.settled_after(history, 2.0, 5.0) == 0.0


def test_results_come_from_the_store_the_second_time(tmp_path: Path) -> None:
    own = lab(tmp_path)
    asked = [short([chasing()]), short([chasing()])]
    first = results(own, asked)
    assert first[0] == first[1]
    kept = list((tmp_path / "results").glob("traffic-*.json"))
    assert len(kept) == 1
    kept[0].write_text(json.dumps(first[0] | {"interval_ns": 1.0}))
    assert results(own, asked[:1])[0]["interval_ns"] == 1.0
    assert results(own, [short([chasing()], "link.latency_ns=20")])[0]["interval_ns"] == SHORT_NS


# Each effect goes away with the cause that the study gives for it; no other knob is touched.
def test_a_victim_waits_as_long_as_all_lines_under_way_take_the_port(tmp_path: Path) -> None:
    few, many = results(
        lab(tmp_path), [short([chasing(), *streaming(PORT, threads)]) for threads in (6, 12)]
    )
    # Little's law: lines under way over the port's rate.
    for result, threads in ((few, 6), (many, 12)):
        expected = (48 * threads + 1) * 64 / traffic.bandwidth(result)
        assert traffic.latency(result, 0) == pytest.approx(expected, rel=0.1)


def test_hits_of_the_last_level_wait_only_while_its_entries_are_taken(tmp_path: Path) -> None:
    streams = [chasing("llc"), *streaming()]
    alone, waits, has_room = results(
        lab(tmp_path),
        [short(streams[:1]), short(streams), short(streams, "cache.l3.mshrs=1024")],
    )
    hit = traffic.latency(alone, 0)
    assert traffic.latency(waits, 0) > 8 * hit
    assert traffic.latency(has_room, 0) == pytest.approx(hit, rel=0.01)


def test_a_transport_gives_a_victim_more_and_wastes_little(tmp_path: Path) -> None:
    streams = [anywhere(), *streaming(PORT, 6)]
    quick = {"sets": ("transport.window_us=20", "transport.interval_us=100")}
    ns = {"measure_ns": 200_000.0, "warm_up_ns": 600_000.0}
    without_any, with_one = results(
        lab(tmp_path),
        [
            Point((tuple(streams),), transport=name, **ns, **quick)  # type: ignore[arg-type]
            for name in ("none", "memchannel")
        ],
    )
    assert traffic.bandwidth(with_one, 0) > 1.5 * traffic.bandwidth(without_any, 0)
    assert metrics.mean_latency(with_one, [0]) < metrics.mean_latency(without_any, [0])
    assert traffic.bandwidth(with_one) > 0.85 * traffic.bandwidth(without_any)
    history = metrics.intervals(with_one, "vcs0 -> host0")
    assert len(history) == 8
    assert "transport" not in without_any


def test_a_part_is_reproduced_from_the_command_line(fencepost: Fencepost, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    parts = ["--part", "platform", "--part", "shares", "--part", "tpp"]
    words = ["reproduce", "memchannel", "--quick", *parts, "--out", str(tmp_path / "out")]
    printed = fencepost(*words, "--json", str(file), "-q", check=True).stdout
    assert printed.splitlines()[-1].startswith("memchannel: ")
    document = json.loads(file.read_text())
    assert {one["role"] for one in document["rows"]} > {SET}
    bandwidth = [one for one in document["rows"] if one["metric"] == "bandwidth"]
    assert all(one["holds"] for one in bandwidth)


def test_pages_are_short_and_the_first_begins_with_the_answer() -> None:
    docs = Path(__file__).parents[1] / "docs"
    texts = {page.stem: page.read_text() for page in docs.glob("memchannel*.md")}
    assert set(texts) == {"memchannel", *(topic.page.name for topic in TOPICS)}
    assert max(len(text.split()) for text in texts.values()) <= WORDS_MAX
    opening = texts["memchannel"].partition("\n## ")[0]
    assert opening.index(ANSWER) < opening.index("fencepost reproduce") < opening.index("NSDI")


def test_a_cause_begins_small_within_a_sentence_unless_it_is_in_capitals() -> None:
    causes = ("A port that is not full", "Lines in flight", "CHA occupancy")
    missed = [
        replace(row("c", "m", 200.0, 300.0, "ns"), reason=f"**{cause}.** Why.") for cause in causes
    ]
    told = pages([Section("Title", "", "", missed, page=TOPICS[0].page)])
    assert "a port that is not full (1); lines in flight (1); CHA occupancy (1)" in told


def test_every_topic_has_a_part_of_its_own() -> None:
    parts = [topic.part.name for topic in TOPICS]
    assert len(set(parts)) == len(parts)
    assert {"adapter", "uncore", "fabric", "shares", "prefetch", "victims"} < set(parts)


@pytest.mark.parametrize(
    ("key", "wrong", "said"),
    [
        ("transport.utilisation", "1.5", "1.5 is out of range"),
        ("transport.window_us", "0", "0 is out of range"),
        ("transport.load.egress_sample_ns", "32", "32 is out of range"),
        ("transport.congestion", "'luck'", "luck"),
        ("transport.windows", "3", "there is no such key"),
        ("link.one_header_per_slot", "2", "true or false"),
        ("cache.l2.prefetch_mshrs", "0", "0 is out of range"),
    ],
)
def test_wrong_values_of_keys_are_named(
    fencepost: Fencepost, key: str, wrong: str, said: str
) -> None:
    refused = fencepost("machine", "show", "xconn-emr", "--set", f"{key}={wrong}")
    assert refused.returncode == 2
    assert key.rpartition(".")[2] in refused.stderr
    assert said in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["latency", "xconn-emr", "--transport", "fair"], "fair"),
        (["compare", "xconn-emr", "x.fencepost", "--axis", "transport=fair"], "waterfill"),
    ],
)
def test_a_transport_that_there_is_not_is_refused(
    fencepost_here: Fencepost, words: list[str], said: str
) -> None:
    refused = fencepost_here(*words)
    assert refused.returncode == 2
    assert said in refused.stderr
