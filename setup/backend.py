"""A wheel that holds all that a user needs: `.venv/bin/python setup/whole_wheel.py FOLDER`.

Maturin makes a wheel of the Python package and its core. To it comes what else `make setup` builds
and commands use, laid out below `fencepost/shipped` as in a clone (python/fencepost/tree.py), and
without what debuggers alone read. Auditwheel says on which Linux it runs.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
WORK = ROOT / "build" / "wheel"
BYTES_MAX = 60 << 20

# The engine's and ours, which lie beside each other and find each other there.
OWN_LIBRARIES = re.compile(r"lib(dynamorio|dr\w+|fencepost\w*)\.so")
NOT_SHIPPED = (".d", ".o", ".a")


def main() -> int:
    """1 if the wheel is too large or would not run where it says."""
    [out] = map(Path, sys.argv[1:])
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    plain = _plain_wheel()
    _run(BIN / "wheel", "unpack", "--dest", WORK / "tree", plain)
    [tree] = (WORK / "tree").iterdir()
    package = tree / "fencepost"
    for source, place in _shipped():
        target = package / "shipped" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    _strip(package)
    (WORK / "whole").mkdir()
    _run(BIN / "wheel", "pack", "--dest-dir", WORK / "whole", tree)
    [whole] = (WORK / "whole").iterdir()
    made = _with_platform(whole, out)
    size = made.stat().st_size
    print(f"{made}: {size / (1 << 20):.1f} MiB")
    if size > BYTES_MAX:
        print(f"wheel: it has more than {BYTES_MAX >> 20} MiB", file=sys.stderr)
    return int(size > BYTES_MAX)


def _plain_wheel() -> Path:
    _run(
        *(BIN / "maturin", "build", "--release", "--locked", "--quiet"),
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


def _with_platform(wheel: Path, out: Path) -> Path:
    """The wheel with the tag of the oldest Linux that it runs on, in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.whl"):
        old.unlink()
    own = {path.name for path in WORK.glob("tree/*/**/*.so") if OWN_LIBRARIES.fullmatch(path.name)}
    excluded = [word for name in sorted(own) for word in ("--exclude", name)]
    _run(
        *(BIN / "auditwheel", "repair", "--plat", "auto", "--only-plat", "--patcher", "none"),
        *(*excluded, "--wheel-dir", out, wheel),
    )
    [made] = out.glob("*.whl")
    return made


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
