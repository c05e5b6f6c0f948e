"""Documents are written whole or not at all, and read with a clear message."""

import json
from pathlib import Path

import pytest

from fencepost import documents
from fencepost._core import InputError


def test_equal_documents_are_equal_files(tmp_path):
    documents.write_json(tmp_path / "a", {"b": 1, "a": [0.1]})
    documents.write_json(tmp_path / "b", {"a": [0.1], "b": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_folders_on_the_way_are_made(tmp_path):
    documents.write_whole(tmp_path / "new" / "folder" / "file", "text")
    assert (tmp_path / "new" / "folder" / "file").read_text() == "text"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "file"
    target.write_text("old")

    def full(_handle, *_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fencepost.documents.os.fdopen", full)
    with pytest.raises(InputError, match="file: cannot be written: No space left"):
        documents.write_whole(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_interrupt_behind_the_renaming_stays_an_interrupt(tmp_path, monkeypatch):
    target = tmp_path / "file"
    rename = Path.replace

    def interrupted(self, other):
        rename(self, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        documents.write_whole(target, "whole")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["whole"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a result"),
        ("{", ":1:2: not a result"),
        ("[]", "no `provenance` and `runs`"),
        ('{"runs": []}', "no `provenance` and `runs`"),
        ('{"runs": [], "provenance": {"format_version": 99}}', "result format 99"),
    ],
)
def test_what_is_no_result_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        documents.read_result(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_a_result_reads_back(tmp_path, result):
    documents.write_json(tmp_path / "r.json", result)
    assert documents.read_result(tmp_path / "r.json") == result
    assert json.loads((tmp_path / "r.json").read_text()) == result
