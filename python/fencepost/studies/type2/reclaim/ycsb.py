"""YCSB's core workloads as it makes them: which key each operation is for, and what it writes.

Generators, constants and bytes of values are those of YCSB 0.17 (its classes are named beside
them). The workloads are A, B, C, D and F; E scans, which Redis answers by another command.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

FIELDS = 10
FIELD_BYTES = 100

_THETA = 0.99  # ZipfianGenerator.ZIPFIAN_CONSTANT
_SCRAMBLED_ITEMS = 10_000_000_000  # ScrambledZipfianGenerator.ITEM_COUNT
_SCRAMBLED_ZETA = 26.46902820178302  # ScrambledZipfianGenerator.ZETAN
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 1099511628211
_MASK = (1 << 64) - 1

Request = list[bytes]  # a command of Redis, with its arguments


@dataclass(frozen=True)
class Mix:
    """Shares of a workload's operations, and how keys are chosen."""

    read: float
    update: float = 0.0
    insert: float = 0.0
    read_modify_write: float = 0.0
    latest: bool = False


# workloads/workloada and so on.
WORKLOADS = {
    "A": Mix(read=0.5, update=0.5),
    "B": Mix(read=0.95, update=0.05),
    "C": Mix(read=1.0),
    "D": Mix(read=0.95, insert=0.05, latest=True),
    "F": Mix(read=0.5, read_modify_write=0.5),
}


class Zipfian:
    """ZipfianGenerator: items from 0 on, the first the likeliest."""

    def __init__(self, items: int, chance: random.Random, zeta: float | None = None) -> None:
        self._chance = chance
        self._items = 0
        self._zeta = 0.0
        if zeta is None:
            self.grow(items)
        else:
            self._items, self._zeta = items, zeta
        self._zeta_2 = 1 + 0.5**_THETA

    def grow(self, items: int) -> None:
        """To so many."""
        for item in range(self._items + 1, items + 1):
            self._zeta += 1 / item**_THETA
        self._items = items

    def draw(self) -> int:
        """An item."""
        alpha = 1 / (1 - _THETA)
        eta = (1 - (2 / self._items) ** (1 - _THETA)) / (1 - self._zeta_2 / self._zeta)
        chance = self._chance.random()
        scaled = chance * self._zeta
        if scaled < 1:
            return 0
        if scaled < self._zeta_2:
            return 1
        return int(self._items * (eta * chance - eta + 1) ** alpha)


def fnv(value: int) -> int:
    """Utils.fnvhash64."""
    hashed = _FNV_OFFSET
    for _ in range(8):
        hashed = ((hashed ^ (value & 0xFF)) * _FNV_PRIME) & _MASK
        value >>= 8
    signed = hashed - (1 << 64) if hashed >> 63 else hashed
    return abs(signed)


def java_hash(text: bytes) -> int:
    """String.hashCode."""
    hashed = 0
    for byte in text:
        hashed = (31 * hashed + byte) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


def key(number: int) -> bytes:
    """CoreWorkload.buildKeyName, with hashed order of insertion."""
    return b"user%d" % fnv(number)


def value(chance: random.Random) -> bytes:
    """RandomByteIterator.fillBytesImpl: six characters of each 32 random bits."""
    filled = bytearray()
    while len(filled) < FIELD_BYTES:
        bits = chance.getrandbits(32)
        for shift, mask in ((0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)):
            filled.append(((bits >> shift) & mask) + 32)
    return bytes(filled[:FIELD_BYTES])


def page_of_values(chance: random.Random) -> bytes:
    """A page of 4,096 bytes with nothing but values."""
    return b"".join(value(chance) for _ in range(-(-4096 // FIELD_BYTES)))[:4096]


def insert(number: int, chance: random.Random) -> list[Request]:
    """RedisClient.insert: the record, and its key in an index."""
    fields = [part for field in range(FIELDS) for part in (b"field%d" % field, value(chance))]
    name = key(number)
    return [
        [b"HMSET", name, *fields],
        [b"ZADD", b"_indices", b"%d" % java_hash(name), name],
    ]


def read(number: int) -> list[Request]:
    """RedisClient.read, of all fields."""
    return [[b"HGETALL", key(number)]]


def update(number: int, chance: random.Random) -> list[Request]:
    """RedisClient.update, of one field."""
    field = b"field%d" % chance.randrange(FIELDS)
    return [[b"HMSET", key(number), field, value(chance)]]


Operation = tuple[str, int]  # `read`, `update` or `insert`, and the number of a record


def requests(operation: Operation, chance: random.Random) -> list[Request]:
    """What a client sends for it."""
    kind, number = operation
    if kind == "read":
        return read(number)
    return insert(number, chance) if kind == "insert" else update(number, chance)


def operations(
    workload: str, records: int, inserts: int, count: int, seed: int
) -> Iterator[list[Operation]]:
    """So many operations on `records`; a read-modify-write is two.

    There are names for so many `inserts`; more than these begin with the first again.
    """
    mix = WORKLOADS[workload]
    chance = random.Random(seed)
    if mix.latest:
        keys = Zipfian(records, chance)
    else:
        keys = Zipfian(_SCRAMBLED_ITEMS, chance, _SCRAMBLED_ZETA)
    inserted = 0
    for _ in range(count):
        kind = chance.random()
        if mix.latest:
            back = min(keys.draw(), records + inserted - 1)
            number = records + inserted - 1 - back
            if number >= records:
                number = records + (number - records) % inserts
        else:
            number = fnv(keys.draw()) % records
        if kind < mix.read:
            yield [("read", number)]
        elif kind < mix.read + mix.update:
            yield [("update", number)]
        elif kind < mix.read + mix.update + mix.insert:
            yield [("insert", records + inserted % inserts)]
            inserted += 1
            keys.grow(records + inserted)
        else:
            yield [("read", number), ("update", number)]


def catalogue(records: int, inserts: int) -> list[Operation]:
    """Each operation that there can be, once, in an order that no prefetcher knows."""
    chance = random.Random(records)
    found: list[Operation] = []

    def both(numbers: list[int]) -> None:
        reads, updates = (chance.sample(numbers, len(numbers)) for _ in range(2))
        for one, other in zip(reads, updates, strict=True):
            found.extend([("read", one), ("update", other)])

    new = list(range(records, records + inserts))
    both(list(range(records)))
    found.extend(("insert", number) for number in new)
    both(new)
    return found


def can_do(workload: str, operation: Operation, records: int) -> bool:
    """Whether it is an operation of a workload on `records`, to which it may insert others."""
    mix = WORKLOADS[workload]
    kind, number = operation
    if number >= records and not mix.insert:
        return False
    shares = {
        "read": mix.read + mix.read_modify_write,
        "update": mix.update + mix.read_modify_write,
        "insert": mix.insert,
    }
    return shares[kind] > 0


def command(request: Request) -> bytes:
    """As Redis's protocol has it."""
    parts = [b"*%d\r\n" % len(request)]
    parts += [b"$%d\r\n%s\r\n" % (len(part), part) for part in request]
    return b"".join(parts)
