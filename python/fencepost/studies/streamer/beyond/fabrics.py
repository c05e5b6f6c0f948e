"""Machines that the study had not: settings on top of `spr-cxl`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.rows.lab import Lab
from fencepost.schemes import VOLATILE

MACHINE = "spr-cxl"
EXPANDER, PM = "expander0", "pm0"

Sets = tuple[str, ...]


def fabric(
    edges: Iterable[str],
    *,
    devices: Iterable[str] = (),
    expanders: Iterable[str] = (),
    switches: Iterable[str] = (),
) -> Sets:
    """What is connected to what."""
    lists = {"switches": switches, "devices": devices, "expanders": expanders, "edges": edges}
    return tuple(f"fabric.{name}={json.dumps(list(names))}" for name, names in lists.items())


# The study takes the expander's DRAM for persistent memory: it has a battery, or would have one.
BACKED = "pm.medium=battery_backed_dram"
DIRECT: Sets = (*fabric([f"host0 -> {PM}"], devices=[PM]), BACKED)
SWITCHED: Sets = (
    *fabric(["host0 -> switch0", f"switch0 -> {PM}"], devices=[PM], switches=["switch0"]),
    BACKED,
)


def expanders(count: int) -> Sets:
    """So many of them, each on a port of its own."""
    names = [f"expander{number}" for number in range(count)]
    return fabric([f"host0 -> {name}" for name in names], expanders=names)


@dataclass(frozen=True)
class Fabric:
    """A way to the memory with the arrays."""

    name: str
    node: str
    sets: Sets = ()
    scheme: str = VOLATILE


PLAIN = Fabric("expander without a battery", EXPANDER)
ALONE = Fabric("PM, no switch", PM, DIRECT)
VOLATILE_SWITCH = Fabric(f"PM behind a switch, {VOLATILE}", PM, SWITCHED)
ENTRIES = 256  # the most that a persist buffer can have here
BUFFERED = (
    *(
        Fabric(f"PM behind a switch, {scheme}", PM, SWITCHED, scheme)
        for scheme in ("pb", "pb_rf", "pb_adaptive")
    ),
    Fabric(
        f"PM behind a switch, pb_rf, {ENTRIES} entries",
        PM,
        (*SWITCHED, f"switch.persist_buffer.entries={ENTRIES}"),
        "pb_rf",
    ),
)


def _timing(**values: float) -> Sets:
    return tuple(f"expander.{key}={value}" for key, value in values.items())


# JESD79-4, DDR4-3200AA: 22-22-22; what a standard gives in clocks and in ns is the greater.
DDR4_3200 = _timing(
    t_ck_ns=0.625,
    t_rcd_ns=13.75,
    t_cl_ns=13.75,
    t_cwl_ns=10.0,
    t_rp_ns=13.75,
    t_ccd_s_ns=2.5,
    t_ccd_l_ns=5.0,
    t_rrd_s_ns=2.5,
    t_rtw_ns=1.25,
    t_cs_ns=1.25,
)
# JESD79-5, DDR5-5600B: 46-46-46; a DIMM of two subchannels, of the chips of the host's DIMM.
DDR5_5600 = _timing(
    t_ck_ns=0.357,
    t_rcd_ns=16.422,
    t_cl_ns=16.422,
    t_cwl_ns=15.708,
    t_rp_ns=16.422,
    t_ccd_s_ns=2.856,
    t_rrd_s_ns=2.856,
    t_faw_ns=11.428,
    t_rtw_ns=0.714,
    t_cs_ns=0.714,
)
# What else a DDR5 DIMM has that is not the prototype's, as that of the host.
_DIMM = (
    *("channels", "channel_bits", "burst_length", "ranks", "bank_groups", "banks_per_group"),
    *("row_bytes", "t_ras_ns", "t_ccd_l_ns", "t_ccd_l_wr_ns", "t_rrd_l_ns", "t_wr_ns"),
    *("t_wtr_s_ns", "t_wtr_l_ns", "t_rtp_ns", "t_rfc_ns", "t_refi_ns"),
)


def ddr5_5600(lab: Lab) -> Sets:
    """The host's DIMM at another clock."""
    own = lab.resolved(MACHINE)["dram"]
    return (*(f"expander.{key}={json.dumps(own[key])}" for key in _DIMM), *DDR5_5600)


def asic(lab: Lab) -> Sets:
    """The expander of `asic-expander` and its port."""
    other = lab.resolved("asic-expander")
    # [expander] has what differs from [dram], which is another one here.
    device = other["dram"] | other["expander"]
    link = f"link.bandwidth_gb_per_s={other['link']['bandwidth_gb_per_s']}"
    return (*(f"expander.{key}={json.dumps(value)}" for key, value in device.items()), link)
