"""One table says which command takes which option of a replay; a replay is a value."""

from __future__ import annotations

import importlib.util
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import typer

import fencepost as fp
from fencepost import _core, api, machines
from fencepost.cli import application, main
from fencepost.commands import COMMANDS, IN_PYTHON, Differs, Refuses, Takes, refusal
from fencepost.replay import DECLARED, Options, Replay, options, resolved
from fencepost.runs.axes import Key
from fencepost.runs.store import identity
from fencepost.runs.task import Task
from fencepost.tree import RECORDS
from fencepost.validation.persist import ARENA
from installed import Fencepost

RECORD = RECORDS / "persist_loops.fencepost"
FUNCTIONS = [
    name
    for name in COMMANDS
    if hasattr(api, name) and "options" in inspect.signature(getattr(api, name)).parameters
]
KEY = "switch.persist_buffer.entries=4,8"


def parameters(command: str) -> dict[str, Any]:
    """The options that the parser knows, by each of their flags."""
    application.load([])
    whole: Any = typer.main.get_command(application.app)
    own = whole.commands[command].params
    return {flag: one for one in own for flag in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_options_that_it_takes_and_no_others(command: str) -> None:
    known = parameters(command)
    assert list(COMMANDS[command]) == list(DECLARED)
    for name, answer in COMMANDS[command].items():
        declared = DECLARED[name]
        if isinstance(answer, Takes):
            assert known[declared.flag].help == (answer.help or declared.help)
            assert declared.negation is None or declared.negation in known
        else:
            assert (declared.flag in known) == isinstance(answer, Differs)


def test_every_command_that_replays_is_in_the_table() -> None:
    """What has most of these options replays."""
    flags = {declared.flag for declared in DECLARED.values()} - {"--seed", "--set"}
    replaying = [name for name in application.COMMANDS if len(flags & parameters(name).keys()) > 3]
    assert set(replaying) <= set(COMMANDS)
    assert len(replaying) > 4


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (command, name)
        for command, answers in COMMANDS.items()
        for name, answer in answers.items()
        if isinstance(answer, Refuses)
    ],
)
def test_a_refused_option_is_answered_with_its_reason(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    declared, answer = DECLARED[name], COMMANDS[command][name]
    assert isinstance(answer, Refuses)
    for flag in filter(None, (declared.flag, declared.negation)):
        for typed in ([flag, "1"], [f"{flag}=1"]):
            assert main([command, "pcs-table1", "x", *typed]) == 2
            said = f"fencepost: {command}: {flag}: refused, because {answer.because}\n"
            assert capsys.readouterr().err == said


def test_other_commands_know_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["channel", "run", "--sample"]) == 2
    assert "No such option: --sample" in capsys.readouterr().err
    assert refusal("power", "--json") is None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_its_command_takes(name: str) -> None:
    own = inspect.signature(getattr(api, name)).parameters
    assert not own.keys() & DECLARED.keys(), "declared once"
    for option, answer in COMMANDS[name].items():
        if isinstance(answer, Takes):
            assert (option in Options.__annotations__) != (option in IN_PYTHON)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_with_the_words_of_its_command(name: str) -> None:
    function, more = getattr(fp, name), {"changes": [KEY]} if name == "whatif" else {}
    for option, answer in COMMANDS[name].items():
        because = answer.because if isinstance(answer, Refuses) else IN_PYTHON.get(option)
        if because is not None:
            with pytest.raises(fp.InputError) as error:
                function("pcs-table1", RECORD, **more, **{option: 1})
            assert str(error.value) == f"{name}: {option}: refused, because {because}"
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'color'"):
        function("pcs-table1", RECORD, **more, color=1)


def test_no_module_is_called_like_a_function() -> None:
    for name in fp.__all__:
        if name.isidentifier() and not name.startswith("__"):
            spec = importlib.util.find_spec(f"fencepost.{name}")
            # Without an origin: a folder that only has what an earlier version compiled.
            is_module = spec is not None and spec.origin is not None
            assert is_module == inspect.ismodule(getattr(fp, name)), name


def test_explain_shares_the_pool_out(fencepost: Fencepost, tmp_path: Path) -> None:
    asked = ["explain", "xconn-pool", RECORD, "-q", "--json", "e.json", "--transport", "waterfill"]
    done = fencepost(*asked, "--place", f"{ARENA}=pool")
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "e.json").read_text())
    assert said["provenance"]["options"]["transport"] == "waterfill"


def test_a_sampled_study_says_that_it_estimates(fencepost: Fencepost) -> None:
    asked = ["whatif", "pcs-table1", RECORD, KEY, "--pm", ARENA, "--schemes", "nopb,pb", "-q"]
    done = fencepost(*asked, "--sample", "10k:2k:2k")
    assert done.returncode == 0, done.stderr
    assert "Sampled (10000:2000:2000): times and rates are estimates." in done.stdout
    assert "Sampled" not in fencepost(*asked).stdout


def test_power_ends_at_a_limit(fencepost: Fencepost) -> None:
    asked = ["power", "pcs-table1", RECORD, "--pm", ARENA, "-q"]
    whole, limited = fencepost(*asked), fencepost(*asked, "--limit-instructions", "9000")
    assert (whole.returncode, limited.returncode) == (0, 0)
    looks = [done.stdout.partition("looked for after ")[2] for done in (whole, limited)]
    assert looks[0] != looks[1]


def replay(scheme: str = "pb", *sets: str, **changes: Any) -> Replay:
    chosen = resolved(options([scheme], [ARENA], **changes))
    key, machine = Key.of("m", scheme=scheme), machines.resolve("pcs-table1", list(sets))
    return Task.of(key, machine, (_core.Record(str(RECORD), False),), chosen).replay


def test_a_replay_is_a_value() -> None:
    one = replay()
    others = [replay("nopb"), replay("pb", "link.latency_ns=30"), replay(seed=1)]
    assert len({one, replay(), *others}) == 4
    there = Replay.read(json.loads(json.dumps(one.document, sort_keys=True)))
    assert (there, hash(there)) == (one, hash(one))
    assert pickle.loads(pickle.dumps(one)) == one


def test_results_that_were_kept_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of kept results are made by this version as they were by those before."""
    from fencepost.runs import store

    monkeypatch.setattr(store, "simulator", lambda: "S")
    machine = {"description": "x", "core": {"count": 1}}
    task = Task.of(Key.of("m", scheme="pb"), machine, (), resolved(options(["pb"])))
    assert identity(task) == "pb-617c68836cb91ffbc71ccb45"
