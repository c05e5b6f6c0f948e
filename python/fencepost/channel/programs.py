"""Programs that a preloaded library can pace, and why others are refused."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from fencepost._core import InputError

SCRIPTS_MAX = 5  # interpreters of interpreters, as the kernel has it
_ELF = b"\x7fELF"
_CLASS_64, _LITTLE = 2, 1
_INTERPRETER, _NOTES = 3, 4  # program headers
_MACHINES = {"x86_64": 62, "aarch64": 183}
_GO_NOTE = b"Go\0\0"


def check(command: list[str]) -> Path:
    """The program that a command starts; raises `InputError` where preloading has no effect."""
    name = command[0]
    found = shutil.which(name)
    if found is None:
        raise InputError(f"{name}: no such program")
    path = Path(found)
    for _ in range(SCRIPTS_MAX):
        _check_privileges(path)
        head = _beginning(path)
        if not head.startswith(b"#!"):
            _check_elf(path, head)
            return Path(found)
        path = _interpreter_of(path, head)
    raise InputError(f"{name}: its interpreter is a script, and that one's too")


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _interpreter_of(script: Path, head: bytes) -> Path:
    words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
    if not words:
        raise InputError(f"{script}: neither a program nor a script with an interpreter")
    if Path(words[0]).name == "env" and len(words) > 1:
        named = shutil.which(words[1])
        if named is not None:
            return Path(named)
    return Path(words[0])


def _check_privileges(path: Path) -> None:
    status = path.stat()
    mode = status.st_mode
    own = (os.geteuid(), os.getegid())
    is_other = (mode & 0o4000 and status.st_uid != own[0]) or (
        mode & 0o2010 == 0o2010 and status.st_gid != own[1]
    )
    if is_other:
        raise InputError(
            f"{path}: a set-uid or set-gid program, for which the loader ignores LD_PRELOAD; "
            "start it as the user that it becomes"
        )
    try:
        has_capabilities = "security.capability" in os.listxattr(path)
    except OSError:
        has_capabilities = False
    if has_capabilities and own[0] != 0:
        raise InputError(
            f"{path}: a program with capabilities of its own, for which the loader ignores "
            "LD_PRELOAD; start it as root"
        )


def _check_elf(path: Path, head: bytes) -> None:
    if not head.startswith(_ELF):
        raise InputError(f"{path}: neither an ELF program nor a script that names its interpreter")
    machine = os.uname().machine
    wanted = _MACHINES.get(machine)
    is_of_here = head[4] == _CLASS_64 and head[5] == _LITTLE
    if not is_of_here or struct.unpack_from("<H", head, 18)[0] != wanted:
        raise InputError(f"{path}: not a 64-bit {machine} program, as the preloaded library is")
    try:
        data = path.read_bytes()
        segments = _segments(data)
        notes = [data[begin : begin + size] for kind, begin, size in segments if kind == _NOTES]
        interpreters = [data[b : b + size] for kind, b, size in segments if kind == _INTERPRETER]
    except (OSError, struct.error) as error:
        raise InputError(f"{path}: no whole ELF program: {error}") from error
    if any(_GO_NOTE in note for note in notes) or b"\xff Go buildinf:" in data:
        raise InputError(
            f"{path}: a Go program: its goroutines move between threads, and its runtime makes "
            "threads and handles signals without the C library"
        )
    if not interpreters:
        raise InputError(
            f"{path}: a static program, into which nothing can be preloaded; link it dynamically"
        )
    loader = os.fsdecode(interpreters[0].rstrip(b"\0"))
    if "ld-musl" in loader:
        raise InputError(
            f"{path}: a program of musl ({loader}); the preloaded library needs glibc: build it "
            "with that"
        )


def _segments(data: bytes) -> list[tuple[int, int, int]]:
    """Kind, place in the file and size of each program header."""
    (at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = []
    for number in range(count):
        kind, _, begin, _, _, length = struct.unpack_from("<IIQQQQ", data, at + number * size)
        headers.append((kind, begin, length))
    return headers
