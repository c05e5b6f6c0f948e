"""What the recorder's tests share."""

from pathlib import Path

import pytest
from recorder_programs import Recorder


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """The recorder's launcher in an empty folder."""
    return Recorder(tmp_path)
