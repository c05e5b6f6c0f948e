"""What options take, and how help is laid out: what each command does in full, and kinds and ranges
of values in words."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from fencepost import commands
from fencepost._core import InputError
from fencepost.cli import numbers

# What the parser calls a value that has no name of its own.
NAMES = {"<int range>": "N", "<float range>": "NUMBER", "<str>": "NAME", "<path>": "FILE"}
_SYMBOLS = re.compile(r"(\S+<=?)?x([<>]=?\S+)?")  # the parser's range, as in 0<=x<=255

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(TyperOption):
    """An option, whose numbers are finite, and whose help has no symbols of the parser."""

    def type_cast_value(self, ctx: Any, value: Any) -> Any:
        read = super().type_cast_value(ctx, value)
        numbers.check_finite(read, self)
        return read

    def get_help_record(self, ctx: Any) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names, text = record
        for kind, name in NAMES.items():
            names = names.replace(kind, name)
        said, bracket, remarks = text.rpartition("  [")
        if not bracket:
            return names, text
        kept = [
            numbers.span(self.type) if _SYMBOLS.fullmatch(remark) else remark
            for remark in remarks.removesuffix("]").split("; ")
        ]
        remarks = "; ".join(filter(None, kept))
        return names, f"{said}  [{remarks}]" if remarks else said


class Command(TyperCommand):
    """A command whose options are of that class. To an option of a replay that it refuses it says
    why."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        _make_options(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            _, command, *_ = ctx.command_path.split()
            if refusal := commands.refusal(command, getattr(error, "option_name", "")):
                raise InputError(refusal) from None
            raise


class Group(TyperGroup):
    """Several commands, whose help says in full what each does."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        _make_options(self)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _purpose(command.help)) for name, command in commands])


class Commands(typer.Typer):
    """What commands are registered with, so that each is a `Command`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        return super().command(name, **{"cls": Command, **settings})


def _make_options(command: Command | Group) -> None:
    """The parser makes all options itself, and takes no class for them."""
    for parameter in command.params:
        if type(parameter) is TyperOption:
            parameter.__class__ = Option


def _purpose(text: str | None) -> str:
    """The first paragraph of a help text, in a line."""
    return " ".join((text or "").partition("\n\n")[0].split())
