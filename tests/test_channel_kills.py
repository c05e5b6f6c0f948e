"""Any participant of a segment may be killed at any instant."""

import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fencepost.channel.segment import Segment, path_of
from installed import FENCEPOST, ROOT
from test_channel import build, in_one_of

LIBRARY = ROOT / "build" / "channel" / "libfencepost_channel.so"
CAPACITY = 0.05e9
ALIVE = 6
KEEPER_EVERY = 25  # kills
CHANNELS = {"gold": 3, "silver": 1}
CONFIGURATION = "[timing]\nquantum_us = 50\n" + "".join(
    f'[[channel]]\nname = "{name}"\nweight = {weight}\n' for name, weight in CHANNELS.items()
)


class World:
    """A segment, and processes that come and go."""

    def __init__(self, stream: Path, folder: Path) -> None:
        (folder / "channels.toml").write_text(CONFIGURATION)
        self.stream, self.folder = stream, folder
        self.segment = Segment(path_of(f"kills-{os.getpid()}"))
        self.alive: list[subprocess.Popen[bytes]] = []
        command = [FENCEPOST, "channel", "run", "-q", "--config", "channels.toml"]
        command += ["--segment", self.segment.name, "--emulate", str(CAPACITY / 1e9)]
        self.launcher = subprocess.Popen(
            [*command, "--", "sleep", "1000"], cwd=folder, stderr=subprocess.DEVNULL
        )
        self.until(lambda state: len(state["keepers"]) == 2)

    def start(self) -> None:
        """A process of two paced threads in one of the channels, and its idle first one."""
        outside = {"FENCEPOST_CHANNEL_SEGMENT": str(self.segment.path), "LD_PRELOAD": str(LIBRARY)}
        channel = list(CHANNELS)[len(self.alive) % len(CHANNELS)]
        command = [self.stream, "1000", "0", f"{channel}:2"]
        self.alive.append(subprocess.Popen(command, env=os.environ | outside))

    def kill(self, chosen: random.Random) -> None:
        """Kills one of them, wherever it is."""
        victim = self.alive.pop(chosen.randrange(len(self.alive)))
        victim.kill()
        victim.wait()

    def kill_keeper(self, chosen: random.Random) -> None:
        """Kills the owner, or the one that stands by."""
        if keepers := self.state()["keepers"]:
            with suppress(ProcessLookupError):
                os.kill(chosen.choice(keepers), signal.SIGKILL)

    def state(self) -> dict[str, Any]:
        state = self.segment.state()
        assert state is not None
        return state

    def until(self, condition: Any, seconds: float = 30) -> dict[str, Any]:
        """Waits for a state; a loaded machine is given time."""
        end = time.monotonic() + seconds
        while True:
            state = self.segment.state()
            if state is not None and condition(state):
                return state
            assert time.monotonic() < end, state
            time.sleep(0.05)

    def end(self) -> None:
        for process in self.alive:
            process.kill()
            process.wait()
        # The launcher too is killed, so that it tidies nothing up.
        sleepers = subprocess.run(
            ["pgrep", "-P", str(self.launcher.pid), "-x", "sleep"],
            check=False,
            capture_output=True,
            text=True,
        )
        self.launcher.kill()
        self.launcher.wait()
        for sleeper in map(int, sleepers.stdout.split()):
            os.kill(sleeper, signal.SIGKILL)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(build(tmp_path, "stream", reports=True), tmp_path)
    try:
        yield made
    finally:
        made.end()
        made.segment.path.unlink(missing_ok=True)


def bytes_of(state: dict[str, Any]) -> dict[int, tuple[str, int]]:
    return {
        thread["thread"]: (thread["channel"], thread["bytes"])
        for thread in state["threads"]
        if thread["channel"] in CHANNELS
    }


def kill_at_random(world: World, kills: int, seed: int) -> None:
    chosen = random.Random(seed)
    for number in range(kills):
        while len(world.alive) < ALIVE:
            world.start()
        # Amidst their start, or when they have been paced for a while.
        time.sleep(chosen.choice([0, 0.001, 0.003, 0.01]) * chosen.random())
        world.kill(chosen)
        if number % KEEPER_EVERY == 0:
            world.kill_keeper(chosen)
    while len(world.alive) < ALIVE:
        world.start()


def check_all_is_well(world: World) -> None:
    threads = 2 * ALIVE
    before = world.until(
        lambda state: len(bytes_of(state)) == threads and len(state["keepers"]) == 2
    )
    assert before["unpaced_threads"] == 0
    # No ghost has a share: what is granted adds up to what the pool carries. That takes less than a
    # second where keepers run when they want to; a share that is lost never comes back.
    total_weight = sum(CHANNELS[name] for name, _ in bytes_of(before).values())
    world.until(lambda state: state["devices"][0]["share"] * total_weight > 0.99 * CAPACITY)

    def check() -> None:
        before = world.state()
        time.sleep(1.5)
        after = world.state()
        seconds = after["now"] - before["now"]
        old, new = bytes_of(before), bytes_of(after)
        used = {one: (name, new[one][1] - old[one][1]) for one, (name, _) in new.items()}
        for name, grown in used.values():
            share = CAPACITY * CHANNELS[name] / total_weight
            # Nobody is stuck, or gets another's share.
            assert 0.5 < grown / seconds / share < 1.3, used

    in_one_of(10, check)


def check_nothing_is_left(world: World) -> None:
    keepers = world.state()["keepers"]
    world.end()
    end = time.monotonic() + 30
    while world.segment.path.exists() or any(Path(f"/proc/{one}/exe").exists() for one in keepers):
        assert time.monotonic() < end
        time.sleep(0.05)
    world.alive.clear()


def test_who_is_killed_leaves_neither_rows_nor_shares_nor_the_segment(world: World) -> None:
    # More threads than the segment has rows.
    kill_at_random(world, kills=350, seed=1)
    check_all_is_well(world)
    check_nothing_is_left(world)


def test_a_segment_that_comes_and_goes_is_there_or_is_not(world: World) -> None:
    path = world.segment.path
    aside = path.with_name(f".{path.name}")
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            path.rename(aside)
            aside.rename(path)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        states = [world.segment.state() for _ in range(100)]
    finally:
        over.set()
        thread.join()
    assert all(state is None or state["fingerprint"] for state in states)


@pytest.mark.slow
def test_thousands_are_killed(world: World) -> None:
    """10,000 where KILLS says so: that takes five minutes."""
    for seed in range(int(os.environ.get("KILLS", "2000")) // 500):
        kill_at_random(world, kills=500, seed=seed)
        check_all_is_well(world)
    check_nothing_is_left(world)
