"""A pool of several files: their images are one set, in a folder."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crash_sources import line_of
from fencepost._core import InputError
from fencepost.crash.pool_size import pool_of
from installed import Fencepost

PROGRAM = Path(__file__).parent / "crash_programs" / "two_files.c"

Explore = Callable[..., tuple[subprocess.CompletedProcess[str], dict[str, Any]]]


@pytest.fixture
def explore(fencepost: Fencepost, tmp_path: Path) -> Explore:
    """Explores a variant of the program."""
    build = ["gcc", "-O1", "-g", "-w", "-o", "two_files", str(PROGRAM)]
    subprocess.run(build, cwd=tmp_path, check=True)
    (tmp_path / "data").mkdir()

    def run(variant: str, *options: str, pm: str = "data/*.pool"):
        check = f"./two_files {{image}} {variant} check"
        own = ["--pm", f"file:{pm}", "--check", check, "--out", "found", *options]
        done = fencepost("crash", "pcs-table1", *own, "--", "./two_files", "data", variant)
        result = tmp_path / "found" / "crash.json"
        return done, json.loads(result.read_text()) if result.exists() else {}

    return run


def test_a_program_that_orders_its_files_survives(explore, tmp_path):
    done, result = explore("good")
    assert done.returncode == 0, done.stdout + done.stderr
    files = [tmp_path / "data" / name for name in ("count.pool", "values.pool")]
    assert result["pools"] == [{"path": str(file), "bytes": 8192} for file in files]
    assert result["counts"]["images"] > 6
    assert "what the check repairs was not cut: the pool has several files" in done.stdout
    assert not any(path.is_dir() for path in (tmp_path / "found").iterdir())


@pytest.mark.parametrize("options", [(), ("--time", "1h")])
def test_what_is_lost_in_one_file_and_durable_in_another_is_found(options, explore, tmp_path):
    done, result = explore("unflushed", *options)
    assert done.returncode == 1, done.stdout + done.stderr
    [violation] = result["violations"]
    assert violation["fault"] == "missing_flush"
    stores = [violation["lost"], violation["durable"]]
    assert [store["file"] for store in stores] == ["values.pool", "count.pool"]
    lines = [store["source"]["frames"][0]["line"] for store in stores]
    assert lines == [line_of(PROGRAM, "value"), line_of(PROGRAM, "count")]
    assert "8 bytes at 0x0 of count.pool, thread 0" in done.stdout
    assert "the line at 0x0 of values.pool" in done.stdout
    image = tmp_path / "found" / violation["image"]
    assert sorted(file.name for file in image.iterdir()) == ["count.pool", "values.pool"]
    assert {file.stat().st_size for file in image.iterdir()} == {8192}
    for _ in range(2):
        shown = subprocess.run(
            violation["show"], shell=True, cwd=tmp_path, check=False, capture_output=True, text=True
        )
        assert (shown.returncode, shown.stdout) == (1, "value 0 is missing\n")


def test_what_was_never_mapped_is_taken_from_each_file(explore, tmp_path):
    for name in ("count.pool", "values.pool"):
        (tmp_path / "data" / name).write_bytes(bytes(8192) + name.encode())
    source = PROGRAM.read_text().replace(
        "  if (ftruncate(file, BYTES) != 0)\n    return NULL;\n", ""
    )
    (tmp_path / "kept.c").write_text(source)
    subprocess.run(["gcc", "-w", "-o", "two_files", "kept.c"], cwd=tmp_path, check=True)
    (tmp_path / "check").write_text(
        "#!/bin/sh\nfor name in count values; do\n"
        '[ "$(tail -c +8193 $1/$name.pool)" = $name.pool ] || exit 1\ndone\n'
    )
    (tmp_path / "check").chmod(0o755)
    done, _ = explore("good", "--check", "./check {image}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_finished_exploration_of_several_files_begins_anew(explore, tmp_path):
    explore("unflushed")
    for file in (tmp_path / "data").iterdir():
        file.unlink()
    done, result = explore("unflushed")
    assert done.returncode == 1, done.stderr
    images = [path.name for path in (tmp_path / "found").glob("*.image")]
    assert images == [one["image"] for one in result["violations"]]


def test_any_file_that_is_left_stands_against_beginning_anew(explore, tmp_path):
    explore("unflushed")
    (tmp_path / "data" / "count.pool").unlink()
    done, _ = explore("unflushed")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / 'data' / 'values.pool'} still holds what the program left" in done.stderr


def test_sizes_and_selectors_of_several_files_are_refused(explore, tmp_path):
    done, _ = explore("good", "--pool-size", "8192")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--pool-size 8192: the pool has 2 files" in done.stderr
    done, _ = explore("good", "--pm", "file:data/other")
    assert (done.returncode, done.stdout) == (2, "")
    assert "one of several files has a pattern, such as --pm 'file:data/*.pool'" in done.stderr


def test_a_file_that_is_gone_has_the_size_of_what_was_mapped(explore, fencepost, tmp_path):
    explore("unflushed")
    record = tmp_path / "found" / "record.fencepost"
    gone = tmp_path / "data" / "values.pool"
    gone.unlink()
    check = ["--check", "./two_files {image} unflushed check", "--out", "again"]
    done = fencepost("crash", "pcs-table1", record, *check)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{gone}: it is gone; its images have the 8192 bytes that were mapped" in done.stderr
    result = json.loads((tmp_path / "again" / "crash.json").read_text())
    assert [pool["bytes"] for pool in result["pools"]] == [8192, 8192]


@pytest.mark.parametrize("pm", ["da*/*.pool", "./d[a]ta/*.pool"])
def test_folders_may_have_patterns(pm, explore, tmp_path):
    done, result = explore("good", pm=pm)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(result["pools"]) == 2
    done, _ = explore("good", pm=pm)
    for name in ("count", "values"):
        assert f"data/{name}.pool: it is there already" in done.stderr


@pytest.mark.parametrize("pm", [".", "..", "/", "data/", ""])
def test_a_folder_is_no_pool(pm, explore):
    done, _ = explore("good", pm=pm)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--pm file:{pm}: it is a folder; name the file" in done.stderr


def test_two_files_of_one_name_fit_into_no_folder():
    files = [{"path": f"/{folder}/x.pool", "mapped_pages": []} for folder in "ab"]
    with pytest.raises(InputError, match=r"several files with the name x\.pool"):
        pool_of({"files": files}, None)
