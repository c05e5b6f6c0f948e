"""What a persist waits for: the parts of its latency stack, put together by cause."""

from typing import Any

from fencepost.figures import ratio

# The parts are those of `latency_stacks` (docs/results.md); each belongs to one cause. The host
# bridge's own time belongs to the host, what a write waits in it beyond that to the ordering.
CAUSES: dict[str, tuple[str, ...]] = {
    "host": ("core",),
    "ordering": ("cache", "host_bridge"),
    "link": ("link_wait", "link"),
    "switch": ("switch_pipeline", "arbitration", "pb_access"),
    "buffer_full": ("pb_wait",),
    "media": ("device_queue", "media"),
}
LABELS = {
    "host": "host",
    "ordering": "ordering",
    "link": "link",
    "switch": "switch",
    "buffer_full": "buffer full",
    "media": "media",
}


def of_parts(
    parts_ns: dict[str, float], persists: int, bridge_latency_ns: float
) -> dict[str, dict[str, Any]]:
    """Nanoseconds and share of each cause in the time of so many persists; null without any."""
    causes = {name: sum(parts_ns[part] for part in parts) for name, parts in CAUSES.items()}
    # Out and back; regions end between picoseconds that were counted, never within a persist.
    bridge = min(parts_ns["host_bridge"], 2 * round(bridge_latency_ns, 3) * persists)
    causes["ordering"] -= bridge
    causes["host"] += bridge
    total = sum(parts_ns.values())
    return {
        name: {"ns": round(ns, 3), "share_rate": ratio(ns, total)} for name, ns in causes.items()
    }
