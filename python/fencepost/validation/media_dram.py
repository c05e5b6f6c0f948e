"""DRAM for the comparison `media`: each timing gate between two commands, latencies, bandwidths.

Requests are chosen so that the scheduler issues the two commands between which a gate stands, with
no other gate in the way. The parameters are the machine file's, each rounded up to whole clocks by
the rule of JESD79-4 (chapter 13.5).
"""

import random
from dataclasses import dataclass

from fencepost.api import Machine
from fencepost.rows.row import PARAMETERS, Row, near
from fencepost.validation.medium import LINE_BYTES, PS, Medium, Outcome, Place, rate_gb_per_s
from fencepost.validation.medium import read as rd
from fencepost.validation.medium import write as wr

MACHINES = {"DDR4-2400": "pcs-table1", "DDR5-4400": "ddr5-4400"}  # by what their DRAM is called

FORGIVEN = 974  # thousandths of a clock that are added before the fraction is cut off
SETTLED = 1_000_000  # ps; what was opened at 0 holds nothing back any more
EXACT_NS = 0.0005  # half of the simulator's unit of time
NO_REFRESH = "dram.t_refi_ns=1000000"
ONE_CHANNEL = "dram.channels=1"
RATE_PART = 0.01  # of a rate: the start and the end of a stream
SEED = 1
MAPPINGS = ("RoRaBaBgCo", "RoRaBaCoBg", "RoCoRaBaBg")


@dataclass(frozen=True)
class Clocks:
    """The timing parameters of a machine in ps, in whole clocks."""

    medium: Medium

    @property
    def ck(self) -> int:
        """The period."""
        return self.medium.ps("t_ck_ns")

    def __call__(self, name: str) -> int:
        """The parameter `t_NAME_ns`."""
        cycles = (self.medium.ps(f"t_{name}_ns") * 1000 // self.ck + FORGIVEN) // 1000
        return cycles * self.ck

    @property
    def burst(self) -> int:
        """How long a line occupies the data bus: two transfers in a clock."""
        return int(self.medium.config["burst_length"]) // 2 * self.ck


A: Place = (0, 0, 0, 0, 0)
A_NEXT_LINE: Place = (0, 0, 0, 0, 1)
A_OTHER_ROW: Place = (0, 0, 0, 1, 0)
SAME_GROUP: Place = (0, 0, 1, 0, 0)
OTHER_GROUP: Place = (0, 1, 0, 0, 0)
OTHER_RANK: Place = (1, 0, 0, 0, 0)


def rows(machine: Machine, label: str, quick: bool) -> list[Row]:
    """All rows of the DRAM of `machine`."""
    done = [*_gates(machine, label), *_refresh(machine, label), *_latencies(machine, label)]
    return done + _bandwidths(machine, label, 1_000 if quick else 10_000)


def _exact(label: str, metric: str, expected_ps: int, ours_ps: int) -> Row:
    return _row(label, metric, expected_ps / PS, ours_ps / PS, EXACT_NS, "ns")


def _row(label: str, metric: str, expected: float, ours: float, allowed: float, unit: str) -> Row:
    return near(
        *("media", label, metric, expected, ours, allowed),
        unit=unit,
        quality=PARAMETERS,
        machine=MACHINES[label],
    )


def _gap(outcome: Outcome, first: str, second: str) -> int:
    """Between the last command `first` and the last one `second`."""
    return outcome.times_of(second)[-1] - outcome.times_of(first)[-1]


def _pair_gap(outcome: Outcome, name: str) -> int:
    """Between the last two commands of that name."""
    before, last = outcome.times_of(name)[-2:]
    return last - before


def _gates(machine: Machine, label: str) -> list[Row]:
    # Two ranks, so that there is a gate between ranks.
    dram = Medium(machine, "dram", ["dram.ranks=2", NO_REFRESH, ONE_CHANNEL])
    t = Clocks(dram)
    now, soon = SETTLED, SETTLED + t.ck
    opened = [rd(0, place) for place in (A, SAME_GROUP, OTHER_GROUP, OTHER_RANK)]
    from_closed = dram.run([rd(0, A)])
    conflict = dram.run([rd(0, A), rd(0, A_OTHER_ROW)])
    act_group = dram.run([rd(0, A), rd(0, SAME_GROUP)])
    act_other = dram.run([rd(0, A), rd(0, OTHER_GROUP)])
    hits = {
        name: dram.run([*opened, first(now, A), second(soon if first != second else now, place)])
        for name, first, second, place in (
            ("ccd_s", rd, rd, OTHER_GROUP),
            ("ccd_l", rd, rd, SAME_GROUP),
            ("ccd_s_wr", wr, wr, OTHER_GROUP),
            ("ccd_l_wr", wr, wr, SAME_GROUP),
            ("cs", rd, rd, OTHER_RANK),
            ("cs_wr", wr, wr, OTHER_RANK),
            ("wtr_s", wr, rd, OTHER_GROUP),
            ("wtr_l", wr, rd, SAME_GROUP),
            ("rtw", rd, wr, A_NEXT_LINE),
        )
    }
    close_read = dram.run([*opened, rd(now, A), rd(soon, A_OTHER_ROW)])
    close_write = dram.run([*opened, wr(now, A), rd(soon, A_OTHER_ROW)])
    written = t("cwl") + t.burst
    ras = max(t("ras"), t("rcd") + t("rtp"))
    # What holds in the rank holds in the bank group too.
    ccd_s = max(t("ccd_s"), t.burst)
    ccd_l, rrd_l = max(t("ccd_l"), ccd_s), max(t("rrd_l"), t("rrd_s"))
    wtr_l = max(t("wtr_l"), t("wtr_s"))
    measured = [
        ("tRCD: ACT to RD", t("rcd"), _gap(from_closed, "ACT", "RD")),
        ("tCL: RD to data", t("cl"), _data_start(from_closed, t)),
        ("tRP: PRE to ACT", t("rp"), _gap(conflict, "PRE", "ACT")),
        ("tRAS: ACT to PRE", ras, _first_gap(conflict, "ACT", "PRE")),
        ("tRC = tRAS + tRP: ACT to ACT of the bank", ras + t("rp"), _pair_gap(conflict, "ACT")),
        ("tRRD_L: ACT to ACT in the group", rrd_l, _pair_gap(act_group, "ACT")),
        ("tRRD_S: ACT to ACT in another group", t("rrd_s"), _pair_gap(act_other, "ACT")),
        ("tFAW: ACT to the fourth after it", _faw(t), _window(dram, t)),
        ("tCCD_S: RD to RD", ccd_s, _pair_gap(hits["ccd_s"], "RD")),
        ("tCCD_L: RD to RD", ccd_l, _pair_gap(hits["ccd_l"], "RD")),
        ("tCCD_S: WR to WR", ccd_s, _pair_gap(hits["ccd_s_wr"], "WR")),
        ("tCCD_L: WR to WR", ccd_l, _pair_gap(hits["ccd_l_wr"], "WR")),
        ("burst + tCS: RD to RD of another rank", t.burst + t("cs"), _pair_gap(hits["cs"], "RD")),
        ("burst + tCS: WR to WR", t.burst + t("cs"), _pair_gap(hits["cs_wr"], "WR")),
        ("tCWL + burst + tWTR_S: WR to RD", written + t("wtr_s"), _gap(hits["wtr_s"], "WR", "RD")),
        ("tCWL + burst + tWTR_L: WR to RD", written + wtr_l, _gap(hits["wtr_l"], "WR", "RD")),
        (
            "tCL + burst + tRTW - tCWL: RD to WR",
            max(t("cl") + t.burst + t("rtw") - t("cwl"), t.ck),
            _gap(hits["rtw"], "RD", "WR"),
        ),
        ("tRTP: RD to PRE", t("rtp"), _close_gap(close_read, "RD")),
        ("tCWL + burst + tWR: WR to PRE", written + t("wr"), _close_gap(close_write, "WR")),
    ]
    return [_exact(label, metric, expected, ours) for metric, expected, ours in measured]


def _data_start(outcome: Outcome, t: Clocks) -> int:
    return outcome.answered[0] - t.burst - outcome.times_of("RD")[0]


def _first_gap(outcome: Outcome, first: str, second: str) -> int:
    return outcome.times_of(second)[0] - outcome.times_of(first)[0]


def _close_gap(outcome: Outcome, before: str) -> int:
    """From the last command `before` the only PRE to it."""
    [precharge] = outcome.times_of("PRE")
    return precharge - max(at for at in outcome.times_of(before) if at < precharge)


def _faw(t: Clocks) -> int:
    return max(t("faw"), 4 * t("rrd_s"))


def _window(dram: Medium, t: Clocks) -> int:
    """Five ACT in four groups; a hit just before the first RD keeps the command bus free for it."""
    decoy = (0, 0, 3, 0, 0)
    five = [(0, group, bank, 0, 0) for group, bank in ((0, 0), (1, 0), (2, 0), (3, 0), (1, 1))]
    before = SETTLED + t("rcd") - 2 * t.ck
    script = [rd(0, decoy), *(rd(SETTLED, place) for place in five), rd(before, decoy)]
    times = dram.run(script).times_of("ACT")
    return times[5] - times[1]


def _refresh(machine: Machine, label: str) -> list[Row]:
    dram = Medium(machine, "dram", ["dram.ranks=1", ONE_CHANNEL])
    t = Clocks(dram)
    interval = t("refi")
    # Half an interval away from each refresh, so that nothing but tREFI holds it.
    seldom = dram.run([rd(interval // 2 + turn * interval, A) for turn in range(6)])
    due = dram.run([rd(interval, A)])
    busy = dram.run([rd(0, A), rd(interval, A)])
    return [
        _exact(label, "tREFI: REF to REF", interval, _pair_gap(seldom, "REF")),
        _exact(label, "tRFC: REF to ACT", t("rfc"), _gap(due, "REF", "ACT")),
        _exact(label, "tRP: PREA to REF", t("rp"), _gap(busy, "PREA", "REF")),
        _refresh_share(dram, t, label),
    ]


def _refresh_share(dram: Medium, t: Clocks, label: str) -> Row:
    """Of a full bus, over whole intervals: what is missing between the first REF and the last."""
    slot = max(t("ccd_s"), t.burst)
    outcome = dram.run(rd(0, place) for place in _all_groups(dram, 4 * t("refi") // slot))
    refreshes = outcome.times_of("REF")
    first, last = refreshes[0], refreshes[-1]
    carried = slot * sum(first < at < last for at in outcome.times_of("RD"))
    ours = 100 * (1 - carried / (last - first))
    # From the last RD before it to the first RD after it, less the slot that this takes anyway.
    blocked = t("rtp") + t("rp") + t("rfc") + t("rcd") - slot
    expected = 100 * blocked / t("refi")
    metric = "time that a refresh takes: tRTP + tRP + tRFC + tRCD less a slot, of tREFI"
    # Where in a slot the refresh becomes due, and that the rows of other groups open tRRD_S apart.
    allowed = 100 * (slot + t("rrd_s")) / t("refi")
    return _row(label, metric, expected, ours, allowed, "%")


def _latencies(machine: Machine, label: str) -> list[Row]:
    dram = Medium(machine, "dram", [NO_REFRESH, ONE_CHANNEL])
    t = Clocks(dram)
    opened = rd(0, A)
    hit = dram.run([opened, rd(SETTLED, A_NEXT_LINE)]).latencies()[1]
    closed = dram.run([opened]).latencies()[0]
    conflict = dram.run([opened, rd(SETTLED, A_OTHER_ROW)]).latencies()[1]
    # The second write waits for its row while the first one has the bank.
    behind: Place = (0, 0, 0, 2, 0)
    writes = [wr(SETTLED, A_OTHER_ROW), wr(SETTLED, behind)]
    queued = dram.run([opened, *writes, rd(SETTLED + t.ck, behind)]).latencies()[3]
    column = t("cl") + t.burst
    return [
        _exact(label, "row hit: tCL + burst", column, hit),
        _exact(label, "bank closed: tRCD + tCL + burst", t("rcd") + column, closed),
        _exact(
            label,
            "row conflict: tRP + tRCD + tCL + burst",
            t("rp") + t("rcd") + column,
            conflict,
        ),
        _exact(label, "read of a queued write: no time", 0, queued),
    ]


def _bandwidths(machine: Machine, label: str, count: int) -> list[Row]:
    dram = Medium(machine, "dram", [NO_REFRESH, ONE_CHANNEL])
    t = Clocks(dram)
    bus = LINE_BYTES * PS / max(t("ccd_s"), t.burst)
    group = LINE_BYTES * PS / max(t("ccd_l"), t("ccd_s"), t.burst)
    window = min(bus, 4 * LINE_BYTES * PS / _faw(t))
    # Each fourth ACT may find its slot of the command bus taken by a RD, and go a clock later.
    slip = RATE_PART + t.ck / _faw(t)
    all_groups, one_group = _all_groups(dram, count), _one_group(dram, count)
    measured = [
        ("reads, bank groups in turn: the bus", bus, RATE_PART, _read_rate(dram, all_groups)),
        ("writes, bank groups in turn: the bus", bus, RATE_PART, _write_rate(dram, all_groups)),
        ("reads in one bank group: tCCD_L", group, RATE_PART, _read_rate(dram, one_group)),
        ("writes in one bank group: tCCD_L", group, RATE_PART, _write_rate(dram, one_group)),
        (
            "reads, each of another row: tFAW",
            window,
            slip,
            _read_rate(dram, _new_rows(dram, count)),
        ),
    ]
    together = Medium(machine, "dram", [NO_REFRESH, "dram.address_mapping=RoRaBaCoBg"])
    channels = together.config["channels"]
    if channels > 1:
        stream = together.run(rd(0, line) for line in range(channels * count))
        rate = rate_gb_per_s(stream.answered)
        measured.append(
            (f"reads in {channels} channels: the buses", channels * bus, RATE_PART, rate)
        )
    return [
        _row(label, metric, limit, ours, part * limit, "GB/s")
        for metric, limit, part, ours in measured
    ]


def _all_groups(dram: Medium, count: int) -> list[Place]:
    """Rows of all bank groups side by side, a line of each in turn; then the next banks."""
    groups, banks, columns = _shape(dram)
    in_row = ((turn // groups, turn % groups) for turn in range(count))
    return [(0, group, line // columns % banks, 0, line % columns) for line, group in in_row]


def _one_group(dram: Medium, count: int) -> list[Place]:
    """Row after row, in the banks of one group in turn."""
    _, banks, columns = _shape(dram)
    rows = ((turn // columns, turn % columns) for turn in range(count))
    return [(0, 0, row % banks, row // banks, column) for row, column in rows]


def _new_rows(dram: Medium, count: int) -> list[Place]:
    """Each time another row, in all banks in turn and the groups before the banks."""
    groups, banks, _ = _shape(dram)
    return [
        (0, turn % groups, turn // groups % banks, turn // (groups * banks), 0)
        for turn in range(count)
    ]


def _shape(dram: Medium) -> tuple[int, int, int]:
    """Bank groups, banks of each, lines of a row."""
    config = dram.config
    return config["bank_groups"], config["banks_per_group"], config["row_bytes"] // LINE_BYTES


def _read_rate(dram: Medium, places: list[Place]) -> float:
    return rate_gb_per_s(dram.run(rd(0, place) for place in places).answered)


def _write_rate(dram: Medium, places: list[Place]) -> float:
    return rate_gb_per_s(dram.run(wr(0, place) for place in places).times_of("WR"))


def table(machine: Machine, label: str, quick: bool) -> str:
    """Rates that no arithmetic gives, beside the limit of the bus (Markdown)."""
    dram = Medium(machine, "dram", [ONE_CHANNEL])
    shipped = str(dram.config["address_mapping"])
    others = {
        mapping: Medium(machine, "dram", [ONE_CHANNEL, f"dram.address_mapping={mapping}"])
        for mapping in MAPPINGS
        if mapping != shipped
    }
    t = Clocks(dram)
    bus = LINE_BYTES * PS / max(t("ccd_s"), t.burst)
    count = 2_000 if quick else 20_000
    choice = random.Random(SEED)
    lines = [choice.randrange(1 << 22) for _ in range(count)]
    mixed = [(wr if turn % 2 else rd)(0, turn) for turn in range(count)]
    shuffled = [(wr if turn % 2 else rd)(0, line) for turn, line in enumerate(lines)]
    scripts = {
        "sequential reads": [rd(0, line) for line in range(count)],
        "sequential writes": [wr(0, line) for line in range(count)],
        "random reads": [rd(0, line) for line in lines],
        "random writes": [wr(0, line) for line in lines],
        "sequential, 1 read : 1 write": mixed,
        "random, 1 read : 1 write": shuffled,
    }
    text = [
        f"{label}, one channel with full queues, whose bus carries {bus:.2f} GB/s:\n",
        f"| requests | `{shipped}`, GB/s | of the bus | row hits | "
        + " | ".join(f"`{mapping}`, of the bus" for mapping in others)
        + " |",
        "|---" * (4 + len(others)) + "|",
    ]
    for name, script in scripts.items():
        outcome = dram.run(script)
        rate = rate_gb_per_s(outcome.times_of("RD", "WR"))
        served = outcome.statistics
        columns = sum(served[name] for name in ("row_hits", "row_misses", "row_conflicts"))
        hits = served["row_hits"] / columns
        elsewhere = [
            rate_gb_per_s(medium.run(script).times_of("RD", "WR")) for medium in others.values()
        ]
        cells = [name, f"{rate:.2f}", f"{rate / bus:.0%}", f"{hits:.0%}"]
        cells += [f"{other / bus:.0%}" for other in elsewhere]
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join(text)
