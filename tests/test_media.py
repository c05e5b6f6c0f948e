"""The probe of a medium, and the comparison `media`."""

import json

import pytest

from fencepost import _core, machines
from fencepost.api import Machine
from fencepost.rows import misses
from fencepost.rows.lab import Lab
from fencepost.validation import media_dram
from fencepost.validation.media import MEDIA
from fencepost.validation.persist import PERSIST

PCS = json.dumps(machines.resolve("pcs-table1", []))


def probe(medium, *requests):
    return json.loads(_core.medium_probe(PCS, medium, json.dumps(requests)))


def test_a_probe_shows_commands_and_times():
    place = [1, 2, 3, 4, 5]
    outcome = probe("dram", {"at_ps": 100, "write": False, "place": place})
    names = [
        tuple(command[key] for key in ("command", "rank", "bank_group", "bank"))
        for command in outcome["commands"]
    ]
    assert names == [("ACT", 1, 2, 3), ("RD", 1, 2, 3)]
    [request] = outcome["requests"]
    assert request["entered_ps"] == 833
    assert request["answered_ps"] == 833 * (1 + 17 + 17 + 4)


@pytest.mark.parametrize(
    ("medium", "request_", "message"),
    [
        ("pm1", {}, r"there is no medium `pm1`; did you mean `pm0`\? There are: dram, pm0"),
        ("dram", {"at_ps": 0, "write": False, "place": [2, 0, 0, 0, 0]}, "request 0 of the script"),
        ("pm0", {"at_ps": 0, "write": False, "place": [0] * 5}, "only DRAM has places"),
        ("pm0", {"at_ps": 0, "write": False, "line": 1 << 40}, "beyond the capacity"),
        ("pm0", {"at_ps": -1, "write": False, "line": 0}, "`at_ps` has to be a number"),
        ("pm0", {"at_ps": 0, "write": True, "line": 0, "bytes": 65}, "not 1 to 64"),
    ],
)
def test_a_wrong_script_is_refused(medium, request_, message):
    with pytest.raises(_core.InputError, match=message):
        probe(medium, request_)


GATES = "rcd cl cwl rp ras rrd_s rrd_l faw ccd_s ccd_l cs wtr_s wtr_l rtw rtp wr rfc refi"


@pytest.mark.few(4)
@pytest.mark.parametrize("gate", GATES.split())
def test_what_is_measured_follows_each_parameter(gate):
    """No gate is measured by way of another one: all rows hold after any one has grown."""
    machine = Machine.load("pcs-table1")
    grown = machine.set(f"dram.t_{gate}_ns", machine.document["dram"][f"t_{gate}_ns"] + 7)
    usual = {row.metric: row for row in media_dram.rows(machine, "DDR4-2400", quick=True)}
    rows = media_dram.rows(grown, "DDR4-2400", quick=True)
    assert [row for row in rows if not row.holds] == []
    assert any(row.ours != usual[row.metric].ours for row in rows)


def test_every_row_of_media_holds(tmp_path):
    findings = MEDIA.run(Lab(tmp_path, lambda _: None, quick=True))
    assert [row for row in findings.rows if not row.holds] == []
    assert len({(row.condition, row.metric) for row in findings.rows}) == len(findings.rows)


def test_persists_follow_the_rules_or_say_why_not(tmp_path):
    findings = PERSIST.run(Lab(tmp_path, lambda _: None, quick=True))
    rows = misses.explained(findings.rows, misses.known_misses())
    assert [row for row in rows if row.is_unexplained] == []
    assert {row.metric for row in rows if not row.holds} == {
        "clflushopt, 8 lines, cold",
        "clwb, 8 lines, cold",
    }
    hot = [row for row in rows if ", hot" in row.metric]
    assert len(hot) == 2 * 4 * 3 and all(row.holds for row in hot)
    assert len(findings.tables) == 4
