"""What each backend's work on a page takes: from replays of the code, or from the device.

A core's comes from replays of workloads/page_work.c on pages of the service, by how far they
compress. A device's is the hand-over, what it reads and writes by bursts or DMA, and its engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from fencepost import _core, documents, recordings
from fencepost._core import InputError
from fencepost.built import needed
from fencepost.replay import options, resolved
from fencepost.rows.lab import Lab
from fencepost.schemes import VOLATILE
from fencepost.studies.type2.points import (
    DEVICE,
    DEVICE_BIAS,
    EXPANDER,
    MACHINE,
    Burst,
    Transfer,
    elapsed,
    results,
)
from fencepost.tree import WORKLOADS

CLASSES = ("same_filled", "quarter", "half", "three_quarters", "poor")
WORKS = ("compress", "decompress", "hash", "compare_page", "compare_line", "copy")
PAGE = 4096
LINE = 64
LINES = PAGE // LINE

# What of the last level is the service's: the machine's has as many slices as cores, and other
# services use the others.
SLICE_KIB = 1920
SLICE = (f"cache.l3.size_kib={SLICE_KIB}",)

_PAGES, _QUICK_PAGES = 8, 2  # of a class
# Largest size of each class: what crosses a link is counted by it.
_LARGEST = {"same_filled": 8, "quarter": 1024, "half": 2048, "three_quarters": 3072, "poor": PAGE}

ON_CORE = ("none", "cpu", "expander")  # whose work is a core's

Step = dict[str, float]


@dataclass(frozen=True)
class Work:
    """What a core's work on a page takes, by class where that matters."""

    compress: dict[str, float]  # ns
    decompress: dict[str, float]
    hash: float
    compare_page: float
    compare_line: float
    copy: float
    scratch_lines: int  # that compression touches besides the page and what becomes of it


def options_of_replay() -> dict[str, Any]:
    """As usual: the machine has no persistent memory."""
    return resolved(options([VOLATILE]))


def machine_of_core(lab: Lab, *sets: str) -> dict[str, Any]:
    """The study's machine, of which the service has one core and its slice."""
    return lab.resolved(MACHINE, *SLICE, *sets)


def work(lab: Lab, service: _core.Service, compressor: str) -> Work:
    """Of a core, on pages of the service."""
    count = _QUICK_PAGES if lab.quick else _PAGES
    of_class = {name: service.sample(compressor, name, count) for name in CLASSES}
    pages = [page for name in CLASSES for page in of_class[name]]
    contents = b"".join(pages)
    file = lab.folder / f"pages-{hashlib.sha256(contents).hexdigest()[:12]}.bin"
    documents.write_whole(file, contents)
    try:
        binary = needed(WORKLOADS / "page_work")
    except InputError as error:
        needs = "liblz4-dev, liblzo2-dev, libzstd-dev and libxxhash-dev"
        raise InputError(f"{error}; it needs {needs}") from None
    folder = lab.folder / "records" / f"page_work-{file.stem}-{compressor}"
    folder.mkdir(parents=True, exist_ok=True)
    arguments = [str(file.resolve()), compressor]
    record = recordings.recorded(replace(lab, folder=folder), binary, arguments)
    machine = {MACHINE: machine_of_core(lab)}
    (run,) = lab.replayed(record, machine, [VOLATILE], options_of_replay())
    times = iter([region["simulated_ns"] for region in run["regions"]])
    lines = iter(_core.lines_of_regions(_core.Record(str(record), False)))
    found: dict[str, dict[str, list[float]]] = {
        name: {one: [] for one in CLASSES} for name in WORKS
    }
    scratch = []
    for name in CLASSES:
        for _ in of_class[name]:
            for one in WORKS:
                found[one][name].append(next(times))
                touched = next(lines)
                if one == "compress" and name != "same_filled":
                    scratch.append(touched - LINES - _LARGEST[name] // LINE)
    if next(times, None) is not None:
        raise InputError("page_work has more regions than work")

    def all_of(name: str) -> float:
        return mean(time for times in found[name].values() for time in times)

    return Work(
        compress=_by_class(found["compress"]),
        decompress=_by_class(found["decompress"]),
        hash=all_of("hash"),
        compare_page=all_of("compare_page"),
        compare_line=all_of("compare_line"),
        copy=all_of("copy"),
        scratch_lines=max(0, round(mean(scratch))) if scratch else 0,
    )


def _by_class(times: dict[str, list[float]]) -> dict[str, float]:
    """Means; a class that no page is of is not asked for, and has the next one's."""
    known = {name: mean(found) for name, found in times.items() if found}
    for place, name in enumerate(CLASSES):
        following = [*CLASSES[place:], *reversed(CLASSES[:place])]
        known.setdefault(name, next(known[other] for other in following if other in known))
    return known


def _step(core_ns: float, device_ns: float = 0.0, link_bytes: int = 0) -> Step:
    return {"core_ns": core_ns, "device_ns": device_ns, "link_bytes": link_bytes}


def backend(lab: Lab, name: str, work: Work, engine_speed: float = 1.0) -> dict[str, Any]:
    """`costs` of a cell; the device's engine is so many times as fast as the machine says."""
    machine = machine_of_core(lab)
    entry = machine["core"]["system_call_ns"]
    common = {
        "copy": _step(work.copy),
        **machine["linux"],
        "swap_read_ns": machine["swap_device"]["read_ns"],
        "swap_write_ns": entry,
        "scratch_lines": work.scratch_lines,
        "on_core": name in ON_CORE,
    }
    if name in ON_CORE:
        out, back = work.compress, work.decompress
        if name == "expander":
            out, back = (dict.fromkeys(CLASSES, time) for time in _expander(lab))
        return common | {
            "compress": {one: _step(time) for one, time in out.items()},
            "decompress": {one: _step(time) for one, time in back.items()},
            "hash": _step(work.hash),
            "compare_line": _step(work.compare_line),
            "compare_page": _step(work.compare_page),
            "further_job_ns": 0.0,
        }
    engine = {
        key.removesuffix("_gb_per_s"): rate * engine_speed
        for key, rate in machine["page_engine"].items()
    }
    return common | (_cxl if name == "cxl" else _pcie)(lab, engine)


def _burst(
    lab: Lab,
    by: str,
    access: str,
    found_in: str,
    memory: str = "dram",
    *,
    requests: int,
    sets: tuple[str, ...] = (),
) -> float:
    repetitions = 8 if lab.quick else 64
    one = Burst(by, access, found_in, memory, requests, repetitions=repetitions, sets=sets)
    (found,) = results(lab, [one])
    return elapsed(found)


def _further(lab: Lab, access: str, found_in: str, memory: str = "dram") -> float:
    """What each access of a core's burst adds to the first one."""
    one, many = (
        _burst(lab, "own", access, found_in, memory, requests=count) for count in (1, LINES)
    )
    return max(0.0, many - one) / (LINES - 1)


def _expander(lab: Lab) -> tuple[float, float]:
    """A page copied by a core to a plain expander, and back."""
    near = _burst(lab, "own", "load", "memory", requests=LINES)
    out = near + _burst(lab, "own", "nt_store", "memory", EXPANDER, requests=LINES)
    return out, _burst(lab, "own", "load", "memory", EXPANDER, requests=LINES)


def _cxl(lab: Lab, engine: dict[str, float]) -> dict[str, Any]:
    """The core stores a page's address into the device's memory, where the device polls for it."""
    biased = (DEVICE_BIAS,)

    def reads(lines: int) -> float:
        return _burst(lab, "device", "nc_read", "memory", requests=lines)

    def pool(access: str, lines: int) -> float:
        return _burst(lab, "device", access, "memory", DEVICE, requests=lines, sets=biased)

    # The core's part: a line to the device, and the flag that the device has pushed.
    core = _burst(lab, "own", "nt_store", "memory", DEVICE, requests=1)
    core += _burst(lab, "own", "load", "pushed", requests=1)
    further = _further(lab, "nt_store", "memory", DEVICE)
    further += _further(lab, "load", "pushed")
    polled = pool("cs_read", 1)
    flag = _burst(lab, "device", "nc_p_write", "memory", requests=1)
    pushes = _burst(lab, "device", "nc_p_write", "memory", requests=LINES)

    # Lines come in, are worked on and go out at the same time: the slowest of these counts, and one
    # line's way in and out.
    def streamed(into: float, first: float, work: float, out: float, last: float) -> float:
        return first + max(into - first, work, out - last) + last

    def looked(pages: int, lines: int) -> Step:
        count = pages * lines
        time = streamed(reads(count), reads(1), count * LINE / engine["look"], flag, flag)
        return _step(core, polled + time, (count + 2) * LINE)

    compress, decompress = {}, {}
    for name, size in _LARGEST.items():
        lines = size // LINE or 1
        work = PAGE / engine["compress"]
        last = pool("nc_write", 1)
        out = streamed(reads(LINES), reads(1), work, pool("nc_write", lines), last)
        compress[name] = _step(core, polled + out + flag, (LINES + 2) * LINE)
        work = PAGE / engine["decompress"]
        back = streamed(pool("cs_read", lines), polled, work, pushes, flag)
        decompress[name] = _step(core, polled + back, (LINES + 1) * LINE)
    return {
        "compress": compress,
        "decompress": decompress,
        "hash": looked(1, LINES),
        "compare_line": looked(2, 1),
        "compare_page": looked(2, LINES),
        "further_job_ns": further,
    }


def _pcie(lab: Lab, engine: dict[str, float]) -> dict[str, Any]:
    """The core writes a descriptor and a doorbell; DMA both ways; the pool is in host memory."""

    def dma(by: str, size: int) -> float:
        (found,) = results(lab, [Transfer(by, size)])
        latency: float = found["latency_ns"]
        return latency

    # The core's part: descriptor and doorbell, and the word that DMA has written.
    core = 2 * _burst(lab, "own", "store", "last_level", requests=1)
    core += _burst(lab, "own", "load", "last_level", requests=1)
    # One doorbell is for all descriptors.
    further = _further(lab, "store", "last_level") + _further(lab, "load", "last_level")

    def steps(inwards: int, rate: float, worked: int, outwards: int) -> Step:
        # The doorbell, descriptor and completion are in the first; the device then goes on.
        time = dma("dma", inwards) + worked / rate + dma("device_dma", outwards)
        return _step(core, time, inwards + outwards)

    compress = {
        name: steps(PAGE, engine["compress"], PAGE, max(size, LINE))
        for name, size in _LARGEST.items()
    }
    decompress = {
        name: steps(max(size, LINE), engine["decompress"], PAGE, PAGE)
        for name, size in _LARGEST.items()
    }
    return {
        "compress": compress,
        "decompress": decompress,
        "hash": steps(PAGE, engine["look"], PAGE, LINE),
        "compare_line": steps(2 * LINE, engine["look"], 2 * LINE, LINE),
        "compare_page": steps(2 * PAGE, engine["look"], 2 * PAGE, LINE),
        "further_job_ns": further,
    }


def described(costs: dict[str, Any]) -> Iterable[str]:
    """Cells of a table: core and device ns of each work."""
    for name in ("compress", "decompress"):
        one = costs[name]["half"]
        yield f"{one['core_ns']:.0f} + {one['device_ns']:.0f}"
    for name in ("hash", "compare_page"):
        yield f"{costs[name]['core_ns']:.0f} + {costs[name]['device_ns']:.0f}"
