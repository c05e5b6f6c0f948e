"""Axes: named choices that are not in the machine file, and the run that ratios are over.

A run is known by its machine and the value of each axis, a text. `AXES` says what a value does to
the options of a replay; the empty text, the default, leaves them as they are for all runs.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fencepost._core import InputError, there_is_no
from fencepost.replay import DECLARED

Document = dict[str, Any]


def _rules(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quotation that does not end
        raise InputError(f"placement={text}: {error}") from None


@dataclass(frozen=True)
class Axis:
    """What can differ between the runs of a comparison."""

    name: str
    option: str  # of a replay, which says the same for all runs
    apply: Callable[[Document, str], Document]  # options as asked for, and with a value
    members: tuple[str, ...] = ()  # of the resolved options, which a value decides
    read: Callable[[str], str] = str.strip  # the value as it is kept
    has_default: bool = True


# What the switches do with persists is no option of a replay: the core takes it beside them.
SCHEME = Axis("scheme", "schemes", lambda options, _: options, has_default=False)
# Rules of `--place`, quoted as in a shell. Without `--pm` they decide what is PM too.
PLACEMENT = Axis(
    "placement",
    "place",
    lambda options, value: options | {"place": _rules(value)},
    ("pm", "place"),
    lambda text: shlex.join(_rules(text)),
)
THREADS = Axis(
    "threads", "threads", lambda options, value: options | {"threads": value}, ("threads",)
)

TRANSPORT = Axis(
    "transport",
    "transport",
    lambda options, value: options | {"transport": value},
    ("transport",),
)

AXES = {axis.name: axis for axis in (SCHEME, PLACEMENT, THREADS, TRANSPORT)}

# Of resolved options those in which runs can differ.
MEMBERS = tuple(member for axis in AXES.values() for member in axis.members)

# The axes of a run that have a value and change its options, with that value.
Setting = tuple[tuple[str, str], ...]


class Key(NamedTuple):
    """A run: its machine, and the axes that have a value, in the order of `AXES`."""

    machine: str
    values: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, machine: str, **values: str) -> "Key":
        """The key of these values by the names of their axes."""
        assert values.keys() <= AXES.keys()
        return cls(machine, tuple((name, values[name]) for name in AXES if values.get(name)))

    @property
    def axes(self) -> dict[str, str]:
        """The value of each axis by its name."""
        return dict.fromkeys(AXES, "") | dict(self.values)

    @property
    def scheme(self) -> str:
        """What the core takes beside the options."""
        return self.axes[SCHEME.name]

    @property
    def setting(self) -> Setting:
        """What tells the options of a run from those of others."""
        return tuple(pair for pair in self.values if pair[0] != SCHEME.name)

    @property
    def words(self) -> list[str]:
        """The machine and the values, the scheme first."""
        return [self.machine, *dict(self.values).values()]

    @property
    def name(self) -> str:
        """`MACHINE:SCHEME`, and the values of other axes behind it where there are some."""
        return ":".join(filter(None, self.words))

    def with_value(self, axis: str, value: str) -> "Key":
        """The key that differs in this axis alone."""
        return self.of(self.machine, **self.axes | {axis: value})

    def applied(self, options: Document) -> Document:
        """Options as asked for (`replay.options`), with what the values make of them."""
        for axis, value in self.values:
            options = AXES[axis].apply(options, value)
        return options

    @property
    def decided(self) -> list[str]:
        """The members of options that the values decide."""
        return [member for axis, _ in self.values for member in AXES[axis].members]


def key_of(run: Document) -> Key:
    """The key of a run of a result document, also of one from before there were axes."""
    axes = {"scheme": run["scheme"]} | run.get("axes", {})
    return Key.of(run["machine"], **{name: axes[name] for name in AXES if name in axes})


def parts(key: Key, keys: Iterable[Key]) -> list[str]:
    """What tells a run from the others: the parts in which any of them differ, and the scheme."""
    everything = [*keys, key]
    machine = [key.machine] if len({other.machine for other in everything}) > 1 else []
    return machine + [
        value or f"default {axis}"
        for axis, value in key.axes.items()
        if axis == SCHEME.name or len({other.axes[axis] for other in everything}) > 1
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
        return cls(*_read("--baseline", text, "scheme=nopb"))

    def of(self, key: Key) -> Key:
        """The key of the run that ratios of `key` are over."""
        return key.with_value(self.axis, self.value)

    def check(self, keys: Sequence[Key]) -> None:
        """Raises `InputError` if no run has this value."""
        values = list(dict.fromkeys(key.axes[self.axis] for key in keys))
        if self.value not in values:
            names = ", ".join(value or "(the default)" for value in values)
            raise InputError(
                f"--baseline {self.axis}={self.value}: no run has it; of {self.axis} there are: "
                f"{names}"
            )


def check_scheme_baseline(baseline: str | None, keys: Sequence[Key]) -> None:
    """Raises `InputError` for a baseline where runs differ in their scheme alone, and none has it
    or it names another axis."""
    if baseline is None:
        return
    read = Baseline.read(baseline)
    if read.axis != SCHEME.name:
        raise InputError(
            f"--baseline {baseline}: runs differ in their scheme alone here, so it has to be "
            f"{SCHEME.name}=SCHEME"
        )
    read.check(keys)


def baseline_scheme(provenance: Document) -> str:
    """What ratios are over where runs differ in their scheme alone."""
    baseline: str | None = provenance["baseline"]
    schemes: list[str] = provenance["options"]["schemes"]
    return schemes[0] if baseline is None else Baseline.read(baseline).value


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
        is_alone = len({(key.machine, key.setting) for key in keys}) == 1
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
    named = f"{axis} {value}" if value else f"the default {axis}"
    return f"Ratios are over the same with {named}."


def values_of(chosen: Iterable[str], options: Document) -> dict[str, list[str]]:
    """The values that `--axis AXIS=VALUE` gives each axis, in order; raises `InputError`.

    An option that says the same for all runs holds where an axis has no value.
    """
    found: dict[str, list[str]] = {}
    for text in chosen:
        axis, value = _read("--axis", text, "placement=heap=dram0")
        found.setdefault(axis, []).append(value)
    for axis, values in found.items():
        if len(set(values)) < len(values):
            raise InputError(f"--axis {axis}=…: one value is given twice")
        option = DECLARED[AXES[axis].option]
        is_given = (options[AXES[axis].option] or None) != (option.default or None)
        if is_given and "" not in values:
            beside = f", or --axis {axis}= beside the others" if AXES[axis].has_default else ""
            raise InputError(
                f"{option.flag} and --axis {axis}=… say the same; give one of them{beside}"
            )
    return found


def _read(option: str, text: str, example: str) -> tuple[str, str]:
    """Axis and value of `AXIS=VALUE`."""
    axis, equals, value = text.partition("=")
    if equals and axis not in AXES:
        raise InputError(f"{option} {text}: {there_is_no('axis', axis, list(AXES))}")
    if not equals or not (value.strip() or AXES[axis].has_default):
        raise InputError(
            f"{option} {text}: it has to be AXIS=VALUE with an axis of {', '.join(AXES)}, "
            f"such as {example}"
        )
    return axis, AXES[axis].read(value)
