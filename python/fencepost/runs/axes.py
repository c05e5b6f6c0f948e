"""Axes: named choices that are not in the machine file, and the run that ratios are over.

A run is known by its machine and the value of each axis. `scheme` is what the switches do with
persists. `placement` is where the program's memory lies, as the rules of `--place` with spaces
between them; the empty text is what `--pm` and `--place` say for all runs.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fencepost._core import InputError

Document = dict[str, Any]

AXES = ("scheme", "placement")


class Key(NamedTuple):
    """A run: its machine, and the value of each axis."""

    machine: str
    scheme: str
    placement: str = ""

    @property
    def name(self) -> str:
        """`MACHINE:SCHEME`, and the placement behind it if there is one."""
        return ":".join(filter(None, self))

    @property
    def axes(self) -> dict[str, str]:
        """The value of each axis by its name."""
        return {"scheme": self.scheme, "placement": self.placement}


def key_of(run: Document) -> Key:
    """The key of a run of a result document, also of one from before there were axes."""
    axes = run.get("axes", {})
    return Key(run["machine"], axes.get("scheme", run["scheme"]), axes.get("placement", ""))


def parts(key: Key, keys: Iterable[Key]) -> list[str]:
    """What tells a run from the others: the parts in which any of them differ, and the scheme."""
    everything = [*keys, key]
    return [
        part or "default placement"
        for number, part in enumerate(key)
        if Key._fields[number] == "scheme" or len({other[number] for other in everything}) > 1
    ]


def name_among(key: Key, keys: Iterable[Key]) -> str:
    """What a run is called among others."""
    return " ".join(parts(key, keys))


class Baseline(NamedTuple):
    """`--baseline AXIS=VALUE`: ratios of a run are over the one that differs in that axis alone."""

    axis: str
    value: str

    @classmethod
    def read(cls, text: str) -> "Baseline":
        """Of `AXIS=VALUE`; raises `InputError`."""
        axis, equals, value = text.partition("=")
        if not equals or axis not in AXES:
            raise InputError(
                f"--baseline {text}: it has to be AXIS=VALUE with an axis of {', '.join(AXES)}, "
                "such as scheme=nopb"
            )
        return cls(axis, " ".join(value.split()))

    def of(self, key: Key) -> Key:
        """The key of the run that ratios of `key` are over."""
        return key._replace(**{self.axis: self.value})

    def check(self, keys: Sequence[Key]) -> None:
        """Raises `InputError` if no run has this value."""
        values = list(dict.fromkeys(key.axes[self.axis] for key in keys))
        if self.value not in values:
            names = ", ".join(value or "(the default)" for value in values)
            raise InputError(
                f"--baseline {self.axis}={self.value}: no run has it; of {self.axis} there are: "
                f"{names}"
            )


def baseline_run(run: Document, result: Document) -> Document | None:
    """The run of a result that ratios of `run` are over: the first one unless a baseline was given.

    None if there is no such run, or if it failed.
    """
    runs, baseline = result["runs"], result["provenance"].get("baseline")
    if baseline is None:
        found = runs[0] if runs else None
    else:
        wanted = Baseline.read(baseline).of(key_of(run))
        found = next((other for other in runs if key_of(other) == wanted), None)
    return None if found is None or "error" in found else found


NAME_MAX = 12  # characters of a name that a row of a table has room for


def baseline_name(document: Document) -> str | None:
    """What ratios of a result are over, if that has a name short enough for the rows of tables."""
    keys = [key_of(run) for run in document["runs"]]
    baseline = document["provenance"].get("baseline")
    if baseline is not None:
        value = Baseline.read(baseline).value
    else:
        is_alone = len({key[::2] for key in keys}) == 1
        value = keys[0].scheme if is_alone else ""
    return value if 0 < len(value) <= NAME_MAX else None


def baseline_text(document: Document) -> str:
    """The same in a sentence where it has no short name, and nothing where it has."""
    if baseline_name(document) is not None or not document["runs"]:
        return ""
    keys = [key_of(run) for run in document["runs"]]
    baseline = document["provenance"].get("baseline")
    if baseline is None:
        return f"Ratios are over {name_among(keys[0], keys)}."
    axis, value = Baseline.read(baseline)
    return f"Ratios are over the same with {axis} {value}."


def values_of(chosen: Iterable[str]) -> dict[str, list[str]]:
    """The values that `--axis AXIS=VALUE` gives each axis, in order; raises `InputError`."""
    found: dict[str, list[str]] = {}
    for text in chosen:
        axis, equals, value = text.partition("=")
        if not equals or not value or axis not in AXES:
            raise InputError(
                f"--axis {text}: it has to be AXIS=VALUE with an axis of {', '.join(AXES)}, "
                "such as placement=heap=dram0"
            )
        found.setdefault(axis, []).append(" ".join(value.split()))
    for axis, values in found.items():
        if len(set(values)) < len(values):
            raise InputError(f"--axis {axis}=…: one value is given twice")
    return found
