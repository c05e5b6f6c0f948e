"""What the tests share: the command as a user types it, and a result that nobody simulated."""

import copy
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import documents_written
from few import mark_all_but_few
from forked_commands import Forked
from installed import FENCEPOST, FFT, ROOT, Fencepost
from order import longest_first

Result = dict[str, Any]

CLOCK_TICK_NS = 10_000_000  # times of files may be as coarse

# Whoever runs the tests in the background, or by `nohup`, may have had these ignored, and what the
# tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The line editor that pytest loads sets them, and commands would break their lines by them.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

_FIXTURE = json.loads((ROOT / "tests" / "fixtures" / "result.json").read_text())


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = "K/N: every N-th of the tests that are chosen otherwise, from the K-th (0 ..) on"
    parser.addoption("--part", type=_part, default=(0, 1), metavar="K/N", help=help_)


def _part(text: str) -> tuple[int, int]:
    k, n = map(int, text.split("/"))
    if not 0 <= k < n:
        raise ValueError(text)
    return k, n


# Marks come before the options that choose by them, parts behind.
@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    mark_all_but_few(items)
    items[:] = longest_first(items)
    yield
    k, n = config.getoption("--part")
    left_out = [item for i, item in enumerate(items) if i % n != k]
    config.hook.pytest_deselected(items=left_out)
    items[:] = items[k::n]


@pytest.fixture
def result() -> Result:
    """A made-up result document (docs/results.md) of three schemes; its figures mean nothing."""
    return copy.deepcopy(_FIXTURE)


@pytest.fixture(scope="session")
def forked() -> Iterator[Forked]:
    process = Forked()
    yield process
    process.close()


@pytest.fixture
def fencepost(tmp_path: Path, forked: Forked) -> Fencepost:
    """Runs the command in an empty folder of its own, and checks the documents it writes."""

    def run(
        *arguments: object, check: bool = False, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        command = [str(FENCEPOST), *map(str, arguments)]
        folder = Path(options.pop("cwd", tmp_path))
        timeout = options.pop("timeout", 300)
        started_ns = time.time_ns() - CLOCK_TICK_NS
        if not options and forked.is_as_here:
            done = forked.run(command[1:], folder, timeout)
        else:
            defaults = {"cwd": folder, "capture_output": True, "text": True, "timeout": timeout}
            done = subprocess.run(command, check=False, **defaults | options)
        if check:
            done.check_returncode()
        if done.returncode in (0, 1):  # a refusal writes none
            documents_written.check(command[1:], folder, started_ns)
        return done

    return run


@pytest.fixture
def fencepost_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Fencepost:
    """The same in this process, for what is refused before anything is started: importing the
    command takes ten times as long as refusing."""
    from fencepost import cli

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        command = list(map(str, arguments))
        # The command would leave these as a recorded program wants them.
        handlers = {one: signal.getsignal(one) for one in (signal.SIGPIPE, signal.SIGXFSZ)}
        try:
            code = cli.main(command)
        finally:
            for one, handler in handlers.items():
                signal.signal(one, handler)
        return subprocess.CompletedProcess(command, code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def fft_record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small FFT on two threads, recorded once."""
    record = tmp_path_factory.mktemp("records") / "fft.fencepost"
    command = [FENCEPOST, "record", "-o", record, "--", *FFT]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return record
