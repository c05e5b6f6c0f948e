"""Where the package finds its rooms: in a clone, and where a wheel was installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installed import ROOT

SAYS = """
import sys
sys.path.insert(0, "site")
from fencepost import machines, tree
print(tree.MACHINES, tree.WORKLOADS, tree.RESULTS, *machines.names())
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The package as a wheel lays it out, with one machine."""
    ignored = shutil.ignore_patterns("__pycache__")
    package = shutil.copytree(
        ROOT / "python" / "fencepost", tmp_path / "site/fencepost", ignore=ignored
    )
    (package / "shipped" / "machines").mkdir(parents=True)
    shutil.copy(ROOT / "machines" / "pcs-table1.toml", package / "shipped" / "machines")
    return package


def said(folder: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_wheel_has_its_rooms_in_the_package_and_keeps_results_in_the_cache(
    site: Path, tmp_path: Path
) -> None:
    shipped = site / "shipped"
    home = str(tmp_path / "home")
    own = [str(shipped / "machines"), str(shipped / "build" / "workloads")]
    cache = [f"{home}/.cache/fencepost/results", "pcs-table1"]
    assert said(tmp_path, HOME=home) == own + cache
    named = said(tmp_path, HOME=home, XDG_CACHE_HOME="/elsewhere")
    assert named[2] == "/elsewhere/fencepost/results"
    # "All paths must be absolute"; a relative one is to be ignored.
    assert said(tmp_path, HOME=home, XDG_CACHE_HOME="elsewhere") == own + cache
    assert not (tmp_path / "home").exists(), "nothing is made by looking"


def test_a_clone_has_them_at_its_top(tmp_path: Path) -> None:
    (tmp_path / "site").symlink_to(ROOT / "python")
    machines, workloads, results, *names = said(tmp_path, HOME="/nowhere")
    assert machines == str(ROOT / "machines") and workloads == str(ROOT / "build" / "workloads")
    assert results == str(ROOT / "out" / "results")
    assert "pcs-table1" in names and len(names) > 20
