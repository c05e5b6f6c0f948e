"""Persistent memory for the comparison `media`: both models, against sums of named parameters.

The first model is accessed line by line (`pcs-table1`), the second in blocks with buffers
(`optane-like`).
"""

import random
from collections.abc import Callable
from functools import partial

from fencepost.api import Machine
from fencepost.rows.lab import Lab
from fencepost.rows.row import PARAMETERS, Row, near
from fencepost.validation.latencies import PUBLISHED, published
from fencepost.validation.medium import LINE_BYTES, PS, Medium, Outcome, rate_gb_per_s
from fencepost.validation.medium import read as rd
from fencepost.validation.medium import write as wr

LINES, BLOCKS = "pcs-table1", "optane-like"
LINES_LABEL, BLOCKS_LABEL = "PM, line by line", "PM, 256-byte blocks"
DEVICE = "pm0"
LATER = 10_000_000  # ps; everything before is over
EXACT_NS = 0.0005  # half of the simulator's unit of time
RATE_PART = 0.01  # of a rate: the start and the end of a stream
RANDOM_PART = 0.05  # of a rate: banks that random addresses leave alone for a while
PUBLISHED_PART = 0.05
SEED = 1


def probes(lab: Lab) -> list[Callable[[], list[Row]]]:
    """What gives the rows of each model."""
    count = 1_000 if lab.quick else 10_000
    return [
        partial(_line_rows, lab.machine(LINES), count),
        partial(_block_rows, lab.machine(BLOCKS), count),
    ]


def _exact(label: str, metric: str, expected_ps: float, ours_ps: float) -> Row:
    expected, ours = expected_ps / PS, ours_ps / PS
    return _row(label, metric, expected, ours, EXACT_NS, "ns")


def _count(label: str, metric: str, expected: float, ours: float) -> Row:
    return _row(label, metric, expected, ours, 0.0)


def _rate(label: str, metric: str, limit: float, ours: float, part: float = RATE_PART) -> Row:
    return _row(label, metric, limit, ours, part * limit, "GB/s")


def _row(
    label: str, metric: str, expected: float, ours: float, allowed: float, unit: str = ""
) -> Row:
    return near(
        *("media", label, metric, expected, ours, allowed),
        unit=unit,
        quality=PARAMETERS,
        machine=LINES if label == LINES_LABEL else BLOCKS,
    )


# --- line by line --------------------------------------------------------------------------


def _line_rows(machine: Machine, count: int) -> list[Row]:
    pm = Medium(machine, DEVICE)
    banks = int(pm.config["banks"])
    burst = pm.ps("burst_ns")
    read, write = pm.ps("read_ns") + pm.ps("send_ns") + burst, pm.ps("write_ns") + pm.ps("send_ns")
    one_bank = [rd(0, banks * turn) for turn in range(3)]
    side_by_side = [rd(0, bank) for bank in range(banks)]
    queued = pm.run([wr(0, 0), wr(0, banks), rd(1, banks)])
    behind = pm.run([wr(0, 0), rd(1, banks)])
    exact = [
        ("read: read + bus", read, pm.run([rd(0, 0)]).answered[0]),
        ("third read of one bank: 3 x (read + bus)", 3 * read, pm.run(one_bank).answered[2]),
        (
            f"{banks} reads of {banks} banks: read + {banks} x bus",
            read + (banks - 1) * burst,
            max(pm.run(side_by_side).answered),
        ),
        ("write, acknowledged by the queue: no time", 0, pm.run([wr(0, 0)]).answered[0]),
        (
            "write, acknowledged by the medium: bus + write",
            burst + write,
            pm.changed("pm.ack_at=media").run([wr(0, 0)]).answered[0],
        ),
        ("read of a queued write: no time", 0, queued.latencies()[2]),
        ("read behind a write: the rest of it + read", burst + write + read, behind.answered[1]),
    ]
    rates = [
        (
            "reads in all banks: the banks' rate",
            min(banks * LINE_BYTES * PS / read, LINE_BYTES * PS / burst),
            rate_gb_per_s(pm.run(rd(0, line) for line in range(count)).answered),
        ),
        (
            "writes in all banks: the banks' rate",
            banks * LINE_BYTES * PS / (burst + write),
            _entry_rate(pm.run(wr(0, line) for line in range(count)), pm),
        ),
    ]
    return [
        *(_exact(LINES_LABEL, *row) for row in exact),
        *(_rate(LINES_LABEL, *row) for row in rates),
        *_write_queue(pm, read, burst + write),
    ]


def _write_queue(pm: Medium, read: int, write: int) -> list[Row]:
    """The queue's places, watermarks, merging, and how long reads may pass a write."""
    banks, entries = int(pm.config["banks"]), int(pm.config["write_queue_entries"])
    high, cap = int(pm.config["write_high_watermark"]), int(pm.config["read_bypass_cap"])
    idle = entries // 4
    keeps = pm.changed(f"pm.write_idle_watermark={idle}")
    patient = pm.changed("pm.read_bypass_cap=65535")
    acknowledges = pm.changed("pm.ack_at=media")
    full = pm.run(wr(0, line) for line in range(entries + 1))
    # All in one bank, which reads keep busy.
    reads = [rd(0, banks * turn) for turn in range(2 * cap)]
    below, at = (
        patient.run([*reads, *(wr(1, banks * (1000 + turn)) for turn in range(writes))])
        for writes in (high - 1, high)
    )
    passed = acknowledges.run([*reads, wr(1, banks * 1000)])
    twice = pm.run([wr(0, 0), wr(1, banks), wr(2, banks)])
    return [
        _exact(
            LINES_LABEL,
            f"write {entries + 1} enters when the first is written: bus + write",
            write,
            full.entered[entries],
        ),
        _exact(
            LINES_LABEL,
            f"a write that {cap} reads have passed: {cap + 1} x (read + bus) + bus + write",
            (cap + 1) * read + write,
            passed.answered[-1],
        ),
        _count(
            LINES_LABEL,
            f"writes written when {idle} may stay and {idle} wait",
            0,
            keeps.run(wr(0, line) for line in range(idle)).statistics["writes"],
        ),
        _count(
            LINES_LABEL,
            f"writes written when {idle} may stay and {idle + 1} wait",
            1,
            keeps.run(wr(0, line) for line in range(idle + 1)).statistics["writes"],
        ),
        _count(
            LINES_LABEL,
            f"batches before reads with {high - 1} queued writes",
            0,
            below.statistics["write_batches"],
        ),
        _count(
            LINES_LABEL,
            f"batches before reads with {high} queued writes",
            1,
            at.statistics["write_batches"],
        ),
        _count(LINES_LABEL, "lines written of 3 writes, 2 to one queued line", 2, _written(twice)),
    ]


def _written(outcome: Outcome) -> int:
    return int(outcome.statistics["media_write_bytes"]) // LINE_BYTES


def _entry_rate(outcome: Outcome, pm: Medium, bytes_each: int = LINE_BYTES) -> float:
    """The rate at which writes enter once the queue is full: as fast as they are written."""
    places = 2 * int(pm.config["write_queue_entries"]) * bytes_each // LINE_BYTES
    return rate_gb_per_s(outcome.entered[places:])


# --- in blocks -----------------------------------------------------------------------------


def _block_rows(machine: Machine, count: int) -> list[Row]:
    pm = Medium(machine, DEVICE)
    lines = int(pm.config["row_bytes"]) // LINE_BYTES
    send, burst = pm.ps("send_ns"), pm.ps("burst_ns")
    read, write = pm.ps("read_ns"), pm.ps("write_ns")
    found = round(float(pm.config["block"]["translation_ns"]) * PS)
    banks, entries = int(pm.config["banks"]), int(pm.config["write_queue_entries"])
    block = pm.run([*(rd(0, line) for line in range(lines)), rd(LATER, 0)])
    partial = pm.run(wr(0, lines * turn) for turn in range(entries + 1))
    one_bank = pm.run(rd(0, lines * banks * turn) for turn in range(3))
    exact = [
        ("read: translation + read + buffer + bus", found + read + send + burst, block.answered[0]),
        (
            "the other lines of the block with it: 3 x bus more",
            found + read + send + lines * burst,
            block.answered[lines - 1],
        ),
        ("read of a block in the buffer: buffer + bus", send + burst, block.latencies()[lines]),
        (
            "third block of one bank: two reads more",
            found + 3 * read + send + burst,
            one_bank.answered[2],
        ),
        ("write, acknowledged by the buffer: no time", 0, partial.answered[0]),
        (
            "a full buffer of parts takes one more after read + write",
            read + write,
            partial.entered[entries],
        ),
    ]
    return [
        *(_exact(BLOCKS_LABEL, *row) for row in exact),
        *_block_rates(pm, lines, count),
        *_amplification(pm, lines, count),
    ]


def _block_rates(pm: Medium, lines: int, count: int) -> list[Row]:
    banks = int(pm.config["banks"])
    read, write = pm.ps("read_ns"), pm.ps("write_ns")
    stream = range(count * lines)
    sequential_read = rate_gb_per_s(pm.run(rd(0, line) for line in stream).answered)
    sequential_write = _entry_rate(pm.run(wr(0, line) for line in stream), pm, lines * LINE_BYTES)
    shuffled = _random_blocks(count, lines)
    random_read = rate_gb_per_s(pm.run(rd(0, line) for line in shuffled).answered)
    random_write = _entry_rate(pm.run(wr(0, line) for line in shuffled), pm)
    whole = banks * lines * LINE_BYTES * PS
    read_rate, write_rate = published("Optane DIMM read / write bandwidth")
    of_a_module = [
        ("sequential reads, published", read_rate, sequential_read, False),
        ("sequential writes, published", write_rate, sequential_write, True),
    ]
    return [
        *(
            near(
                *("media", BLOCKS_LABEL, metric, rate, ours, PUBLISHED_PART * rate),
                is_set=is_set,
                unit="GB/s",
                machine=BLOCKS,
                source=PUBLISHED.name,
            )
            for metric, rate, ours, is_set in of_a_module
        ),
        _rate(BLOCKS_LABEL, "sequential reads: the banks' rate", whole / read, sequential_read),
        _rate(BLOCKS_LABEL, "sequential writes: the banks' rate", whole / write, sequential_write),
        _rate(
            BLOCKS_LABEL,
            "random 64-byte reads: a quarter of it",
            whole / read / lines,
            random_read,
            RANDOM_PART,
        ),
        _rate(
            BLOCKS_LABEL,
            "random 64-byte writes: each a read and a write",
            whole / (read + write) / lines,
            random_write,
            RANDOM_PART,
        ),
    ]


def _random_blocks(count: int, lines: int) -> list[int]:
    """A line of each of `count` blocks, each block once."""
    blocks = list(range(count))
    random.Random(SEED).shuffle(blocks)
    return [lines * block for block in blocks]


def _amplification(pm: Medium, lines: int, count: int) -> list[Row]:
    """Bytes written to the medium over bytes received; what stays in the buffer counts as none."""
    stays = int(pm.config["write_idle_watermark"])
    apart = pm.changed("pm.write_merging=false")
    within = [lines * (turn % stays) for turn in range(count)]
    scripts = {
        "sequential: whole blocks": (1.0, pm, list(range(count * lines))),
        "a line of each block: a block for a line": (
            float(lines),
            pm,
            _random_blocks(count, lines),
        ),
        "sequential, without merging": (float(lines), apart, list(range(count))),
        "again and again within what the buffer keeps": (0.0, pm, within),
    }
    found = []
    for name, (expected, medium, script) in scripts.items():
        outcome = medium.run(wr(0, line) for line in script)
        ours = outcome.statistics["media_write_bytes"] / (LINE_BYTES * len(script))
        # What has not left the buffer at the end has not been written.
        kept = stays / len(script) * expected
        metric = f"write amplification, {name}"
        found.append(_row(BLOCKS_LABEL, metric, expected, ours, kept))
    return found
