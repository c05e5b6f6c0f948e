"""The comparison `media`: DRAM and PM alone, probed request by request.

What a row is compared with is arithmetic on named parameters of a machine file, or a published
figure. The probe is `_core.medium_probe`: a medium without host, links and controller pipeline.
"""

import csv
from functools import partial
from itertools import chain

from fencepost.api import Machine
from fencepost.rows.lab import Lab
from fencepost.rows.row import Row, near
from fencepost.tree import EXPERIMENTS
from fencepost.validation import Comparison, Findings, media_dram, media_pm
from fencepost.validation.media_dram import Clocks
from fencepost.validation.medium import PS, Medium

PUBLISHED = EXPERIMENTS / "published" / "latency_published.csv"

# Rows of the published table, and the parameters that their values are, in order.
PARAMETERS = {
    "gem5 DDR4-2400 x8 tCK / tRCD=tCL=tRP / tRAS": ("ck", "rcd cl rp", "ras"),
    "gem5 DDR4-2400 x8 tCCD_L / tRRD S,L / tFAW / tWR / tWTR / tRTP": (
        *("ccd_l", "rrd_s", "rrd_l", "faw", "wr", "wtr_s wtr_l", "rtp"),
    ),
    "gem5 DDR4-2400 x8 tRFC / tREFI / banks / bank groups": ("rfc", "refi"),
    "gem5 DDR5-4400 tCK / tRCD=tCL=tRP / tRAS / tBURST": ("ck", "rcd cl rp", "ras", "ccd_s"),
}

SUSTAINED = """### Sustained bandwidth

Requests in sequence depend on the address mapping. `RoRaBaBgCo` keeps neighbours in one bank group,
where each pays tCCD_L, so random requests, which are in all groups, can be faster. The other
mappings change the group from line to line.
"""


def compare(lab: Lab) -> Findings:
    """All media; tables of what no arithmetic gives."""
    drams = {label: lab.machine(name) for label, name in media_dram.MACHINES.items()}
    lab.log(f"probing {', '.join(drams)}; PM, line by line and in blocks")
    rows = lab.performed(
        *(partial(_dram_rows, own, label, lab.quick) for label, own in drams.items()),
        *media_pm.probes(lab),
    )
    tables = lab.performed(
        *(partial(media_dram.table, own, label, lab.quick) for label, own in drams.items())
    )
    return Findings(list(chain.from_iterable(rows)), [SUSTAINED, *tables])


def _dram_rows(machine: Machine, label: str, quick: bool) -> list[Row]:
    return [*_parameters(machine, label), *media_dram.rows(machine, label, quick)]


def _parameters(machine: Machine, label: str) -> list[Row]:
    """The published parameters beside what is simulated: the next whole number of clocks."""
    t = Clocks(Medium(machine, "dram"))
    rows: list[Row] = []
    for quantity, names in PARAMETERS.items():
        if label not in quantity:
            continue
        values = _published()[quantity].replace(",", " / ").split(" / ")
        for published, name in zip(map(float, values), names, strict=False):
            for each in name.split():
                ours, metric = t(each) / PS, f"parameter t{each.upper()}, in whole clocks"
                rows.append(
                    near(
                        *("media", label, metric, published, ours, t.ck / PS),
                        is_set=True,
                        unit="ns",
                        machine=machine.label,
                        source=PUBLISHED.name,
                    )
                )
    return rows


def _published() -> dict[str, str]:
    """The values of the published table as they are written, by quantity."""
    with PUBLISHED.open(encoding="utf-8") as file:
        return {row["quantity"]: row["value"] for row in csv.DictReader(file)}


MEDIA = Comparison(
    "media",
    "Media: DRAM and persistent memory, probed request by request",
    "Does each medium keep its parameters? Each is probed alone, without host and links. For "
    "DRAM, requests make the scheduler issue the two commands that a timing parameter "
    "separates; the time between them has to equal the parameter in whole clocks (rounding "
    "rule of JESD79-4). Latencies have to equal sums of parameters. Bandwidths hold within 1 % "
    "of the limit that the parameters set, with two exceptions. Random addresses hold within "
    "5 %, because banks are idle at times. Reads that each open a new row hold within 1 % and "
    "one clock per tFAW, because the command bus may be busy. Each refresh may shift by a slot "
    "of the bus and a tRRD_S. Persistent memory is tested in the same way: the "
    "medium that is accessed line by line (`pcs-table1`) and the one with buffers and blocks "
    "of 256 bytes (`optane-like`). Of the two published bandwidths of a module, that of reads "
    "is held out.",
    compare,
)
