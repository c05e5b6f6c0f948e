"""The experiment of a result, to be run again: a result says what it was made from."""

import json
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import InputError, there_is_no
from fencepost.runs.axes import Key, key_of
from fencepost.runs.experiment import Experiment


def run_of(document: dict[str, Any], wanted: str | None) -> Key:
    """The run `MACHINE:SCHEME[:VALUE…]` (or `SCHEME` alone); by default the last."""
    keys = list(map(key_of, document["runs"]))
    if not keys:
        raise InputError("the result has no runs")
    if wanted is None:
        return keys[-1]
    found = [key for key in keys if wanted in (key.name, key.scheme)]
    if not found:
        raise InputError(there_is_no("run", wanted, [key.name for key in keys]))
    if len(found) > 1:
        names = ", ".join(key.name for key in found)
        raise InputError(f"--run {wanted}: several runs are called so; name one of {names}")
    return found[0]


def records_of(result: Path, document: dict[str, Any]) -> list[Path]:
    """The records that the result in the file `result` was made from, one for each host."""
    return [_find(result, record["name"]) for record in _made_from(document)]


def experiment_of(result: Path, document: dict[str, Any], records: list[Path]) -> Experiment:
    """The experiment that made `document`, read from the file `result`."""
    provenance = document["provenance"]
    made_from = _made_from(document)
    if len(records) != len(made_from):
        raise InputError(
            f"{result} was made from {len(made_from)} record{'s' * (len(made_from) > 1)}, "
            f"one for each host, and --record is given {len(records)} times"
        )
    options = _options_of(result, "provenance.options", provenance["options"], provenance)
    keys, own = list(map(key_of, document["runs"])), {}
    for number, (key, run) in enumerate(zip(keys, document["runs"], strict=True)):
        where, said = f"runs[{number}].options", run.get("options", {})
        if missing := [member for member in key.decided if member not in said]:
            raise InputError(f"{result}: {where} has no {missing[0]}, which its axes decide")
        own[key.setting] = _options_of(result, where, options | said, provenance)
    opened = {}
    chosen = []
    for path, record in zip(records, made_from, strict=True):
        if path not in opened:
            opened[path] = _core.Record(
                str(path), options["allow_cut"], options.get("children", False)
            )
        found = json.loads(opened[path].provenance())["hash"]
        if found != record["hash"]:
            raise InputError(
                f"{path}: not the record of {result}: its hash is {found}, "
                f"and the result was made from {record['hash']}"
            )
        chosen.append(opened[path])
    names = [record["name"] for record in made_from]
    return Experiment(chosen, names, provenance["machines"], options, keys, own)


def _options_of(
    result: Path, where: str, said: dict[str, Any], provenance: dict[str, Any]
) -> dict[str, Any]:
    """The options as the core reads them; raises `InputError` also where a machine is not whole."""
    try:
        options: dict[str, Any] = json.loads(_core.options_resolve(json.dumps(said)))
    except InputError as error:
        raise InputError(f"{result}: {where}: {error}") from error
    for name, machine in provenance["machines"].items():
        machine_at = f"{result}: provenance.machines.{name}"
        _core.options_check(json.dumps(options), machine_at, json.dumps(machine))
    return options


def _made_from(document: dict[str, Any]) -> list[dict[str, Any]]:
    provenance = document["provenance"]
    return [provenance["record"], *provenance.get("other_records", [])]


def _find(result: Path, name: str) -> Path:
    for folder in dict.fromkeys((result.parent, Path())):
        path = folder / name
        if path.is_file():
            return path
    raise InputError(
        f"{result} was made from the record {name}, which is neither beside it nor here; "
        "say where it is: --record FILE"
    )
