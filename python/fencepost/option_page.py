"""The options of a replay as pages (Markdown), made from what is declared."""

from collections.abc import Iterable, Iterator

from fencepost.commands import COMMANDS, IN_PYTHON, Answer, Differs, Refuses, Takes
from fencepost.replay import DECLARED, Declared, Options
from fencepost.sentences import one_a_line

NAME = "replay-options.md"

INTRODUCTION = """\
# Options of a replay

What can be asked of a replay, and which command takes what?
An option means the same wherever it is taken.
`fencepost COMMAND --help` has the other options of a command.

Made by `.venv/bin/python -m fencepost.api_page docs` from the declarations in
`python/fencepost/replay.py` and `python/fencepost/commands.py`.
"""

BY_COMMAND = """\
## Which command takes which

*yes*: it is taken; *no*: it is refused, for the reason below; *other*: the command has an option of
that name for something else.
A command that is given an option which it refuses says why, and ends with exit code 2.
"""

PYTHON = """\
## In Python

`fp.compare`, `fp.explain` and `fp.whatif` take and refuse what the commands of their names do, as
[keywords](python.md#options).
One that is refused, of another type or out of range raises `fp.InputError`.
These have another form there:
"""


def page() -> str:
    """Every option, and what each command does with it."""
    reasons = (part for command in COMMANDS for part in _reasons(command))
    in_python = _table(["option", ""], ([f"`{name}`", said] for name, said in IN_PYTHON.items()))
    parts = [INTRODUCTION, _meanings(), BY_COMMAND, _by_command(), *reasons, PYTHON, in_python]
    return one_a_line("\n\n".join(part.strip("\n") for part in parts) + "\n")


def keywords() -> str:
    """Those of functions as a table."""
    rows = (
        [f"`{name}`", _code(declared.type_name), _default(declared), declared.help]
        for name, declared in DECLARED.items()
        if name in Options.__annotations__
    )
    return _table(["keyword", "type", "default", "meaning"], rows)


def _meanings() -> str:
    rows = (
        [_code(_written(declared)), declared.help, _default(declared)]
        for declared in DECLARED.values()
    )
    return _table(["option", "meaning", "default"], rows)


def _by_command() -> str:
    said = {Takes: "yes", Refuses: "no", Differs: "other"}
    rows = (
        [_code(declared.flag), *(said[type(of[name])] for of in COMMANDS.values())]
        for name, declared in DECLARED.items()
    )
    return _table(["option", *map(_code, COMMANDS)], rows)


def _reasons(command: str) -> Iterator[str]:
    """What is to be said of its options; of those that have one reason together."""
    flags: dict[str, list[str]] = {}
    for name, answer in COMMANDS[command].items():
        if said := _said(answer):
            flags.setdefault(said, []).append(_code(DECLARED[name].flag))
    if flags:
        yield f"### `{command}`"
        yield _table(["option", ""], ([", ".join(named), said] for said, named in flags.items()))


def _said(answer: Answer) -> str:
    match answer:
        case Refuses():
            return f"refused, because {answer.because}"
        case Differs():
            return f"means {answer.meaning}"
        case Takes():
            return answer.help


def _table(columns: list[str], rows: Iterable[list[str]]) -> str:
    head, *rest = (f"| {' | '.join(cells)} |" for cells in [columns, *rows])
    return "\n".join([head, "|" + "---|" * len(columns), *rest])


def _written(declared: Declared) -> str:
    if declared.kind is bool:
        return ", ".join(filter(None, (declared.flag, declared.negation)))
    return f"{declared.flag} {declared.metavar or 'N'}"


def _default(declared: Declared) -> str:
    is_nothing = declared.default is None or declared.default is False or declared.default == ()
    return "" if is_nothing else _code(str(declared.default))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")
