"""A topology as lines that a person reads."""

from collections.abc import Iterator
from typing import Any

from fencepost.measure.topology.tree import as_list
from fencepost.plural import many

Document = dict[str, Any]

GIB = 1 << 30


def lines(document: Document) -> Iterator[str]:
    """What there is, from processors to CXL devices, and what there is not."""
    about, found = document["platform"], document["topology"]
    yield f"{about['processor']}, {about['architecture']}, Linux {about['kernel']}"
    for socket in found["sockets"]:
        processors = socket["processors"]
        own = as_list(socket["nodes"])
        yield (
            f"socket {socket['socket']}: {many(socket['cores'], 'core')}, "
            f"{many(len(processors), 'processor')} ({as_list(processors)}), node {own}"
        )
    for node in found["nodes"]:
        yield _node(node)
    for device in found["dax_devices"]:
        driver = device["driver"] or "no driver"
        yield f"{device['name']}: {_size(device['bytes'])} of {_where(device)} ({driver})"
    for mount in found["dax_mounts"]:
        node = "" if mount["node"] is None else f", node {mount['node']}"
        yield f"{mount['folder']}: files are persistent memory ({mount['device']}{node})"
    yield from _cxl(found)
    if "allowed_processors" in about:
        own = about["allowed_nodes"]
        where = "" if own is None else f" and memory of node {as_list(own)}"
        yield f"this process may use processors {as_list(about['allowed_processors'])}{where}"
    for lack in about["missing"]:
        yield f"missing: {lack}"


def _node(node: Document) -> str:
    processors = as_list(node["processors"])
    distances = ", ".join(f"{other}: {far}" for other, far in node["distances"].items())
    return (
        f"node {node['node']}: {node['kind']} ({node['because']}), {_size(node['bytes'])}, "
        f"{_size(node['free_bytes'])} free; processors {processors}; distance to {distances}"
    )


def _where(device: Document) -> str:
    node = "" if device["node"] is None else f", node {device['node']}"
    return (
        f"memory {device['behind']}{node}"
        if " " in device["behind"]
        else (f"{device['behind']} memory{node}")
    )


def _cxl(found: Document) -> Iterator[str]:
    """The tree: what hangs below a port is set in."""
    memories = {memory["endpoint"]: memory for memory in found["cxl_memories"]}
    below: dict[str | None, list[Document]] = {}
    for port in found["cxl_ports"]:
        below.setdefault(port["above"], []).append(port)

    def walk(above: str | None, depth: int) -> Iterator[str]:
        for port in below.get(above, []):
            memory = memories.get(port["name"])
            device = f" ({port['device']})" if port["device"] and memory is None else ""
            end = f": {_memory(memory)}" if memory else ""
            yield f"{'  ' * depth}CXL {port['name']}{device}{end}"
            yield from walk(port["name"], depth + 1)

    yield from walk(None, 0)
    for memory in found["cxl_memories"]:
        if memory["endpoint"] is None:
            yield f"CXL {_memory(memory)}, which no port reaches"


def _memory(memory: Document) -> str:
    sizes = [
        f"{_size(memory[name])} {word}"
        for name, word in (("volatile_bytes", "volatile"), ("persistent_bytes", "persistent"))
        if memory[name]
    ]
    node = "" if memory["node"] is None else f", next to node {memory['node']}"
    return f"{memory['name']}, {' and '.join(sizes) or 'of unknown size'}{node}"


def _size(count: int | None) -> str:
    return "of unknown size" if count is None else f"{count / GIB:.1f} GiB"
