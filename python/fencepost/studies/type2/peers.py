"""The device over a PCIe device: registers (MMIO), and DMA with descriptors and doorbells."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.studies.study import Part
from fencepost.studies.type2 import pictures
from fencepost.studies.type2.host_memory import ALONE
from fencepost.studies.type2.points import (
    DEVICE,
    Burst,
    Point,
    Transfer,
    bandwidth,
    elapsed,
    many,
    results,
)
from fencepost.studies.type2.topic import ACCESSES_PAGE, Topic, not_modelled, over, row

BYTES = 256
LINE = 64
LARGE = 64 << 10
STORE = "256 B transfer by CXL store lower than"


class Peers(Topic):
    """PCIe."""

    part = Part("pcie", "A PCIe device instead: registers and DMA")
    description = (
        "256 bytes to the device: by stores to its memory, which the host then owns and the device "
        "may read; by stores to its "
        "registers, which are known to have arrived when a register has been read behind them; by "
        "DMA, from the doorbell to the word that says that it is over. The device's own DMA of 64 "
        "bytes begins with its descriptor."
    )
    page = ACCESSES_PAGE

    def rows(self, lab: Lab) -> list[Row]:
        """Each row of the file."""
        mmio_write, mmio_read, dma, small, smalls, large = results(
            lab,
            [
                Transfer("mmio_write", BYTES),
                Transfer("mmio_read", BYTES),
                Transfer("dma", BYTES),
                Transfer("device_dma", LINE),
                Transfer("device_dma", LINE, 4096),
                Transfer("dma", LARGE, 256),
            ],
        )
        store, one, reads = results(
            lab,
            [
                Burst("own", "store", "memory", DEVICE, requests=BYTES // LINE),
                Burst("device", "cs_read", "last_level", **ALONE),
                Burst("device", "nc_read", "last_level", requests=many(lab), repetitions=2),
            ],
        )

        def lower(than: float) -> float:
            return -over(elapsed(store), than)

        why = "there is no network in the machine"
        return [
            row(STORE, "MMIO", lower(mmio_write["latency_ns"])),
            row(STORE, "DMA", lower(dma["latency_ns"])),
            row("MMIO read of 256 B", "", mmio_read["latency_ns"]),
            row("MMIO read bandwidth", "", bandwidth(mmio_read)),
            row("saturated bandwidth", "DMA", bandwidth(large)),
            row("D2H 64 B over DMA", "latency", over(elapsed(one), small["latency_ns"])),
            row("D2H 64 B over DMA", "bandwidth", bandwidth(reads) / bandwidth(smalls)),
            not_modelled(STORE, "RDMA", why),
            not_modelled(STORE, "DOCA", why),
            not_modelled("saturated bandwidth", "RDMA", why),
        ]

    def pictures(self, lab: Lab) -> dict[str, Picture]:
        """What so many bytes take by each way to the device, and by the device's own."""
        ways: dict[str, Sequence[Point]] = {
            "stores of a core": pictures.bursts_of_size("own", "store", DEVICE),
            "registers, written": pictures.transfers_of_size("mmio_write"),
            "registers, read": pictures.transfers_of_size("mmio_read"),
            "DMA": pictures.transfers_of_size("dma"),
            "DMA of the device": pictures.transfers_of_size("device_dma"),
        }
        lines = [
            pictures.Line(points, f"C{color}", name)
            for color, (name, points) in enumerate(ways.items())
        ]
        title = "Bytes moved at once: stores to the Type-2 device, and a PCIe device"
        return pictures.against_size(lab, "type2-peers.svg", title, lines)
