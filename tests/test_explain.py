"""`fencepost explain`: which line persists, which fence waits for it, and what adds up to what."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fencepost import _core, machines
from fencepost.api import Explanation, Machine, explain
from fencepost.ask.explanation import causes, document, text
from fencepost.cli import main
from fencepost.replay import options, resolved
from fencepost.runs.experiment import Experiment
from installed import FENCEPOST, on_terminal

Document = dict[str, Any]

# Each statement that matters has a line of its own.
PROGRAM = """
#include <stdlib.h>
__attribute__((noinline)) static void persist(char *line) {
  __asm__ volatile("clwb (%0)" ::"r"(line) : "memory"); /* of persist */
  __asm__ volatile("sfence" ::: "memory");              /* fence of persist */
}
int main(void) {
  char *lines = aligned_alloc(64, 64 * 16), on_stack[64];
  for (int i = 0; i < 100; i++) {
    lines[64 * (i % 4)] = (char)i;
    on_stack[0] = (char)i;
    __asm__ volatile("clwb (%0)" ::"r"(lines + 64 * (i % 4)) : "memory"); /* dirty */
    __asm__ volatile("clwb (%0)" ::"r"(lines + 64 * 6) : "memory");       /* clean */
    __asm__ volatile("clwb (%0)" ::"r"(on_stack) : "memory");             /* no PM */
    __asm__ volatile("sfence" ::: "memory");                              /* fence */
  }
  for (int i = 0; i < 10; i++) {
    lines[64 * 8] = (char)i;
    persist(lines + 64 * 8); /* first caller */
    persist(lines + 64 * 8); /* second caller */
  }
  return 0;
}
"""


def line_of(remark: str) -> int:
    """The line of the program that ends with that remark."""
    return 1 + next(
        number for number, line in enumerate(PROGRAM.splitlines()) if f"/* {remark} */" in line
    )


def entry(entries: list[Document], remark: str, caller: str | None = None) -> Document:
    """The entry of that line."""
    [found] = [
        entry
        for entry in entries
        if innermost(entry["place"]) == line_of(remark)
        and (caller is None or innermost(entry["called_from"]) == line_of(caller))
    ]
    return found


def innermost(place: Document | None) -> int | None:
    """The line of a place in the program, None of what lies elsewhere."""
    known = place["frames"][:1] if place else []
    return known[0]["line"] if known and (known[0]["file"] or "").endswith("known.c") else None


SCHEMES = ["nopb", "pb", "pb_rf", "pb_adaptive"]

# Each line of two arrays is touched once, in an order that no prefetcher follows.
WALK = """
#include <stdlib.h>
enum { LINES = 2048 };
int main(void) {
  volatile char *read = malloc(LINES * 64), *written = malloc(LINES * 64);
  volatile char on_stack[64] = {0};
  unsigned at = 0, hits = 0;
  for (int i = 0; i < LINES; i++) {
    at = (at * 5 + 1 + read[at * 64]) % LINES; /* reads */
    hits += on_stack[i % 64];                  /* hits */
  }
  for (int i = 0; i < LINES; i++) {
    at = (at * 5 + 1) % LINES;
    written[at * 64] = 1; /* writes */
  }
  return (int)hits;
}
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """The accesses of WALK that are marked there, by their remarks; its heap is PM."""
    folder = tmp_path_factory.mktemp("walk")
    (folder / "walk.c").write_text(WALK)
    subprocess.run(["gcc", "-O1", "-g", "-o", "walk", "walk.c"], cwd=folder, check=True)
    command = [FENCEPOST, "record", "-o", "walk.fencepost", "--", "./walk"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    explained = explain("pcs-table1", folder / "walk.fencepost", schemes=["nopb"])
    numbers = {
        remark: number
        for number, line in enumerate(WALK.splitlines(), 1)
        for remark in ("reads", "hits", "writes")
        if f"/* {remark} */" in line
    }
    found = {"explained": explained.document}
    for remark, number in numbers.items():
        kind = "store" if remark == "writes" else "load"
        [found[remark]] = [
            one
            for one in explained.accesses
            if one["kind"] == kind
            and [frame["line"] for frame in one["place"]["frames"]] == [number]
            and one["schemes"]["nopb"]["count"] == 2048
        ]
    return found


def test_the_lines_that_wait_for_memory_come_first(walked: dict[str, Document]) -> None:
    assert walked["explained"]["accesses"][:2] == [walked["reads"], walked["writes"]]
    reads, hits = (walked[name]["schemes"]["nopb"] for name in ("reads", "hits"))
    assert reads["from_memory"]["pm"] > 0.95 * 2048
    assert reads["from_memory"]["dram"] == reads["from_memory"]["expander"] == 0
    assert sum(hits["from_memory"].values()) <= 2
    assert reads["wait_ns"] > 100 * hits["wait_ns"]
    [run] = walked["explained"]["runs"]
    assert 0.5 < reads["wait_share_rate"] <= run["loads_waited_share_rate"] <= 1
    assert reads["wait_ns"] == pytest.approx(
        reads["wait_share_rate"] * run["simulated_ns"] * run["busy_cores"]
    )


def test_a_line_that_writes_memory_is_listed_with_what_came_from_there(
    walked: dict[str, Document],
) -> None:
    writes = walked["writes"]["schemes"]["nopb"]
    assert writes["from_memory"]["pm"] > 0.95 * 2048
    shown = list(text.lines(walked["explained"], 2, 80))
    assert any("whose loads or stores waited" in line for line in shown)
    place = shown.index(next(line for line in shown if line.endswith("main (load)")))
    assert shown[place].startswith("walk.c:") and " 2,048 " in shown[place + 1]


def test_lines_that_never_wait_are_counted_whole(walked: dict[str, Document]) -> None:
    """Where one of a line's instructions waits, the line is not shown with the accesses of that one
    alone; and lines of which none does are listed too."""
    found = walked["explained"]
    assert walked["hits"]["schemes"]["nopb"]["count"] == 2048
    check_sums(found)
    assert any(
        of["count"] > 0 and of["wait_ns"] == 0 and not any(of["from_memory"].values())
        for access in found["accesses"]
        for of in access["schemes"].values()
    )


def test_files_that_the_program_did_not_map_are_refused(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, value in (("--pm", "file:*.pool"), ("--place", "file:*.pool=pm0")):
        assert main(["explain", "pcs-table1", str(record), option, value]) == 2
        said = capsys.readouterr().err
        assert f"{option} file:*.pool: it matches nothing in known.fencepost" in said
        assert said.count("\n") == 1


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "known.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", "known", "known.c"], cwd=folder, check=True)
    command = [FENCEPOST, "record", "-o", "known.fencepost", "--", "./known"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "known.fencepost"


def test_a_program_that_is_loaded_at_a_fixed_address_has_its_lines(tmp_path: Path) -> None:
    (tmp_path / "known.c").write_text(PROGRAM)
    build = ["gcc", "-O1", "-g", "-no-pie", "-fno-pie", "-o", "fixed", "known.c"]
    subprocess.run(build, cwd=tmp_path, check=True)
    command = [FENCEPOST, "record", "-o", "fixed.fencepost", "--", "./fixed"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    explained = explain("pcs-table1", tmp_path / "fixed.fencepost", schemes=["nopb"]).document
    assert entry(explained["sites"], "dirty")["schemes"]["nopb"]["persist"]["count"] == 100
    assert entry(explained["fences"], "fence")["schemes"]["nopb"]["executions"] == 100


@pytest.fixture(scope="module")
def explained(record: Path) -> Document:
    return explain("pcs-table1", record).document


def test_a_line_that_is_always_clean_is_redundant(explained: Document) -> None:
    for of in entry(explained["sites"], "clean")["schemes"].values():
        assert (of["lines"], of["redundant"], of["persist"]["count"]) == (100, 100, 0)
        assert of["latency_ns"] == 0
        assert all(cause["share_rate"] is None for cause in of["causes"].values())
    for of in entry(explained["sites"], "dirty")["schemes"].values():
        assert (of["lines"], of["redundant"], of["persist"]["count"]) == (100, 0, 100)


def test_a_fence_waits_for_the_flush_that_is_slow(explained: Document) -> None:
    sites = explained["sites"]
    dirty, fence = entry(sites, "dirty"), entry(explained["fences"], "fence")
    # The line on the stack is flushed last, and is in DRAM long before the other is in PM.
    assert entry(sites, "no PM")["schemes"]["nopb"]["outside_pm"] == 100
    assert entry(sites, "no PM")["schemes"]["nopb"]["lines"] == 0
    for scheme, of in fence["schemes"].items():
        assert of["executions"] == 100
        [longest, *_] = of["waited_for"]
        assert sites[longest["site"]] is dirty
        assert longest["wait_ns"] > 0.9 * of["waited_ns"]
        assert dirty["schemes"][scheme]["fence_wait_ns"] == longest["wait_ns"]


def test_a_function_is_shown_once_for_each_line_that_calls_it(explained: Document) -> None:
    first = entry(explained["sites"], "of persist", "first caller")["schemes"]
    second = entry(explained["sites"], "of persist", "second caller")["schemes"]
    for scheme in first:
        assert (first[scheme]["lines"], first[scheme]["redundant"]) == (10, 0)
        assert (second[scheme]["lines"], second[scheme]["redundant"]) == (10, 10)
    assert entry(explained["sites"], "dirty")["called_from"] is None


def test_rows_have_every_line_under_every_scheme(explained: Document) -> None:
    found = Explanation(explained)
    rows = found.rows()
    assert len(rows) == sum(len(site["schemes"]) for site in found.sites)
    [dirty] = [row for row in rows if row["line"] == line_of("dirty") and row["scheme"] == "pb"]
    of = entry(explained["sites"], "dirty")["schemes"]["pb"]
    assert (dirty["function"], dirty["kind"], dirty["persists"]) == ("main", "clwb", 100)
    assert dirty["wait_ns"] == of["wait_ns"] and dirty["is_near_best"] is True
    assert found.runs == explained["runs"] and found.fences == explained["fences"]


def test_what_helps_most_costs_least_waiting(explained: Document) -> None:
    for site in explained["sites"]:
        waits = {}
        for scheme, of in site["schemes"].items():
            waits[scheme] = max(of["fence_wait_ns"], of["held_ns"])
            assert of["wait_ns"] == waits[scheme]
        assert waits[site["best"]] == min(waits.values())
        assert site["best_saves_ns"] == pytest.approx(waits["nopb"] - waits[site["best"]])
    [first, *_] = explained["sites"]
    assert first is entry(explained["sites"], "dirty")


def test_what_the_best_saves_is_over_the_baseline_that_is_chosen(
    record: Path, explained: Document, tmp_path: Path
) -> None:
    output = tmp_path / "over_pb.json"
    arguments = ["explain", "pcs-table1", str(record), "-q", "--baseline", "scheme=pb"]
    assert main([*arguments, "--json", str(output)]) == 0
    document = json.loads(output.read_text())
    assert document["provenance"]["baseline"] == "scheme=pb"
    changed = []
    for site, usual in zip(document["sites"], explained["sites"], strict=True):
        assert site["schemes"] == usual["schemes"]
        of = site["schemes"]
        saved = of["pb"]["wait_ns"] - of[site["best"]]["wait_ns"]
        assert site["best_saves_ns"] == pytest.approx(saved, abs=1e-3)
        changed.append(site["best_saves_ns"] != usual["best_saves_ns"])
    assert any(changed)


def near(**costs: tuple[float, float]) -> Document:
    """What is best at a line, from the waiting and the latency under each scheme."""
    schemes = {
        scheme: {"wait_ns": wait, "latency_ns": latency}
        for scheme, (wait, latency) in costs.items()
    }
    return document._best({"schemes": schemes}, "nopb")


def test_schemes_within_a_percent_of_the_best_are_marked_too() -> None:
    found = near(nopb=(200, 9), pb=(101, 8), pb_rf=(100, 7), pb_adaptive=(101.1, 1))
    assert (found["best"], found["near_best"]) == ("pb_rf", ["pb", "pb_rf"])
    assert found["best_saves_ns"] == 100
    idle = near(nopb=(0, 90), pb=(0, 50.4), pb_rf=(0, 50), pb_adaptive=(0.1, 1))
    assert (idle["best"], idle["near_best"]) == ("pb_rf", ["pb", "pb_rf"])
    nothing = near(nopb=(0, 0), pb=(0, 0))
    assert (nothing["best"], nothing["near_best"]) == ("nopb", ["nopb", "pb"])


def test_the_text_marks_every_scheme_that_is_near_the_best(explained: Document) -> None:
    lines = list(text.lines(explained, len(explained["sites"]), 200))
    assert lines[2].endswith("*: helps most there, or within 1% of what does")
    end = next(number for number, line in enumerate(lines) if "that waited" in line)
    alike = sum(line.startswith("  all alike") for line in lines[:end])
    marked = [line.split()[0] for line in lines if line[2:].split("  ")[0].endswith(" *")]
    near = [site["near_best"] for site in explained["sites"]]
    # Where all schemes show the same, no row is marked.
    assert near.count(SCHEMES) >= alike > 0
    assert len(marked) == sum(map(len, near)) - alike * len(SCHEMES)
    assert marked[: len(near[0])] == near[0]
    first = explained["sites"][0]
    assert first["best"] in first["near_best"] and "nopb" not in first["near_best"]


def check_origins(of: Document) -> None:
    """What a line waited for adds up to what it waited, and lines to those that memory sent."""
    origins = of["origins"]
    assert sum(origin["wait_ns"] for origin in origins.values()) == pytest.approx(of["wait_ns"])
    for memory, count in of["from_memory"].items():
        names = (memory, f"other_{memory}")
        assert sum(origins.get(name, {"lines": 0})["lines"] for name in names) == count


def check_sums(found: Document) -> None:
    """Sites add up to their run, and no share is above 1."""
    for run in found["runs"]:
        of_sites = [
            site["schemes"][run["scheme"]]
            for site in found["sites"]
            if run["scheme"] in site["schemes"]
        ]
        of_fences = [
            fence["schemes"][run["scheme"]]
            for fence in found["fences"]
            if run["scheme"] in fence["schemes"]
        ]
        assert sum(of["persist"]["count"] for of in of_sites) == run["persist"]["count"]
        assert sum(of["latency_ns"] for of in of_sites) == pytest.approx(run["latency_ns"])
        for part, ns in run["parts_ns"].items():
            assert sum(of["parts_ns"][part] for of in of_sites) == pytest.approx(ns)
        assert sum(of["held_share_rate"] for of in of_sites) <= 1
        of_loads = [
            access["schemes"][run["scheme"]]["wait_ns"]
            for access in found["accesses"]
            if access["kind"] == "load" and run["scheme"] in access["schemes"]
        ]
        assert sum(of_loads) == pytest.approx(run["loads_waited_ns"])
        assert 0 <= run["loads_waited_share_rate"] <= 1
        counts: Counter[str] = Counter()
        for access in found["accesses"]:
            if run["scheme"] in access["schemes"]:
                check_origins(access["schemes"][run["scheme"]])
                counts[access["kind"]] += access["schemes"][run["scheme"]]["count"]
        assert (counts["load"], counts["store"]) == (run["loads"], run["stores"])
        for of in of_sites:
            in_all = sum(cause["ns"] for cause in of["causes"].values())
            assert in_all == pytest.approx(sum(of["parts_ns"].values()))
            assert all(0 <= (cause["share_rate"] or 0) <= 1 for cause in of["causes"].values())
            assert 0 <= of["redundant_behind_writes"] <= of["redundant"] <= of["lines"]
        stall = run["fence_stall"]
        assert sum(of["stall"]["count"] for of in of_fences) == stall["count"]
        assert sum(of["stall_ns"] for of in of_fences) == pytest.approx(stall["total_ns"])
        waited = sum(of["waited_ns"] for of in of_fences)
        assert waited == pytest.approx(run["waited_ns"])
        assert 0 <= run["waited_share_rate"] <= 1
        charged = sum(of["fence_wait_ns"] for of in of_sites)
        assert charged + sum(of["stores_ns"] for of in of_fences) == pytest.approx(waited)
        for of in of_fences:
            assert sum(wait["wait_ns"] for wait in of["waited_for"]) <= of["waited_ns"] + 1e-6


def test_sites_add_up_to_their_run(explained: Document) -> None:
    check_sums(explained)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"persist": "sync"},
        {"persist": "every:7", "sets": ("core.count=1",)},
        {"limit_pm_writes": 40},
        {"sets": ('persist.flush="clwb"', "core.flush_holds_stores=true"), "persist": "sync"},
    ],
    ids=str,
)
def test_sites_of_a_region_with_threads_add_up(fft_record: Path, choice: dict[str, Any]) -> None:
    choice = dict(choice)
    machine = Machine("pcs-table1", "pcs-table1", choice.pop("sets", ()))
    is_inserting = "persist" in choice
    found = explain(machine, fft_record, **choice).document
    check_sums(found)
    assert found["runs"][0]["persist"]["count"] > 0
    inserted = [site for site in found["sites"] if site["is_inserted"]]
    assert bool(inserted) == is_inserting
    # What is inserted is said to be where the program releases or stores, in its own source.
    assert any(site["place"]["frames"] for site in inserted) or not inserted


TWO_SOCKETS = (
    "core.count=4",
    "sockets.count=2",
    "socket_link.bandwidth_gb_per_s=68",
    "socket_link.latency_ns=40",
    "socket_link.credits=64",
)


@pytest.mark.parametrize("persist", ["program", "sync"])
def test_sites_of_two_sockets_add_up(fft_record: Path, persist: str) -> None:
    machine = Machine("pcs-table1", "pcs-table1", TWO_SOCKETS)
    found = explain(machine, fft_record, persist=persist, threads="spread").document
    check_sums(found)
    for run in found["runs"]:
        assert run["persist"]["count"] > 0
        lines: Counter[str] = Counter()
        for access in found["accesses"]:
            origins = access["schemes"].get(run["scheme"], {"origins": {}})["origins"]
            lines.update({name: origin["lines"] for name, origin in origins.items()})
        # Each thread reads what the other has written, and PM through both home agents.
        assert min(lines[name] for name in ("other_caches", "pm", "other_pm")) > 0, lines
        assert lines["caches"] == 0


def test_the_text_says_which_lines_wait_for_another_socket(
    fft_record: Path, explained: Document
) -> None:
    machine = Machine("pcs-table1", "pcs-table1", TWO_SOCKETS)
    found = explain(machine, fft_record, schemes=["nopb"], threads="spread").document
    table = "\n".join(text.lines(found, 1000, 200)).partition("whose loads or stores waited")[2]
    assert "other caches " in table and "other PM " in table
    alone = "\n".join(text.lines(explained, 1000, 200))
    assert "other " not in alone.partition("whose loads or stores waited")[2]


@pytest.mark.parametrize(("sets", "threads"), [((), "free"), (TWO_SOCKETS, "spread")])
def test_counting_changes_no_result(fft_record: Path, sets: tuple[str, ...], threads: str) -> None:
    chosen = resolved(options(["nopb", "pb", "pb_rf"], threads=threads))
    on = {"pcs-table1": machines.resolve("pcs-table1", list(sets))}
    experiment = Experiment([_core.Record(str(fft_record), False)], ["fft"], on, chosen)
    plain = experiment.run(2, lambda _: None)
    counted = experiment.run(2, lambda _: None, _core.Job.explain)
    for run, other in zip(plain["runs"], counted["runs"], strict=True):
        assert other.pop("persist_sites") and other.pop("accesses")
        for differs in ("host_seconds", "mips", "regions"):
            del run[differs], other[differs]
        assert run == other


def test_two_explanations_are_the_same(record: Path, explained: Document) -> None:
    assert json.dumps(explain("pcs-table1", record, jobs=1).document) == json.dumps(explained)


def test_what_the_host_bridge_takes_by_itself_is_no_ordering() -> None:
    parts = dict.fromkeys([part for parts in causes.CAUSES.values() for part in parts], 0.0)
    parts |= {"core": 10.0, "cache": 5.0, "host_bridge": 4 * 2 * 3.0 + 7, "media": 54.0}
    found = causes.of_parts(parts, persists=4, bridge_latency_ns=3.0)
    assert (found["host"]["ns"], found["ordering"]["ns"]) == (34.0, 12.0)
    assert found["media"]["share_rate"] == pytest.approx(0.54)


def test_the_command_writes_a_table_and_the_document(
    record: Path, explained: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [run["scheme"] for run in explained["runs"]] == ["nopb", "pb", "pb_rf", "pb_adaptive"]
    # In the order in which one may think of them too: what, and on what.
    arguments = ["explain", str(record), "pcs-table1", "-q", "--top", "2"]
    assert main([*arguments, "--json", str(tmp_path / "found.json")]) == 0
    assert json.loads((tmp_path / "found.json").read_text()) == explained
    shown = capsys.readouterr().out
    assert "2 of 5 lines that persist" in shown
    one = explained | {"sites": explained["sites"][:1], "fences": explained["fences"][:1]}
    alone = list(text.lines(one, 2, 200))
    assert any(line.startswith("1 line that persists; ") for line in alone)
    assert "1 fence that waited" in alone
    assert f"known.c:{line_of('dirty')} main (clwb)" in shown
    assert "(100 %)" not in shown and "on 1 core; waits: fences " in shown


@pytest.mark.parametrize("width", [80, 200])
def test_the_text_says_what_is_redundant_and_who_called(explained: Document, width: int) -> None:
    lines = list(text.lines(explained, 10, width))
    assert any("100 (100%)" in line for line in lines)
    assert any(f"← known.c:{line_of('second caller')} main" in line for line in lines)
    dirty = entry(explained["sites"], "dirty")["schemes"]["nopb"]["causes"]
    named = sum(
        f"{causes.LABELS[name]} {cause['share_rate']:.0%}" in "".join(lines)
        for name, cause in dirty.items()
    )
    assert named >= (1 if width == 80 else 3)
    assert width == 200 or max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nosuch", "RECORD"], "nosuch"),
        (["pcs-table1"], "either a record or, behind --, a program is needed"),
        (["pcs-table1", "RECORD", "--schemes", "pb,none"], "there is no scheme `none`"),
        (["pcs-table1", "RECORD", "--json", "RECORD"], "would overwrite the input"),
        (["pcs-table1", "RECORD", "--set", "switch.nothing=1"], "switch.nothing"),
        (["pcs-table1", "RECORD", "--baseline", "placement="], "it has to be scheme=SCHEME"),
        (["pcs-table1", "RECORD", "--baseline", "pb"], "it has to be AXIS=VALUE"),
    ],
)
def test_wrong_input_is_one_message(
    record: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(record) if argument == "RECORD" else argument for argument in arguments]
    assert main(["explain", *given]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "Traceback" not in said


def test_a_program_that_was_built_anew_has_no_lines(record: Path, tmp_path: Path) -> None:
    program = record.with_name("known")
    kept = program.read_bytes()
    changed = PROGRAM.replace("i < 100", "i < 101")
    (tmp_path / "other.c").write_text(changed)
    program.unlink()
    try:
        subprocess.run(
            ["gcc", "-O1", "-g", "-o", str(program), "other.c"], cwd=tmp_path, check=True
        )
        found = explain("pcs-table1", record, schemes=["pb"]).document
    finally:
        program.write_bytes(kept)
    assert all(site["place"]["frames"] == [] for site in found["sites"])
    said = f"{program} is not the file that was recorded: its source lines are not known"
    assert said in found["runs"][0]["warnings"]
    assert text.label(found["sites"][0]).startswith("known+0x")


@pytest.mark.parametrize("columns", [50, 80])
def test_on_a_terminal_of_any_width_words_and_numbers_stay_whole(
    columns: int, fft_record: Path, tmp_path: Path
) -> None:
    command = [FENCEPOST, "explain", "pcs-table1", fft_record, "--quiet", "--json", "d.json"]
    shown = on_terminal(columns, command, tmp_path).splitlines()
    assert max(map(len, shown)) <= columns
    found = json.loads((tmp_path / "d.json").read_text())
    # Of less width than this only the number of causes depends.
    unbroken = list(text.lines(found, 10, text.WIDE - 1))
    assert max(map(len, unbroken)) > columns
    assert words_of(shown) == words_of(unbroken)
    # A column on a line of its own has its heading there, in each row.
    assert not {"for", "wait for", "waits for"} & {line.strip() for line in shown}


def words_of(lines: list[str]) -> Counter[str]:
    """All but rules, and the heading of the last column, which may stand in each row."""
    words = Counter(word for line in lines for word in line.split() if word[0] != "─")
    return words - Counter(dict.fromkeys(("persists", "wait", "waits", "for"), words.total()))
