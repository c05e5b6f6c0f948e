"""What Fencepost needs, whether it is here, and what to type where it is not."""

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fencepost.recording import LAUNCHER
from fencepost.tree import ROOT, WORKLOADS

RUST_WANTED = (1, 95)
PACKAGES = ROOT / "setup" / "packages.txt"


@dataclass(frozen=True)
class Finding:
    """One thing that is needed. `remedy` is what to type, empty where nothing is wrong."""

    name: str
    purpose: str
    is_required: bool
    is_here: bool
    detail: str
    remedy: str


def examine() -> list[Finding]:
    """Everything that is needed, what is missing included."""
    return [*_rust(), *_packages(), *_built()]


def _rust() -> list[Finding]:
    found = []
    wanted = ".".join(map(str, RUST_WANTED))
    for tool in ("rustc", "cargo"):
        version = _version_of(tool)
        is_here = version is not None and version >= RUST_WANTED
        detail = ".".join(map(str, version)) if version else "missing"
        remedy = "" if is_here else f"install Rust {wanted} or newer: rustup update stable"
        found.append(Finding(tool, "the simulator", True, is_here, detail, remedy))
    return found


def _version_of(tool: str) -> tuple[int, ...] | None:
    try:
        text = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text.stdout)
    return tuple(map(int, match.groups())) if match else None


def _packages() -> list[Finding]:
    found = []
    for line in PACKAGES.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        need, package, sign, purpose = line.split(maxsplit=3)
        where = _where(sign)
        remedy = "" if where else f"sudo apt-get install {package}"
        found.append(
            Finding(
                package, purpose, need == "required", where is not None, where or "missing", remedy
            )
        )
    return found


def _where(sign: str) -> str | None:
    if sign.startswith("/"):
        return sign if Path(sign).exists() else None
    if sign.startswith("python:"):
        spec = importlib.util.find_spec(sign.removeprefix("python:"))
        return spec.origin if spec else None
    return shutil.which(sign)


def _built() -> list[Finding]:
    return [
        Finding(
            name,
            purpose,
            True,
            path.exists(),
            str(path.relative_to(ROOT)) if path.exists() else "not built",
            "" if path.exists() else "make setup",
        )
        for name, purpose, path in (
            ("recorder", "fencepost record", LAUNCHER),
            ("workloads", "the example programs", WORKLOADS / "fft"),
        )
    ]
