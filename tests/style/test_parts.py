"""Every test belongs to a part of CI: to one of the Makefile's calls of pytest."""

import re

from installed import ROOT

CALL = re.compile(r"\$\((?:PYTEST|BIN\)/pytest)\)? (?P<words>[^\n]*)")


def test_every_file_of_tests_is_in_a_part() -> None:
    calls = [match["words"] for match in CALL.finditer((ROOT / "Makefile").read_text())]
    quick = [call for call in calls if '"not slow"' in call]
    slow = [call for call in calls if "$(SLOW)" in call]
    style = [call for call in calls if call == "tests/style"]
    assert len(quick) == 1 and len(slow) == 2 and len(style) == 1
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    left_out = set(re.findall(r"--ignore=(\S+)", quick[0]))
    assert left_out == {"tests/style"}
    apart = set(re.findall(r"(?<!=)\btests/\S+\.py", " ".join(slow)))
    assert set(re.findall(r"--ignore=(\S+\.py)", " ".join(slow))) == apart <= files


def test_ci_runs_each_part() -> None:
    said = (ROOT / ".ci" / "run").read_text()
    for target in ("lint", "test", "slow-primitives-tests", "slow-python-tests", "docs"):
        assert re.search(rf"\b{target}\b", said)
    rotated = ("loom", "tsan", "ignored-rust-tests", "many-cases-rust-tests", "fuzz", "wheel-tests")
    assert all(re.search(rf"\bmake {target}\b", said) for target in rotated)
    assert re.search(r"\bsecond-protocol\b", said)


def test_nothing_slow_is_among_the_checks_of_style() -> None:
    for path in (ROOT / "tests" / "style").glob("test_*.py"):
        assert "mark.slow" not in path.read_text() or path.name == "test_parts.py"
