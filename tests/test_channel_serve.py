"""Programs that are linked with the transport and started by themselves, and the server of their
segment: `fencepost channel serve`, which `mchannel_init` starts, or a user."""

import errno
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.channel import segment as segments
from fencepost.channel.segment import Segment
from installed import FENCEPOST, ROOT, Fencepost
from test_channel import CHANNEL, FLAGS, SOURCES, WEIGHTS, in_one_of

CAPACITY = 0.05e9
# Charged so much that each program is paused although others take most of the processor.
POOL = f"emulate_gb_per_s = {CAPACITY / 1e9}\ncharge_gb_per_s = 0.5\n"
AWAIT_SECONDS = 60


def until(condition: Callable[[], Any]) -> Any:
    """Waits until it holds; a loaded machine is given time."""
    end = time.monotonic() + AWAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def flags() -> list[str]:
    """What pkg-config says of the library."""
    said = (CHANNEL / "pkgconfig" / "fencepost-channel.pc").read_text()
    said = said.replace("${folder}", said.partition("\n")[0].removeprefix("folder="))
    return shlex.split(" ".join(re.findall("^(?:Cflags|Libs): (.*)$", said, re.M)))


def linked(folder: Path, source: Path) -> Path:
    program = folder / source.stem
    subprocess.run(["gcc", *FLAGS, source, "-o", program, *flags()], check=True)
    return program


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked(tmp_path_factory.mktemp("stream"), SOURCES / "stream.c")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked(tmp_path_factory.mktemp("alone"), SOURCES / "alone.c")


class Pool:
    """A configuration that no other test has, and what there is of it on this machine."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{folder.name}-{os.getpid()}.toml"
        self.path.write_text(POOL + WEIGHTS)
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *command: object, **options: Any) -> subprocess.Popen[str]:
        piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started: subprocess.Popen[str] = subprocess.Popen(
            list(map(str, command)), **piped | options
        )
        self.started.append(started)
        return started

    def serve(self, *options: object) -> tuple[subprocess.Popen[str], dict[str, str]]:
        """A server in the foreground, and what it prints for programs."""
        server = self.start(FENCEPOST, "channel", "serve", "--config", self.path, *options)
        assert server.stdout is not None
        words = shlex.split(server.stdout.readline())
        return server, {name: value for name, _, value in (word.partition("=") for word in words)}

    def joined(self, alone: Path, *where: object, **options: Any) -> subprocess.Popen[str]:
        """A program that has joined."""
        program = self.start(alone, *where or [self.path], **options)
        assert program.stdout is not None
        assert program.stdout.readline() == "0\n"
        return program

    def segments(self) -> list[Segment]:
        found = segments.of_this_user()
        return [one for one in found if one.name.startswith(f"{self.path.stem}-")]

    def state(self) -> dict[str, Any]:
        [segment] = self.segments()
        state = segment.state()
        assert state is not None
        return state

    def paused(self) -> float:
        """All its threads together, in seconds."""
        return sum(thread["paused"] for thread in self.state()["threads"])

    def servers(self) -> list[int]:
        return [pid for pid, command in _processes() if "serve" in command and self._is_in(command)]

    def keepers(self) -> list[int]:
        return [pid for pid, command in _processes() if "run" in command and self._is_in(command)]

    def is_paced(self) -> bool:
        """Whether each of its two programs has a thread of its own that has been paused."""
        threads = self.state()["threads"]
        paused = {thread["process"] for thread in threads if thread["paused"] > 0}
        return len(paused) == len([one for one in self.started if one.poll() is None])

    def until_nothing_is_left(self) -> None:
        until(lambda: not (self.segments() or self.servers() or self.keepers()))

    def _is_in(self, command: list[str]) -> bool:
        return any(self.path.stem in word for word in command)


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Those that run, with their command lines; a zombie has none."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield (
                int(folder.name),
                (folder / "cmdline").read_text(errors="surrogateescape").split("\0"),
            )
        except OSError:  # it has just ended
            continue


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    made = Pool(tmp_path)
    try:
        yield made
    finally:
        for process in made.started:
            process.kill()
            process.communicate()
        made.until_nothing_is_left()


def has_let_go(server: int) -> bool:
    """Whether it knows by now that its program has joined."""
    return Path(f"/proc/{server}/fd/1").readlink() == Path("/dev/null")


def end(program: subprocess.Popen[str]) -> None:
    """Lets it end by itself."""
    program.communicate()
    assert program.returncode == 0


def test_two_programs_that_nobody_launched_share_a_pool_by_weight(pool: Pool, stream: Path) -> None:
    outside = os.environ | {"FENCEPOST_CHANNEL_CONFIG": str(pool.path)}

    def check() -> None:
        running = [
            pool.start(stream, "1.5", "0.7", f"{name}:1", env=outside)
            for name in ("gold", "silver")
        ]
        lines = [program.communicate()[0].split() for program in running]
        gold, silver = (int(moved) / float(seconds) for _, moved, seconds in lines)
        assert gold / silver == pytest.approx(3, rel=0.25)
        assert gold + silver < CAPACITY * 1.1

    in_one_of(5, check)


def test_the_program_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "channel.md").read_text().partition("## Without the launcher")[2]
    source, configuration, commands, shown, _, served = re.findall(
        r"^```\w*\n(.*?)^```", page, re.M | re.S
    )[:6]
    (tmp_path / "copy.c").write_text(source)
    (tmp_path / "pool.toml").write_text(configuration)
    script = commands.replace("build/channel", str(CHANNEL)).replace(
        "$(pkg-config --cflags --libs fencepost-channel)", shlex.join(flags())
    )
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == shown
    path = tmp_path / "pool.toml"
    command = [FENCEPOST, "channel", "serve", "--config", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        server.terminate()
    user = f"-{os.geteuid()}-"
    assert line == served.replace("-0-", user, 1)


def test_programs_of_one_configuration_have_one_segment_and_one_server(
    pool: Pool, alone: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(pool.path)
    outside = os.environ | {"FENCEPOST_CHANNEL_CONFIG": str(link)}
    # Both at once: each looks for a segment before the other has made it.
    programs = [pool.start(alone, pool.path), pool.start(alone, env=outside)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "0\n"
    until(pool.is_paced)
    threads = pool.state()["threads"]
    assert {one["process"] for one in threads} == {program.pid for program in programs}
    named = [pid for pid, command in _processes() if "serve" in command and str(link) in command]
    until(lambda: len({*pool.servers(), *filter(_exists, named)}) == 1)
    for program in programs:
        end(program)
    pool.until_nothing_is_left()


def _exists(process: int) -> bool:
    return Path(f"/proc/{process}/exe").exists()


def test_a_program_joins_the_segment_of_the_launcher_with_its_configuration(
    pool: Pool, alone: Path
) -> None:
    launcher = pool.start(
        *(FENCEPOST, "channel", "run", "-q", "--config", pool.path, "--", alone, pool.path)
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "0\n"
    assert pool.servers() == [], "a launched program needs none"
    pool.joined(alone)
    until(lambda: len({one["process"] for one in pool.state()["threads"]}) == 2)


def refused(alone: Path, *where: object, **environment: str) -> tuple[int, str]:
    """The error that joining ends with, and what stands on standard error."""
    done = subprocess.run(
        [alone, *map(str, where)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=AWAIT_SECONDS,
    )
    assert done.returncode == 1
    return -int(done.stdout), done.stderr


def test_a_wrong_configuration_is_told_as_the_launcher_tells_it(
    fencepost: Fencepost, pool: Pool, alone: Path
) -> None:
    pool.path.write_text('law = "fair"\nchannels = 3\n')
    launched = fencepost("channel", "run", "--config", pool.path, "--", "true")
    assert launched.returncode == 2
    assert launched.stderr.count("\n") == 2
    assert refused(alone, pool.path) == (errno.EINVAL, launched.stderr)
    missing = pool.path.with_name("missing.toml")
    code, told = refused(alone, FENCEPOST_CHANNEL_CONFIG=str(missing))
    assert (code, told.startswith(f"fencepost: {missing}: ")) == (errno.EINVAL, True)


def test_a_machine_without_devices_is_told_where_nothing_is_configured(
    fencepost: Fencepost, alone: Path
) -> None:
    launched = fencepost("channel", "run", "--", "true")
    assert "no source of bandwidth" in launched.stderr
    assert refused(alone) == (errno.EINVAL, launched.stderr)


def test_what_is_no_segment_is_refused_without_a_server(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(bytes(4096))
    assert refused(alone, tmp_path / "segment") == (errno.EPROTO, "")
    assert refused(alone, tmp_path / "missing") == (errno.EACCES, "")
    path = str(tmp_path / "missing")
    assert refused(alone, FENCEPOST_CHANNEL_SEGMENT=path) == (errno.EACCES, "")


def test_a_command_that_is_missing_or_no_program_is_an_error_of_its_own(
    alone: Path, tmp_path: Path
) -> None:
    missing, no_program = tmp_path / "missing", tmp_path / "no_program"
    no_program.write_bytes(b"\0")
    no_program.chmod(0o755)
    for command in (missing, no_program):
        assert refused(alone, FENCEPOST_COMMAND=str(command)) == (errno.ENOENT, "")


def test_the_command_is_found_in_path_where_the_library_lies_alone(
    pool: Pool, alone: Path, tmp_path: Path
) -> None:
    library = tmp_path / "libfencepost_channel.so"
    library.write_bytes((CHANNEL / library.name).read_bytes())
    outside = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": str(library)}
    assert refused(alone, pool.path, PATH="/nowhere", **outside) == (errno.ENOENT, "")
    named = f"{FENCEPOST.parent}:{os.environ['PATH']}"
    pool.joined(alone, env=os.environ | outside | {"PATH": named})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a program of another user")
def test_a_set_uid_program_starts_nothing(pool: Pool, alone: Path, tmp_path: Path) -> None:
    privileged = tmp_path / "privileged"
    privileged.write_bytes(alone.read_bytes())
    os.chown(privileged, 65534, -1)
    privileged.chmod(0o4755)
    assert refused(privileged, pool.path) == (errno.EPERM, "")


@pytest.mark.slow
def test_a_command_that_does_not_answer_is_waited_for_a_while(alone: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 32\n")
    silent.chmod(0o755)
    assert refused(alone, FENCEPOST_COMMAND=str(silent)) == (errno.ETIMEDOUT, "")


def test_a_server_has_nothing_of_its_program_but_its_standard_error(
    pool: Pool, alone: Path
) -> None:
    program = pool.joined(alone, start_new_session=True)
    [server] = until(pool.servers)
    folder = Path(f"/proc/{server}")
    until(lambda: has_let_go(server))
    opened = {str(descriptor.readlink()) for descriptor in (folder / "fd").iterdir()}
    assert opened == {"/dev/null", str(pool.segments()[0].path)}
    status = (folder / "status").read_text()
    assert re.search(r"^SigBlk:\t0+$", status, re.M)
    assert os.getsid(server) not in (os.getsid(0), program.pid)
    os.kill(server, signal.SIGTERM)
    pool.until_nothing_is_left()
    end(program)


def test_a_program_with_closed_streams_joins(pool: Pool, alone: Path) -> None:
    closed = ["sh", "-c", 'exec "$0" "$1" >&- 2>&- <&-']
    assert pool.start(*closed, alone, pool.path).wait(AWAIT_SECONDS) == 0


def test_a_program_is_in_the_segment_before_it_has_a_channel(pool: Pool, tmp_path: Path) -> None:
    source = tmp_path / "idle.c"
    source.write_text(
        "#include <mchannel.h>\n#include <stdio.h>\n"
        "int main(int count, char **arguments) {\n"
        "  int joined = count < 2 ? 1 : mchannel_init(arguments[1]);\n"
        '  printf("%d\\n", joined);\n  fflush(stdout);\n  getchar();\n'
        "  return mchannel_open(NULL);\n}\n"
    )
    program = pool.joined(linked(tmp_path, source))
    [server] = until(pool.servers)
    until(lambda: has_let_go(server))
    # Longer than keepers leave alone what nobody uses.
    time.sleep(2)
    state = pool.state()
    assert (len(state["keepers"]), state["threads"], state["is_stopped"]) == (2, [], False)
    end(program)
    pool.until_nothing_is_left()


def test_a_killed_program_leaves_nothing(pool: Pool, alone: Path) -> None:
    program = pool.joined(alone)
    until(pool.is_paced)
    program.kill()
    pool.until_nothing_is_left()


@pytest.mark.few(2)
@pytest.mark.parametrize("delay", [0, 0.05, 0.2, 0.35, 0.5, 0.7])
def test_a_program_that_is_killed_while_it_joins_leaves_nothing(
    pool: Pool, alone: Path, delay: float
) -> None:
    program = pool.start(alone, pool.path)
    time.sleep(delay)
    program.kill()
    program.wait()
    # What has been started by then comes to its end, too.
    time.sleep(1)
    pool.until_nothing_is_left()


def test_killed_keepers_are_replaced_by_the_server(pool: Pool, alone: Path) -> None:
    program = pool.joined(alone)
    until(lambda: len(pool.keepers()) == 2)
    before = pool.keepers()
    for keeper in before:
        os.kill(keeper, signal.SIGSTOP)
    for keeper in before:
        os.kill(keeper, signal.SIGKILL)
    until(lambda: len(set(pool.state()["keepers"]) - set(before)) == 2)
    end(program)
    pool.until_nothing_is_left()


def test_a_killed_server_changes_nothing_for_its_programs(pool: Pool, alone: Path) -> None:
    programs = [pool.joined(alone)]
    [server] = until(pool.servers)
    os.kill(server, signal.SIGKILL)
    until(lambda: not pool.servers())
    before = pool.paused()
    until(lambda: pool.paused() > before + 0.2)
    # The next one is served, in the same segment.
    programs.append(pool.joined(alone))
    until(pool.servers)
    until(pool.is_paced)
    for program in programs:
        end(program)
    pool.until_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_server_leaves_nothing_and_its_programs_run_on(
    pool: Pool, alone: Path, number: signal.Signals
) -> None:
    server, variables = pool.serve()
    path = variables["FENCEPOST_CHANNEL_SEGMENT"]
    assert [str(one.path) for one in pool.segments()] == [path]
    # One joins by the segment, the other by the configuration.
    programs = [pool.joined(alone, env=os.environ | variables), pool.joined(alone)]
    until(lambda: len(pool.state()["threads"]) >= 2)
    until(lambda: len(pool.servers()) == 1)
    server.send_signal(number)
    assert server.wait(AWAIT_SECONDS) == 130
    assert (pool.segments(), pool.servers(), pool.keepers()) == ([], [], [])
    for program in programs:
        end(program)


def test_an_interrupted_server_leaves_the_segment_to_a_launcher(pool: Pool, alone: Path) -> None:
    server, _ = pool.serve()
    launcher = pool.start(FENCEPOST, "channel", "run", "-q", "--config", pool.path, "--", alone)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "0\n"
    server.send_signal(signal.SIGTERM)
    server.wait(AWAIT_SECONDS)
    assert pool.state()["is_stopped"] is False
    end(launcher)


@pytest.mark.parametrize("delay", [0, 0.02, 0.05, 0.1, 0.2])
def test_a_server_that_is_interrupted_while_it_starts_leaves_nothing(
    pool: Pool, delay: float
) -> None:
    server = pool.start(FENCEPOST, "channel", "serve", "--config", pool.path)
    until(pool.segments)
    time.sleep(delay)
    server.send_signal(signal.SIGINT)
    assert server.wait(AWAIT_SECONDS) == 130
    pool.until_nothing_is_left()


def test_a_server_ends_when_its_segment_is_stopped(fencepost: Fencepost, pool: Pool) -> None:
    server, _ = pool.serve()
    fencepost("channel", "stop", pool.segments()[0].name, check=True)
    assert server.wait(AWAIT_SECONDS) == 0
    assert pool.segments() == []


def test_a_server_whose_reader_goes_away_ends_after_the_last_program(
    pool: Pool, alone: Path
) -> None:
    server, variables = pool.serve()
    program = pool.joined(alone, env=os.environ | variables)
    assert server.stdout is not None
    server.stdout.close()
    time.sleep(2)
    assert server.poll() is None
    end(program)
    assert server.wait(AWAIT_SECONDS) == 0
    pool.until_nothing_is_left()


def test_a_segment_with_spaces_in_its_path_is_joined(
    pool: Pool, alone: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a b'c"
    folder.mkdir()
    server, variables = pool.serve("--segment", folder / "segment")
    assert variables["FENCEPOST_CHANNEL_SEGMENT"] == str(folder / "segment")
    pool.joined(alone, folder / "segment")
    server.send_signal(signal.SIGTERM)
    server.wait(AWAIT_SECONDS)
    assert not (folder / "segment").exists()
