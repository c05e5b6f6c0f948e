"""The comparison `flits`: how much of a link's wire carries lines, and that nothing gets lost.

What a row is compared with is arithmetic on the packing rules of the CXL specification, written out
below, or on go-back-N retry. Ours is what one link sustains in the simulator, alone and saturated.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from fencepost import _core
from fencepost.rows.lab import Lab
from fencepost.rows.row import SPECIFICATION, Row, near
from fencepost.validation import Comparison, Findings

LINE = 64
MACHINE = "pcs-table1"  # whose links these are

CLASSES = ("request", "request_with_data", "no_data_response", "data_response")
SATURATING_CREDITS = 4096  # of each class: none is ever waited for

Link = dict[str, Any]  # the table `[link]` of a machine
Work = Callable[[], list[Row]]

#: Flits that ask for a retry and that announce it, by format.
HANDSHAKE = {"68_byte": (6, 6), "256_byte": (1, 0), "256_byte_latency_optimised": (1, 0)}
BYTES = {"68_byte": 68, "256_byte": 256, "256_byte_latency_optimised": 256}


@dataclass(frozen=True)
class Traffic:
    """A mix in one direction: how many messages of each kind come in turn."""

    name: str
    mix: dict[str, int]

    @property
    def lines(self) -> int:
        """Lines in one turn."""
        return sum(self.mix.get(kind, 0) for kind in ("mem_wr", "mem_wr_ptl", "mem_data"))

    @property
    def messages(self) -> int:
        """Messages in one turn."""
        return sum(self.mix.values())


TRAFFIC = (
    Traffic("M2S, read only", {"mem_rd": 1}),
    Traffic("M2S, write only", {"mem_wr": 1}),
    Traffic("M2S, partial writes only", {"mem_wr_ptl": 1}),
    Traffic("M2S, reads:writes 1:1", {"mem_rd": 1, "mem_wr": 1}),
    Traffic("M2S, reads:writes 2:1", {"mem_rd": 2, "mem_wr": 1}),
    Traffic("S2M, read only", {"mem_data": 1}),
    Traffic("S2M, NDR only", {"cmp": 1}),
    Traffic("S2M, reads:writes 1:1", {"mem_data": 1, "cmp": 1}),
    Traffic("S2M, reads:writes 2:1", {"mem_data": 2, "cmp": 1}),
)


def flits_of_68_bytes(mix: dict[str, int]) -> float:
    """The fewest flits that one turn of a mix takes, by the rules of 68-byte flits.

    A flit has four slots. A line takes four of them, byte enables one more, an M2S header one. Of
    S2M headers, a slot takes two (in slot 0: two DRS, two NDR, or one of each) or three (elsewhere:
    three DRS, or a DRS and two NDR). A flit has at most 2 Req, 1 RwD, 2 NDR and 3 DRS headers, so a
    mix without data is bound by those. Data go into slot 0 only where a flit has no header, and a
    turn of lines needs only one flit in two with headers: two DRS headers in slot 0, their eight
    pieces of data in nine slots with it.
    """
    m = _counts(mix)
    data = 4 * (m["mem_wr"] + m["mem_wr_ptl"] + m["mem_data"]) + m["mem_wr_ptl"]
    pairs = min(m["mem_data"], m["cmp"])  # a DRS and an NDR in one slot
    alone = (m["mem_data"] - pairs) / 2 + (m["cmp"] - pairs) / 2
    headers = m["mem_rd"] + m["mem_wr"] + m["mem_wr_ptl"] + pairs + alone
    by_limits = max(m["mem_rd"] / 2, m["mem_wr"] + m["mem_wr_ptl"], m["cmp"] / 2, m["mem_data"] / 3)
    return max((data + headers) / 4, by_limits)


def flits_of_256_bytes(mix: dict[str, int], optimised: bool) -> float:
    """The fewest flits that one turn of a mix takes, by the rules of 256-byte flits.

    A flit has one H slot for headers and 14 G slots for headers and data; of the latency-optimised
    one, 13, and an HS slot that takes one S2M header. H takes one M2S header or two S2M headers, G
    one or three. Each half takes at most 4 Req, 2 RwD, 6 NDR and 3 DRS headers. With `f` flits:
    headers that do not find room in H and HS and all data share the G slots of `f` flits.
    """
    m = _counts(mix)
    writes = m["mem_wr"] + m["mem_wr_ptl"]
    data = 4 * (writes + m["mem_data"]) + m["mem_wr_ptl"]
    generic = 13 if optimised else 14
    answers = m["mem_data"] + m["cmp"]
    if answers:
        apart = 3 if optimised else 2  # headers in H and HS of each flit
        f = max((data + answers / 3) / (generic + apart / 3), data / generic)
    else:
        f = (data + m["mem_rd"] + writes) / (generic + 1)
    return max(f, m["mem_rd"] / 8, writes / 4, m["cmp"] / 12, m["mem_data"] / 6)


def fewest_flits(flit_format: str, traffic: Traffic) -> float:
    """Flits of one turn at least."""
    if flit_format == "68_byte":
        return flits_of_68_bytes(traffic.mix)
    return flits_of_256_bytes(traffic.mix, optimised=flit_format != "256_byte")


def slowdown_of_retries(link: Link, flit_errors: float) -> float:
    """How many times as long a saturated link takes with errors, by go-back-N.

    Each flit that gets through has on average p / (1 - p) failures before it, and each failure
    costs the time from the start of one transmission to the start of the next: the flit, its
    flight, the request (6 control flits, or 1 flit), its flight, the announcement (6 or none).
    """
    flit_ns: float = BYTES[link["flit_format"]] / link["bandwidth_gb_per_s"]
    request, announcement = HANDSHAKE[link["flit_format"]]
    lost: float = (1 + request + announcement) * flit_ns + 2 * link["latency_ns"]
    return 1 + flit_errors / (1 - flit_errors) * lost / flit_ns


def flit_error_rate(flit_format: str, bit_errors: float) -> float:
    """The probability that a flit must be sent again.

    68 bytes: any of the 528 bits under the CRC. 256 bytes: two wrong bytes in one of the FEC's
    three codes, of 86, 85 and 85 bytes.
    """
    if flit_format == "68_byte":
        return 1 - (1 - bit_errors) ** 528
    byte = 1 - (1 - bit_errors) ** 8
    good = 1.0
    for n in (86, 85, 85):
        good *= (1 - byte) ** n + n * byte * (1 - byte) ** (n - 1)
    return 1 - good


def compare(lab: Lab) -> Findings:
    """Packing, retries, and credits."""
    lab.log(f"saturating links with flits of the formats {', '.join(BYTES)}")
    saturated = lab.performed(*chain.from_iterable(_saturations(lab, form) for form in BYTES))
    lab.log("random messages, with errors")
    soaked = lab.performed(*chain.from_iterable(soaks(lab, form) for form in BYTES))
    rows = list(chain.from_iterable([*saturated, *soaked]))
    return Findings(rows, [_table(rows)] if lab.conditions is None else [])


def _saturations(lab: Lab, flit_format: str) -> Iterator[Work]:
    """What gives the rows of packing and of retries."""
    enough = [f"link.{name}_credits={SATURATING_CREDITS}" for name in CLASSES]
    for traffic in TRAFFIC:
        point = f"{flit_format}: {traffic.name}"
        if lab.wants(point):
            turns = (10_000 if lab.quick else 100_000) // traffic.messages
            yield partial(_packed, point, _link(lab, flit_format, 0.0, *enough), traffic, turns)
    for target in (1e-3, 1e-2):
        bits = _bit_error_rate(flit_format, target)
        point = f"{flit_format}: writes, bit error rate {bits:.3g}"
        if lab.wants(point):
            clean, link = (_link(lab, flit_format, rate, *enough) for rate in (0.0, bits))
            yield partial(_retried, point, clean, link, 50_000 if lab.quick else 1_000_000)


def soaks(lab: Lab, flit_format: str) -> Iterator[Work]:
    """What gives the rows of random messages."""
    messages = _soak_messages(flit_format, lab.quick)
    point = f"{flit_format}: {messages:,} random messages both ways, a flit in 1,000 wrong"
    if lab.wants(point):
        link = _link(lab, flit_format, _bit_error_rate(flit_format, 1e-3))
        yield partial(_soaked, point, link, messages)


def _link(lab: Lab, flit_format: str, bit_error_rate: float, *sets: str) -> Link:
    """The link of the machine, in that format."""
    own = (f"link.flit_format={flit_format}", f"link.bit_error_rate={bit_error_rate}")
    link: Link = lab.resolved(MACHINE, *own, *sets)["link"]
    return link


def _packed(point: str, link: Link, traffic: Traffic, turns: int) -> list[Row]:
    flit_format = link["flit_format"]
    result = _saturated(link, traffic.mix, turns * traffic.messages)
    fewest = fewest_flits(flit_format, traffic)
    ours = result["flits"] / turns
    unit, per = "messages a flit", float(traffic.messages)
    if traffic.lines:
        unit, per = "of the wire are lines", traffic.lines * LINE / BYTES[flit_format]
    bound = per / fewest
    return [_row(point, "packing efficiency", bound, per / ours, 0.02 * bound, unit)]


def _retried(point: str, clean: Link, link: Link, messages: int) -> list[Row]:
    """`clean` is the same link without errors."""
    expected = flit_error_rate(link["flit_format"], link["bit_error_rate"])
    undisturbed, result = (_saturated(one, {"mem_wr": 1}, messages) for one in (clean, link))
    # Transmissions that matter: each flit's last, and one for each failure.
    tries = result["flits"] + result["crc_errors"]
    # Four standard deviations of a count of rare events.
    spread = 4 * (expected * tries) ** 0.5
    ours = result["time_ns"] / undisturbed["time_ns"]
    slower = slowdown_of_retries(link, result["crc_errors"] / tries)
    return [
        _row(point, "flits that arrive wrong", expected * tries, result["crc_errors"], spread),
        _row(point, "time, over that without errors", slower, ours, 0.01 * slower),
    ]


def _soaked(point: str, link: Link, messages: int) -> list[Row]:
    result = json.loads(_core.link_soak(json.dumps(link), messages, 1))
    counts = {
        "messages that arrived": (messages, sum(result["arrived"])),
        "messages lost": (0, result["lost"]),
        "messages out of their class's order": (0, result["disordered"]),
        "credits that did not come back": (0, result["missing_credits"]),
    }
    return [_row(point, metric, *values, 0) for metric, values in counts.items()]


def _row(
    point: str, metric: str, expected: float, ours: float, within: float, unit: str = ""
) -> Row:
    values = ("flits", point, metric, expected, ours, within)
    return near(*values, unit=unit, quality=SPECIFICATION, machine=MACHINE)


def _soak_messages(flit_format: str, quick: bool) -> int:
    """10^8 in all, most of them in the format of the shipped machines."""
    if quick:
        return 400_000
    return 80_000_000 if flit_format == "68_byte" else 10_000_000


def _bit_error_rate(flit_format: str, flit_errors: float) -> float:
    """The bit error rate that makes so many flits arrive wrong, by bisection."""
    low, high = 0.0, 1e-3
    for _ in range(60):
        middle = (low + high) / 2
        if flit_error_rate(flit_format, middle) < flit_errors:
            low = middle
        else:
            high = middle
    return float(f"{high:.3g}")


def _saturated(link: Link, mix: dict[str, int], messages: int) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        _core.link_saturate(json.dumps(link), json.dumps(mix), messages)
    )
    return result


def _counts(mix: dict[str, int]) -> dict[str, int]:
    kinds = ("mem_rd", "mem_wr", "mem_wr_ptl", "cmp", "mem_data")
    return {kind: mix.get(kind, 0) for kind in kinds}


def _table(rows: list[Row]) -> str:
    """Both directions of a link, format by format: what part of the wire carries lines."""
    lines = [row for row in rows if row.unit == "of the wire are lines"]
    points = list(dict.fromkeys(row.condition.partition(": ")[2] for row in lines))
    ours = {row.condition: row.ours for row in lines}
    head = "| lines on the wire | " + " | ".join(BYTES) + " |\n|---|" + "---:|" * len(BYTES)
    body = (
        f"| {point} | " + " | ".join(f"{ours[f'{form}: {point}']:.1%}" for form in BYTES) + " |"
        for point in points
    )
    return "\n".join([head, *body])


FLITS = Comparison(
    "flits",
    "Flits: packing, retries and credits of one link",
    "How well does a link pack flits, and what do errors cost? One link of `pcs-table1` is tested "
    "alone, in each format. "
    "Packing: what a saturated link sustains, against the fewest flits that the packing rules "
    "of the CXL specification allow (written out in `validation/flits.py`), within 2 %. "
    "Retries: the number of flits that arrive wrong, against the bit error rate, within four "
    "standard deviations, and the time they cost, against go-back-N, within 1 %. Credits: "
    "after random traffic in both directions with errors, every message has arrived in the "
    "order of its class and every credit is back, for 10^8 messages in all on one link, 8 of "
    "10 in the format of the shipped machines. Fabrics of many links are not counted in this "
    "way.",
    compare,
)
