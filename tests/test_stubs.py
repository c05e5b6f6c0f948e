"""What _core.pyi promises is what the compiled module has."""

import subprocess
import sys


def test_the_stubs_are_those_of_the_binary(pytestconfig):
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "fencepost._core"],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
