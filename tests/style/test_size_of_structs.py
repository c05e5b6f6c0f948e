"""The structs of a host and a core stay small: fields that belong together form a struct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SIMULATOR = Path(__file__).parents[2] / "crates" / "sim" / "src"
FIELDS_MAX = 20


def fields(file: str, name: str) -> list[str]:
    """The names of the fields of a Rust struct."""
    found = re.search(rf"struct {name} \{{\n(.*?)\n\}}", (SIMULATOR / file).read_text(), re.DOTALL)
    assert found, f"there is no struct {name} in {file}"
    return re.findall(r"^    (?:pub(?:\([a-z]+\))? )?([a-z_0-9]+): ", found[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "name", "known"),
    [
        ("host/mod.rs", "Host", "socket"),
        ("host/process.rs", "Process", "threads"),
        ("host/socket.rs", "Socket", "cores"),
        ("core/pipeline.rs", "Core", "rob"),
        ("system/mod.rs", "System", "components"),
    ],
)
def test_no_struct_of_the_host_has_too_many_fields(file: str, name: str, known: str) -> None:
    found = fields(file, name)
    assert known in found, "the pattern finds the fields"
    assert len(found) <= FIELDS_MAX, f"{name} has {len(found)} fields: {', '.join(found)}"
