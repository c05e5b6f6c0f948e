"""The build backend of pyproject.toml: `pip install` of the sources gives what `make wheel` gives.

Maturin makes a wheel of the Python package and its core. To it comes what else `make setup` builds
and commands use, laid out below `fencepost/shipped` as in a clone (python/fencepost/tree.py), and
without what debuggers alone read. Auditwheel says on which Linux it runs.
Used from a clone:  .venv/bin/python setup/backend.py wheel|sdist FOLDER
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import maturin
import system

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheel"
BYTES_MAX = 60 << 20

# The engine's and ours, which lie beside each other and find each other there.
OWN_LIBRARIES = re.compile(r"lib(dynamorio|dr\w+|fencepost\w*)\.so")
NOT_SHIPPED = (".d", ".o", ".a", ".stamp")

Settings = dict[str, Any] | None

# For `pip install --editable`, and what pip reads first.
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
build_editable = maturin.build_editable


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Nothing beyond pyproject.toml. Pip asks this first, and so hears first of missing tools.

    Maturin's own answer would have pip fetch Rust, without which the recorder is not built either.
    """
    _check_tools()
    return []


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """The name of the file; there is none that is too large, or that says where it was built."""
    _check_tools()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    _run(ROOT / "recorder/build")
    _run(ROOT / "setup/order", "release")
    _run(ROOT / "setup/channel", "release")
    for folder in ("measure", "workloads/stream"):
        _run("make", "--silent", "-C", ROOT / folder)
    _python("wheel", "unpack", "--dest", WORK / "tree", _plain_wheel())
    [tree] = (WORK / "tree").iterdir()
    package = tree / "fencepost"
    for source, place in _shipped():
        target = package / "shipped" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    _strip(package)
    _refuse_places(tree)
    (WORK / "whole").mkdir()
    _python("wheel", "pack", "--dest-dir", WORK / "whole", tree)
    [whole] = (WORK / "whole").iterdir()
    wheel = _with_platform(whole)
    size = wheel.stat().st_size
    if size > BYTES_MAX:
        raise SystemExit(f"wheel: {size >> 20} MiB are more than {BYTES_MAX >> 20} MiB")
    return shutil.copy(wheel, wheel_directory).rpartition("/")[2]


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Packs the committed sources, and beside them what a package says of itself."""
    if not (ROOT / ".git").exists():
        raise SystemExit(f"sdist: {ROOT} is no clone: only what is committed is packed")
    with tempfile.TemporaryDirectory() as folder:
        about = maturin.prepare_metadata_for_build_wheel(folder)
        name = about.removesuffix(".dist-info")
        packed = Path(sdist_directory) / f"{name}.tar.gz"
        tar = Path(folder) / "sources.tar"
        _run("git", "archive", f"--prefix={name}/", "-o", tar, "HEAD")
        with tarfile.open(tar, "a") as sources:
            sources.add(Path(folder) / about / "METADATA", f"{name}/PKG-INFO")
        _run("gzip", "--no-name", tar)
        shutil.move(tar.with_suffix(".tar.gz"), packed)
    return packed.name


def _check_tools() -> None:
    """Ends with a line for each kind of thing that is missing."""
    complaints = system.complaints()
    if complaints:
        raise SystemExit("\n".join(f"setup: {line}" for line in complaints))


def _plain_wheel() -> Path:
    _run(
        *(ROOT / "setup" / "with-profile", "maturin", "build", "--release", "--locked", "--quiet"),
        *("--compatibility", "linux", "--interpreter", sys.executable, "--out", WORK / "plain"),
    )
    [wheel] = (WORK / "plain").iterdir()
    return wheel


def _shipped() -> Iterator[tuple[Path, Path]]:
    """Files with their places: machines, experiments, and what is built."""
    for name in _committed("machines", "experiments"):
        if not name.endswith((".c", ".h")):
            yield ROOT / name, Path(name)
    for folder in ("recorder", "channel", "measure"):
        yield from _built(ROOT / "build" / folder, Path("build") / folder)
    yield from _licences()
    # Linked statically, so that they run wherever the engine does.
    programs = WORK / "workloads"
    flags = f"CFLAGS=-O2 -g -ffile-prefix-map={ROOT}=."
    _run("make", "--silent", "-C", ROOT / "workloads", f"BIN={programs}", "LDFLAGS=-static", flags)
    yield from _built(programs, Path("build/workloads"))


def _licences() -> Iterator[tuple[Path, Path]]:
    """Those of the engine and of the compressor, whose code is in the recorder."""
    manifest = ROOT / "recorder" / "engine" / "Cargo.toml"
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    done = subprocess.run(
        [*command, "--manifest-path", str(manifest)], check=True, capture_output=True, text=True
    )
    folders = {
        package["name"]: Path(package["manifest_path"]).parent
        for package in json.loads(done.stdout)["packages"]
    }
    yield folders["dynamorio-sys"] / "dynamorio" / "License.txt", Path("licences/DynamoRIO.txt")
    yield folders["zstd-sys"] / "zstd" / "LICENSE", Path("licences/zstd.txt")


def _committed(*folders: str) -> list[str]:
    """The files of these folders, without what lies there by chance; in unpacked sources, all."""
    if not (ROOT / ".git").exists():
        found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
        return sorted(str(path.relative_to(ROOT)) for path in found if path.is_file())
    command = ["git", "-C", str(ROOT), "ls-files", "-z", *folders]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return listed.split("\0")[:-1]


def _built(folder: Path, place: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted(folder.rglob("*")):
        own = path.relative_to(folder)
        is_inside = {"objects", "broken", "pkgconfig"} & set(own.parts)
        if path.is_file() and path.suffix not in NOT_SHIPPED and not is_inside:
            yield path, place / own


def _strip(package: Path) -> None:
    """Example programs keep their lines of source, which reports name."""
    recorder = (package / "shipped/build/recorder").rglob("*fencepost*")
    channel = (package / "shipped/build/channel").glob("*fencepost*")
    for path in (*package.glob("_core*.so"), *recorder, *channel):
        _run("strip", "--strip-debug", path)


def _refuse_places(tree: Path) -> None:
    """Nothing in a wheel may name a folder of the machine that built it."""
    home = Path.home()
    cargo = os.environ.get("CARGO_HOME", home / ".cargo")
    rustup = os.environ.get("RUSTUP_HOME", home / ".rustup")
    cache = os.environ.get("FENCEPOST_CACHE", home / ".cache/fencepost")
    places = b"|".join(re.escape(os.fsencode(place)) for place in (ROOT, cargo, rustup, cache))
    whole_path = re.compile(rb"(?<![\w./-])(?:%s)/[!-~]*" % places)
    found = [
        f"  {path.relative_to(tree)}: {named[0].decode()}"
        for path in sorted(tree.rglob("*"))
        if path.is_file() and (named := whole_path.search(path.read_bytes()))
    ]
    if found:
        raise SystemExit("\n".join(["wheel: these files name folders of this machine:", *found]))


def _with_platform(wheel: Path) -> Path:
    """The wheel with the tag of the oldest Linux that it runs on."""
    own = {path.name for path in WORK.glob("tree/*/**/*.so") if OWN_LIBRARIES.fullmatch(path.name)}
    excluded = [word for name in sorted(own) for word in ("--exclude", name)]
    _python(
        *("auditwheel", "repair", "--plat", "auto", "--only-plat", "--patcher", "none"),
        *(*excluded, "--wheel-dir", WORK / "repaired", wheel),
    )
    [made] = (WORK / "repaired").iterdir()
    return made


def _python(*command: object) -> None:
    _run(sys.executable, "-m", *command)


def _run(*command: object) -> None:
    # Standard output is pip's.
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, stdout=sys.stderr)


def main() -> None:
    kind, folder = sys.argv[1:]
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # as pip has it
    kinds: dict[str, tuple[Callable[[str], str], str]] = {
        "wheel": (build_wheel, ".whl"),
        "sdist": (build_sdist, ".tar.gz"),
    }
    build, suffix = kinds[kind]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for old in Path(folder).glob(f"*{suffix}"):
        old.unlink()
    made = Path(folder, build(folder))
    print(f"{made}: {made.stat().st_size / (1 << 20):.1f} MiB")


if __name__ == "__main__":
    main()
