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


def test_a_name_that_is_no_text_is_written_and_read_back(tmp_path):
    name = b"r\xff.fencepost".decode(errors="surrogateescape")
    documents.write_json(tmp_path / "a", {"name": name})
    assert json.loads((tmp_path / "a").read_text(encoding="utf-8")) == {"name": name}


def test_folders_on_the_way_are_made(tmp_path):
    documents.write_whole(tmp_path / "new" / "folder" / "file", "text")
    assert (tmp_path / "new" / "folder" / "file").read_text() == "text"


def test_a_link_stays_a_link_and_its_file_is_written(tmp_path, fencepost):
    (tmp_path / "there").mkdir()
    for name, target in (("old", "there/old.json"), ("new", "there/new.json"), ("far", "old")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "there" / "old.json").write_text("old")
    for name in ("old", "new", "far"):
        done = fencepost("machine", "list", "--json", name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).is_symlink()
        assert "machines" in json.loads((tmp_path / name).resolve().read_text())
    files = sorted(path.name for path in (tmp_path / "there").iterdir())
    assert files == ["new.json", "old.json"], "nothing else is left there"


@pytest.mark.parametrize("command", ["machine show pcs-table1 --json", "report r.json -o"])
def test_links_in_a_circle_and_to_absent_folders(command, tmp_path, fencepost, result):
    documents.write_json(tmp_path / "r.json", result)
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    done = fencepost(*command.split(), "a")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "a: cannot be written: Too many levels of symbolic links" in done.stderr
    (tmp_path / "c").symlink_to("absent/c")
    assert fencepost(*command.split(), "c").returncode == 0
    assert (tmp_path / "absent" / "c").is_file()


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
        ('{"runs": [], "provenance": []}', "`provenance` is an object"),
        ('{"runs": {}, "provenance": {}}', "and `runs` a list"),
        (
            '{"runs": [1], "provenance": {"format_version": 2}}',
            "runs[0] is 1; it has to be an object",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_result_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        documents.read_result(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (["report", "r.json"], "persist"),
        (["report", "r.json"], "scheme"),
        (["report", "r.json"], "record"),
        (["diff", "r.json", "r.json"], "scheme"),
        (["timeline", "r.json", "-o", "x"], "scheme"),
        (["timeline", "r.json", "-o", "x"], "record"),
    ],
)
def test_what_a_result_lacks_is_said_by_name(fencepost, tmp_path, result, command, missing):
    owner = result["provenance"] if missing == "record" else result["runs"][0]
    del owner[missing]
    documents.write_json(tmp_path / "r.json", result)
    done = fencepost(*command)
    said = f"fencepost: r.json: not a whole result: `{missing}` is missing\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_result_reads_back(tmp_path, result):
    documents.write_json(tmp_path / "r.json", result)
    assert documents.read_result(tmp_path / "r.json") == result
    assert json.loads((tmp_path / "r.json").read_text()) == result


@pytest.mark.parametrize("command", ["diff r r", "report r", "timeline r -o t"])
def test_a_record_in_the_place_of_a_result_is_told_what_to_do(
    command, tmp_path, fencepost, fft_record
):
    (tmp_path / "r").symlink_to(fft_record)
    done = fencepost(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "fencepost: r: this is a record, and a result is needed; replay it first: "
        "fencepost compare MACHINE r --json result.json\n"
    )
