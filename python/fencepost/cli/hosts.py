"""Which record each host of a machine replays."""

import json
from pathlib import Path
from typing import Any

from fencepost import _core
from fencepost._core import InputError
from fencepost.documents import is_record


def in_order(machine: str, record: Path | None) -> tuple[str, Path | None]:
    """MACHINE and RECORD, also where they were typed the other way round."""
    if record is not None and is_record(Path(machine)) and not is_record(record):
        return str(record), Path(machine)
    return machine, record


def records_of(
    program: list[str] | None, record: Path | None, hosts: list[str] | None
) -> list[Path] | None:
    """The records in the order of hosts; None if `program` is to be recorded first."""
    if sum([program is not None, record is not None, bool(hosts)]) != 1:
        raise InputError(
            "either a record or, behind --, a program is needed, or --host N=RECORD for each host"
        )
    if record is not None:
        return [record]
    return None if program is not None else _by_host(hosts or [])


def _by_host(hosts: list[str]) -> list[Path]:
    records: dict[int, Path] = {}
    for text in hosts:
        number, _, record = text.partition("=")
        if not (number.isascii() and number.isdigit() and record):
            raise InputError(f"--host {text}: it has to be N=RECORD, for example 0=a.fencepost")
        if int(number) in records:
            raise InputError(f"--host {text}: host {int(number)} has a record already")
        records[int(number)] = Path(record)
    for host in range(len(records)):
        if host not in records:
            raise InputError(f"host {host} has no record; type: --host {host}=RECORD")
    return [records[host] for host in range(len(records))]


def check_machine(
    command: str, machine: dict[str, Any], records: int, options: dict[str, Any]
) -> None:
    """Refuses a machine that has not one record for each host, or not the memory nodes and cores
    that the options name; `command` is what was typed, with the machine's name at its end."""
    hosts = machine["fabric"]["hosts"]
    if len(hosts) == records:
        _core.options_check(json.dumps(options), command.split()[-1], json.dumps(machine))
        return
    given = "one record is given" if records == 1 else f"{records} records are given"
    have = "one host" if len(hosts) == 1 else f"{len(hosts)} hosts ({', '.join(hosts)})"
    name = command.split()[-1]
    needed = " ".join(f"--host {host}=RECORD" for host in range(len(hosts)))
    raise InputError(
        f"{name} has {have} and {given}; type: fencepost {command} "
        + ("RECORD" if len(hosts) == 1 else needed)
    )
