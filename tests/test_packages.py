"""The package of the sources: which files it has, and what it says where tools are missing."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fencepost.tree import ROOT

BUILD_TOOLS = ("make", "cc", "c++", "cmake", "ninja", "patch", "cargo", "rustc")
SHELL_TOOLS = ("sh", "cut", "dirname", "head", "sort")
ASKED = "import backend; print(backend.get_requires_for_build_wheel())"


def asked(folder: Path, without: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """What pip hears first from the backend, with these tools missing."""
    tools = folder / "bin"
    tools.mkdir()
    for name in {*BUILD_TOOLS, *SHELL_TOOLS} - set(without):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"there is no {name}")
        # Some go by their own name, or by their folder.
        (tools / name).write_text(f'#!/bin/sh\nexec "{found}" "$@"\n')
        (tools / name).chmod(0o755)
    environment = {
        "PATH": str(tools),
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "setup"),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }
    return subprocess.run(
        [sys.executable, "-c", ASKED], check=False, env=environment, capture_output=True, text=True
    )


def test_with_all_tools_the_backend_asks_for_nothing_more(tmp_path: Path) -> None:
    done = asked(tmp_path, ())
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


def test_missing_tools_are_said_before_anything_is_built(tmp_path: Path) -> None:
    done = asked(tmp_path, ("cmake", "ninja", "cargo"))
    assert done.returncode != 0
    assert done.stderr == (
        "setup: something required is missing; type: sudo apt-get install cmake ninja-build\n"
        "setup: Rust is missing; install 1.95 or newer with rustup (https://rustup.rs)\n"
    )


def test_a_rust_outside_the_path_is_found(tmp_path: Path) -> None:
    own = tmp_path / ".cargo" / "bin"
    own.mkdir(parents=True)
    (own / "cargo").touch(mode=0o755)
    done = asked(tmp_path, ("cargo",))
    assert done.returncode != 0
    assert done.stderr == (f"setup: Rust is not in the PATH; type: export PATH={own}:$PATH\n")


def test_the_package_of_sources_has_what_is_committed(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no clone")
    subprocess.run(
        [sys.executable, "setup/backend.py", "sdist", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [package] = tmp_path.glob("fencepost-*.tar.gz")
    with tarfile.open(package) as sources:
        found = {name.partition("/")[2] for name in sources.getnames()} - {""}
        folders = {member.name.partition("/")[2] for member in sources if member.isdir()}
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert found - folders == {*listed.split("\0")[:-1], "PKG-INFO"}
