"""`fencepost power`: bytes, energy and hold-up time at the worst instant of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from fencepost import api
from fencepost.cli import main, power
from fencepost.figures import shown
from fencepost.hold_up import Budget, judged


def _report(**changes: Any) -> dict[str, Any]:
    phase = {"bytes": 6400, "duration_ps": 2_000_000, "bytes_left": 0}
    flush = {"phase_1": phase, "phase_2": phase | {"bytes": 128, "duration_ps": 500_000}}
    report = {
        "time_ps": 1000,
        "looks": 5,
        "cache_bytes": 6400,
        "buffer_bytes": [["switch0", 128]],
        "fullest": [{"switch": "switch0", "bytes": 256, "time_ps": 2000}],
        "needed": flush,
        "flush": flush,
    }
    return report | changes


def test_energy_is_bytes_times_what_a_byte_costs() -> None:
    found = judged(_report(), [], Budget(10.0, None, None, None))
    assert (found["cache_uj"], found["buffer_uj"]) == (64.0, {"switch0": 1.28})
    assert found["needed_uj"] == pytest.approx(65.28)
    assert found["hold_up_ns"] == 2500.0
    assert list(power.lines(found))[-1] == "hold-up      65.280 uJ, 2500.0 ns"


@pytest.mark.parametrize("limit", [(1e9, None, None), (None, 1e9, None), (None, None, 1e9)])
def test_a_shutdown_is_clean_only_where_it_was_compared_with_something(
    limit: tuple[float | None, float | None, float | None],
) -> None:
    found = judged(_report(), [], Budget(10.0, *limit))
    assert found["is_dirty_shutdown"] is False
    assert list(power.lines(found))[-1] == "shutdown: clean"
    unlimited = judged(_report(), [], Budget(10.0, None, None, None))
    assert unlimited["is_dirty_shutdown"] is None
    assert not any(line.startswith("shutdown: ") for line in power.lines(unlimited))


def test_a_budget_that_is_too_small_is_a_dirty_shutdown() -> None:
    found = judged(_report(), [], Budget(10.0, 65.0, None, None))
    assert found["errors"] == ["hold-up: 65.280 uJ are needed and 65 uJ there"]
    assert list(power.lines(found))[-1] == "shutdown: dirty"
    enough = judged(_report(), [], Budget(10.0, 66.0, None, None))
    assert not enough["is_dirty_shutdown"]


def test_an_error_of_the_flush_is_a_dirty_shutdown() -> None:
    said = "GPF phase 1: host0 has 64 bytes left when its time is over"
    found = judged(_report(), [said], Budget(10.0, None, 1.0, None))
    assert f"error: {said}" in list(power.lines(found))
    assert found["is_dirty_shutdown"]


def test_a_record_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "pcs-table1"]) == 2
    assert "a record is needed" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--budget-uj", "--phase-1-us", "--phase-2-us", "--nj-per-byte"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "much"])
def test_a_budget_is_a_number_that_is_not_negative(
    option: str, value: str, fft_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "pcs-table1", str(fft_record), option, value]) == 2
    assert option in capsys.readouterr().err


def test_an_unknown_scheme_is_named(fft_record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "pcs-table1", str(fft_record), "--scheme", "pbx"]) == 2
    assert (
        "there is no scheme `pbx`; did you mean `pb`? There are: nopb, pb, pb_rf, pb_adaptive"
        in capsys.readouterr().err
    )


def test_a_run_with_flushes_has_something_to_save(
    fft_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "power.json"
    options = ["--quiet", "--json", str(document)]
    assert main(["power", "pcs-table1", str(fft_record), *options]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("hold-up ")
    found = json.loads(document.read_text())
    assert found["cache_bytes"] > 0 and found["cache_bytes"] % 64 == 0
    assert found["needed"]["phase_1"]["bytes"] == found["cache_bytes"]
    assert 0 < found["fullest"][0]["bytes"] <= 16 * 64
    limit = ["--phase-1-us", "0.01"]
    assert main(["power", "pcs-table1", str(fft_record), "--quiet", *limit]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "shutdown: dirty"
    assert printed[-2].startswith("error: GPF phase 1: host0 has")


def test_a_machine_may_say_what_its_hold_up_source_has(
    fft_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    power_of = ["power", "pcs-table1", str(fft_record), "--quiet"]
    for energy_uj, code, shutdown in ((1, 1, "dirty"), (1e6, 0, "clean")):
        assert main([*power_of, "--set", f"hold_up.energy_uj={energy_uj}"]) == code
        printed = capsys.readouterr().out.splitlines()
        assert printed[-1] == f"shutdown: {shutdown}"
        assert any(
            line.startswith("hold-up ") and f" of {energy_uj:g} uJ, " in line for line in printed
        )
    # What is asked for goes before what the machine says.
    assert main([*power_of, "--set", "hold_up.energy_uj=1", "--budget-uj", "1e6"]) == 0


def test_without_a_switch_there_is_no_persist_buffer_and_that_is_said(
    fft_record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", "pcs-table1-0sw", str(fft_record), "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "machine pcs-table1-0sw, scheme nopb"
    assert not any("fullest" in line for line in printed)


def _compared(record: Path, folder: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The runs of a comparison, and its report's text (none: not asked for)."""
    result, page = folder / "result.json", folder / "report.html"
    own = ["--schemes", "nopb,pb_rf", "--quiet", "--json", str(result)]
    page.unlink(missing_ok=True)
    assert main(["compare", "pcs-table1", str(record), *own, *options]) == 0
    runs: list[dict[str, Any]] = json.loads(result.read_text())["runs"]
    return runs, page.read_text() if page.exists() else ""


def test_a_report_says_what_power_finds(
    fft_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_report = ["--report", str(tmp_path / "report.html")]
    runs, page = _compared(fft_record, tmp_path, *with_report)
    alone = tmp_path / "power.json"
    for run in runs:
        own = ["--scheme", run["scheme"], "--quiet", "--json", str(alone)]
        assert main(["power", "pcs-table1", str(fft_record), *own]) == 0
        found = json.loads(alone.read_text())
        del found["provenance"]
        assert found == run["power"]
        assert found["cache_bytes"] > 0 and found["hold_up_ns"] > 0
        assert f"{found['needed_uj']:,.1f} µJ, {shown(found['hold_up_ns'], 'ns')}" in page
        assert f"<td>{shown(found['time_ps'] / 1000, 'ns')}</td>" in page
        for fullest in found["fullest"]:
            assert f"{fullest['bytes']:,} bytes, " in page
    assert "shutdown, with" not in page, "the machine has no source"
    for energy_uj, verdict in (
        ("1", "dirty: 1 µJ are not enough"),
        ("1e6", "clean: 1,000,000 µJ do"),
    ):
        page = _compared(
            fft_record, tmp_path, *with_report, "--set", f"hold_up.energy_uj={energy_uj}"
        )[1]
        assert page.count(f"<td>{verdict}</td>") == 2


def test_a_report_is_silent_where_there_was_never_anything_to_save(
    fft_record: Path, tmp_path: Path
) -> None:
    without_pm = ["--pm", "range:0x0-0x1000", "--report", str(tmp_path / "report.html")]
    runs, page = _compared(fft_record, tmp_path, *without_pm)
    assert all(run["power"]["needed_uj"] == 0 for run in runs)
    assert "If power fails" not in page


def test_the_worst_instant_is_found_for_a_report_or_where_it_is_asked_for(
    fft_record: Path, tmp_path: Path
) -> None:
    with_report = ["--report", str(tmp_path / "report.html")]
    plain, _ = _compared(fft_record, tmp_path)
    asked, _ = _compared(fft_record, tmp_path, "--power")
    declined, page = _compared(fft_record, tmp_path, "--no-power", *with_report)
    assert all(run["power"] is None for run in (*plain, *declined))
    assert "<code>--power</code> finds" in page
    for run, found in zip(plain, asked, strict=True):
        assert found["power"]["hold_up_ns"] > 0
        for member in ("simulated_ns", "persist", "llc_read", "statistics"):
            assert run[member] == found[member], "to look for it changes nothing"


def test_the_api_finds_the_worst_instant_too(fft_record: Path) -> None:
    [run] = api.compare("pcs-table1", fft_record, schemes=["pb"], power=True).runs
    assert run["power"]["is_dirty_shutdown"] is None and run["power"]["hold_up_ns"] > 0
    limited = api.compare(
        "pcs-table1", fft_record, schemes=["pb"], power=True, limit_instructions=100_000
    )
    assert limited.runs[0]["power"]["looks"] < run["power"]["looks"]


def test_of_a_sample_the_worst_instant_of_its_intervals_is_found(
    fft_record: Path, tmp_path: Path
) -> None:
    options = ["--power", "--sample", "20k:2k:2k"]
    runs, _ = _compared(fft_record, tmp_path, *options)
    assert all(run["sampling"] and run["power"]["cache_bytes"] > 0 for run in runs)
