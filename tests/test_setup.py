"""What `make setup` says: steps, what is missing, and a step that fails."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from installed import ROOT

sys.path.insert(0, str(ROOT / "setup"))


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "setup" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


system = _module("system")
steps = _module("steps")


@pytest.fixture
def one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone in which setting up is one step, `it`."""
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr(steps, "LOGS", tmp_path / "build" / "logs")
    monkeypatch.setattr(steps, "STEPS", (steps.Step("the one", "it", "demo"),))
    return tmp_path


def test_a_step_is_one_line_and_what_it_says_is_in_its_log(
    one_step: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (one_step / "Makefile").write_text("it:\n\t@echo a lot of noise\n")
    assert steps.main(["demo"]) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["setup: the one: 0 s", "setup: done in 0 s"]
    assert (one_step / "build/logs/the-one.log").read_text() == "a lot of noise\n"


def test_nothing_is_said_where_nothing_is_to_do(
    one_step: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (one_step / "Makefile").write_text("it:\n")
    (one_step / "it").touch()
    assert steps.main(["demo"]) == 0
    assert capfd.readouterr().err == ""


def test_of_a_step_that_fails_the_end_of_the_log_is_shown(
    one_step: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (one_step / "Makefile").write_text("it:\n\t@seq 100; false\n")
    assert steps.main(["demo"]) == 1
    first, *lines = capfd.readouterr().err.splitlines()
    assert first == "setup: the one failed; the end of build/logs/the-one.log:"
    assert len(lines) == steps.SHOWN_OF_LOG
    assert "  100" in lines and "  50" not in lines


def test_steps_come_after_those_they_need() -> None:
    for known in (steps.STEPS, steps.FETCHED):
        names = [step.name for step in known]
        for i, step in enumerate(known):
            assert set(step.after) <= set(names[:i])


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("ID=debian", "type: sudo apt-get install ninja-build"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'", "type: sudo apt-get install ninja-build"),
        ("ID=fedora", "type: sudo dnf install ninja-build"),
        ("ID=manjaro\nID_LIKE=arch", "type: sudo pacman -S ninja"),
        ("ID=nixos", "install: ninja-build"),
    ],
)
def test_packages_are_named_as_the_system_has_them(
    release: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = dict(part.split("=") for part in release.replace("'", "").splitlines())
    monkeypatch.setattr(system.platform, "freedesktop_os_release", lambda: named)
    which = system.shutil.which
    monkeypatch.setattr(
        system.shutil, "which", lambda tool: None if tool == "ninja" else which(tool)
    )
    assert system.to_install(system.missing("required")) == line


def test_slurm_is_installed_only_by_its_own_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    monkeypatch.setattr(system, "_is_here", lambda sign: False)
    monkeypatch.setattr(system, "may_install", lambda: False)
    others = [*system.missing("required"), *system.missing("optional")]
    assert not {"munge", "slurm-wlm"} & set(others)
    assert system.provide("slurm") == ["for slurm, type: sudo apt-get install munge slurm-wlm"]


def test_an_old_rust_has_its_line(tmp_path: Path) -> None:
    for tool in ("cargo", "rustc", "rustup"):
        (tmp_path / tool).write_text("#!/bin/sh\necho rustc 1.70.0\n")
        (tmp_path / tool).chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / "setup/system.py"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.stderr == "setup: Rust is 1.70; 1.95 or newer is needed; type: rustup update stable\n"
    )
    assert done.returncode == 1
