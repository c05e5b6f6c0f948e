"""The page of machine keys is the schema's, and says something of every key."""

import json
import re

from fencepost import _core, machine_keys


def test_the_pages_in_the_documentation_are_up_to_date(pytestconfig):
    docs = pytestconfig.rootpath / "docs"
    pages = machine_keys.pages(json.loads(_core.machine_schema()))
    assert {path.name for path in docs.glob("machine-keys*.md")} == set(pages)
    for name, text in pages.items():
        assert (docs / name).read_text() == text, f"type: .venv/bin/{machine_keys.AGAIN}"


def test_every_table_is_on_one_page_and_on_the_printed_one():
    schema = json.loads(_core.machine_schema())
    headings = [
        line
        for text in machine_keys.pages(schema).values()
        for line in text.splitlines()
        if line.startswith("## ")
    ]
    whole = [line for line in machine_keys.page(schema).splitlines() if line.startswith("## ")]
    assert sorted(headings) == sorted(whole) and len(set(whole)) == len(whole)


def test_the_command_writes_the_pages(fencepost, tmp_path):
    fencepost("machine", "keys", "--docs", "new", check=True)
    pages = machine_keys.pages(json.loads(_core.machine_schema()))
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == pages


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
        has_range = " to " in value
        assert has_range or not re.search(r"\b(number|integer)\b", value), row
