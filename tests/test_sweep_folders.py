"""What a sweep's folder keeps: rows and packs, attempts and what follows from them, claims."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from fencepost._core import InputError
from fencepost.sweeps import debris, ledger, rows
from fencepost.sweeps.claims import AGED_SECONDS, Claims
from fencepost.sweeps.folder import Folder
from fencepost.sweeps.ledger import DIED, DONE, FAULT, MEMORY, RETURNED, TIME, End, History, Ledger
from fencepost.sweeps.plan import Limits
from fencepost.sweeps.rows import OF_A_PACK, Damaged, Differs, Results, Writer
from fencepost.sweeps.who import Who, here


def row(number: int, **more: Any) -> rows.Row:
    return {"point": number, "id": "x", "reliable": True, "figures": {"a": number / 3}, **more}


def written(folder: Path, numbers: range) -> Results:
    results = Results(folder)
    writer = Writer(results, "me")
    for number in numbers:
        writer.write(row(number))
    writer.commit()
    return results


def test_a_row_is_what_was_written(tmp_path: Path) -> None:
    results = written(tmp_path, range(3))
    assert results.read(2) == row(2)
    assert list(results.done()) == [0, 1, 2]
    assert list(results.all()) == [row(0), row(1), row(2)]
    assert results.read(3) is None


@pytest.mark.parametrize("cut", [1, 40, 100])
def test_a_row_that_is_cut_off_is_known(tmp_path: Path, cut: int) -> None:
    results = written(tmp_path, range(1))
    content = results.file(0).read_bytes()
    results.file(0).write_bytes(content[:-cut])
    with pytest.raises(Damaged):
        list(rows.decoded(content[:-cut]))
    assert results.read(0) is None
    with pytest.raises(InputError, match=r"0\.json: .*remove it"):
        list(results.all())


def test_a_flipped_bit_is_known(tmp_path: Path) -> None:
    content = rows.encoded(row(0)).replace(b"true", b"trux")
    with pytest.raises(Damaged, match="checksum"):
        list(rows.decoded(content))


def test_a_row_is_refused_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at most 4,096"):
        rows.encoded(row(0, because="x" * 5000))


def test_a_thousand_rows_become_a_pack(tmp_path: Path) -> None:
    results = written(tmp_path, range(OF_A_PACK + 5))
    assert (tmp_path / "00.pack").exists()
    assert not list((tmp_path / "00").glob("*"))
    assert list(results.done()) == list(range(OF_A_PACK + 5))
    assert results.read(17) == row(17)
    assert [one["point"] for one in results.all()] == list(range(OF_A_PACK + 5))


def test_a_row_that_is_damaged_goes_before_it_is_packed(tmp_path: Path) -> None:
    results = written(tmp_path, range(OF_A_PACK - 1))
    results.file(999).write_bytes(b"12 ab\n")
    assert not results.pack(0)
    assert not (tmp_path / "00.pack").exists()
    assert list(results.done()) == list(range(OF_A_PACK - 1))


def test_a_pack_that_is_damaged_is_told_and_keeps_what_it_replaces(tmp_path: Path) -> None:
    results = written(tmp_path, range(OF_A_PACK - 1))
    results.file(999).write_bytes(rows.encoded(row(999)))
    (tmp_path / "00.pack").write_bytes(b"12 ab\n")
    with pytest.raises(InputError, match=r"00\.pack: .*remove it"):
        results.pack(0)
    assert len(list((tmp_path / "00").glob("*.json"))) == OF_A_PACK


def test_a_row_under_another_points_name_is_known(tmp_path: Path) -> None:
    results = written(tmp_path, range(2))
    results.file(0).write_bytes(results.file(1).read_bytes())
    assert results.read(0) is None
    with pytest.raises(InputError, match=r"0\.json: it has not the rows"):
        list(results.all())


def test_an_empty_file_is_no_row(tmp_path: Path) -> None:
    results = written(tmp_path, range(1))
    results.file(0).write_bytes(b"")
    assert results.read(0) is None
    with pytest.raises(InputError, match="it is empty"):
        list(results.all())


def test_a_damaged_row_is_replaced_by_a_whole_one(tmp_path: Path) -> None:
    results = written(tmp_path, range(1))
    results.file(0).write_bytes(b"1")
    assert written(tmp_path, range(1)).read(0) == row(0)


def test_a_result_takes_the_place_of_a_failure_and_stays(tmp_path: Path) -> None:
    results, failed = Results(tmp_path), {"point": 0, "id": "x", "failed": "time"}
    for one in (failed, row(0), failed):
        writer = Writer(results, "me")
        writer.write(one)
        writer.commit()
    assert results.read(0) == row(0)


def test_rows_of_plans_with_other_figures_are_compared_in_those_of_both(tmp_path: Path) -> None:
    results = written(tmp_path, range(1))
    writer = Writer(results, "me")
    writer.write(row(0) | {"figures": {"a": 0.0, "b": 1}})
    with pytest.raises(Differs):
        writer.write(row(0) | {"figures": {"a": 1.0, "b": 1}})


def test_without_links_a_difference_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    results = Results(tmp_path)
    one, other = Writer(results, "one"), Writer(results, "other")
    one.write(row(0))
    other.write(row(0, reliable=False))
    one.commit()
    with pytest.raises(Differs):
        other.commit()
    assert [path.name for path in (tmp_path / "00").iterdir()] == ["0.json"]


def test_a_row_leaves_its_pack_to_be_made_again(tmp_path: Path) -> None:
    results = written(tmp_path, range(OF_A_PACK))
    results.remove(17)
    assert list(results.done()) == [n for n in range(OF_A_PACK) if n != 17]
    writer = Writer(results, "me")
    writer.write(row(17))
    writer.commit()
    assert (tmp_path / "00.pack").exists()
    assert results.read(17) == row(17)


def test_the_second_to_finish_a_point_compares(tmp_path: Path) -> None:
    results = written(tmp_path, range(1))
    again = Writer(results, "other")
    again.write(row(0))
    again.commit()
    with pytest.raises(Differs, match="point 0"):
        again.write(row(0, reliable=False))


def test_two_that_finish_at_the_same_time_compare_too(tmp_path: Path) -> None:
    results = Results(tmp_path)
    one, other = Writer(results, "one"), Writer(results, "other")
    one.write(row(0))
    other.write(row(0, reliable=False))
    one.commit()
    with pytest.raises(Differs):
        other.commit()


def test_a_full_disk_is_an_error_of_the_file_system(tmp_path: Path) -> None:
    part = tmp_path / "00"
    part.mkdir()
    (part / ".0.json.me").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        Writer(Results(tmp_path), "me").write(row(0))
    assert not list(part.iterdir())


USUAL = Limits(10.0, 100)


@pytest.mark.parametrize(
    "ends, expected",
    [
        ([], Limits(10.0, 100)),
        ([End(RETURNED), End(RETURNED), End(RETURNED)], Limits(10.0, 100)),
        ([End(DIED)], Limits(10.0, 100)),
        ([End(TIME, 10, Limits(10.0, 100))], Limits(20.0, 100)),
        ([End(MEMORY, 1, Limits(10.0, 100), 99)], Limits(10.0, 200)),
    ],
)
def test_a_point_that_died_once_is_tried_again(ends: list[End], expected: Limits) -> None:
    verdict = History(ends).verdict(USUAL)
    assert (verdict.failed, verdict.limits) == (None, expected)


@pytest.mark.parametrize(
    "ends, sentence",
    [
        ([End(DIED), End(DIED, 1, text="signal SIGKILL")], "died at once (signal SIGKILL)"),
        ([End(TIME, 10, USUAL), End(TIME, 20.4, Limits(20.0))], "after 20 s of limit 20"),
        ([End(MEMORY, 1, USUAL, 99), End(MEMORY, 1, USUAL, 200)], "needed at least 200 MB"),
        ([End(DIED), End(TIME, 10, USUAL)], "after 10 s of limit 10"),
        ([End(TIME, 1), End(TIME, 0.66, Limits(0.6))], "after 0.7 s of limit 0.6"),
        ([End(FAULT, text="a fault of the simulator: x")], "a fault of the simulator: x"),
    ],
)
def test_a_point_has_failed_after_two_deaths_or_a_fault(ends: list[End], sentence: str) -> None:
    failed = History(ends).verdict(USUAL).failed
    assert failed is not None
    assert failed.sentence == sentence


def test_the_ledger_has_every_start_and_how_it_ended(tmp_path: Path) -> None:
    mine = Ledger(tmp_path, "7_3")
    for number, how in ((0, DONE), (1, DIED), (1, RETURNED), (2, TIME)):
        mine.start(number, USUAL)
        mine.end(number, End(how, 1.5, USUAL))
    mine.start(3, USUAL)  # and then its process was killed
    mine.close()
    assert ledger.starts(tmp_path) == 5
    found = ledger.histories(tmp_path)
    assert {number: [end.how for end in of.ends] for number, of in found.items()} == {
        1: [DIED],
        2: [TIME],
        3: [],
    }
    assert {number: of.lost for number, of in found.items()} == {1: 0, 2: 0, 3: 1}


def test_a_point_that_takes_its_task_along_is_not_started_for_ever() -> None:
    assert not History([], 1).verdict(USUAL).is_alone
    assert History([], ledger.LOST_ALONE).verdict(USUAL).is_alone
    failed = History([], ledger.LOST_MAX).verdict(USUAL).failed
    assert failed is not None
    assert failed.sentence == "died at once (5 tasks with it)"


def test_what_was_forgiven_does_not_count_any_more(tmp_path: Path) -> None:
    mine = Ledger(tmp_path)
    for _ in range(2):
        mine.start(1, USUAL)
        mine.end(1, End(DIED, 1.5, USUAL))
    mine.forgive(1, ledger.histories(tmp_path)[1])
    assert not ledger.histories(tmp_path)
    mine.start(1, USUAL)
    mine.end(1, End(DIED, 1.5, USUAL))
    assert len(ledger.histories(tmp_path)[1].ends) == 1
    assert ledger.starts(tmp_path) == 3


def test_a_line_that_a_dead_node_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"start": 1}\n5\n{"end": 1, "ho')
    assert list(ledger.lines(tmp_path)) == [{"start": 1}]


def test_a_claim_keeps_others_away(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert one.take(3)
    assert not other.take(3)
    one.release(3)
    assert other.take(3)
    other.release_all()
    assert not list(tmp_path.iterdir())


def claimed(folder: Path, who: Who) -> None:
    (folder / "3").write_text(json.dumps(who.document))


def test_a_claim_of_a_process_that_is_gone_is_free(tmp_path: Path) -> None:
    mine = here()
    claimed(tmp_path, Who(mine.host, mine.boot, mine.namespace, mine.pid, "1"))
    assert Claims(tmp_path).take(3)


@pytest.mark.parametrize("other", ["host", "boot", "namespace"])
def test_a_process_number_says_nothing_about_another_machine(tmp_path: Path, other: str) -> None:
    mine = here().document | {"pid": 1 << 22, other: "elsewhere"}
    claimed(tmp_path, Who(**mine))
    assert not Claims(tmp_path).take(3)


def test_a_claim_that_nobody_touches_ages(tmp_path: Path) -> None:
    claimed(tmp_path, Who(**(here().document | {"host": "elsewhere"})))
    old = time.time() - AGED_SECONDS - 1
    os.utime(tmp_path / "3", (old, old))
    assert Claims(tmp_path).take(3)


def test_claims_are_seen_in_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    claimed(tmp_path, here())
    tmp_path.chmod(0o555)
    assert list(Claims(tmp_path).running()) == [(3, here())]


def test_age_is_by_the_clock_of_the_file_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(tmp_path, Who(**(here().document | {"host": "elsewhere"})))
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert not Claims(tmp_path).take(3)


def test_what_killed_processes_left_goes_once_nobody_can_need_it(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    mine = here()
    gone = Who(mine.host, mine.boot, mine.namespace, mine.pid, "1")
    elsewhere = Who("node7.lab", "0123456789", mine.namespace, 1, "1")
    young = [f".points.{mine.name}", f".0.json.{elsewhere.name}", ".plan.toml.ab_c0123"]
    users = [".gitignore", ".project.settings"]
    aged = [f".1.json.{elsewhere.name}", ".sweep.json.ab_c0123"]
    for name in (f".points.{gone.name}", *young, *users, *aged):
        (tmp_path / name).touch()
    old = time.time() - debris.AGED_SECONDS - 60
    for name in (*users, *aged):
        os.utime(tmp_path / name, (old, old))
    debris.sweep(Folder(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"claims", *young, *users}
