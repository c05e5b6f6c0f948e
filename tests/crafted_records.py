"""Writes records byte by byte, as docs/record-format.md describes them: what no recorder makes."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import xxhash
import zstandard

from record_format import CODE, FOOTER_MAGIC, INFO, MAGIC, SEAL, TRACE, VERSION

HEADER = struct.Struct("<4sHBBIIQQII")  # up to the checksum
CONTROL, SLOTS, EVENTS, CLOCK = 1, 2, 3, 4

Block = bytes
NO_OPERATION, LOAD = b"\x90", b"\x48\x8b\x00"  # nop; mov (%rax), %rax


def varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def block(address: int, code: bytes, loads: int = 0) -> Block:
    """One instruction, with so many loads of eight bytes."""
    slots = b"".join(varint(0) + b"\0" + varint(8) for _ in range(loads))
    instruction = varint(1) + bytes([len(code)]) + code
    return struct.pack("<Q", address) + varint(0) + instruction + varint(loads) + slots


def thread_start() -> bytes:
    """Its event."""
    return bytes([1]) + varint(0) + varint(1) + varint(0) + varint(0)


class CraftedRecord:
    """A record in the making, of any version of the format."""

    def __init__(self, version: int = VERSION, isa: str = "x86-64") -> None:
        self._version = version
        self._file = bytearray()
        self._index: list[tuple[int, int, int, int]] = []
        self._threads: dict[int, tuple[int, int]] = {}
        self._code_frames, self._blocks = 0, 1
        info = {
            "format_version": version,
            "isa": isa,
            "recorder": "by hand",
            "engine": "none",
            "program": "crafted",
            "arguments": ["crafted"],
            "page_size": 4096,
            "line_size": 64,
            "options": {"values": False, "pm": None, "roi": None},
        }
        self._frame(INFO, json.dumps(info).encode())

    def code(self, blocks: list[Block]) -> None:
        numbers = {"sequence": self._code_frames, "position": self._blocks}
        self._frame(CODE, b"".join(blocks), instructions=len(blocks), **numbers)
        self._code_frames += 1
        self._blocks += len(blocks)

    def trace(
        self,
        thread: int,
        instructions: int = 0,
        control: bytes = b"",
        slots: bytes = b"",
        events: bytes = b"",
    ) -> None:
        streams = {CONTROL: control, SLOTS: slots, EVENTS: events, CLOCK: struct.pack("<QQ", 1, 1)}
        directory = [struct.pack("<II", name, len(stream)) for name, stream in streams.items()]
        payload = struct.pack("<I", len(streams)) + b"".join([*directory, *streams.values()])
        sequence, position = self._threads.get(thread, (0, 0))
        numbers = {"sequence": sequence, "position": position}
        self._frame(TRACE, payload, thread=thread, instructions=instructions, **numbers)
        self._threads[thread] = (sequence + 1, position + instructions)

    def write(self, path: Path, ended: bytes = b"exit 0", lost: int = 0) -> Path:
        """Seals it and writes it; of so many threads the last instructions are missing."""
        payload = varint(len(ended)) + ended + varint(lost) + varint(len(self._index))
        before = 0
        for kind, thread, offset, instructions in self._index:
            payload += bytes([kind]) + varint(thread) + varint(offset - before)
            payload += varint(instructions)
            before = offset
        seal = len(self._file)
        self._frame(SEAL, payload)
        footer = FOOTER_MAGIC + struct.pack("<QQ", seal, len(self._file) + 32)
        footer += xxhash.xxh64(footer).intdigest().to_bytes(8, "little")
        path.write_bytes(bytes(self._file) + footer)
        return path

    def _frame(
        self,
        kind: int,
        payload: bytes,
        *,
        thread: int = 0,
        sequence: int = 0,
        instructions: int = 0,
        position: int = 0,
    ) -> None:
        is_packed = len(payload) > 1000
        stored = zstandard.ZstdCompressor(level=9).compress(payload) if is_packed else payload
        fields = (thread, sequence, instructions, position, len(stored), len(payload))
        header = HEADER.pack(MAGIC, self._version, kind, int(is_packed), *fields)
        checksum = xxhash.xxh64(header + stored).intdigest().to_bytes(8, "little")
        if kind != SEAL:
            self._index.append((kind, thread, len(self._file), instructions))
        self._file += header + checksum + stored
