"""`fencepost crash` hides nothing: every fault of a program is found, whatever else fails before it
and however often, and the store that is named is the one whose loss decides."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line_of
from fencepost.crash import folder
from fencepost.crash.minimise import Choice, minimise
from fencepost.crash.text import lines
from installed import Fencepost

PROGRAMS = Path(__file__).parent / "crash_programs"

Explored = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture
def explore(fencepost: Fencepost, tmp_path: Path) -> Callable[..., Explored]:
    """Builds a program, records and explores it; its second argument makes it the check."""

    def run(source: str, *options: object, compiler: str = "gcc -O1") -> Explored:
        build = [*compiler.split(), "-g", "-w", "-o", "program", str(PROGRAMS / source)]
        if not (tmp_path / "program").exists():
            subprocess.run(build, cwd=tmp_path, check=True)
        own = ["--pm", "file:pool", "--check", "./program {image} check", "--out", "found"]
        done = fencepost("crash", "pcs-table1", *own, *options, "--", "./program", "pool")
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def innermost(place: dict[str, Any]) -> int:
    return int(place["frames"][0]["line"])


def found_in(result: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """By fault, of the first violation of it, the lines of the lost and of the durable store."""

    def line(store: dict[str, Any]) -> int:
        source = store["source"]
        found: int = source["frames"][source["program_frame"]]["line"]
        return found

    ranked = {v["fault"]: (line(v["lost"]), line(v["durable"])) for v in result["violations"][::-1]}
    return dict(reversed(ranked.items()))


PLANTED = {
    "flush_before_store": ("early", "done"),
    "missing_fence": ("data", "commit"),
    "missing_flush": ("record", "linked"),
    "between_stores": ("right", "left"),
}


def planted(*faults: str) -> dict[str, tuple[int, int]]:
    """Where they are."""

    def line(remark: str) -> int:
        return line_of(PROGRAMS / "several_faults.c", remark)

    return {fault: (line(PLANTED[fault][0]), line(PLANTED[fault][1])) for fault in faults}


def test_no_fault_is_hidden_by_another_one_that_shows_at_many_instants_before_it(explore):
    done, result = explore("several_faults.c")
    assert done.returncode == 1, done.stdout + done.stderr
    found = found_in(result)
    assert found | planted(*PLANTED) == found
    [between] = [v for v in result["violations"] if v["output"] == "the two sides differ"]
    assert between["instants"] >= 60, "more than are looked into one by one"
    assert result["unexplained"] == [] and "not explained" not in done.stdout
    seen = sum(violation["images"] for violation in result["violations"])
    assert seen >= result["counts"]["failing"], "each image is counted to what it fails because of"


def test_the_lines_that_decide_are_among_those_shown(explore):
    _, result = explore("several_faults.c")
    [violation, *_] = result["violations"]
    other = violation["lines"][0]
    others = [other | {"offset": 0x100000 + 64 * number} for number in range(20)]
    result["violations"] = [violation | {"lines": [*others, *violation["lines"]]}]
    shown = [line for line in lines(result) if line.startswith("  in it ")]
    assert len(shown) == 8
    for store in (violation["lost"], violation["durable"]):
        assert f"  in it    the line at {store['offset'] & ~63:#x}" in shown


def test_two_stores_of_one_source_line_are_told_apart(explore):
    _, result = explore("several_faults.c")
    [violation, *_] = result["violations"]
    assert not any("on that line" in line for line in lines(result))
    result["violations"] = [violation | {"durable": violation["lost"] | {"offset": 0x40}}]
    offset = violation["lost"]["offset"]
    assert (
        f"  hint     both stores are on that line: the lost one stores at {offset:#x}, "
        "the durable one at 0x40"
    ) in lines(result)


def test_what_is_ignored_is_said_and_the_next_fault_is_shown(explore):
    remark = line_of(PROGRAMS / "several_faults.c", "early")
    done, result = explore(
        "several_faults.c", "--ignore", "between_stores", "--ignore", f"several_faults.c:{remark}"
    )
    assert done.returncode == 1
    assert next(iter(found_in(result).items())) == (
        "missing_fence",
        planted("missing_fence")["missing_fence"],
    )
    faults = {violation["fault"] for violation in result["violations"]}
    assert not faults & {"between_stores", "flush_before_store"}
    ignored = Counter(violation["fault"] for violation in result["ignored"])
    assert ignored["flush_before_store"] == 1 and ignored["between_stores"] >= 1
    assert "ignored: flush before the store at main (" in done.stdout
    assert 60 <= result["counts"]["ignored"] < result["counts"]["failing"]


def test_the_next_fault_of_a_finished_exploration_is_shown_without_another_check(explore, tmp_path):
    _, first = explore("several_faults.c")
    [early, *_] = first["violations"]
    known = f"several_faults.c:{innermost(early['lost']['source'])}"
    done, result = explore("several_faults.c", "--ignore", known)
    assert done.returncode == 1, done.stderr
    assert result["violations"][0]["fault"] == first["violations"][1]["fault"]
    assert result["record"] == first["record"]
    assert result["counts"]["checked"] == 0
    assert result["counts"]["resumed"] == first["counts"]["images"]
    assert result["counts"]["failing"] == first["counts"]["failing"]
    for failing in (*result["ignored"], *result["violations"]):
        shown = subprocess.run(failing["show"], shell=True, cwd=tmp_path, check=False)
        assert shown.returncode == 1, "its image is there"


def test_where_all_that_fails_is_ignored_the_exit_code_is_that_of_no_violation(explore):
    every = [word for fault in (*PLANTED, "later_store") for word in ("--ignore", fault)]
    done, result = explore("several_faults.c", *every)
    assert done.returncode == 0, done.stdout
    assert result["counts"]["ignored"] == result["counts"]["failing"] > 60
    last = done.stdout.splitlines()[-1]
    assert last.startswith("crash: no violation but what --ignore names in ")


@pytest.mark.parametrize(
    ("ignored", "message"),
    [
        ("nothing", "--ignore nothing: that is neither a line of the program (FILE:LINE, as in "),
        ("other.c:7", "no store of the program to the pool comes from there; nor is there any "),
        ("several_faults.c:1", "the nearest lines of it that store there: "),
    ],
)
def test_what_cannot_be_ignored_is_named(ignored, message, explore):
    done, _ = explore("several_faults.c", "--ignore", ignored)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("mistyped", "message"),
    [
        (["--ignore", "several_faults.c:1"], "no store of the program to the pool comes from"),
        (["--check", "false {image}"], "it fails without any power cut"),
        (["--pool-size", "1"], "--pool-size 1: too small"),
    ],
)
def test_a_mistyped_option_costs_nothing_of_a_finished_exploration(
    mistyped, message, explore, fencepost, tmp_path
):
    explore("several_faults.c")
    found = tmp_path / "found"
    kept = {path: path.read_bytes() for path in found.iterdir() if path.is_file()}
    assert any(path.suffix == ".image" for path in kept)
    own = ["--pm", "file:pool", "--check", "./program {image} check", "--out", "found"]
    done = fencepost("crash", "pcs-table1", "found/record.fencepost", *own, *mistyped)
    assert done.returncode == 2 and message in done.stderr
    assert kept == {path: path.read_bytes() for path in found.iterdir() if path.is_file()}


def test_an_image_that_the_next_result_does_not_name_is_removed(tmp_path):
    for name in ("left.image", "named.image", "shown.image"):
        (tmp_path / name).touch()
    result = {"violations": [], "ignored": [{"image": "named.image"}], "unexplained": []}
    folder.write_result(tmp_path, result)
    assert {path.name for path in tmp_path.iterdir()} == {"crash.json", "named.image"}


@pytest.mark.parametrize("compiler", ["g++ -O0", "g++ -O2"])
def test_the_store_whose_loss_decides_is_named_by_its_line_of_the_program(compiler, explore):
    done, result = explore("leaves.cpp", compiler=compiler)
    assert done.returncode == 1, done.stdout + done.stderr
    first = result["violations"][0]
    assert first["fault"] == "missing_flush"
    lost, durable = first["lost"]["source"], first["durable"]["source"]
    frames = [place["frames"][place["program_frame"]] for place in (lost, durable)]
    assert [frame["line"] for frame in frames] == [
        line_of(PROGRAMS / "leaves.cpp", "removed"),
        line_of(PROGRAMS / "leaves.cpp", "counted out"),
    ]
    assert [frame["function"] for frame in frames] == [
        "pm::Leaf<unsigned long>::remove(unsigned long)",
        "pm::Tree<unsigned long>::remove(unsigned long)",
    ]
    shown = next(line for line in done.stdout.splitlines() if line.startswith("  lost "))
    assert re.match(
        r"  lost     pm::Leaf<unsigned long>::remove\(unsigned long\) \(.*leaves.cpp", shown
    )
    assert "← pm::Tree<unsigned long>::remove(unsigned long) (" in shown, "and what called it"
    assert "_ZN" not in done.stdout and "/usr/include" not in done.stdout
    # In the image that is kept a hint of the insertion is lost before it.
    of_line = next(
        line for line in first["lines"] if line["offset"] == first["lost"]["offset"] // 64 * 64
    )
    oldest = of_line["lost"][0]["first"]
    assert oldest["source"]["frames"][oldest["source"]["program_frame"]]["line"] == line_of(
        PROGRAMS / "leaves.cpp", "hint"
    )


def test_stores_that_belong_together_are_one_fault_however_many_they_are(explore):
    done, result = explore("unlogged.c")
    assert done.returncode == 1, done.stdout + done.stderr
    [between] = [v for v in result["violations"] if v["fault"] == "between_stores"]
    lost_and_durable = (
        line_of(PROGRAMS / "unlogged.c", "second"),
        line_of(PROGRAMS / "unlogged.c", "first"),
    )
    assert found_in({"violations": [between]}) == {"between_stores": lost_and_durable}
    assert between["instants"] >= 3 * 5, "between any two of them"


def test_what_a_library_stores_belongs_to_the_line_that_called_it(explore, tmp_path):
    done, result = explore("copies.c")
    assert done.returncode == 1, done.stdout + done.stderr
    found = found_in(result)
    assert found["missing_flush"] == (
        line_of(PROGRAMS / "copies.c", "copied"),
        line_of(PROGRAMS / "copies.c", "valid"),
    )
    [violation] = [v for v in result["violations"] if v["fault"] == "missing_flush"]
    assert "libc" in violation["lost"]["source"]["module"]
    called = [
        (place["frames"][0]["function"], innermost(place)) for place in violation["called_from"]
    ]
    remarks = ("called in a loop", "called behind it")
    assert sorted(called) == [
        ("main", line_of(PROGRAMS / "copies.c", remark)) for remark in remarks
    ]
    assert "\n  called   from main (" in done.stdout


def tried(fails: Callable[[Choice], bool]) -> tuple[Callable[[Choice], bool], list[Choice]]:
    """The same, and what it was asked."""
    asked: list[Choice] = []

    def ask(choice: Choice) -> bool:
        asked.append(list(choice))
        return fails(choice)

    return ask, asked


def test_minimising_stops_at_the_stores_that_decide():
    # Line 0 has to be at 40 at least where line 1 is at 7 or more; line 2 does not matter.
    ask, asked = tried(lambda choice: choice[1] >= 7 and choice[0] < 40)
    minimal = minimise([20, 30, 5], [0, 0, 0], [100, 100, 9], ask)
    assert minimal.smallest == [0, 7, 0]
    assert minimal.choice == [39, 7, 9] and (minimal.early, minimal.lost) == ([1], [0])
    assert len(asked) < 40, "halves, not one after the other"


def test_minimising_loses_nothing_below_the_floor():
    ask, asked = tried(lambda choice: choice[0] < 3 or choice[1] < 5)
    minimal = minimise([9, 2], [3, 0], [9, 9], ask)
    assert all(choice[0] >= 3 for choice in asked)
    assert minimal.smallest == [3, 0] and minimal.choice == [9, 4] and minimal.lost == [1]


def test_images_that_nothing_explains_are_listed_with_their_instants(explore):
    _, result = explore("several_faults.c", "--images", "2")
    failing = result["violations"][0]
    result["unexplained"] = [
        {
            "outcome": "exit 1",
            "output": "odd",
            "whole_output": None,
            "images": 5,
            "instants": [{"ps": 1_500_000, "images": 2}, {"ps": 2_000_000, "images": 3}],
            "image": "unexplained-1.image",
            "show": failing["show"],
        }
    ]
    printed = list(lines(result))
    at = printed.index("not explained 1: 5 failing images")
    assert printed[at + 1 : at + 4] == [
        "  check    exit 1: odd",
        "  image    found/unexplained-1.image",
        "  cut at   1.500 us (2), 2.000 us (3)",
    ]
    assert "5 failing images not explained" in printed


def test_an_image_that_no_store_explains_is_kept_and_shown(explore, tmp_path):
    done, result = explore("sevens.c")
    assert done.returncode == 1, done.stdout + done.stderr
    assert result["counts"]["failing"] == 64 - 10, "all but 0, 7 … 63"
    [unexplained] = result["unexplained"]
    assert (tmp_path / "found" / unexplained["image"]).stat().st_size == 4096
    assert unexplained["outcome"] == "exit 1"
    explained = sum(violation["images"] for violation in result["violations"])
    assert explained + unexplained["images"] >= result["counts"]["failing"]
    at = done.stdout.splitlines().index(f"not explained 1: {unexplained['images']} failing images")
    assert done.stdout.splitlines()[at + 1] == f"  check    exit 1: {unexplained['output']}"
    shown = subprocess.run(
        unexplained["show"], shell=True, cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stdout.strip()) == (1, unexplained["output"])


def test_what_is_torn_stays_torn_only_where_whole_stores_pass():
    # Line 0 has whole contents 0 and 3, line 1 has 0 and 1.
    wholes = [[0, 3], [0, 1]]

    def torn_fails(choice: Choice) -> bool:
        return choice[0] == 2

    minimal = minimise([2, 1], [0, 0], [3, 1], torn_fails, wholes)
    assert (minimal.smallest, minimal.early, minimal.lost) == ([2, 0], [0], [0])

    def lost_fails(choice: Choice) -> bool:
        return choice[0] != 3 and choice[1] == 1

    minimal = minimise([2, 1], [0, 0], [3, 1], lost_fails, wholes)
    assert (minimal.smallest, minimal.early, minimal.lost) == ([0, 1], [1], [0])
