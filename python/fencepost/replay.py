"""A replay as one typed value, and the options by which one is asked for.

Each option is declared here once: its name on the command line, what it takes, its default and its
check. Commands have their options from here (`cli/replay_options.py`), functions of `api` their
keywords, results their `provenance.options`; which command takes which, `commands` says.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, TypedDict, get_args, get_origin, get_type_hints

from fencepost import _core, arguments
from fencepost.arguments import DEFAULT_SAMPLE
from fencepost.shown_name import shown_name

Document = dict[str, Any]


@dataclass(frozen=True)
class Declared:
    """What there is to know of an option besides the type of its values."""

    flag: str  # on the command line
    help: str
    metavar: str | None = None
    default: Any = None
    example: str = ""  # of a right value, for whoever gave one of another type
    least: int | None = None  # of a count
    negation: str | None = None  # the flag that says no
    # Filled in from the annotation.
    kind: type = str  # of a value, or of each where there are several
    is_optional: bool = False
    is_several: bool = False

    @property
    def type_name(self) -> str:
        """As a signature would have it."""
        kind = f"Sequence[{self.kind.__name__}]" if self.is_several else self.kind.__name__
        return f"{kind} | None" if self.is_optional else kind

    def checked(self, name: str, value: object) -> Any:
        """The value as it is kept; of another type or out of range, it is refused by its name."""
        if value is None and self.is_optional:
            return None
        if self.is_several:
            return arguments.texts(name, value, self.example)
        if self.kind is bool:
            arguments.truth(name, value)
        elif self.kind is int:
            arguments.whole_number(name, value, self.least or 0)
        else:
            arguments.text(name, value, self.example)
        return value


class Named(TypedDict, total=False):
    """How a command names what it replays: one scheme, and the records of several hosts."""

    scheme: Annotated[
        str | None,
        Declared(
            "--scheme",
            "nopb, pb, pb_rf or pb_adaptive (default: pb_rf; without a switch nopb).",
            "NAME",
            example="pb",
        ),
    ]
    hosts: Annotated[
        Sequence[str],
        Declared(
            "--host",
            "What host N of the machine replays, counted from 0; once for each host.",
            "N=RECORD",
            default=(),
            example='["0=a.fencepost"]',
        ),
    ]


class Options(TypedDict, total=False):
    """Options of a replay as functions take them; docs/replay-options.md says what they mean."""

    schemes: Annotated[
        Sequence[str] | None,
        Declared(
            "--schemes",
            "Of nopb, pb, pb_rf and pb_adaptive (default: all that a machine can run).",
            "A,B,…",
            example='["nopb", "pb"]',
        ),
    ]
    pm: Annotated[
        Sequence[str] | None,
        Declared(
            "--pm",
            "What is PM: heap, file:PATTERN, range:LO-HI (default heap).",
            "SELECTOR",
            example='["heap"]',
        ),
    ]
    place: Annotated[
        Sequence[str],
        Declared(
            "--place",
            "Where heap, stack, data, file:PATTERN, range:LO-HI or all lies: dram0 or a device; "
            "bind, interleave=W1/W2, preferred=SIZE. Repeatable.",
            "PART=NODE[:POLICY]",
            default=(),
            example='["heap=expander0"]',
        ),
    ]
    threads: Annotated[
        str,
        Declared(
            "--threads",
            "Threads on cores: free, close, spread, or a list as 0,2,4.",
            "HOW",
            default="free",
            example="close",
        ),
    ]
    transport: Annotated[
        str,
        Declared(
            "--transport",
            "How the pool is shared: none, memchannel, waterfill or switch_wfq.",
            "NAME",
            default="none",
            example="memchannel",
        ),
    ]
    persist: Annotated[
        str,
        Declared(
            "--persist",
            "What is persisted: program, sync, every:N.",
            "HOW",
            default="program",
            example="program",
        ),
    ]
    seed: Annotated[
        int,
        Declared(
            "--seed",
            "Random delays of thread starts (core.start_jitter_ns); 0: none.",
            default=0,
            least=0,
        ),
    ]
    limit_pm_writes: Annotated[
        int | None,
        Declared("--limit-pm-writes", "End where nopb has sent N writes to PM.", "N", least=1),
    ]
    limit_instructions: Annotated[
        int | None,
        Declared(
            "--limit-instructions",
            "End after N instructions of all hosts; each thread ends the block it is in.",
            "N",
            least=1,
        ),
    ]
    sample: Annotated[
        str | None,
        Declared(
            "--sample",
            "Replay only a sample in detail: DETAIL of every PERIOD instructions, after WARMUP "
            f"that are not measured (alone: {DEFAULT_SAMPLE}).",
            "[PERIOD:DETAIL[:WARMUP]]",
            example=DEFAULT_SAMPLE,
        ),
    ]
    power: Annotated[
        bool | None,
        Declared(
            "--power",
            "Find the worst instant for a power cut, and what must be saved then "
            "(default: with --report).",
            negation="--no-power",
        ),
    ]


class OfInputs(TypedDict, total=False):
    """What a command takes besides; in Python, machines and records have it."""

    set: Annotated[
        Sequence[str],
        Declared(
            "--set",
            "Change a key of the machine; repeatable.",
            "PATH=VALUE",
            default=(),
            example='["link.latency_ns=30"]',
        ),
    ]
    allow_cut: Annotated[
        bool, Declared("--allow-cut", "Accept a record that was not sealed.", default=False)
    ]
    children: Annotated[
        bool,
        Declared(
            "--children",
            "Replay the recorded children of the program, too, as processes of the same host.",
            default=False,
        ),
    ]


def _declared(name: str, annotation: Any) -> Declared:
    """What is declared of a member, with the type of its values."""
    values, declared = get_args(annotation)
    alternatives = get_args(values) if isinstance(values, UnionType) else (values,)
    kind = next(one for one in alternatives if one is not type(None))
    several = get_origin(kind) is not None
    assert isinstance(declared, Declared), name
    return replace(
        declared,
        kind=get_args(kind)[0] if several else kind,
        is_several=several,
        is_optional=type(None) in alternatives,
    )


# Every option of a replay, by its name in Python, in the order of help.
DECLARED = {
    name: _declared(name, annotation)
    for group in (Named, Options, OfInputs)
    for name, annotation in get_type_hints(group, include_extras=True).items()
}
LIMITS = ("limit_pm_writes", "limit_instructions")


@dataclass(frozen=True)
class Asked:
    """What a replay is asked for with; checked, not resolved."""

    options: Document  # those of `provenance.options`
    scheme: str | None  # of a command that replays one
    hosts: list[str]  # N=RECORD

    @classmethod
    def of(cls, given: Mapping[str, object]) -> "Asked":
        """From options by name; what is not given is as usual. Raises `InputError`."""
        assert given.keys() <= DECLARED.keys(), given.keys() - DECLARED.keys()
        values = {
            name: declared.checked(name, given.get(name, declared.default))
            for name, declared in DECLARED.items()
        }
        scheme, hosts = (values.pop(name) for name in Named.__annotations__)
        return cls(values, scheme, hosts)


def options(
    schemes: Sequence[str] | None = None, pm: Sequence[str] | None = None, **changes: object
) -> Document:
    """Options as asked for, which `resolved` makes `provenance.options` of docs/results.md of."""
    return Asked.of({"schemes": schemes, "pm": pm, **changes}).options


def resolved(asked: Document) -> Document:
    """The options as the core reads them; raises `_core.InputError` with what is wrong."""
    # A heap that is placed is not PM unless its rule says so.
    is_placed = any(rule.startswith(("heap=", "all=")) for rule in asked["place"])
    pm = asked["pm"] or ([] if is_placed else ["heap"])
    # Names are told as records show them: any byte may be in one.
    named = {"pm": [*map(shown_name, pm)], "place": [*map(shown_name, asked["place"])]}
    own = {"power": bool(asked["power"])}
    read: Document = json.loads(_core.options_resolve(json.dumps(asked | named | own)))
    return read


# What else decides these: the axes, the resolved machine, what is done with a job, and the records.
_DECIDED_ELSEWHERE = ("schemes", "set", "power", "children")


@dataclass(frozen=True)
class Replay:
    """A replay as one value: everything that decides its result, and what the result calls it.

    It is of JSON's types, so that it can be written, sent and compared; it opens no record.
    """

    machine_name: str  # in results
    machine: Document  # resolved
    axes: tuple[tuple[str, str], ...]  # the value of each, the scheme among them, by name
    records: tuple[str, ...]  # the hash of each host's, in the order of hosts
    options: Document  # resolved, with what the axes make of them

    @classmethod
    def read(cls, document: Document) -> "Replay":
        """Of what `document` gave."""
        axes = tuple(sorted(document["axes"].items()))
        return cls(**document | {"axes": axes, "records": tuple(document["records"])})

    @property
    def document(self) -> Document:
        """As JSON has it."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return own | {"axes": dict(self.axes), "records": list(self.records)}

    @property
    def decided(self) -> list[object]:
        """What no two replays of different results have alike: names and descriptions are left
        out."""
        machine = {name: value for name, value in self.machine.items() if name != "description"}
        options = {
            name: value for name, value in self.options.items() if name not in _DECIDED_ELSEWHERE
        }
        return [list(self.records), machine, dict(self.axes), options]

    @property
    def is_limited(self) -> bool:
        """Whether it ends where it reaches a limit, which others may have to stop at too."""
        return any(self.options[limit] is not None for limit in LIMITS)

    def unlimited(self) -> "Replay":
        """The same without limits."""
        return replace(self, options=self.options | dict.fromkeys(LIMITS))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # The same in every process: it is kept where one is sent.
        return zlib.crc32(json.dumps(self.document, sort_keys=True).encode())
