"""A second reader of the record format, written from docs/record-format.md alone.

The recorder's tests look into records with it, so that a mistake which the recorder and the
simulator's reader share does not go unseen. It is meant to be plain, not fast.
"""

from __future__ import annotations

import functools
import json
import operator
import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import xxhash
import zstandard

# Long because: it reads the whole format, and shares no code with what it checks.
MAGIC = b"FPFR"
FOOTER_MAGIC = b"FPRECEND"
HEADER = struct.Struct("<4sHBBIIQQIIQ")
VERSION = 5
INFO, CODE, TRACE, SEAL, ORDER, TREE_ORDER = 1, 2, 3, 4, 5, 6
LOAD, STORE, UPDATE, FLUSH, PREFETCH, STRING_SOURCE, STRING_DESTINATION, GATHER, SCATTER = range(9)
MASK = (1 << 64) - 1

# Event type: its name and its fields. "c" is a clock, "v" a varint, "s" a svarint, "b" a byte,
# "B" bytes, "t" a text.
EVENTS = {
    1: ("thread_start", "c kernel_tid:v stack_low:v stack_high:v"),
    2: ("thread_exit", "c"),
    3: ("thread_create", "c thread:v"),
    4: ("thread_join", "c thread:v"),
    5: ("mutex_lock", "c object:v"),
    6: ("mutex_unlock", "c object:v"),
    7: ("spin_lock", "c object:v"),
    8: ("spin_unlock", "c object:v"),
    9: ("read_lock", "c object:v"),
    10: ("write_lock", "c object:v"),
    11: ("rw_unlock", "c object:v"),
    12: ("attempt_failed", "c object:v"),
    13: ("condition_wait", "c object:v mutex:v wake:v timed_out:b"),
    14: ("condition_signal", "c object:v"),
    15: ("condition_broadcast", "c object:v"),
    16: ("semaphore_post", "c object:v"),
    17: ("semaphore_wait", "c object:v wake:v"),
    18: ("barrier_wait", "c object:v participants:v generation:v"),
    19: ("futex_wait", "c object:v wake:v outcome:b"),
    20: ("futex_wake", "c object:v woken:v"),
    22: ("system_call", "number:v result:s"),
    23: ("map", "c start:v length:v protection:b kind:b offset:v name:t"),
    24: ("unmap", "c start:v length:v"),
    25: ("module", "c base:v length:v build_id:B path:t"),
    26: ("roi", "begin:b"),
    27: ("interrupted", "instructions:v"),
    28: ("signal", "number:v"),
    29: ("exec", "c path:t"),
    30: ("fork", "child:v"),
    31: ("kernel_write", "address:v bytes:B"),
    32: ("persist_call", "c kind:b start:v length:v"),
    33: ("initial_bytes", "address:v bytes:B"),
    34: ("order", "thread:v writes:v"),
    35: ("spin_release", "c object:v kind:b lock:v"),
    36: ("call_begin", ""),
    37: ("call_end", ""),
    39: ("polling", "instructions:v by_count:v"),
    40: ("spin_wait", "c object:v wake:v maker:v lends:v"),
    41: ("turn", "c estimate:v"),
    42: ("supply", "c object:v"),
    43: ("consume", "c object:v supply:v"),
    44: ("handed_out", "begin:v"),
    45: ("store_seen", "clock:v"),
    46: ("loads", "count:v store:v"),
    47: ("dropped_edges", "count:v"),
    48: ("shared_mapping", "c start:v length:v object:v offset:v"),
    49: ("child_wait", "c process:v"),
    50: ("mark", "c kind:b text:t"),
}
EVENT_NAMES = {name for name, _ in EVENTS.values()}


class Damaged(Exception):
    """The record is not what the format says."""


class Cursor:
    """Reads integers from bytes, front to back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def done(self) -> bool:
        return self.at >= len(self.data)

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise Damaged("a payload ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MASK:
                    raise Damaged("a varint beyond 64 bits")
                return value
            shift += 7
            if shift > 63:
                raise Damaged("a varint of more than 10 bytes")

    def svarint(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def text(self) -> str:
        return self.take(self.varint()).decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Slot:
    instruction: int
    kind: int
    size: int


@dataclass(frozen=True)
class Block:
    id: int
    address: int
    code_version: int
    lengths: tuple[int, ...]
    code: bytes
    slots: tuple[Slot, ...]

    @functools.cached_property
    def writes(self) -> int:
        """How many ranges `write_ranges` has of each execution."""
        strings = sum(slot.kind == STRING_DESTINATION for slot in self.slots)
        return strings // 2 + sum(slot.kind in (STORE, UPDATE, SCATTER) for slot in self.slots)

    @property
    def instructions(self) -> int:
        return len(self.lengths)

    def instruction_address(self, index: int) -> int:
        return self.address + sum(self.lengths[:index])

    def instruction_bytes(self, index: int) -> bytes:
        start = sum(self.lengths[:index])
        return self.code[start : start + self.lengths[index]]


@dataclass(frozen=True)
class Order:
    """What a replay leaves out of a TRACE frame, and which events it finds before which steps."""

    skips: list[tuple[int, int]]
    inserts: list[tuple[int, Event]]


@dataclass(frozen=True)
class Frame:
    offset: int
    kind: int
    thread: int
    sequence: int
    instructions: int
    position: int
    payload: bytes
    stored_bytes: int


class Written(NamedTuple):
    """The bytes that one write left in selected PM."""

    address: int
    bytes: bytes


@dataclass(slots=True)
class Execution:
    """A block, executed once; `executed` counts its instructions that were."""

    block: Block
    values: list[int]
    executed: int
    written: list[Written]


@dataclass
class Event:
    name: str
    clock: int | None
    fields: dict[str, object] = field(default_factory=dict)

    def __getattr__(self, name: str) -> object:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


class Access(NamedTuple):
    """One slot of one execution."""

    address: int
    kind: int
    size: int
    instruction: bytes


def write_ranges(block: Block, values: list[int]) -> Iterator[tuple[int, int]]:
    """Address and size of each slot that writes, in the order in which values are counted."""
    is_second = False
    for number, (slot, value) in enumerate(zip(block.slots, values, strict=True)):
        if slot.kind in (STRING_SOURCE, STRING_DESTINATION):
            is_second = not is_second
            if slot.kind == STRING_DESTINATION and is_second:
                after = values[number + 1]
                start = value if value <= after else after + slot.size
                yield start, abs(after - value)
        elif slot.kind in (STORE, UPDATE, SCATTER):
            yield value, slot.size


def read_frames(data: bytes) -> Iterator[Frame]:
    """The whole frames from the start of `data`; stops at the footer or at an incomplete frame."""
    offset = 0
    while offset + HEADER.size <= len(data) and data[offset : offset + 4] == MAGIC:
        header = HEADER.unpack_from(data, offset)
        _, version, kind, codec, thread, sequence, instructions, position = header[:8]
        stored_bytes, raw_bytes, checksum = header[8:]
        end = offset + HEADER.size + stored_bytes
        if end > len(data):
            return
        if version != VERSION or kind not in range(INFO, TREE_ORDER + 1) or codec > 1:
            raise Damaged(f"frame at {offset}: version {version}, kind {kind}, codec {codec}")
        stored = data[offset + HEADER.size : end]
        if xxhash.xxh64(data[offset : offset + 40] + stored).intdigest() != checksum:
            raise Damaged(f"frame at {offset}: its checksum does not match")
        payload = zstandard.ZstdDecompressor().decompress(stored) if codec == 1 else stored
        if len(payload) != raw_bytes or raw_bytes > 64 << 20:
            raise Damaged(f"frame at {offset}: {len(payload)} bytes where {raw_bytes} are named")
        yield Frame(offset, kind, thread, sequence, instructions, position, payload, stored_bytes)
        offset = end


def mapped_range(event: Event) -> tuple[int, int]:
    """Start and end of a mapping event."""
    start, length = event.fields["start"], event.fields["length"]
    assert isinstance(start, int)
    assert isinstance(length, int)
    return start, start + length


def place(memory: bytearray, at: int, data: bytes) -> None:
    """Writes `data` at `at`, as far as that lies inside."""
    low, high = max(at, 0), min(at + len(data), len(memory))
    if low < high:
        memory[low:high] = data[low - at : high - at]


class Record:
    """A record, read whole. `is_sealed` is false where the launcher did not live to seal it."""

    def __init__(self, path: str | Path) -> None:
        self.data = Path(path).read_bytes()
        self.frames = list(read_frames(self.data))
        if not self.frames or self.frames[0].kind != INFO:
            raise Damaged("the first frame is not INFO")
        self.info = json.loads(self.frames[0].payload)
        self.blocks: dict[int, Block] = {}
        self.blocks_before: dict[int, int] = {}  # per TRACE frame: those it may name
        self.threads: dict[int, list[Frame]] = {}
        self.orders: dict[int, list[Order]] = {}  # of each TRACE frame, or of none
        self.ended: str | None = None
        self.lost: int | None = None
        self.processes = 0  # of its tree, where it is the first
        self.sharers: list[str] = []
        self.program_instructions: int | None = None  # where there are windows of it
        self.is_sealed = False
        for frame in self.frames:
            if frame.kind == CODE:
                self._read_code(frame)
            elif frame.kind == TRACE:
                self._add_trace(frame)
            elif frame.kind == ORDER:
                self._add_order(frame)
        self._read_seal()

    def _read_code(self, frame: Frame) -> None:
        cursor = Cursor(frame.payload)
        if frame.position != len(self.blocks) + 1:
            raise Damaged("CODE frames do not follow one another")
        for number in range(frame.instructions):
            address, version, count = cursor.u64(), cursor.varint(), cursor.varint()
            lengths = tuple(cursor.take(count))
            code = cursor.take(sum(lengths))
            slots = tuple(
                Slot(cursor.varint(), cursor.byte(), cursor.varint())
                for _ in range(cursor.varint())
            )
            if [slot.instruction for slot in slots] != sorted(slot.instruction for slot in slots):
                raise Damaged("slots are not ordered by instruction")
            if count < 1 or any(slot.instruction >= count or slot.kind > 9 for slot in slots):
                raise Damaged("a block with a slot that cannot be")
            block_id = frame.position + number
            self.blocks[block_id] = Block(block_id, address, version, lengths, code, slots)
        if not cursor.done():
            raise Damaged("a CODE frame with something behind its last block")

    def _add_trace(self, frame: Frame) -> None:
        frames = self.threads.setdefault(frame.thread, [])
        if frame.sequence != len(frames):
            raise Damaged(f"thread {frame.thread}: frame {frame.sequence} out of sequence")
        if frame.position != sum(earlier.instructions for earlier in frames):
            raise Damaged(f"thread {frame.thread}: frame {frame.sequence} at a wrong position")
        frames.append(frame)
        self.blocks_before[frame.offset] = len(self.blocks)

    def _add_order(self, frame: Frame) -> None:
        orders = self.orders.setdefault(frame.thread, [])
        if frame.sequence != len(orders) or frame.sequence >= len(self.threads[frame.thread]):
            raise Damaged(f"thread {frame.thread}: an ORDER frame of no TRACE frame")
        cursor = Cursor(frame.payload)
        skips, inserts, step, clock = [], [], 0, 0
        for _ in range(cursor.varint()):
            start = step + cursor.varint()
            step = start + cursor.varint()
            skips.append((start, step))
        step = 0
        for _ in range(cursor.varint()):
            step += cursor.varint()
            inserts.append(step)
        events = []
        while not cursor.done():
            event, clock = self._event(cursor, clock)
            events.append(event)
        orders.append(Order(skips, list(zip(inserts, events, strict=True))))

    def _read_seal(self) -> None:
        footer = self.data[-32:]
        if footer[:8] != FOOTER_MAGIC:
            return
        seal_offset, length, checksum = struct.unpack("<QQQ", footer[8:])
        if checksum != xxhash.xxh64(footer[:24]).intdigest() or length != len(self.data):
            raise Damaged("the footer does not match")
        seal = self.frames[-1]
        if seal.kind != SEAL or seal.offset != seal_offset:
            raise Damaged("the footer does not name the seal")
        cursor = Cursor(seal.payload)
        self.ended, self.lost = cursor.text(), cursor.varint()
        before = self.frames[:-1]
        if cursor.varint() != len(before):
            raise Damaged("the seal counts other frames")
        offset = 0
        for frame in before:
            kind, thread, difference, instructions = (
                cursor.byte(),
                cursor.varint(),
                cursor.varint(),
                cursor.varint(),
            )
            offset += difference
            indexed = (kind, thread, offset, instructions)
            if indexed != (frame.kind, frame.thread, frame.offset, frame.instructions):
                raise Damaged("the seal's index names another frame")
        if not cursor.done():
            self.processes = cursor.varint()
            self.sharers = [cursor.text() for _ in range(cursor.varint())]
        if not cursor.done():
            self.program_instructions = cursor.varint()
        if not cursor.done():
            raise Damaged("something follows the seal's last entry")
        self.is_sealed = True

    def _items(self, frame: Frame) -> Iterator[Execution | Event]:
        streams = self._streams(frame)
        clock, clock_end = struct.unpack("<QQ", streams[4])
        if clock > clock_end:
            raise Damaged("the process clock runs backwards")
        events = Cursor(streams.get(3, b""))
        slots = self._slots(streams.get(2, b""))
        next(slots)
        has_values = bool(streams.get(5))
        writes = self._writes(streams.get(5, b""))
        next(writes)
        executed = 0
        pending: Execution | None = None
        for block_id in self._control(streams.get(1, b"")):
            if block_id == 0:
                event, clock = self._event(events, clock)
                if event.name == "interrupted":
                    if pending is None:
                        raise Damaged("an interruption without a block before it")
                    pending.executed = event.fields["instructions"]  # type: ignore[assignment]
                if pending is not None:
                    executed += pending.executed
                    yield pending
                    pending = None
                yield event
                continue
            if pending is not None:
                executed += pending.executed
                yield pending
            if block_id > self.blocks_before[frame.offset]:
                raise Damaged(f"block {block_id} is used before it is described")
            block = self.blocks[block_id]
            values = slots.send(block)
            written = writes.send((block, values)) if has_values else []
            pending = Execution(block, values, len(block.lengths), written)
        if pending is not None:
            executed += pending.executed
            yield pending
        if slots.send(None) or writes.send(None) or not events.done():
            raise Damaged("a stream with something behind its end")
        if executed != frame.instructions:
            raise Damaged(f"{executed} instructions where the header names {frame.instructions}")

    def _events(self, frame: Frame) -> Iterator[Event]:
        """The events alone: values and writes, most of a record, are not decoded for them."""
        streams = self._streams(frame)
        clock, _ = struct.unpack("<QQ", streams[4])
        events = Cursor(streams.get(3, b""))
        for block_id in self._control(streams.get(1, b"")) if not events.done() else ():
            if block_id == 0:
                event, clock = self._event(events, clock)
                yield event
        if not events.done():
            raise Damaged("a stream of events with something behind its end")

    @staticmethod
    def _slots(data: bytes) -> Generator[list[int], Block | None, None]:
        """Given a block, the values of its slots; given None, what is left of the stream."""
        state: dict[int, list[list[int]]] = {}  # per block and slot: last, stride, values seen
        at = 0
        values: list[int] = []
        while True:
            block = yield values
            if block is None:
                yield list(data[at:])
                return
            predictors = state.get(block.id)
            if predictors is None:
                predictors = state[block.id] = [[0, 0, 0] for _ in block.slots]
            values = []
            for predictor in predictors:
                byte = data[at]
                at += 1
                if byte == 0:
                    difference = 0
                else:
                    number, shift = byte & 0x7F, 7
                    while byte >= 0x80:
                        byte = data[at]
                        at += 1
                        number |= (byte & 0x7F) << shift
                        shift += 7
                    if number > MASK:
                        raise Damaged("a varint beyond 64 bits")
                    difference = (number >> 1) ^ -(number & 1)
                last, stride, seen = predictor
                value = (last + stride + difference) & MASK
                predictor[0] = value
                predictor[1] = (value - last) & MASK if seen else 0
                predictor[2] = 1
                values.append(value)

    @staticmethod
    def _writes(
        data: bytes,
    ) -> Generator[list[Written], tuple[Block, list[int]] | None, None]:
        """Given an executed block, what it wrote; given None, whether there are values left."""
        stream = Cursor(data)
        skip = None if stream.done() else stream.varint()
        written: list[Written] = []
        while True:
            execution = yield written
            if execution is None:
                yield [Written(0, b"")] if skip is not None else []
                return
            written = []
            if skip is None:
                continue
            if skip >= execution[0].writes:
                skip -= execution[0].writes
                continue
            for address, size in write_ranges(*execution):
                if skip is None:
                    break
                if skip > 0:
                    skip -= 1
                    continue
                written.append(Written(address, stream.take(size)))
                skip = None if stream.done() else stream.varint()

    @staticmethod
    def _control(data: bytes) -> Iterator[int]:
        """The ids of the executed blocks, and 0 for each event."""
        after: dict[int, int] = {}
        last = 0
        control = Cursor(data)
        while not control.done():
            for _ in range(control.varint()):
                last = after.get(last, 0)
                if last == 0:
                    raise Damaged("a prediction where there is none")
                yield last
            if control.done():
                return
            block_id = control.varint()
            yield block_id
            if block_id != 0:
                if last != 0:
                    after[last] = block_id
                last = block_id

    @staticmethod
    def _streams(frame: Frame) -> dict[int, bytes]:
        directory = Cursor(frame.payload)
        sizes = [(directory.u32(), directory.u32()) for _ in range(directory.u32())]
        return {number: directory.take(size) for number, size in sizes}

    @staticmethod
    def _event(cursor: Cursor, clock: int) -> tuple[Event, int]:
        name, layout = EVENTS[cursor.byte()]
        event = Event(name, None)
        for part in layout.split():
            if part == "c":
                clock += cursor.svarint()
                event.clock = clock
                continue
            member, kind = part.split(":")
            event.fields[member] = {
                "v": cursor.varint,
                "s": cursor.svarint,
                "b": cursor.byte,
                "B": lambda: cursor.take(cursor.varint()),
                "t": cursor.text,
            }[kind]()
        return event, clock

    def items(self, thread: int) -> Iterator[Execution | Event]:
        """What the thread did, in order."""
        for frame in self.threads[thread]:
            yield from self._items(frame)

    def events(self, thread: int | None = None, *names: str) -> list[Event]:
        """The events of a thread (of all, by clock where they have one), or those named."""
        assert set(names) <= EVENT_NAMES
        threads = sorted(self.threads) if thread is None else [thread]
        found = [
            event
            for number in threads
            for frame in self.threads[number]
            for event in self._events(frame)
            if not names or event.name in names
        ]
        return sorted(found, key=lambda event: event.clock or 0) if thread is None else found

    def accesses(self, thread: int, *kinds: int) -> Iterator[Access]:
        """The executed slots of a thread, in order, or those of the kinds named."""
        wanted: dict[int, list[tuple[int, Slot, bytes]]] = {}
        for item in self.items(thread):
            if isinstance(item, Event):
                continue
            block = item.block
            found = wanted.get(block.id)
            if found is None:
                found = wanted[block.id] = [
                    (number, slot, block.instruction_bytes(slot.instruction))
                    for number, slot in enumerate(block.slots)
                    if not kinds or slot.kind in kinds
                ]
            for number, slot, code in found:
                if slot.instruction < item.executed:
                    yield Access(item.values[number], slot.kind, slot.size, code)

    def changes(self) -> Iterator[Written | Event]:
        """What the record says of selected PM: bytes, and how mappings changed, in an order that
        the process clock allows.
        """
        ordered: list[tuple[int, int, int, Written | Event]] = []
        for thread in self.threads:
            clock = 0
            for item in self.items(thread):
                if isinstance(item, Execution):
                    for written in item.written:
                        ordered.append((clock, thread, len(ordered), written))
                    continue
                clock = item.clock if item.clock is not None else clock
                if item.name in ("kernel_write", "initial_bytes"):
                    change = Written(**item.fields)  # type: ignore[arg-type]
                    ordered.append((clock, thread, len(ordered), change))
                elif item.name in ("map", "unmap"):
                    ordered.append((clock, thread, len(ordered), item))
        ordered.sort(key=operator.itemgetter(0, 1, 2))
        for *_, change in ordered:
            yield change

    def rebuild(self, start: int, length: int) -> bytes:
        """The last that the record knows of the bytes from `start`. A new mapping has zeros."""
        memory = bytearray(length)
        for change in self.changes():
            if isinstance(change, Written):
                place(memory, change.address - start, change.bytes)
            elif change.name == "map":
                first, end = mapped_range(change)
                low, high = max(first, start), min(end, start + length)
                place(memory, low - start, bytes(max(0, high - low)))
        return bytes(memory)

    def rebuild_file(self, path: str | Path, length: int) -> bytes:
        """The same of a file, through all of its mappings."""
        content = bytearray(length)
        pieces: list[tuple[int, int, int]] = []  # of live mappings: first address, end, offset
        for change in self.changes():
            if isinstance(change, Written):
                for first, end, offset in pieces:
                    if first <= change.address < end:
                        place(content, change.address - first + offset, change.bytes)
                continue
            low, high = mapped_range(change)
            kept = []
            for first, end, offset in pieces:
                kept.append((first, min(end, low), offset))
                kept.append((max(first, high), end, offset + max(0, high - first)))
            pieces = [piece for piece in dict.fromkeys(kept) if piece[0] < piece[1]]
            if change.name == "map" and change.fields["name"] == str(path):
                pieces.append((low, high, int(str(change.fields["offset"]))))
        return bytes(content)

    @property
    def instructions(self) -> int:
        return sum(frame.instructions for frame in self.frames if frame.kind == TRACE)
