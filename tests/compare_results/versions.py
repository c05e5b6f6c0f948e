"""The two versions: the present checkout as `make setup` built it, and a commit built beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fencepost.tree import RECORDS, ROOT

FOLDER = ROOT / "out" / "compare-results"
CORE = Path("python", "fencepost", "_core.abi3.so")

# Results do not depend on how the core is optimised, and this builds sooner.
_BUILT_SOON = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}


class Unusable(Exception):
    """The base cannot be compared with; says why."""


@dataclass(frozen=True)
class Version:
    """A checkout with its core."""

    name: str
    root: Path

    @property
    def command(self) -> list[str]:
        """`fencepost`, whatever checkout is installed in the virtual environment."""
        return [sys.executable, "-c", "from fencepost.start import main; raise SystemExit(main())"]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.root / "python")}

    @property
    def has_committed_records(self) -> bool:
        """Whether its `validate` replays them. An older one records, which it cannot here."""
        return self.records.is_dir()

    @property
    def records(self) -> Path:
        """Its committed records."""
        return self.root / RECORDS.relative_to(ROOT)


OURS = Version("ours", ROOT)


def commit_of(base: str) -> str:
    """The commit that `base` names."""
    done = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if done.returncode:
        raise Unusable(f"`{base}` is no commit of this repository; type: git log --oneline")
    return done.stdout.strip()


def built(commit: str, name: str = "base", is_fast: bool = False) -> Version:
    """The version of `commit`, in a worktree that all of that name share: little is compiled again.

    With `is_fast` it is as optimised as a release, but without a profile.
    """
    base = Version(name, FOLDER / name)
    if (base.root / ".git").exists():
        in_worktree = ("-C", str(base.root))
        _checked(_git(*in_worktree, "checkout", "--quiet", "--force", "--detach", commit))
        # Records that were copied there belong to no commit.
        _checked(_git(*in_worktree, "clean", "--quiet", "--force", "-dx", "experiments"))
    else:
        shutil.rmtree(base.root, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        worktree = ("worktree", "add", "--quiet", "--force", "--detach", str(base.root), commit)
        _checked(_git(*worktree))
    _build_core(base.root, is_fast)
    if base.has_committed_records:
        shutil.rmtree(base.records)
        shutil.copytree(RECORDS, base.records)
    return base


def _build_core(root: Path, is_fast: bool) -> None:
    # MAKEFLAGS: cargo would look for make's job server.
    environment = os.environ | {"MAKEFLAGS": "", "PYO3_PYTHON": sys.executable}
    if not is_fast:
        environment = _BUILT_SOON | environment
    target = FOLDER / ("target-fast" if is_fast else "target")
    command = [
        *("cargo", "build", "--quiet", "--locked", "--release", "--package", "fencepost-python"),
        *("--target-dir", str(target)),
    ]
    if subprocess.run(command, cwd=root, env=environment, check=False).returncode:
        raise Unusable("the simulator of the base does not build")
    shutil.copyfile(target / "release" / "lib_core.so", root / CORE)


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _checked(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise Unusable(f"the worktree of the base: {done.stderr.strip()}")
