"""Several hosts on one command line: a record for each."""

import json
import subprocess
from pathlib import Path

import pytest

from fencepost.cli import hosts
from installed import FENCEPOST

MACHINE = "pcs-table1-2hosts"


@pytest.fixture(scope="module")
def shared(fft_record, tmp_path_factory):
    """The FFT on both hosts of a machine under two schemes: the result, and standard output."""
    folder = tmp_path_factory.mktemp("shared")
    given = ["--host", f"1={fft_record}", "--host", f"0={fft_record}"]
    command = [FENCEPOST, "compare", MACHINE, *given, "--schemes", "nopb,pb", "--json", "r.json"]
    done = subprocess.run(
        [*command, "--report", "r.html"], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads((folder / "r.json").read_text()), done.stdout, folder


def test_each_host_has_its_own_figures_and_the_run_their_sum(shared):
    result, stdout, _ = shared
    for run in result["runs"]:
        assert [host["name"] for host in run["hosts"]] == ["host0", "host1"]
        for figure in ("persist", "llc_read"):
            assert sum(host[figure]["count"] for host in run["hosts"]) == run[figure]["count"]
        assert sum(host["instructions"] for host in run["hosts"]) == run["instructions"]
        assert max(host["finished_ns"] for host in run["hosts"]) == run["simulated_ns"]
        assert all(host["persist"]["count"] > 1000 for host in run["hosts"])
    assert "host1" in stdout


def test_the_provenance_holds_every_record(shared):
    provenance = shared[0]["provenance"]
    [other] = provenance["other_records"]
    assert other == provenance["record"]
    assert len(other["hash"]) == 16
    assert "record of host 1" in (shared[2] / "r.html").read_text()


def test_a_limit_holds_for_all_hosts_together_and_every_scheme_does_the_same(
    fencepost, fft_record, tmp_path
):
    hosts = ("--host", f"0={fft_record}", "--host", f"1={fft_record}")
    fencepost(
        *("compare", MACHINE, *hosts, "--schemes", "nopb,pb", "--limit-pm-writes", 500),
        *("--json", "r.json", "-q"),
        check=True,
    )
    runs = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert [run["ended"] for run in runs] == ["limit_pm_writes"] * 2
    assert 500 <= runs[0]["persist"]["count"] + runs[0]["writeback"]["count"] < 600
    nopb, pb = [[host["instructions"] for host in run["hosts"]] for run in runs]
    assert nopb == pytest.approx(pb, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["RECORD"], "pcs-table1-2hosts has 2 hosts (host0, host1) and one record is given; type:"),
        (["RECORD"], "fencepost run pcs-table1-2hosts --host 0=RECORD --host 1=RECORD"),
        (["--host", "0=RECORD"], "has 2 hosts (host0, host1) and one record is given"),
        (["--host", "1=RECORD"], "host 0 has no record; type: --host 0=RECORD"),
        (["--host", "0=RECORD", "--host", "0=RECORD"], "host 0 has a record already"),
        (["--host", "first=RECORD"], "it has to be N=RECORD"),
        (["RECORD", "--host", "0=RECORD"], "either a record or"),
        (["--", "true"], "one record is given; type: fencepost run"),
    ],
)
def test_hosts_and_records_that_do_not_fit_are_one_message(fencepost, fft_record, arguments, part):
    record = str(fft_record)
    done = fencepost("run", MACHINE, *(text.replace("RECORD", record) for text in arguments))
    assert done.returncode == 2 and done.stdout == ""
    assert part in done.stderr.replace(record, "RECORD")
    assert len(done.stderr.splitlines()) == 1


def test_more_records_than_hosts_are_refused(fencepost, fft_record):
    hosts = ("--host", f"0={fft_record}", "--host", f"1={fft_record}")
    done = fencepost("run", "pcs-table1", *hosts)
    assert done.returncode == 2
    assert (
        "has one host and 2 records are given; type: fencepost run pcs-table1 RECORD" in done.stderr
    )


def test_a_record_and_a_machine_are_taken_in_either_order(tmp_path: Path) -> None:
    record, other = tmp_path / "a.fencepost", tmp_path / "machine.toml"
    record.write_bytes(b"FPFR\x01\x00")
    other.write_text("extends = 'pcs-table1'\n")
    for machine in ("pcs-table1", str(other)):
        assert hosts.in_order(str(record), Path(machine)) == (machine, record)
        assert hosts.in_order(machine, record) == (machine, record)
    # Two records are as they were typed: the message names the first as no machine.
    assert hosts.in_order(str(record), record) == (str(record), record)
    assert hosts.in_order("pcs-table1", None) == ("pcs-table1", None)
