"""Which options of a replay each command takes, and why it refuses the others.

A new option, or a new command that replays, is declared here field by field: nothing is taken or
left out by accident. `api`'s functions of the same names take and refuse the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost._core import InputError
from fencepost.replay import DECLARED, Asked


@dataclass(frozen=True)
class Takes:
    """The option means what it means everywhere, unless `help` narrows it."""

    help: str = ""


@dataclass(frozen=True)
class Refuses:
    """The option would not do what it says there."""

    because: str


@dataclass(frozen=True)
class Differs:
    """The command has an option of this name for something else."""

    meaning: str


Answer = Takes | Refuses | Differs


def _declares(takes: str, others: Mapping[str, Answer]) -> dict[str, Answer]:
    """What a command does with each option, in their order; every one has to be named once."""
    named = takes.split()
    assert sorted([*named, *others]) == sorted(DECLARED), (named, others)
    return {name: others.get(name, Takes()) for name in DECLARED}


_SEVERAL = Refuses("it lays schemes side by side; type --schemes A,B")
_ONE = Refuses("it replays under one scheme; type --scheme NAME")
_EVERY_INSTANT = Refuses("every instant of the run is explored")
_OF_THE_RESULT = Refuses("it runs a result again, with the options that its provenance has")

# Options of a replay that the plan of a sweep may have, in its table `options`; schemes, hosts and
# changes it names in ways of its own.
IN_PLANS = (
    "pm",
    "place",
    "threads",
    "transport",
    "persist",
    "seed",
    "limit_pm_writes",
    "limit_instructions",
    "sample",
)


def _in_plan(text: str) -> Refuses:
    return Refuses(f"a plan has it: {text}")


COMMANDS: dict[str, dict[str, Answer]] = {
    "run": _declares(
        "scheme hosts pm place threads transport persist set seed limit_pm_writes "
        "limit_instructions sample power allow_cut children",
        {"schemes": Refuses("it replays under one scheme; type --scheme NAME, or use compare")},
    ),
    "compare": _declares(
        "schemes hosts pm place threads transport persist set seed limit_pm_writes "
        "limit_instructions sample power allow_cut children",
        {"scheme": _SEVERAL},
    ),
    "explain": _declares(
        "schemes hosts pm place threads transport persist set seed limit_pm_writes "
        "limit_instructions allow_cut children",
        {
            "scheme": _SEVERAL,
            "sample": Refuses(
                "waits of lines would be those of the intervals alone, beside an estimated time of "
                "the whole program"
            ),
            "power": Refuses(
                "it counts what lines wait for, and a power cut is sought in another replay; "
                "type fencepost power"
            ),
        },
    ),
    "whatif": _declares(
        "schemes hosts pm place threads transport persist set seed limit_pm_writes "
        "limit_instructions sample allow_cut children",
        {
            "scheme": _SEVERAL,
            "power": Refuses(
                "a point has the figures of compare and the cost of its buffers, but no power cut; "
                "type fencepost power --set KEY=VALUE"
            ),
        },
    ),
    "sweep": _declares(
        "",
        {
            **{name: _in_plan(f"options.{name}") for name in IN_PLANS},
            "scheme": _in_plan("scheme"),
            "schemes": _in_plan("scheme"),
            "hosts": _in_plan('record = [{name = "NAME", hosts = ["RECORD", "RECORD"]}]'),
            "set": _in_plan("set"),
            "power": Refuses("a row has figures, but no power cut; type fencepost power"),
            "allow_cut": Refuses("a table of cut records compares what is not alike"),
            "children": Refuses("a record of a plan is of one process"),
        },
    ),
    "power": _declares(
        "scheme hosts pm place threads transport persist set seed limit_pm_writes "
        "limit_instructions allow_cut children",
        {
            "schemes": _ONE,
            "sample": Refuses("the worst instant may lie between the intervals of a sample"),
            "power": Refuses("looking for the worst instant is what it does"),
        },
    ),
    "crash": _declares(
        "scheme place threads set allow_cut",
        {
            "pm": Takes("The pool, file:POOL (default: as recorded)."),
            "schemes": _ONE,
            "hosts": Refuses("it explores one program on a machine with one host"),
            "transport": Refuses("a pool of one host has nobody to be shared with"),
            "persist": Refuses("crash states test the flushes and fences of the program itself"),
            "seed": Differs("which combinations of versions are sampled"),
            "limit_pm_writes": _EVERY_INSTANT,
            "limit_instructions": _EVERY_INSTANT,
            "sample": _EVERY_INSTANT,
            "power": Refuses("it makes what a power cut leaves; what must be saved, power says"),
            "children": Refuses("it explores the memory of one process"),
        },
    ),
    "timeline": _declares(
        "",
        {
            **dict.fromkeys(DECLARED, _OF_THE_RESULT),
            "scheme": Refuses("it follows a run of a result; type --run MACHINE:SCHEME"),
            "hosts": Refuses("a result has its hosts; type --record FILE once for each"),
            "persist": Differs("which persist is followed"),
        },
    ),
}

# What functions of `api` have in another form.
IN_PYTHON = {
    "hosts": "records are listed in the order of hosts",
    "set": "a machine has its changes: Machine.set",
    "allow_cut": "a record has it: Record(path, allow_cut=True)",
    "children": "a record has it: Record(path, children=True)",
}


def taken(command: str) -> list[str]:
    """The options that a command takes."""
    return [name for name, answer in COMMANDS[command].items() if isinstance(answer, Takes)]


def refusal(command: str, flag: str) -> str | None:
    """What is said to an option that a command refuses; None for one that is none of a replay."""
    for name, answer in COMMANDS.get(command, {}).items():
        declared = DECLARED[name]
        if flag in (declared.flag, declared.negation) and isinstance(answer, Refuses):
            return _refused(command, flag, answer.because)
    return None


def asked_of(function: str, given: Mapping[str, object]) -> Asked:
    """What a function of `api` was given; raises `InputError`, and `TypeError` as Python would."""
    for name in given:
        if name not in DECLARED:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        answer = COMMANDS[function][name]
        because = answer.because if isinstance(answer, Refuses) else IN_PYTHON.get(name)
        if because is not None:
            raise InputError(_refused(function, name, because))
    return Asked.of(given)


def _refused(command: str, option: str, because: str) -> str:
    return f"{command}: {option}: refused, because {because}"
