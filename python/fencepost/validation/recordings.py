"""Records that are the same wherever they are made: the programs of experiments/, recorded once.

Where a program's stack and heap lie decides which cache sets they share with its data, so rows of
the tables would follow whoever runs them. A program is recorded with an environment of its own, by
a name and from a folder of fixed length, and with the C library's plainest routines; the recorder
keeps what is its own from moving the stack (recorder/launcher/stack_place.h). What is left is the
compiler and the C library, whose code is in the program, and how that starts: it asks the processor
what it has and reads what the kernel maps. Where that differs, rows differ a little, and
`fingerprint` tells.
"""

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from fencepost import _core, documents, recording
from fencepost.tree import EXPERIMENTS, RECORDER
from fencepost.validation import Work

# Routines of the C library are chosen by what the processor has. These are off everywhere, which
# leaves those of plain x86-64 (names: glibc manual, "Hardware Capability Tunables", and glibc
# sysdeps/x86, cpu-features.c and cpu-tunables.c).
_FEATURES = (
    *("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX2", "AVX", "FMA", "FMA4"),
    *("BMI1", "BMI2", "LZCNT", "MOVBE", "POPCNT", "RTM", "ERMS", "FSRM", "XSAVE", "XSAVEC"),
    *("SSSE3", "SSE4_1", "SSE4_2", "Slow_BSF", "Fast_Rep_String", "Fast_Copy_Backward"),
    *("Fast_Unaligned_Load", "Fast_Unaligned_Copy", "AVX_Fast_Unaligned_Load"),
    *("Prefer_ERMS", "Prefer_FSRM", "Prefer_No_VZEROUPPER", "Prefer_No_AVX512_Probing"),
)
# Without the last comma glibc 2.36 reads on in the variables behind it, where the recorder's own
# are: one has the number of a process, and how many digits that has would move the rows.
ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + "".join(f"-{name}," for name in _FEATURES)}

# The C library puts the path of the program on the heap.
_FOLDER_BYTES = 256

_CLIENT = RECORDER / "lib" / "libfencepost-recorder.so"


def recorded(work: Work, binary: Path, arguments: list[str], moved_bytes: int = 0) -> Path:
    """The record of a program with these arguments, made where there is none of exactly them.

    `moved_bytes` more of environment move the stack of the program down by as much.
    """
    environment = dict(ENVIRONMENT)
    if moved_bytes:
        environment["FILL"] = "-" * (moved_bytes - len("FILL=") - 1)
    key = _key(binary, arguments, environment)
    name = f"{binary.name}-{moved_bytes}"
    record = work.folder / f"{name}-{key}.fencepost"
    if record.exists():
        return record
    for old in work.folder.glob(f"{name}-*.fencepost"):
        old.unlink()
    work.log(f"recording {binary.name}")
    folder = _folder(work.folder.resolve())
    documents.write_whole(folder / binary.name, binary.read_bytes())
    (folder / binary.name).chmod(0o755)
    command = [f"./{binary.name}", *arguments]
    recording.record_to(
        record.resolve(), [], command, subprocess.DEVNULL, environment=environment, folder=folder
    )
    return record


def toolchain() -> str:
    """Whose code is in the programs: the compiler and the C library."""
    version = subprocess.run(
        ["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout
    return f"gcc {version.strip()} and {' '.join(platform.libc_ver())}"


def fingerprint(record: Path) -> str:
    """Equal for records of which every replay gives the same.

    The code that was executed in its order, and the sizes of what was mapped. How the C library
    starts depends on the processor and on the kernel too, which moves the rows a little.
    """
    summary = json.loads(_core.record_info(str(record)))
    paths = [thread["path"] for thread in summary["threads"]]
    # Without access is what the engine keeps free for itself, in another number each time.
    ranges = [mapping["range"] for mapping in summary["mappings"] if mapping["protection"]]
    sizes = [mapped["end"] - mapped["start"] for mapped in ranges]
    return hashlib.sha256(repr((paths, sizes)).encode()).hexdigest()[:12]


def named(records: Iterable[Path]) -> str:
    """A line of the page: what was recorded, so that others can tell whether theirs is the same."""
    entries = (f"`{record.name.split('-')[0]}` {fingerprint(record)}" for record in records)
    return f"Recorded (programs and fingerprints of the records): {', '.join(entries)}.\n"


def sources_fingerprint() -> str:
    """Of the programs of experiments/ and of how they are compiled."""
    digest = hashlib.sha256()
    for folder in ("host", "persist"):
        for path in sorted((EXPERIMENTS / folder / "programs").iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _key(binary: Path, arguments: list[str], environment: dict[str, str]) -> str:
    """Of all that decides what is recorded."""
    digest = hashlib.sha256(repr((arguments, sorted(environment.items()))).encode())
    for path in (binary, recording.LAUNCHER, _CLIENT):
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:12]


def _folder(above: Path) -> Path:
    """A folder in `above` whose path has the fixed length, or twice that, and so on."""
    filling = -(len(str(above)) + 1) % _FOLDER_BYTES or _FOLDER_BYTES
    folder = above
    while filling > 0:
        # A name has at most 255 bytes; what is left for the next is none, or a slash and a name.
        part = filling if filling < 255 else 200
        folder /= "-" * part
        filling -= part + 1
    folder.mkdir(parents=True, exist_ok=True)
    return folder
