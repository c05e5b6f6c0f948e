"""Programs recorded alike whoever records them, and wherever.

Where a program's stack and heap lie decides which cache sets they share with its data, so rows of
the tables would follow whoever records. A program is recorded with an environment of its own, by
a name and from a folder of fixed length, and with the C library's plainest routines; the recorder
keeps what is its own from moving the stack (recorder/launcher/stack_place.h). What is left is the
compiler and the C library, whose code is in the program, and how that starts: it asks the processor
what it has and reads what the kernel maps.
"""

import hashlib
import subprocess
from pathlib import Path

from fencepost import documents, recording
from fencepost.rows.lab import Lab
from fencepost.tree import RECORDER

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

_KEY_DIGITS = 12

_CLIENT = RECORDER / "lib" / "libfencepost-recorder.so"


def recorded(lab: Lab, binary: Path, arguments: list[str]) -> Path:
    """The record of a program with these arguments, made where there is none of exactly them."""
    record = lab.folder / f"{binary.name}-{_key(binary, arguments)}.fencepost"
    if record.exists():
        return record
    for old in lab.folder.glob(f"{binary.name}-{'?' * _KEY_DIGITS}.fencepost"):
        old.unlink()
    lab.log(f"recording {binary.name}")
    record_alike(record, binary, arguments, lab.folder)
    return record


def record_alike(
    record: Path, binary: Path, arguments: list[str], scratch: Path, moved_bytes: int = 0
) -> None:
    """Records a program into `record`, from a folder in `scratch`.

    `moved_bytes` more of environment move the stack of the program down by as much.
    """
    environment = dict(ENVIRONMENT)
    if moved_bytes:
        environment["FILL"] = "-" * (moved_bytes - len("FILL=") - 1)
    folder = _folder(scratch.resolve())
    documents.write_whole(folder / binary.name, binary.read_bytes())
    (folder / binary.name).chmod(0o755)
    command = [f"./{binary.name}", *arguments]
    recording.record_to(
        record.resolve(), [], command, subprocess.DEVNULL, environment=environment, folder=folder
    )


def _key(binary: Path, arguments: list[str]) -> str:
    """Of all that decides what is recorded."""
    digest = hashlib.sha256(repr((arguments, sorted(ENVIRONMENT.items()))).encode())
    for path in (binary, recording.LAUNCHER, _CLIENT):
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:_KEY_DIGITS]


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
