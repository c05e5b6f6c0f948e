"""Several hosts with a pool of PM: key-value traffic on keys of their own, then on shared keys.

Hosts sit at leaf switches below a root with the PM. Their clients get and put keys by Zipf's law,
as YCSB does; a put is over when its persist is. Where each host keeps to keys of its own, its leaf
may acknowledge. Where they share keys, only the root may: a leaf that acknowledges makes reads
stale, which is shown, and the root costs a longer way and one buffer for all, which is measured.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean
from typing import Any

from fencepost.confidence import half_width
from fencepost.figures import Value, ratio, with_error
from fencepost.plots import new_figure, svg
from fencepost.rows.lab import Lab
from fencepost.runs import executors
from fencepost.runs.progress import Progress
from fencepost.runs.simulator import simulator
from fencepost.runs.store import named
from fencepost.studies.pcs.adaptive import SIZED
from fencepost.studies.pcs.pictures import COLOURS
from fencepost.studies.pcs.replays import MACHINE
from fencepost.studies.pcs.study import BASELINE
from fencepost.traffic import Machine, Result, Stream

HOSTS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Mix:
    """One of YCSB's core workloads."""

    gets: int
    puts: int
    pattern: str = "zipfian"
    modifies: bool = False  # each put follows a get of its key

    @property
    def label(self) -> str:
        """For the title of a picture."""
        share = 100 * self.gets // (self.gets + self.puts)
        words = [f"{share} % gets", "of the latest" if self.pattern == "latest" else ""]
        return " ".join(filter(None, words)) + (", others modify" if self.modifies else "")


# E, whose scans go over as many as 100 keys at a time, is left out: a request here is one value.
MIXES = {
    "A": Mix(1, 1),
    "B": Mix(19, 1),
    "C": Mix(1, 0),
    "D": Mix(19, 1, pattern="latest"),
    "F": Mix(1, 1, modifies=True),
}
METRIC = "dpd_speedup_average"  # the row that needs all of this
WRITING = "A"  # the workload with the most puts, of which there are tables of its own

KEYS = 16_384  # of each store; chosen: 64 for each entry of the largest buffer
CLIENTS = 8  # of each host: one for each of its cores
THINK_NS, THINK_JITTER_NS = 50.0, 100.0  # between two requests; chosen: some 400 cycles of a core
LINE_BYTES, LARGE_BYTES = 64, 1024  # of a value: one line; YCSB's 10 fields of 100 bytes
LARGE_HOSTS = 8
# Queues at popular keys grow to their length first; by the bytes of a value.
WARM_UP_NS = {LINE_BYTES: 100_000.0, LARGE_BYTES: 400_000.0}
MEASURE_NS = {LINE_BYTES: 100_000.0, LARGE_BYTES: 200_000.0}
SEEDS = range(5)  # of the clients' random numbers
INTERLEAVE_BYTES = 256  # the least: popular keys spread over the devices

PRIVATE, SHARED = "private", "shared"
LEAF, ROOT, LARGE_ROOT = "leaf", "root", "large root"
ENTRIES_MAX = 256

WARNING = {(SHARED, LEAF): "unsafe"}


@dataclass(frozen=True)
class Setting:
    """One measurement."""

    hosts: int
    mix: str
    keys: str  # private or shared
    scheme: str
    persist_point: str  # without meaning under nopb
    value_bytes: int = LINE_BYTES

    @property
    def label(self) -> str:
        """For people who wait."""
        return f"{self.hosts} hosts {self.mix} {self.keys} {self.scheme} {self.persist_point}"


def settings() -> Iterator[Setting]:
    """Everything that is measured."""
    shapes = [(hosts, LINE_BYTES, list(MIXES)) for hosts in HOSTS]
    for hosts, value_bytes, mixes in (*shapes, (LARGE_HOSTS, LARGE_BYTES, [WRITING])):
        for mix in mixes:
            for keys in (PRIVATE, SHARED):
                yield Setting(hosts, mix, keys, BASELINE, ROOT, value_bytes)
                places = (LEAF, ROOT) if keys == PRIVATE else (LEAF, ROOT, LARGE_ROOT)
                for place in places:
                    for scheme in SIZED:
                        yield Setting(hosts, mix, keys, scheme, place, value_bytes)


def machine(setting: Setting, base: dict[str, Any]) -> dict[str, Any]:
    """`base` with so many hosts, each at a leaf, and a PM device for each below the root."""
    document = copy.deepcopy(base)
    numbers = range(setting.hosts)
    leaves = [f"leaf{number}" for number in numbers]
    devices = [f"pm{number}" for number in numbers]
    fabric: dict[str, Any] = {
        "hosts": [f"host{number}" for number in numbers],
        "switches": [*leaves, ROOT],
        "devices": devices,
        "edges": [
            *(f"host{number} -> leaf{number}" for number in numbers),
            *(f"{leaf} -> {ROOT}" for leaf in leaves),
            *(f"{ROOT} -> {device}" for device in devices),
        ],
        "interleave": {"pool": {"devices": devices, "granularity_bytes": INTERLEAVE_BYTES}},
    }
    if setting.scheme != BASELINE and setting.persist_point == LEAF:
        fabric["persist_points"] = leaves
        # Said in so many words, or the machine is refused: it is wrong.
        fabric["pm_sharing"] = "private" if setting.keys == PRIVATE else "shared_unsafe"
    if setting.persist_point == LARGE_ROOT:
        entries = document["switch"]["persist_buffer"]["entries"] * setting.hosts
        buffer = {"entries": min(entries, ENTRIES_MAX)}
        fabric["switch"] = {ROOT: {"persist_buffer": buffer}}
    return document | {"fabric": fabric}


def clients(setting: Setting) -> list[Stream]:
    """The clients of each host."""
    mix = MIXES[setting.mix]
    client = Stream(
        "pm",
        1,
        pattern=mix.pattern,
        request_bytes=setting.value_bytes,
        reads=mix.gets,
        writes=mix.puts,
        modifies=mix.modifies,
        inject_delay_ns=THINK_NS,
        inject_jitter_ns=THINK_JITTER_NS,
        dependent=True,
        footprint_bytes=KEYS * setting.value_bytes,
        shared_by="hosts" if setting.keys == SHARED else "host",
    )
    return [client] * CLIENTS


@dataclass(frozen=True)
class Figures:
    """What came of a setting, all clients of all hosts: the first four as means of the seeds.

    `half_widths`: half the width of their 95 % confidence intervals, by name, from how the seeds
    differ; None with one seed, and where a seed has no such request.
    """

    requests_per_us: Value
    get_ns: Value
    put_ns: Value
    put_wait_ns: Value  # the part of `put_ns` before the key could be had
    half_widths: dict[str, Value]
    requests_of_seeds: list[Value]  # per us
    puts_of_host: list[int]  # the least and the most that a host had with a seed
    gets: int
    stale_gets: int
    overwritten: int  # acknowledged lines that an older version replaced in PM


def figures(results: list[Result]) -> Figures:
    """Reads the results of traffic, one for each seed."""
    seeds = [_of_seed(result) for result in results]
    by_name = {name: [seed[name] for seed in seeds] for name in seeds[0]}
    hosts = [host["streams"] for result in results for host in result["hosts"]]
    puts = [sum(stream["writes"]["count"] for stream in streams) for streams in hosts]
    return Figures(
        **{name: _mean_of_seeds(values) for name, values in by_name.items()},
        half_widths={name: half_width(values) for name, values in by_name.items()},
        requests_of_seeds=by_name["requests_per_us"],
        puts_of_host=[min(puts), max(puts)],
        gets=sum(stream["reads"]["count"] for streams in hosts for stream in streams),
        stale_gets=sum(stream["stale_reads"] for streams in hosts for stream in streams),
        overwritten=sum(result["overwritten"] for result in results),
    )


def _of_seed(result: Result) -> dict[str, Value]:
    streams = [stream for host in result["hosts"] for stream in host["streams"]]
    gets, puts = ([stream[kind] for stream in streams] for kind in ("reads", "writes"))
    requests = sum(one["count"] for one in gets + puts)
    return {
        "requests_per_us": ratio(requests, result["interval_ns"] / 1000.0),
        "get_ns": _mean(gets, lambda one: one["latency_ns"]["mean"]),
        "put_ns": _mean(puts, lambda one: one["latency_ns"]["mean"]),
        "put_wait_ns": _mean(puts, lambda one: one["parts_ns"]["core"]),
    }


def _mean_of_seeds(values: list[Value]) -> Value:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _mean(directions: list[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> Value:
    count = sum(one["count"] for one in directions)
    total = sum(one["count"] * value(one) for one in directions if one["count"])
    return total / count if count else None


def _measured(setting: Setting, base: dict[str, Any]) -> tuple[Figures, float]:
    """The figures of a setting, and the host seconds that they took."""
    started = time.monotonic()
    measured = Machine("key-value store", machine(setting, base), setting.scheme)
    results = [
        measured.measure_hosts(
            [clients(setting)] * setting.hosts,
            measure_ns=MEASURE_NS[setting.value_bytes],
            warm_up_ns=WARM_UP_NS[setting.value_bytes],
            seed=seed,
        )
        for seed in SEEDS
    ]
    return figures(results), time.monotonic() - started


class KeyValues:
    """All settings that have been measured; `run` does those that are missing."""

    def __init__(self, lab: Lab) -> None:
        self._store = lab.store
        self._jobs = lab.jobs
        self._executor = lab.executor
        self._base = lab.resolved(MACHINE)
        self._found: dict[Setting, Figures] = {}
        self._seconds: dict[Setting, float] = {}

    @property
    def elapsed_seconds(self) -> float:
        """What measuring took, as many at once as there were."""
        return sum(self._seconds.values())

    def __getitem__(self, setting: Setting) -> Figures:
        return self._found[setting]

    def run(self, watch: Callable[[Progress], None]) -> None:
        """Measures what is missing; what is done is kept in files, so that it goes on there."""
        wanted = list(settings())
        waiting = [setting for setting in wanted if not self._load(setting)]
        # The largest first, so that none is left alone at the end.
        waiting.sort(key=lambda one: one.hosts * one.value_bytes, reverse=True)
        progress = Progress(len(waiting), work=float(sum(map(_weight, waiting))))
        with executors.chosen(self._jobs, self._executor) as (executor, _):
            pending = {
                executor.submit(_measured, setting, self._base): setting for setting in waiting
            }
            try:
                for done in as_completed(pending):
                    setting = pending[done]
                    self._keep(setting, *done.result())
                    progress.done += 1
                    progress.worked += _weight(setting)
                    progress.running = [setting.label]
                    watch(progress)
            except BaseException:
                for future in pending:
                    future.cancel()
                raise

    def _keep(self, setting: Setting, found: Figures, seconds: float) -> None:
        self._found[setting] = found
        self._seconds[setting] = seconds / self._jobs
        kept = asdict(found) | {"elapsed_seconds": self._seconds[setting]}
        self._store.keep(self._identity(setting), kept)

    def _load(self, setting: Setting) -> bool:
        kept = self._store.load(self._identity(setting))
        if kept is not None:
            self._seconds[setting] = kept.pop("elapsed_seconds", 0.0)
            self._found[setting] = Figures(**kept)
        return kept is not None

    def _identity(self, setting: Setting) -> str:
        streams = [asdict(client) for client in clients(setting)]
        times = (WARM_UP_NS[setting.value_bytes], MEASURE_NS[setting.value_bytes], *SEEDS)
        decided = (simulator(), asdict(setting), machine(setting, self._base), streams, times)
        return named(f"{setting.keys}-{setting.scheme}", decided)

    # --- what is read off ----------------------------------------------------------------

    def speedup(self, setting: Setting, seed: int | None = None) -> Value:
        """Requests in a time over those of `nopb`, with one seed or in the mean of all."""
        baseline = Setting(
            setting.hosts, setting.mix, setting.keys, BASELINE, ROOT, setting.value_bytes
        )
        return ratio(self._requests(setting, seed), self._requests(baseline, seed))

    def half_width_of_speedup(self, setting: Setting) -> Value:
        """That of its 95 % confidence interval: each seed's over `nopb` with the same seed."""
        seeds = range(len(self[setting].requests_of_seeds))
        return half_width([self.speedup(setting, seed) for seed in seeds])

    def average(
        self,
        scheme: str,
        keys: str,
        place: str,
        *,
        hosts: int | None = None,
        mix: str | None = None,
        seed: int | None = None,
    ) -> float:
        """The mean speedup over all numbers of hosts and all mixes, or over those of one."""
        speedups = [
            self.speedup(Setting(number, one, keys, scheme, place), seed)
            for number in (HOSTS if hosts is None else (hosts,))
            for one in (MIXES if mix is None else (mix,))
        ]
        return fmean(value for value in speedups if value is not None)

    def price(
        self,
        scheme: str,
        place: str,
        *,
        hosts: int | None = None,
        mix: str | None = None,
        seed: int | None = None,
    ) -> float:
        """Time that requests of shared keys take with the persist point at `place`, over that with
        acknowledgement at the first switch, which is wrong.
        """
        prices = [
            ratio(
                self._requests(Setting(number, one, SHARED, scheme, LEAF), seed),
                self._requests(Setting(number, one, SHARED, scheme, place), seed),
            )
            for number in (HOSTS if hosts is None else (hosts,))
            for one in (MIXES if mix is None else (mix,))
        ]
        return fmean(value for value in prices if value is not None)

    def _requests(self, setting: Setting, seed: int | None) -> Value:
        one = self[setting]
        return one.requests_per_us if seed is None else one.requests_of_seeds[seed]

    def by_mix(self, scheme: str) -> dict[str, float]:
        """Speedups of shared keys, safely, over all numbers of hosts: what stands beside the
        average of the authors' successor.
        """
        return {mix: self.average(scheme, SHARED, ROOT, mix=mix) for mix in MIXES}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The member `hosts` of the document."""
        return [
            {
                **asdict(one),
                **asdict(self[one]),
                "speedup": self.speedup(one),
                "speedup_half_width": self.half_width_of_speedup(one),
            }
            for one in settings()
        ]


def _weight(setting: Setting) -> int:
    return setting.hosts * setting.value_bytes


def picture(found: KeyValues) -> str:
    """Throughput over `nopb` by the number of hosts: a panel for each mix, keys apart."""
    figure = new_figure(3.0 * len(MIXES), 5.4)
    panels = figure.subplots(2, len(MIXES), squeeze=False, sharex=True, sharey=True)
    styles = {LEAF: "-", ROOT: ":", LARGE_ROOT: "--"}
    for row, keys in enumerate((PRIVATE, SHARED)):
        for axes, mix in zip(panels[row], MIXES, strict=True):
            for place, style in styles.items():
                if (keys, place) == (PRIVATE, LARGE_ROOT):
                    continue
                for scheme in SIZED:
                    unsafe = WARNING.get((keys, place))
                    values = [
                        found.speedup(Setting(hosts, mix, keys, scheme, place)) for hosts in HOSTS
                    ]
                    axes.plot(
                        HOSTS, values, style, marker="x" if unsafe else "o", markersize=4,
                        color=COLOURS[scheme],
                        label=f"{scheme}, {place}" + (f" ({unsafe})" if unsafe else ""),
                    )  # fmt: skip
            axes.axhline(1, color="#444444", linewidth=0.8)
            axes.set_xscale("log", base=2)
            axes.set_xticks(HOSTS, [str(hosts) for hosts in HOSTS])
            axes.set_title(f"{mix}: {MIXES[mix].label}; {keys} keys", fontsize=8)
        panels[row][0].set(ylabel="requests over nopb")
        panels[row][0].legend(frameon=False, fontsize=7, handlelength=3.2)
    for axes in panels[-1]:
        axes.set(xlabel="hosts")
    return svg(figure)


def table(found: KeyValues) -> list[list[str]]:
    """For the page: the speedup of each place, by hosts; the mean over the mixes."""
    lines = []
    for keys, places in ((PRIVATE, (LEAF, ROOT)), (SHARED, (LEAF, ROOT, LARGE_ROOT))):
        for place in places:
            for scheme in SIZED:
                all_mixes = [Setting(n, mix, keys, scheme, place) for n in HOSTS for mix in MIXES]
                stale = sum(found[one].stale_gets for one in all_mixes)
                gets = sum(found[one].gets for one in all_mixes)
                overwritten = sum(found[one].overwritten for one in all_mixes)
                lines.append(
                    [
                        keys,
                        place + (" (**unsafe**)" if (keys, place) in WARNING else ""),
                        scheme,
                        *(f"{found.average(scheme, keys, place, hosts=n):.3f}" for n in HOSTS),
                        _over_seeds(partial(found.average, scheme, keys, place)),
                        _over_seeds(partial(found.average, scheme, keys, place, mix=WRITING)),
                        f"{stale:,} of {gets:,}",
                        f"{overwritten:,}",
                    ]
                )
    return lines


def prices(found: KeyValues) -> list[list[str]]:
    """For the page: what it costs that no get is stale, by hosts."""
    return [
        [
            scheme,
            place,
            *(f"{found.price(scheme, place, hosts=hosts):.3f}" for hosts in HOSTS),
            _over_seeds(partial(found.price, scheme, place)),
            _over_seeds(partial(found.price, scheme, place, mix=WRITING)),
        ]
        for place in (ROOT, LARGE_ROOT)
        for scheme in SIZED
    ]


def latencies(found: KeyValues) -> list[list[str]]:
    """For the page: of workload A, by hosts, what requests take and how even hosts are served."""
    lines = []
    shapes = [(hosts, LINE_BYTES) for hosts in HOSTS] + [(LARGE_HOSTS, LARGE_BYTES)]
    for hosts, value_bytes in shapes:
        for keys, place, scheme in (
            (PRIVATE, ROOT, BASELINE),
            *((PRIVATE, LEAF, scheme) for scheme in SIZED),
            *((PRIVATE, ROOT, scheme) for scheme in SIZED),
            (SHARED, ROOT, BASELINE),
            *((SHARED, LEAF, scheme) for scheme in SIZED),
            *((SHARED, ROOT, scheme) for scheme in SIZED),
            *((SHARED, LARGE_ROOT, scheme) for scheme in SIZED),
        ):
            one = found[Setting(hosts, WRITING, keys, scheme, place, value_bytes)]
            numbers = ("requests_per_us", "get_ns", "put_ns", "put_wait_ns")
            lines.append(
                [
                    str(hosts),
                    str(value_bytes),
                    keys,
                    "PM" if scheme == BASELINE else place,
                    scheme,
                    *(with_error(getattr(one, name), one.half_widths[name], 1) for name in numbers),
                    " – ".join(f"{puts:,}" for puts in one.puts_of_host),
                ]
            )
    return lines


def _over_seeds(figure: Callable[..., float]) -> str:
    error = half_width([figure(seed=seed) for seed in range(len(SEEDS))])
    return with_error(figure(), error)
