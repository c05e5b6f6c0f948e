"""The tests of loops that wait, on AArch64 programs."""

import pytest
import test_record_spins
from recorder_programs import Recorder


def test_waiting_is_left_out_and_counting_is_not(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in (("BEGIN", 1), ("END", 2)):
        marker = (0xD2EA001F | code << 5).to_bytes(4, "little")
        monkeypatch.setattr(test_record_spins, name, marker)
    monkeypatch.setattr(test_record_spins, "COUNTED_INSTRUCTIONS", 5)
    test_record_spins.waiting_is_left_out(recorder, is_known_by_its_code=False)
