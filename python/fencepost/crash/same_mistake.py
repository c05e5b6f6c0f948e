"""Which violations are of one mistake: a change that is not atomic fails in several ways."""

from typing import Any

# What a cut before, in or behind a mistake is found as, too.
VAGUE = ("later_store", "between_stores")


def mark(violations: list[dict[str, Any]]) -> None:
    """Sets `same_as` of each: the number of the violation that names the mistake, if that is
    another one that stores on one of its lines; those that name most come first."""
    named: list[int] = []
    for number, violation in enumerate(violations):
        lines = _lines(violation)
        is_vague = violation["fault"] in VAGUE
        same = (of for of in named if is_vague and lines & _lines(violations[of]))
        violation["same_as"] = next(same, None)
        if violation["same_as"] is None:
            named.append(number)


def _lines(violation: dict[str, Any]) -> set[tuple[str | None, int]]:
    """Where both stores are in the program."""
    found = set()
    for store in (violation["durable"], violation["lost"]):
        source = store and store["source"]
        if not source or source["line"] is None or source.get("program_frame") is None:
            continue
        frame = source["frames"][source["program_frame"]]
        if frame["line"] is not None:
            found.add((frame["file"], frame["line"]))
    return found
