"""The stale-read hazard, live: hosts share the keys of a store, the first switch on each one's way
acknowledges its puts, and the first get that sees less than was acknowledged is told.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from fencepost import machines
from fencepost.figures import formatted
from fencepost.runs import executors
from fencepost.studies.pcs import key_values
from fencepost.studies.pcs.key_values import LEAF, ROOT, SHARED, Figures, Setting
from fencepost.studies.pcs.replays import MACHINE
from fencepost.traffic import Machine, Result

MEASURE_NS = 40_000.0


@dataclass(frozen=True)
class Hazard:
    """The same clients with acknowledgement at their leaves, and at the switch that all share."""

    setting: Setting  # the unsafe one
    story: dict[str, Any] | None  # the first stale get, if there was one
    unsafe: Figures
    safe: Figures

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def told(self) -> list[str]:
        """The story, line by line."""
        lines = [
            f"{self.setting.hosts} hosts share the keys of one store in PM, under "
            f"{self.setting.scheme}. Each sits at a leaf switch below the root with the PM.",
            "Where the leaves acknowledge puts (persist points leaf0, leaf1, …, "
            'pm_sharing = "shared_unsafe"):',
        ]
        if self.story is None:
            lines.append(
                "  no get was stale this time, and it is no less wrong; try another --seed"
            )
        else:
            lines += [f"  {line}" for line in _told(self.story)]
        for name, found in ((LEAF, self.unsafe), (ROOT, self.safe)):
            lines.append(
                f"Accepted at the {name}: {found.stale_gets:,} of {found.gets:,} gets were stale, "
                f"{found.overwritten:,} newer lines were overwritten in PM; "
                f"{formatted(found.requests_per_us, '.1f')} requests per µs."
            )
        return lines


def _told(story: dict[str, Any]) -> list[str]:
    put, get = story["put"], story["get"]
    writer, reader = put["by"]["host"], get["by"]["host"]
    leaf = {host: host.replace("host", "leaf") for host in (writer, reader)}
    late = get["answered_ns"] - put["acknowledged_ns"]
    events = [
        (
            put["begun_ns"],
            f"{writer}, client {put['by']['stream']}, puts key {story['key']:#x}: "
            f"version {put['version']}",
        ),
        (
            put["acknowledged_ns"],
            f"{leaf[writer]} acknowledges it: the put is over, and version {put['version']} is in "
            f"the persist buffer of {leaf[writer]}",
        ),
        (
            get["begun_ns"],
            f"{reader}, client {get['by']['stream']}, gets the key; its way to PM is "
            f"{leaf[reader]}, root, and passes {leaf[writer]} by",
        ),
        (
            get["answered_ns"],
            f"{reader} reads version {get['version']}: stale, {late:,.0f} ns after version "
            f"{put['version']} was acknowledged",
        ),
    ]
    return [f"{time:>10,.1f} ns  {deed}" for time, deed in events]


def run(hosts: int, scheme: str, seed: int) -> Hazard:
    """Runs the clients on both machines."""
    unsafe = Setting(hosts, key_values.WRITING, SHARED, scheme, LEAF)
    safe = Setting(hosts, key_values.WRITING, SHARED, scheme, ROOT)
    works = [partial(_measured, setting, seed) for setting in (unsafe, safe)]
    results = executors.performed(works, len(works))
    figures = [key_values.figures([result]) for result in results]
    return Hazard(unsafe, results[0]["first_stale_read"], *figures)


def _measured(setting: Setting, seed: int) -> Result:
    machine = Machine(
        "key-value store",
        key_values.machine(setting, machines.resolve(MACHINE, [])),
        setting.scheme,
    )
    clients = [key_values.clients(setting)] * setting.hosts
    return machine.measure_hosts(clients, measure_ns=MEASURE_NS, warm_up_ns=0.0, seed=seed)
