"""What is found because of one mistake is reported as one."""

from typing import Any

from fencepost.crash import same_mistake


def store(line: int | None, file: str = "a.c") -> dict[str, Any]:
    frames = [{"function": "put", "file": file, "line": line}]
    return {"source": {"frames": frames, "line": 1, "program_frame": 0}}


def violation(fault: str, lost: int | None, durable: int | None) -> dict[str, Any]:
    return {"fault": fault, "lost": store(lost), "durable": durable and store(durable)}


def marked(*violations: dict[str, Any]) -> list[int | None]:
    same_mistake.mark(list(violations))
    return [one["same_as"] for one in violations]


def test_vague_violations_on_a_line_of_a_named_one_are_of_that_mistake():
    named = violation("missing_flush", 77, 81)
    later, between = violation("later_store", 81, 76), violation("between_stores", 77, 81)
    assert marked(named, later, between) == [None, 0, 0]


def test_violations_elsewhere_and_those_that_name_something_are_of_their_own():
    first, second = violation("missing_flush", 77, 81), violation("missing_flush", 78, 81)
    elsewhere = violation("between_stores", 10, 11)
    assert marked(first, second, elsewhere) == [None, None, None]
    assert marked(violation("later_store", 5, None), violation("between_stores", 5, 6)) == [None, 0]


def test_what_has_no_line_is_of_no_other_mistake():
    assert marked(violation("missing_flush", None, None), violation("later_store", None, None)) == [
        None,
        None,
    ]
