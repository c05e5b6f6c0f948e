"""Options of a replay on the command line, made from their declarations."""

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any

import typer

from fencepost import commands
from fencepost.arguments import COUNT_MAX
from fencepost.replay import DECLARED, Asked, Declared

# The parameter of a command's function in whose place the options stand.
PLACE = "asked"


def replays(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a replay that it takes: its function gets them as `asked`."""
    options = {name: _option(command, name) for name in commands.taken(command)}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def with_options(*arguments: Any, **given: Any) -> None:
            typed = {name: given.pop(name) for name in options if name in given}
            function(*arguments, **given, **{PLACE: _asked(typed)})

        parameters: list[Parameter] = []
        own = inspect.signature(function)
        for parameter in own.parameters.values():
            parameters += options.values() if parameter.name == PLACE else [parameter]
        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def _asked(typed: dict[str, Any]) -> Asked:
    """From values as the parser has them: None where nothing was typed."""
    given = {name: value for name, value in typed.items() if value is not None}
    if "schemes" in given:
        given["schemes"] = listed(given["schemes"])
    return Asked.of(given)


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _option(command: str, name: str) -> Parameter:
    declared, answer = DECLARED[name], commands.COMMANDS[command][name]
    assert isinstance(answer, commands.Takes)
    flag = "/".join(filter(None, (declared.flag, declared.negation)))
    default = None if declared.is_several else declared.default
    info = typer.Option(
        flag,
        metavar=declared.metavar,
        help=answer.help or declared.help,
        show_default=default is not None and default is not False,
        min=declared.least,
        max=None if declared.least is None else COUNT_MAX,
    )
    annotation = Annotated[_typed(name, declared), info]  # type: ignore[valid-type]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(name: str, declared: Declared) -> Any:
    """The type by which the parser reads it; a list of schemes stands between commas."""
    if declared.is_several and name != "schemes":
        return list[str] | None
    is_optional = declared.is_optional or name == "schemes"
    return declared.kind | None if is_optional else declared.kind
