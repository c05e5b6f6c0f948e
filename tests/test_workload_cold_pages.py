"""Pages that a device compresses into a pool: each is found again after a crash, and the check
finds damage wherever it is. What a power cut can leave is explored in test_crash.py."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from installed import ROOT, WORKLOADS

PROGRAM = WORKLOADS / "cold_pages"
PAGES = ROOT / "workloads" / "cholesky.c"
PAGE, LINE = 4096, 64
FRAMES, COUNT = 3, 6  # as the program has them where nothing is said
EXIT_CRASHED = 3

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="liblz4-dev is not installed (make setup says how)"
)


def keep(*arguments: object, pages: Path = PAGES) -> tuple[int, dict[str, str], str]:
    command = [str(part) for part in (PROGRAM, "--pages", pages, *arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    return done.returncode, dict(re.findall(r"(\w+)=(\S+)", done.stdout)), done.stdout + done.stderr


def test_pages_come_and_go_and_those_in_the_pool_are_compressed() -> None:
    code, said, output = keep("-a", 60)
    assert code == 0, output
    assert (said["accesses"], said["in_frames"], said["in_pool"]) == ("60", "3", "3")
    assert 0 < int(said["pool_bytes"]) < 3 * PAGE


def test_pages_that_do_not_compress_are_kept_as_they_are(tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"".join(hash_of(number) for number in range(COUNT * PAGE // 32)))
    code, said, output = keep("-a", 60, pages=noise)
    assert (code, said["pool_bytes"]) == (0, str(3 * PAGE)), output


def hash_of(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def test_it_goes_on_from_every_point_at_which_something_is_durable(tmp_path: Path) -> None:
    right = keep()[1]
    for point in range(1, 1000):
        pool = tmp_path / f"pool{point}"
        code, _, output = keep("--pool", pool, "--crash-at", point)
        if code == 0:
            assert point > 60, "there are many"
            return
        assert code == EXIT_CRASHED, output
        before = pool.read_bytes()
        code, found, output = keep("--pool", pool, "--check")
        assert code == 0, output
        assert pool.read_bytes() == before, "a check changes nothing"
        code, said, output = keep("--pool", pool)
        assert code == 0 and said | {"resumed": "0"} == right, output
        assert said["resumed"] == found["accesses"]
    pytest.fail("it does not end")


def test_the_check_finds_damage_in_every_frame_and_in_the_pool(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    assert keep("--pool", pool)[0] == 0
    whole = pool.read_bytes()
    frames = len(whole) - (FRAMES + COUNT) * PAGE
    for frame in range(FRAMES):
        pool.write_bytes(flipped(whole, frames + frame * PAGE + PAGE // 2))
        code, _, output = keep("--pool", pool, "--check")
        assert code == 1 and "WRONG: a frame does not hold its page" in output
    pool.write_bytes(whole[: frames + FRAMES * PAGE] + bytes(COUNT * PAGE))
    code, _, output = keep("--pool", pool, "--check")
    assert code == 1 and "WRONG: an entry" in output
    for page in range(COUNT):
        place = LINE + page * LINE
        pool.write_bytes(whole[:place] + bytes(8) + whole[place + 8 :])
        code, _, output = keep("--pool", pool, "--check")
        assert code == 1 and "WRONG: a page is in neither place" in output
    shared = whole[LINE : LINE + 8]
    for page in range(1, COUNT):
        place = LINE + page * LINE
        pool.write_bytes(whole[:place] + shared + whole[place + 8 :])
        assert keep("--pool", pool, "--check")[0] == 1


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--check",), "--check needs --pool"),
        (("-n", "1000"), "has fewer than 1000 whole pages"),
        (("-m", "0"), "-m takes a number from 1 to 65536, not '0'"),
    ],
)
def test_wrong_options_have_their_message(arguments: tuple[str, ...], said: str) -> None:
    code, _, output = keep(*arguments)
    assert code == 2 and said in output


def test_pages_of_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    code, _, output = keep(pages=tmp_path / "none")
    assert code == 2 and "cannot open the file of pages" in output
