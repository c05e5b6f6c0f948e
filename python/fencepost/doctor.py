"""What works here, what does not, and what to type.

Three questions in turn: whether a program can be recorded and replayed, which is tried; what this
machine has that some commands use; and, in a clone, whether Fencepost can be built again.
"""

import ctypes
import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fencepost import __version__, built, machines, scratch
from fencepost.channel import sources
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.tree import Tree
from fencepost.recording import LAUNCHER
from fencepost.tree import CHANNEL, RECORDER, ROOT, WORKLOADS

RUST_WANTED = (1, 95)
PACKAGES = ROOT / "setup" / "packages.txt"
PATIENCE_SECONDS = 60  # with a program that ends at once

MAIN, MACHINE, BUILD = "record and replay", "this machine", "building from source"

OK, MISSING, ABSENT = "ok", "MISSING", "absent"


@dataclass(frozen=True)
class Finding:
    """One thing that is needed. `remedy` is what to type or do, empty where nothing is wrong or
    nothing can be done."""

    part: str
    name: str
    purpose: str
    is_required: bool
    is_here: bool
    detail: str
    remedy: str

    @property
    def mark(self) -> str:
        """The verdict in a word."""
        return OK if self.is_here else MISSING if self.is_required else ABSENT


def examine(root: Path = Path("/")) -> list[Finding]:
    """Everything that is needed, what is missing included; the kernel shows itself below `root`."""
    found = [_simulator(), _recorder(), *_further_programs(), *_of_machine(root)]
    if is_clone():
        found += [*_rust(), *_packages()]
    return found


def works(findings: list[Finding]) -> bool:
    """Whether a program can be recorded and replayed."""
    return all(one.is_here for one in findings if one.is_required and one.part == MAIN)


def is_clone() -> bool:
    """Whether the sources are here, from which `make setup` builds."""
    return PACKAGES.exists()


def system() -> str:
    """Which Fencepost runs where."""
    kernel = platform.uname()
    return (
        f"fencepost {__version__}, Python {platform.python_version()}, "
        f"{kernel.system} {kernel.release}, {kernel.machine}"
    )


def _simulator() -> Finding:
    count = len(machines.shipped())
    build = built.slower_than() or "the optimised build"
    detail = f"{__version__}, {count} machines; {build}"
    return _finding(MAIN, "simulator", "fencepost run", detail, "" if count else _again(), True)


def _recorder() -> Finding:
    """Tried on a program that every system has."""
    problem = "" if LAUNCHER.exists() else f"{LAUNCHER} is missing"
    version = ""
    if not problem:
        version = _said([str(LAUNCHER), "--version"]).removeprefix("fencepost-record ")
        problem = _what_recording_lacks()
    detail = problem or f"{version}; it has recorded `true`"
    return _finding(MAIN, "recorder", "fencepost record", detail, _again() if problem else "", True)


def _what_recording_lacks() -> str:
    program = shutil.which("true", path="/bin:/usr/bin")
    if program is None:
        return "there is no program `true` to try it on"
    with scratch.made() as folder:
        record = folder / "true.fencepost"
        command = [str(LAUNCHER), "-o", str(record), "--", program]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode == 0 and record.exists():
            return ""
        last = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        return last[0]


def _further_programs() -> Iterator[Finding]:
    for name, purpose, path, target in (
        ("example programs", "fencepost demo", WORKLOADS / "fft", "workloads"),
        ("channel library", "fencepost channel", CHANNEL / "libfencepost_channel.so", "channel"),
    ):
        is_here = path.exists()
        detail = "built" if is_here else f"{path} is missing"
        yield _finding(MAIN, name, purpose, detail, "" if is_here else _first_need(target))
    emulator, plugin = shutil.which("qemu-aarch64"), RECORDER / "lib/libfencepost-recorder-qemu.so"
    purpose, install = "fencepost record: AArch64 programs", "sudo apt-get install qemu-user"
    if emulator is None:
        yield _finding(MAIN, "QEMU", purpose, "missing", install)
    elif not plugin.exists():
        remedy = _first_need("recorder-aarch64")
        yield _finding(MAIN, "QEMU", purpose, f"{plugin} is missing", remedy)
    else:
        version = re.search(r"version ([\d.]+)", _said([emulator, "--version"]))
        detail = f"{emulator} {version[1] if version else 'of unknown version'}"
        yield _finding(MAIN, "QEMU", purpose, detail, "" if version else install)
    server, purpose = shutil.which("redis-server"), "fencepost reproduce type2: zswap and ksm"
    install = "sudo apt-get install redis-server"
    yield _finding(MAIN, "Redis", purpose, server or "missing", "" if server else install)


def _of_machine(root: Path) -> Iterator[Finding]:
    for name, library, package, purpose in (
        ("PMDK", "libpmemobj.so.1", "libpmemobj1", "fencepost measure stream: App-Direct"),
        ("libnuma", "libnuma.so.1", "libnuma1", "fencepost measure stream: placement"),
    ):
        problem = _what_loading_lacks(library)
        remedy = f"sudo apt-get install {package}" if problem else ""
        yield _finding(MACHINE, name, purpose, problem or library, remedy)
    for source in sources.examine(root):
        name = {"counter": "perf (reads of CXL)", "mbm": "resctrl (MBM)"}[source.name]
        # What is missing says itself what to do about it, where something can be done.
        yield Finding(
            MACHINE,
            name,
            "fencepost channel: bandwidth of threads",
            False,
            not source.missing,
            source.missing or "can be read",
            "",
        )
    topology = Topology(Tree(root))
    nodes, memories = len(topology.nodes), len(topology.cxl_memories)
    dax = len(topology.dax) + len(topology.mounts)
    for name, purpose, count, wanted in (
        ("NUMA nodes", "fencepost measure stream: remote memory", nodes, 2),
        ("CXL devices", "fencepost measure stream: CXL memory", memories, 1),
        ("DAX devices", "fencepost measure stream: persistent memory", dax, 1),
    ):
        detail = f"{count} of them" if count else "none"
        yield Finding(MACHINE, name, purpose, False, count >= wanted, detail, "")


def _what_loading_lacks(library: str) -> str:
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return ""


def _rust() -> Iterator[Finding]:
    wanted = ".".join(map(str, RUST_WANTED))
    update = "rustup update stable"
    if shutil.which("rustup") is None:
        update = "curl -sSf https://sh.rustup.rs | sh"
    for tool in ("rustc", "cargo"):
        version = _version_of(tool)
        is_here = version is not None and version >= RUST_WANTED
        detail = ".".join(map(str, version)) if version else "missing"
        remedy = "" if is_here else f"{update} (Rust {wanted} or newer)"
        yield _finding(BUILD, tool, "the simulator", detail, remedy, True)


def _version_of(tool: str) -> tuple[int, ...] | None:
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", _said([tool, "--version"]))
    return tuple(map(int, match.groups())) if match else None


def _packages() -> Iterator[Finding]:
    for line in PACKAGES.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        need, package, _, _, sign, purpose = line.split(maxsplit=5)
        where = _where(sign)
        remedy = "" if where else f"sudo apt-get install {package}"
        yield _finding(BUILD, package, purpose, where or "missing", remedy, need == "required")


def _where(sign: str) -> str | None:
    if sign.startswith("/"):
        return sign if Path(sign).exists() else None
    if sign.startswith("python:"):
        spec = importlib.util.find_spec(sign.removeprefix("python:"))
        return spec.origin if spec else None
    return shutil.which(sign)


def _said(command: list[str]) -> str:
    """What a program says of its version; nothing if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _again() -> str:
    """How what belongs to Fencepost itself is had."""
    return "make setup" if is_clone() else "pip install --force-reinstall fencepost"


def _first_need(target: str) -> str:
    """How what a clone builds when it is first needed is had now."""
    return f"make {target}" if is_clone() else _again()


def _finding(
    part: str, name: str, purpose: str, detail: str, remedy: str, is_required: bool = False
) -> Finding:
    """What is missing has a remedy, and nothing else has."""
    return Finding(part, name, purpose, is_required, not remedy, detail, remedy)
