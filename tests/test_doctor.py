"""`fencepost doctor`: what works is tried, what does not is named with what to type."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fencepost import doctor
from installed import FENCEPOST, Fencepost, on_terminal


def by_name(findings: list[doctor.Finding]) -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in findings}


def test_what_setup_installed_works(fencepost: Fencepost, tmp_path: Path) -> None:
    done = fencepost("doctor", "--json", "doctor.json")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ok +recorder .*has recorded `true`", done.stdout, re.MULTILINE)
    document = json.loads((tmp_path / "doctor.json").read_text())
    assert document["works"] is True
    assert done.stdout.splitlines()[0] == document["system"]
    parts = list(dict.fromkeys(finding["part"] for finding in document["findings"]))
    assert parts == [doctor.MAIN, doctor.MACHINE, doctor.BUILD]
    for finding in document["findings"]:
        assert f" {finding['name']} " in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["doctor.json"]


def test_without_tools_it_says_what_to_type_and_replays_all_the_same(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    done = fencepost("doctor", env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 0
    assert re.search(r"^MISSING +cmake .* sudo apt-get install cmake", done.stdout, re.MULTILINE)
    assert re.search(r"^MISSING +rustc .* type: curl .*rustup", done.stdout, re.MULTILINE)
    assert re.search(r"^absent +Redis .* sudo apt-get install redis-", done.stdout, re.MULTILINE)
    assert re.search(r"^absent +QEMU .* sudo apt-get install qemu-user", done.stdout, re.MULTILINE)


def launcher(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, r"launcher is missing$"),
        ("echo broken >&2; exit 125", "^broken$"),
        ("exit 3", "^it ended with 3$"),
        ("exit 0", "^it ended with 0$"),
    ],
)
def test_a_recorder_that_records_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, told: str
) -> None:
    path = tmp_path / "launcher"
    monkeypatch.setattr(doctor, "LAUNCHER", launcher(path, script) if script else path)
    findings = doctor.examine()
    recorder = by_name(findings)["recorder"]
    assert recorder.mark == "MISSING" and recorder.remedy == "make setup"
    assert re.search(told, recorder.detail)
    assert not doctor.works(findings)


def test_packages_are_found_by_their_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages.txt"
    packages.write_text(
        "# need, three names, sign, purpose\n"
        "required  coreutils coreutils coreutils  ls           lists files\n"
        "required  somewhere - -                  /no/such     is nowhere\n"
        "optional  python3-x python3 python       python:json  reads files\n"
    )
    monkeypatch.setattr(doctor, "PACKAGES", packages)
    found = by_name(doctor.examine())
    assert found["coreutils"].is_here and found["python3-x"].is_here
    assert not found["somewhere"].is_here and found["somewhere"].is_required
    assert found["somewhere"].remedy == "sudo apt-get install somewhere"


def test_what_a_wheel_brought_is_not_to_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", tmp_path / "packages.txt")
    monkeypatch.setattr(doctor, "WORKLOADS", tmp_path)
    findings = doctor.examine()
    assert {finding.part for finding in findings} == {doctor.MAIN, doctor.MACHINE}
    assert by_name(findings)["example programs"].remedy.startswith("pip install")
    assert doctor.works(findings), "one can record a program of one's own"


def test_what_a_machine_shows_is_found_below_any_folder(tmp_path: Path) -> None:
    features = tmp_path / "sys/fs/resctrl/info/L3_MON/mon_features"
    features.parent.mkdir(parents=True)
    features.write_text("mbm_total_bytes\n")
    (tmp_path / "sys/fs/resctrl/mon_groups").mkdir()
    (tmp_path / "sys/fs/resctrl/mon_data/mon_L3_00").mkdir(parents=True)
    for number in range(2):
        folder = tmp_path / f"sys/devices/system/node/node{number}"
        folder.mkdir(parents=True)
        (folder / "meminfo").write_text(f"Node {number} MemTotal: 1024 kB\n")
        (folder / "cpulist").write_text("\n")
        (folder / "distance").write_text("10 20\n")
    found = by_name(doctor.examine(tmp_path))
    assert found["resctrl (MBM)"].is_here
    assert found["NUMA nodes"].is_here and found["NUMA nodes"].detail == "2 of them"
    assert not found["CXL devices"].is_here and found["CXL devices"].detail == "none"
    assert not found["perf (reads of CXL)"].is_here


def test_it_fits_80_columns() -> None:
    shown = on_terminal(80, [FENCEPOST, "doctor"])
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
