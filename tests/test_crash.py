"""`fencepost crash`: example programs survive every power cut, broken ones are found out."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Fencepost
from installed import ROOT, WORKLOADS

SIZES = {
    "hashmap": ["-n", "12", "-k", "6"],
    "queue": ["-t", "1", "-c", "1", "-n", "5"],
}

# Which faults may be named of each broken variant (workloads/broken.h), by program.
BROKEN = {
    "hashmap-NODE_NOT_FLUSHED": {"missing_flush"},
    "hashmap-NO_FENCE": {"missing_fence"},
    "hashmap-FLUSH_BEFORE_STORE": {"flush_before_store"},
    "hashmap-FENCE_BEFORE_FLUSH": {"missing_fence", "fence_before_flush"},
    "hashmap-WRONG_LINE": {"missing_flush"},
    "hashmap-ONE_FENCE": {"one_fence_for_both", "later_store", "between_stores"},
    "hashmap-LINK_BEFORE_NODE": {"missing_flush", "later_store", "between_stores"},
    "hashmap-LINK_NOT_FLUSHED": {"missing_flush"},
    "hashmap-FIRST_LINE_ONLY": {"missing_flush"},
    "hashmap-INTENT_NOT_FLUSHED": {"missing_flush"},
    "hashmap-IN_PLACE": {"later_store", "between_stores"},
    "queue-NODE_NOT_FLUSHED": {"missing_flush"},
    "queue-FIRST_LINE_ONLY": {"missing_flush"},
    "queue-ONE_FENCE": {"one_fence_for_both"},
    "queue-HEAD_NOT_FLUSHED": {"missing_flush"},
    "queue-LINK_NOT_FLUSHED": {"missing_flush", "later_store"},
    "queue-ACKNOWLEDGED_EARLY": {"between_stores", "later_store"},
}
CORRECT = ["hashmap", "queue", "hashmap-TWO_LINES", "hashmap-TWICE_IN_ONE_LINE", "queue-TWO_LINES"]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The variants of the example programs that the tests run."""
    folder = tmp_path_factory.mktemp("workloads")
    wanted = [folder / "broken" / name for name in [*BROKEN, *CORRECT] if "-" in name]
    make = ["make", "--silent", "-j2", "-C", ROOT / "workloads", f"BIN={folder}", *wanted]
    subprocess.run(make, check=True, capture_output=True, timeout=120)
    return folder / "broken"


def command_of(variant: str, programs: Path, pool: str) -> list[str]:
    """The program of a variant on a pool."""
    program = programs / variant if "-" in variant else WORKLOADS / variant
    sizes = SIZES[variant.partition("-")[0]]
    return [str(program), *sizes, "--flush", "clwb", "--pool", pool]


def arguments_of(variant: str, programs: Path, pool: Path) -> list[str]:
    """What explores a variant, `--` and the program included."""
    check = " ".join([*command_of(variant, programs, "{image}"), "--check"])
    own = ["crash", "pcs-table1", "--pm", f"file:{pool}", "--check", check, "--out", "found"]
    own += ["--json", "result.json"]
    if variant in BROKEN:
        # A line that is never flushed is in doubt until the end: a few images do.
        own += ["--images", "16", "--no-reads"]
    return [*own, "--", *command_of(variant, programs, str(pool))]


@pytest.fixture
def explore(fencepost: Fencepost, programs: Path, tmp_path: Path) -> Any:
    """Records and explores a variant; gives the exit code, the result and what was printed."""

    def run(variant: str) -> tuple[int, dict[str, Any], str]:
        done = fencepost(*arguments_of(variant, programs, tmp_path / "pool"))
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads((tmp_path / "result.json").read_text()), done.stdout

    return run


@pytest.mark.parametrize("variant", CORRECT)
def test_a_correct_program_survives_every_power_cut(variant, explore):
    code, result, output = explore(variant)
    assert code == 0, output
    assert result["violations"] == [] and result["counts"]["images"] > 30
    assert result["counts"]["instants"] == result["instants"]
    assert output.splitlines()[-1].startswith("crash: no violation in ")


@pytest.mark.parametrize("variant", BROKEN)
def test_a_broken_program_is_found_out_and_the_fault_has_its_name(variant, explore, tmp_path):
    code, result, output = explore(variant)
    assert code == 1, output
    faults = {violation["fault"] for violation in result["violations"]}
    assert faults & BROKEN[variant], f"{faults}\n{output}"
    violation = result["violations"][0]
    for store in (violation["durable"], violation["lost"]):
        names = [Path(frame["file"] or "").name for frame in store["source"]["frames"]]
        assert any(name.endswith(".c") for name in names), output
    shown = subprocess.run(violation["show"], shell=True, check=False, cwd=tmp_path)
    assert shown.returncode == 1, "the one command shows it again"
