"""The page of machine keys is the schema's, and says something of every key."""

import json

from fencepost import _core, machine_keys


def test_the_page_in_the_documentation_is_up_to_date(pytestconfig):
    page = machine_keys.page(json.loads(_core.machine_schema()))
    written = (pytestconfig.rootpath / "docs" / "machine-keys.md").read_text()
    assert written == page, "type: .venv/bin/fencepost machine keys > docs/machine-keys.md"


def test_every_key_of_a_shipped_machine_is_on_the_page(pytestconfig):
    page = machine_keys.page(json.loads(_core.machine_schema()))
    text = (pytestconfig.rootpath / "machines" / "pcs-table1.toml").read_text()
    keys = {line.split("=")[0].strip() for line in text.splitlines() if "=" in line.split("#")[0]}
    assert len(keys) > 80
    assert [key for key in sorted(keys) if f"| `{key}` |" not in page] == []


def test_every_key_has_a_meaning_and_every_number_its_range():
    page = machine_keys.page(json.loads(_core.machine_schema()))
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for row in rows:
        _, _, value, meaning, _ = row.replace("\\|", "/").split("|")
        assert len(meaning.strip()) > 8, row
        assert "number" not in value or " to " in value, row
