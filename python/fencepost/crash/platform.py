"""What the platform promises of a power cut, and which keys of a machine say nothing about it."""

from collections.abc import Iterable
from typing import Any

from fencepost._core import InputError

# The schemes that have a persist buffer.
BUFFERED = ("pb", "pb_rf", "pb_adaptive")

# Tables of a machine that `crash` has no use for, and why.
UNUSED = {
    "hold_up": "what a platform keeps through a power cut is platform.persistence",
    "transport": "crash replays without a transport",
    "linux": "crash replays no kernel's reclaim",
    "page_engine": "crash replays no kernel's reclaim",
    "swap_device": "crash replays no kernel's reclaim",
    "pcie": "no program's memory lies behind a PCIe device",
}

# What the replay is made with, and what the promises are.
USED = (
    *("accelerator", "branch_predictor", "cache", "core", "dram", "expander", "fabric"),
    *("host_bridge", "link", "persist", "placement", "platform", "pm", "simulation"),
    *("socket_link", "sockets", "switch", "tlb", "type2"),
)


def promised(machine: dict[str, Any], scheme: str, settings: Iterable[str]) -> dict[str, Any]:
    """What is printed with every verdict, with where it comes from."""
    told = machine.get("platform", {})
    settings = list(settings)

    def source(key: str, otherwise: str) -> str:
        if any(setting.startswith(f"platform.{key}=") for setting in settings):
            return "--set"
        return "machine file" if told.get(key) is not None else otherwise

    own = "persist_buffer" if scheme in BUFFERED else "controller"
    return {
        "persistence": told.get("persistence") or own,
        "persistence_from": source("persistence", f"scheme {scheme}"),
        "atomicity_bytes": told.get("atomicity_bytes", 8),
        "atomicity_from": source("atomicity_bytes", "default"),
    }


def check(machine: dict[str, Any], name: str, scheme: str, settings: Iterable[str]) -> None:
    """Refuses what cannot be obeyed."""
    for setting in settings:
        table = setting.split(".")[0]
        if table in UNUSED:
            raise InputError(f"--set {setting}: {UNUSED[table]}")
    persistence = machine.get("platform", {}).get("persistence")
    if persistence == "controller" and scheme in BUFFERED:
        raise InputError(
            f"{name}: platform.persistence = controller, but scheme {scheme} acknowledges in its "
            "persist buffer; --scheme nopb acknowledges at the controller"
        )
    if persistence == "persist_buffer" and scheme not in BUFFERED:
        raise InputError(
            f"{name}: platform.persistence = persist_buffer, but scheme {scheme} has none; choose "
            "--scheme pb or pb_rf"
        )
