"""What a command builds when it first needs it."""

from pathlib import Path

import pytest

from fencepost import built
from fencepost._core import InputError

MAKEFILE = """
measure:
\t@{recipe}
"""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose Makefile is all that there is of a clone."""
    monkeypatch.setattr(built, "ROOT", tmp_path)
    monkeypatch.setattr(built, "BUILD", tmp_path / "build")
    targets = ((tmp_path / "build" / "measure", "measure", "the measuring programs"),)
    monkeypatch.setattr(built, "TARGETS", targets)
    return tmp_path


def makes(clone: Path, recipe: str) -> Path:
    """The file that is asked for, with a Makefile of that recipe."""
    (clone / "Makefile").write_text(MAKEFILE.format(recipe=recipe))
    return clone / "build" / "measure" / "persist"


def test_what_is_missing_is_built_once(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = makes(clone, "mkdir -p build/measure; echo x >>build/measure/persist")
    assert built.needed(wanted) == built.needed(wanted) == wanted
    assert wanted.read_text() == "x\n"
    assert capfd.readouterr().err.startswith("built the measuring programs in ")


def test_what_cannot_be_built_is_said_with_the_end_of_the_log(clone: Path) -> None:
    wanted = makes(clone, "echo no such compiler >&2; false")
    with pytest.raises(InputError, match=r"(?s)programs could not be built.*no such compiler"):
        built.needed(wanted)


def test_what_the_target_leaves_out_is_named(clone: Path) -> None:
    wanted = makes(clone, "true")
    with pytest.raises(InputError, match="`make measure` does not build it here"):
        built.needed(wanted)


def test_nothing_is_built_of_an_installed_package(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built, "IS_INSTALLED", True)
    wanted = makes(clone, "mkdir -p build/measure; touch build/measure/persist")
    with pytest.raises(InputError, match=r"persist is missing; type: make setup"):
        built.needed(wanted)
    assert not wanted.exists()


def test_a_program_of_nobody_is_not_built(clone: Path) -> None:
    with pytest.raises(InputError, match="/absent is missing; type: make setup"):
        built.needed(Path("/absent"))
    assert not (clone / "build").exists()
