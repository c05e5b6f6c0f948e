"""How help is laid out: what each command does in full, and kinds and ranges of values in words."""

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fencepost.cli import numbers

# What the parser calls a value that has no name of its own.
NAMES = {"<int range>": "N", "<float range>": "NUMBER", "<str>": "NAME", "<path>": "FILE"}
_SYMBOLS = re.compile(r"(\S+<=?)?x([<>]=?\S+)?")  # the parser's range, as in 0<=x<=255


class Command(TyperCommand):
    """A command, whose help has no symbols of the parser."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter)


class Group(TyperGroup):
    """Several commands, whose help says in full what each does."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _purpose(command.help)) for name, command in commands])


class Commands(typer.Typer):
    """What commands are registered with, so that each is a `Command`."""

    def command(self, name: str | None = None, **settings: Any) -> Any:  # type: ignore[override]
        return super().command(name, **{"cls": Command, **settings})


def _purpose(text: str | None) -> str:
    """The first paragraph of a help text, in a line."""
    return " ".join((text or "").partition("\n\n")[0].split())


def _format_options(command: Command | Group, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(ctx):
        if record := parameter.get_help_record(ctx):
            sections[parameter.param_type_name].append(_in_words(parameter, *record))
    for kind, records in sections.items():
        if records:
            with formatter.section(f"{kind.capitalize()}s"):
                formatter.write_dl(records)


def _in_words(parameter: Any, names: str, text: str) -> tuple[str, str]:
    """The two columns of the help of an option."""
    for kind, name in NAMES.items():
        names = names.replace(kind, name)
    said, bracket, remarks = text.rpartition("  [")
    if not bracket:
        return names, text
    kept = [
        numbers.span(parameter.type) if _SYMBOLS.fullmatch(remark) else remark
        for remark in remarks.removesuffix("]").split("; ")
    ]
    remarks = "; ".join(filter(None, kept))
    return names, f"{said}  [{remarks}]" if remarks else said
