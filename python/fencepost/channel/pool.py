"""The pool that programs share: its devices, what counts bytes, and where its segment lies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fencepost._core import InputError
from fencepost.channel import configuration, segment, sources
from fencepost.channel.configuration import EMULATED, GB, Configuration
from fencepost.channel.segment import Held
from fencepost.channel.sources import Source

TRIGGERS = ("byte-counter", "perf-task-clock", "thread-timer", "timer")
TRIGGER = "FENCEPOST_CHANNEL_TRIGGER"
STEM_MAX = 80


@dataclass(frozen=True)
class Options:
    """What the command line says of a pool, beside its configuration."""

    emulate: float | None = None  # GB/s
    charge: float | None = None  # GB for a second of processor time
    name: str | None = None  # of the segment
    host: int = 0
    trigger: str | None = None


@dataclass(frozen=True)
class Pool:
    """A pool; `settings` are its segment's."""

    path: Path
    settings: str
    source: Source
    host: Mapping[str, str]
    trigger: str | None

    @property
    def variables(self) -> dict[str, str]:
        """What its programs have in their environment, beside the segment's path."""
        wanted = {TRIGGER: self.trigger} if self.trigger else {}
        return {**self.source.settings, **self.host, **wanted}

    @contextmanager
    def held(self) -> Iterator[Held]:
        """Its segment, which is there for as long as it is held."""
        with segment.held(self.path, self.settings, self.host) as held:
            try:
                yield held
            finally:
                fingerprint = configuration.fingerprint_in(self.settings)
                sources.remove_groups(self.source.settings, fingerprint)


def of(read: Configuration, options: Options) -> Pool:
    """The pool of a configuration; raises `InputError` where there is none on this machine."""
    if options.trigger is not None and options.trigger not in TRIGGERS:
        wanted = ", ".join(TRIGGERS)
        raise InputError(f"--trigger {options.trigger}: it has to be one of {wanted}")
    read, source, charged = _source(read, options)
    settings = read.lines(source.name, charged)
    name = options.name or f"{_plain(read.name)}-{configuration.fingerprint(settings):016x}"
    of_host = _of_host(read, options)
    return Pool(segment.path_of(name), settings, source, of_host, options.trigger)


def _plain(name: str) -> str:
    """A file's name as a part of a segment's, which the fingerprint keeps apart from others."""
    return re.sub(r"[^\w.+-]", "-", name)[:STEM_MAX]


def _of_host(read: Configuration, options: Options) -> dict[str, str]:
    """What keepers and programs have in their environment to know which host they are on."""
    count = read.hosts["count"]
    if options.host >= count:
        raise InputError(
            f"--host {options.host}: the hosts are 0 to {count - 1}; say by [hosts] how many there "
            "are"
        )
    if count > 1 and (options.name is None or "/" not in options.name):
        raise InputError(
            "several hosts share a file: name one that all of them see by --segment PATH"
        )
    return {segment.HOST: str(options.host), segment.COHERENCE: read.hosts["coherence"]}


def _source(read: Configuration, options: Options) -> tuple[Configuration, Source, float]:
    """The configuration with its devices, where bytes come from, and what is charged."""
    emulate = options.emulate or read.top["emulate_gb_per_s"]
    charge = options.charge or read.top["charge_gb_per_s"]
    if emulate is not None:
        return _emulated(read, emulate), Source("charged", ""), (charge or emulate) * GB
    if charge is not None:
        raise InputError(
            "a charge (--charge, charge_gb_per_s) is for an emulated pool: name one by --emulate "
            "GB/s, or by emulate_gb_per_s in --config"
        )
    wanted = read.top["source"]
    source = Source(wanted, "")
    if wanted != "reported":
        source = sources.choose(wanted, sources.examine(events=read.events))
    devices = read.devices or sources.devices()
    if not devices:
        raise InputError(
            f'source = "{source.name}": no CXL memory is found whose bandwidth the firmware '
            "says; say by [[device]] what carries the bytes, and how many"
        )
    return replace(read, devices=devices), source, 0.0


def _emulated(read: Configuration, emulate: float) -> Configuration:
    if len(read.devices) > 1:
        raise InputError(
            "--emulate, emulate_gb_per_s: the configuration has several devices; one can be "
            "emulated"
        )
    name = read.devices[0]["name"] if read.devices else EMULATED
    return replace(read, devices=({"name": name, "capacity_gb_per_s": emulate},))
