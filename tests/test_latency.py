"""`fencepost latency`: what it prints, its document and picture, and what it refuses."""

import json
import re
import subprocess

import pytest

from installed import FENCEPOST

FAST = ["latency", "pond-8", "--delay", "0", "--delay", "20000", "--measure-us", "20", "-q"]
ROW = re.compile(r" (\d{5})\t *(\d+\.\d\d)\t *(\d+\.\d)")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latency")
    command = [FENCEPOST, *FAST, "--mix", "1:0", "--mix", "2:1"]
    command += ["--json", "l.json", "--plot", "l.svg"]
    options = {"capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run(command, cwd=folder, check=True, **options)
    document = json.loads((folder / "l.json").read_text())
    return done.stdout, document, (folder / "l.svg").read_text()


def test_the_text_has_the_layout_of_mlc(measured):
    lines = measured[0].splitlines()
    assert lines[0].startswith("Measuring idle latencies")
    for traffic_type in ("Read-only", "2:1 Reads-Writes"):
        start = lines.index(f"Using {traffic_type} traffic type")
        assert lines[start + 1] == "Inject\tLatency\tBandwidth"
        assert lines[start + 2] == "Delay\t(ns)\tMB/sec"
        assert lines[start + 3] == "=" * 26
        rows = [ROW.fullmatch(line) for line in lines[start + 4 : start + 6]]
        assert [row[1] for row in rows] == ["00000", "20000"]
        busy, idle = rows
        assert float(busy[2]) > 1.5 * float(idle[2])
        assert float(busy[3]) > 10 * float(idle[3])


def test_the_document_has_every_point_and_parts_that_sum_to_the_whole(measured):
    document = measured[1]
    assert [idle["memory"] for idle in document["idle"]] == ["expander", "dram"]
    assert [(curve["reads"], curve["writes"]) for curve in document["curves"]] == [(1, 0), (2, 1)]
    points = [point for curve in document["curves"] for point in curve["points"]]
    assert len(points) == 4
    for point in [*points, *document["idle"]]:
        assert sum(point["parts_ns"].values()) == pytest.approx(point["latency_ns"]["mean"])
    for point in points:
        assert all(0 <= link["utilisation_rate"] <= 1 for link in point["links"])
    options = document["provenance"]["options"]
    assert (options["memory"], options["threads"]) == ("expander", 8)
    assert document["provenance"]["machines"]["pond-8"]["fabric"]["expanders"] == ["pool"]


def test_the_picture_has_a_line_for_each_mix(measured):
    assert measured[2].startswith("<?xml")
    assert "Read-only" in measured[2] and "2:1 Reads-Writes" in measured[2]


def test_every_host_loads_the_memory_that_it_reaches(fencepost, tmp_path):
    fast = ["--mix", "1:0", "--delay", "0", "--measure-us", "20", "-q", "--json", "l.json"]
    narrow = ["--set", "link.bandwidth_gb_per_s=4"]
    done = fencepost("latency", "pcs-table1-2hosts", *fast, *narrow, check=True)
    assert "requests outstanding on each of host0, host1" in done.stdout
    document = json.loads((tmp_path / "l.json").read_text())
    assert document["provenance"]["options"]["hosts"] == ["host0", "host1"]
    [point] = document["curves"][0]["points"]
    shares = {host["name"]: host["bandwidth_gb_per_s"] for host in point["hosts"]}
    assert sum(shares.values()) == pytest.approx(point["bandwidth_gb_per_s"])
    assert shares["host0"] == pytest.approx(shares["host1"], rel=0.1)
    assert point["hosts"][0]["latency_ns"] == point["latency_ns"]
    in_use = {link["name"]: link["utilisation_rate"] for link in point["links"]}
    assert all(in_use[f"switch0 -> {host}"] > 0.1 for host in shares)


def test_a_host_that_does_not_reach_the_memory_stays_idle(fencepost, tmp_path):
    machine = """extends = "pcs-table1-2hosts"
description = "the second host has the only way to the device"
[fabric]
hosts = ["far", "near"]
switches = ["switch0"]
devices = ["pm0", "pm1"]
edges = ["far -> pm1", "near -> switch0", "switch0 -> pm0"]
"""
    (tmp_path / "m.toml").write_text(machine)
    fast = ["--mix", "1:0", "--delay", "0", "--measure-us", "5", "-q", "--json", "l.json"]
    fencepost("latency", "m.toml", "--memory", "pm0", *fast, check=True)
    document = json.loads((tmp_path / "l.json").read_text())
    assert document["provenance"]["options"]["hosts"] == ["near"]
    [point] = document["curves"][0]["points"]
    assert "hosts" not in point
    assert point["bandwidth_gb_per_s"] > 1
    done = fencepost("latency", "m.toml", "--memory", "expander", *fast)
    assert (done.returncode, done.stdout) == (2, "")
    assert "far reaches no memory expander" in done.stderr


def test_equal_seeds_give_equal_documents(fencepost, tmp_path, measured):
    again = ["--mix", "1:0", "--mix", "2:1", "--json", "again.json"]
    fencepost(*FAST, *again, check=True)
    assert json.loads((tmp_path / "again.json").read_text()) == measured[1]


def test_local_memory_and_single_devices_can_be_measured(fencepost):
    for memory, options in (("dram", []), ("pool", ["--set", "link.latency_ns=50"])):
        done = fencepost(*FAST, "--mix", "1:0", "--memory", memory, *options)
        assert done.returncode == 0, done.stderr
        assert f"Measuring Loaded Latencies of {memory}" in done.stdout


def test_a_transport_is_measured_once_its_shares_have_settled(fencepost, tmp_path):
    few = ["--memory", "mem0", "--threads", "6", "--outstanding", "48", "--mix", "1:0"]
    quick = ["--set", "transport.window_us=20", "--set", "transport.interval_us=100"]
    words = ["latency", "xconn-emr", *few, *quick, "--delay", "0", "-q", "--json", "l.json"]
    points = {}
    for transport in ("none", "memchannel", "switch_wfq"):
        fencepost(*words, "--transport", transport, check=True)
        document = json.loads((tmp_path / "l.json").read_text())
        options = document["provenance"]["options"]
        points[transport] = document["curves"][0]["points"][0]
        settles = transport == "memchannel"
        assert options["warm_up_ns"] == (1_600_000 if settles else 30_000)
        assert options["measure_ns"] == (200_000 if settles else 100_000)
    latency = {name: point["latency_ns"]["mean"] for name, point in points.items()}
    assert latency["memchannel"] < 0.6 * latency["none"]
    assert points["memchannel"]["bandwidth_gb_per_s"] > 0.6 * points["none"]["bandwidth_gb_per_s"]


def test_a_transport_leaves_a_device_in_use_where_the_machine_sets_nothing(fencepost, tmp_path):
    load = ["--threads", "12", "--outstanding", "48", "--mix", "1:0", "--delay", "0"]
    quick = ["--set", "transport.window_us=20", "--set", "transport.interval_us=100"]
    words = ["latency", "spr-cxl", "--memory", "expander", *load, *quick, "-q", "--json", "l.json"]
    used = {}
    for transport in ("none", "memchannel"):
        fencepost(*words, "--transport", transport, check=True)
        document = json.loads((tmp_path / "l.json").read_text())
        used[transport] = document["curves"][0]["points"][0]["bandwidth_gb_per_s"]
    assert used["memchannel"] > 0.8 * used["none"]


def test_a_scheme_with_a_persist_buffer_is_measured_with_writes(fencepost):
    fast = ["--delay", "0", "--measure-us", "20", "-q", "--mix", "1:1"]
    done = fencepost("latency", "pcs-table1", "--scheme", "pb_rf", *fast)
    assert done.returncode == 0, done.stderr
    assert "Measuring Loaded Latencies of pm" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["no-machine"], "there is no machine `no-machine`"),
        (["pond-8", "--memory", "ssd"], "there is no memory `ssd`; there are: dram, pm, expander"),
        (["pond-8", "--memory", "pm"], "host0 reaches no PM device"),
        (["pond-8", "--mix", "2"], "--mix 2: it has to be R:W"),
        (["pond-8", "--mix", "0:0"], "--mix 0:0: it has to be R:W"),
        (["pond-8", "--size", "96"], "a multiple of 64 up to 16384"),
        (["pond-8", "--outstanding", "0"], "--outstanding"),
        (["pond-8", "--pattern", "zigzag"], "it has to be random or sequential"),
        (["pond-8", "--scheme", "pbrf"], "there is no scheme `pbrf`"),
        (["pond-8", "--transport", "fair"], "there is no transport `fair`; there are: none, cred"),
        (["pond-8", "--scheme", "pb"], "scheme pb needs a switch"),
        (["pond-8", "--set", "link.latency=3"], "link.latency"),
        (["pond-8", "--threads", "100000000"], "at most 65,536 can be under way in all"),
        (["pond-8", "--outstanding", "8193", "--threads", "8"], "8 threads with 8193 requests"),
        (["pond-8", "--delay", "-1"], "--delay"),
        (["pond-8", "--plot", "l.png"], "--plot l.png: pictures are SVG; name it l.svg"),
        (["pond-8", "--plot", "l"], "--plot l: pictures are SVG"),
        (["pond-8", "--json", "a.svg", "--plot", "a.svg"], "--json a.svg is the same file"),
    ],
)
def test_wrong_input_is_one_message_and_code_2(fencepost_here, arguments, part):
    done = fencepost_here("latency", *arguments, "--delay", "0", "--measure-us", "5", "-q")
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_a_chain_that_gets_no_read_through_is_said_and_is_no_number(fencepost, tmp_path):
    few = ["--delay", "0", "--measure-us", "1", "-q", "--mix", "1:0", "--json", "l.json"]
    done = fencepost("latency", "pond-8", "--threads", "64", "--outstanding", "1024", *few)
    assert done.returncode == 0, done.stderr
    assert "no read of the chain came to its end in the time measured" in done.stderr
    [curve] = json.loads((tmp_path / "l.json").read_text())["curves"]
    assert curve["points"][0]["latency_ns"]["mean"] is None
    assert " 00000\t      –\t" in done.stdout


def test_the_page_shows_what_is_printed(fencepost, pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "latency.md").read_text()
    shown = page.partition("Measuring Loaded")[2].partition("```")[0].splitlines()[1:]
    ends = ["--delay", "0", "--delay", "20000", "--mix", "1:0"]
    printed = fencepost("latency", "xconn-x8", *ends, "-q", check=True).stdout.splitlines()
    assert [line for line in shown if line != " …"] == [line for line in printed if line in shown]
    assert sum(ROW.fullmatch(line) is not None for line in shown) == 2
