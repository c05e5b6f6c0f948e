"""channels.toml: read, and checked key by key; all mistakes are told at once, with their lines."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import documents
from fencepost._core import InputError, nearest, there_is_no
from fencepost.channel import keys
from fencepost.channel.keys import Key

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OTHERS = "others"  # the channel of threads that no channel is for
EMULATED = "pool"  # the device of an emulated pool that nobody describes
GB = 1e9


@dataclass(frozen=True)
class Program:
    """A program to start, and the channel of its threads, if it is told."""

    command: list[str]
    channel: str | None = None


@dataclass(frozen=True)
class Configuration:
    """What channels.toml says, with every default."""

    name: str = "channels"
    top: Mapping[str, Any] = field(default_factory=lambda: _defaults(keys.TOP))
    timing: Mapping[str, Any] = field(default_factory=lambda: _defaults(keys.TIMING))
    hosts: Mapping[str, Any] = field(default_factory=lambda: _defaults(keys.HOSTS))
    devices: tuple[Mapping[str, Any], ...] = ()
    channels: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()  # that count bytes, instead of this processor's own
    programs: tuple[Program, ...] = ()

    def lines(self, source: str, charge: float) -> str:
        """The settings of a segment, as the keeper reads them; `charge` is in bytes for a second of
        processor time."""
        names = [device["name"] for device in self.devices]
        timing = self.timing
        said: list[tuple[object, ...]] = [
            ("window_ns", _whole(timing["window_us"] * 1e3)),
            ("interval_ns", _whole(timing["interval_ms"] * 1e6)),
            ("pause_max_ns", _whole(timing["pause_max_ms"] * 1e6)),
            ("quantum_ns", _whole(timing["quantum_us"] * 1e3)),
            ("silence_max_ns", _whole(timing["silence_ms"] * 1e6)),
            ("hosts", self.hosts["count"]),
            ("law", self.top["law"]),
            ("source", source),
            ("charge", charge),
        ]
        said += [
            ("device", device["name"], device["capacity_gb_per_s"] * GB) for device in self.devices
        ]
        others = _defaults(keys.CHANNEL) | {"name": OTHERS, "weight": self.top["other_weight"]}
        others["program"] = "*"
        for channel in (*self.channels, others):
            path = channel["devices"] or names
            bits = sum(1 << names.index(device) for device in path)
            node = "-" if channel["node"] is None else channel["node"]
            processors = ",".join(map(str, channel["processors"] or [])) or "-"
            patterns = _patterns(channel)
            said.append(
                ("rule", channel["name"], *patterns, channel["weight"], bits, node, processors)
            )
        text = "".join("\t".join(map(str, line)) + "\n" for line in said)
        return text + f"fingerprint\t{fingerprint(text)}\n"


def fingerprint(text: str) -> int:
    """Tells one configuration from another."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def fingerprint_in(settings: str) -> int:
    """The one that the settings of a segment end with."""
    return int(settings.rsplit("fingerprint\t", 1)[-1])


def read(path: Path) -> Configuration:
    """What a file says; raises `InputError` with all of its mistakes."""
    text = documents.read_text(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    return _Reader(path, text).read(document)


class _Reader:
    """One file being read."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.source, self.faults = path, text.splitlines(), list[tuple[int, str]]()

    def read(self, document: dict[str, Any]) -> Configuration:
        valid = [*keys.TOP, *keys.TABLES, *keys.LISTS]
        self._unknown(document, valid, "", 0, 0)
        own = {key: value for key, value in document.items() if key in keys.TOP}
        top = self._table(own, keys.TOP, "", 0)
        timing, hosts = (
            self._table(document.get(name, {}), keys.TABLES[name], name, 0)
            for name in ("timing", "hosts")
        )
        devices = self._list(document, "device", keys.DEVICES_MAX)
        channels = self._list(document, "channel", keys.RULES_MAX)
        events = self._list(document, "event", keys.EVENTS_MAX)
        programs = self._list(document, "program", 1000)
        self._check_names("device", devices)
        self._check_names("channel", channels)
        self._check_paths(devices, channels)
        self._check_programs(channels, programs)
        if self.faults:
            told = sorted(self.faults)
            raise InputError("\n".join(f"{self.path}:{line}: {what}" for line, what in told))
        started = (Program(one["command"], one["channel"]) for one in programs)
        return Configuration(
            *(self.path.resolve().stem, top, timing, hosts),
            devices=tuple(devices),
            channels=tuple(channels),
            events=tuple(events),
            programs=tuple(started),
        )

    def _list(self, document: dict[str, Any], name: str, most: int) -> list[dict[str, Any]]:
        tables = document.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            self._fault(self._line(name, 0), name, f"it has to be a list of tables: [[{name}]]")
            return []
        if len(tables) > most:
            self._fault(self._line(name, most), name, f"{len(tables)} of them; at most {most}")
        read = keys.LISTS[name]
        return [self._table(one, read, name, number) for number, one in enumerate(tables)]

    def _table(
        self, given: Any, wanted: Mapping[str, Key], name: str, number: int
    ) -> dict[str, Any]:
        """A table with its defaults; of a wrong value, the default."""
        values = _defaults(wanted)
        if not isinstance(given, dict):
            self._fault(self._line(name, number), name, "it has to be a table")
            return values
        self._unknown(given, list(wanted), name, number, 1)
        for key, rule in wanted.items():
            path = f"{name}.{key}" if name else key
            if key not in given:
                if rule.is_needed:
                    what = f"the key `{key}` is missing ({rule.wanted}): {rule.meaning}"
                    self._fault(self._line(name, number), name, what)
                continue
            if _is_right(given[key], rule):
                values[key] = given[key]
            else:
                line = self._line(name, number, key)
                self._fault(line, path, f"{given[key]!r}: it has to be {rule.wanted}")
        return values

    def _unknown(
        self, given: Mapping[str, Any], valid: list[str], name: str, number: int, depth: int
    ) -> None:
        for key in given:
            if key in valid:
                continue
            near = nearest(key, valid)
            path = f"{name}.{key}" if depth else key
            there = f"the nearest is `{near}`" if near else f"there are {', '.join(valid)}"
            what = f"there is no such key; {there}"
            self._fault(self._line(name, number, key), path, what)

    def _check_names(self, name: str, tables: list[dict[str, Any]]) -> None:
        seen = {OTHERS} if name == "channel" else set[str]()
        for number, table in enumerate(tables):
            if table["name"] in seen:
                line = self._line(name, number, "name")
                self._fault(line, f"{name}.name", f"{table['name']!r} is taken; names differ")
            seen.add(table["name"])

    def _check_paths(self, devices: list[dict[str, Any]], channels: list[dict[str, Any]]) -> None:
        names = [device["name"] for device in devices] or [EMULATED]
        for number, channel in enumerate(channels):
            for one in channel["devices"] or []:
                if one not in names:
                    line = self._line("channel", number, "devices")
                    what = there_is_no("device", one, names)
                    self._fault(line, "channel.devices", what)

    def _check_programs(
        self, channels: list[dict[str, Any]], programs: list[dict[str, Any]]
    ) -> None:
        names = [channel["name"] for channel in channels]
        for number, program in enumerate(programs):
            if program["channel"] is not None and program["channel"] not in names:
                line = self._line("program", number, "channel")
                what = there_is_no("channel", program["channel"], names)
                self._fault(line, "program.channel", what)

    def _fault(self, line: int, path: str, what: str) -> None:
        self.faults.append((line, f"{path}: {what}" if path else what))

    def _line(self, table: str, number: int, key: str | None = None) -> int:
        """The line of a key of the table of this name, or that table's; 1 where it has none."""
        begin = 0
        if table:
            header = re.compile(rf"\s*\[\[?\s*{re.escape(table)}\s*\]")
            found = [at for at, line in enumerate(self.source, 1) if header.match(line)]
            begin = found[number] if number < len(found) else 0
        if key is None:
            return begin or 1
        assigned = re.compile(
            rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]|\s*\[\[?\s*{re.escape(key)}\b"
        )
        following = enumerate(self.source[begin:], begin + 1)
        return next((at for at, line in following if assigned.match(line)), begin or 1)


def _patterns(channel: Mapping[str, Any]) -> tuple[str, str]:
    """Of the program and the thread. Without any, threads get the channel by its name only."""
    program, thread = channel["program"], channel["thread"]
    return (program or ("*" if thread else ""), thread or "*")


def _defaults(wanted: Mapping[str, Key]) -> dict[str, Any]:
    return {name: key.default for name, key in wanted.items()}


def _is_right(value: Any, key: Key) -> bool:
    if key.choices:
        return value in key.choices
    if key.kind == "texts":
        return isinstance(value, list) and bool(value) and all(isinstance(it, str) for it in value)
    if key.kind == "integers":
        one = Key("integer", key.meaning, least=key.least, most=key.most)
        return isinstance(value, list) and bool(value) and all(_is_right(it, one) for it in value)
    if key.kind == "text":
        is_text = isinstance(value, str) and 0 < len(value.encode()) <= keys.NAME_MAX
        return is_text and not re.search(r"[\x00-\x1f]", value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    is_whole = key.kind == "number" or isinstance(value, int)
    return is_whole and key.least <= value <= key.most


def _whole(value: float) -> int:
    return round(value)
