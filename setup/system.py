"""What the system has of what Fencepost needs, and what to type for the rest.

python3 setup/system.py: says what is missing of what is required; exit code 1 if anything is.
python3 setup/system.py NEED: installs the packages of that need, or says what to type.
Standard library only.
"""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

PACKAGES = Path(__file__).with_name("packages.txt")
RUST_WANTED = (1, 95)
PYTHON_WANTED = (3, 10)

#: By the names that /etc/os-release has in ID and ID_LIKE: the column of packages.txt, and the
#: command that installs packages.
SYSTEMS = {
    "debian": (1, "apt-get install"),
    "fedora": (2, "dnf install"),
    "arch": (3, "pacman -S"),
}


def missing(need: str) -> list[str]:
    """The packages of that need which are not here, by their names on this system."""
    column, _ = SYSTEMS[_system() or "debian"]
    rows = (line.split(maxsplit=5) for line in PACKAGES.read_text(encoding="utf-8").splitlines())
    wanted = [row for row in rows if row and row[0] == need]
    names = [row[column] for row in wanted if not _is_here(row[4])]
    return list(dict.fromkeys(name for name in names if name != "-"))


def to_install(packages: list[str]) -> str:
    """What a user types for them; on other systems, what Debian calls them."""
    system, names = _system(), " ".join(packages)
    return f"type: sudo {SYSTEMS[system][1]} {names}" if system else f"install: {names}"


def may_install() -> bool:
    """Whether we are root on a Debian."""
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def install(packages: list[str], log: BinaryIO) -> None:
    """Installs what can be had of them; what is said goes to the log."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    get = ["apt-get", "-qq", "-y", "--no-install-recommends", "install"]

    def succeeds(*command: str) -> bool:
        done = subprocess.run(
            command, check=False, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        return done.returncode == 0

    succeeds("apt-get", "-qq", "update")
    # Together first, which is quicker; then one by one, so that one that cannot be had costs only
    # itself.
    if not succeeds(*get, *packages):
        for package in packages:
            succeeds(*get, package)


def provide(need: str) -> list[str]:
    """Installs what is missing of that need, where we may; a line if something still is."""
    packages = missing(need)
    if packages and may_install():
        install(packages, sys.stderr.buffer)
        packages = missing(need)
    return [f"for {need}, {to_install(packages)}"] if packages else []


def complaints() -> list[str]:
    """A line for each kind of thing that is required and not here."""
    packages = missing("required")
    said = [f"something required is missing; {to_install(packages)}"] if packages else []
    if sys.version_info < PYTHON_WANTED:
        wanted = ".".join(map(str, PYTHON_WANTED))
        said.append(
            f"Python is {platform.python_version()}; {wanted} or newer is needed; "
            "type: make PYTHON=/path/to/python3"
        )
    return [*said, *_of_rust()]


def _of_rust() -> list[str]:
    wanted = ".".join(map(str, RUST_WANTED))
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        own = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"
        if shutil.which("cargo") is None and os.access(own / "cargo", os.X_OK):
            return [f"Rust is not in the PATH; type: export PATH={own}:$PATH"]
        return [f"Rust is missing; install {wanted} or newer with rustup (https://rustup.rs)"]
    said = subprocess.run(
        ["rustc", "--version"], check=False, stdout=subprocess.PIPE, text=True
    ).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version and tuple(map(int, version.groups())) >= RUST_WANTED:
        return []
    found = version[0] if version else "unknown"
    has_rustup = shutil.which("rustup") is not None
    update = "type: rustup update stable" if has_rustup else "install it from https://rustup.rs"
    return [f"Rust is {found}; {wanted} or newer is needed; {update}"]


def _system() -> str:
    """One of `SYSTEMS`, or nothing."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    names = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    return next((name for name in names if name in SYSTEMS), "")


def _is_here(sign: str) -> bool:
    if sign.startswith("/"):
        return Path(sign).exists()
    if sign.startswith("python:"):
        return importlib.util.find_spec(sign.removeprefix("python:")) is not None
    return sign == "python3" or shutil.which(sign) is not None  # this runs in it, whatever its name


if __name__ == "__main__":
    found = provide(sys.argv[1]) if sys.argv[1:] else complaints()
    for line in found:
        print(f"setup: {line}", file=sys.stderr)
    raise SystemExit(bool(found))
