"""fencepost timeline: requests of a result that are followed through the machine."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from installed import FENCEPOST
from perfetto import slices_of


@pytest.fixture(scope="module")
def made(fft_record, tmp_path_factory):
    """A folder with a record and a result of it."""
    folder = tmp_path_factory.mktemp("timeline")
    shutil.copy(fft_record, folder / "fft.fencepost")
    command = [FENCEPOST, "compare", "pcs-table1", "fft.fencepost", "--json", "fft.json", "-q"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=120)
    return folder


def test_one_persist_goes_from_the_core_to_the_medium_and_back(made, fencepost, tmp_path):
    chosen = ("--persist", 2, "--run", "pcs-table1:pb")
    fencepost("timeline", made / "fft.json", "-o", "a", *chosen, check=True)
    slices = slices_of((tmp_path / "a").read_bytes())
    tracks = [track for track, _, _ in slices]
    assert tracks[0].startswith("host0/core")
    for track in ("host0_bridge/bridge", "switch0/persist buffer", "switch0/link to pm0"):
        assert track in tracks
    assert any(track.startswith("pm0/bank") for track in tracks)
    # From the core to the persist buffer nothing is left out, to the nanosecond.
    to_buffer = slices[: tracks.index("switch0/persist buffer") + 1]
    assert [end for _, _, end in to_buffer[:-1]] == [begin for _, begin, _ in to_buffer[1:]]


@pytest.mark.slow
def test_a_timeline_is_the_same_each_time_and_has_what_the_result_counts(made, fencepost, tmp_path):
    limit = ("--limit-events", 1_000_000)
    for name in ("a", "b"):
        done = fencepost("timeline", made / "fft.json", "-o", name, *limit, check=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    run = json.loads((made / "fft.json").read_text())["runs"][-1]
    assert f"{run['persist']['count']:,} × flush" in done.stderr
    assert f"{run['persist_buffer']['drains']:,} × drain" in done.stderr


def test_a_request_is_followed_over_the_socket_link(made, fencepost, tmp_path):
    sets = ("core.count=4", "sockets.count=2", "socket_link.bandwidth_gb_per_s=68")
    sets += ("socket_link.latency_ns=40", "socket_link.credits=64")
    chosen = [word for one in sets for word in ("--set", one)]
    record = made / "fft.fencepost"
    spread = ("--threads", "spread", "--scheme", "nopb")
    fencepost("run", "pcs-table1", record, *spread, *chosen, "--json", "two.json", check=True)
    fencepost("timeline", "two.json", "--record", record, "-o", "a", check=True)
    tracks = {track for track, _, _ in slices_of((tmp_path / "a").read_bytes())}
    # All memory of the program belongs to the first socket.
    names = ["home agent of socket 0", "link to socket 0", "link to socket 1"]
    names += [f"last-level cache of socket {socket}" for socket in (0, 1)]
    for name in names:
        assert any(track.startswith(f"host0/{name}") for track in tracks), name


def test_the_picture_shows_every_place_on_the_way(made, fencepost, tmp_path):
    chosen = ("--persist", 2, "--picture", "way.svg")
    fencepost("timeline", made / "fft.json", "-o", "a", *chosen, check=True)
    svg = (tmp_path / "way.svg").read_text()
    ElementTree.fromstring(svg)
    for text in ("host0_bridge: bridge", "switch0: persist buffer", "pb access"):
        assert text in svg


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--persist", 2, "--region", 0), "selects what is followed"),
        (("--run", "pcs-table1:none"), "did you mean `pcs-table1:nopb`? There are"),
        (("--persist", 10_000_000), "there is no such request"),
        (("--from", 5, "--to", 4), "the end has to lie behind the start"),
        (("--from", "1e18"), "--from 1e+18: it has to be a number from "),
        (("--to", "nan"), "--to nan: it has to be a number"),
        (("--persist", 10**30), "--persist"),
        (("--region", 2**32), "--region"),
        (("--limit-events", 10**30), "--limit-events"),
        (("--picture", "p.png"), "--picture p.png: pictures are SVG; name it p.svg"),
        (("--record", "b", "--record", "c"), "made from 1 record"),
        (("--record", "missing.fencepost"), "missing.fencepost: cannot be read"),
    ],
)
def test_what_cannot_be_followed_is_said(made, fencepost_here, options, message):
    done = fencepost_here("timeline", made / "fft.json", "-o", "a", *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_run_without_a_persist_can_be_followed_by_time(made, fencepost):
    record = made / "fft.fencepost"
    fencepost("run", "asic-expander", record, "--json", "dram.json", "-q", check=True)
    command = ("timeline", "dram.json", "--record", record, "-o", "a")
    done = fencepost(*command)
    assert done.returncode == 2
    assert "there is no persist, from which on requests are followed; choose by time" in done.stderr
    fencepost(*command, "--from", 0, "--to", 1e9, check=True)


def test_a_result_without_its_record_says_where_it_was_looked_for(made, fencepost, tmp_path):
    (tmp_path / "fft.json").write_bytes((made / "fft.json").read_bytes())
    done = fencepost("timeline", "fft.json", "-o", "a")
    assert done.returncode == 2
    assert "neither beside it nor here; say where it is: --record FILE" in done.stderr


def test_another_record_is_refused(made, fencepost, tmp_path):
    document = json.loads((made / "fft.json").read_text())
    document["provenance"]["record"]["hash"] = "0" * 16
    (tmp_path / "fft.json").write_text(json.dumps(document))
    record = made / "fft.fencepost"
    done = fencepost("timeline", "fft.json", "-o", "a", "--record", record)
    assert done.returncode == 2
    assert "not the record of fft.json" in done.stderr
