"""The command, forked from a process that has imported it, which takes longer than most commands.

Each run is a process of its own, with its own folder, arguments and streams. What a run inherits
beyond that (environment, signals, limits) is what this process has; where a test changes such
things, it starts the command itself.
"""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from installed import FENCEPOST

MESSAGE_BYTES = 1 << 16
# Of the test itself, which no command looks at.
OF_PYTEST = "PYTEST_CURRENT_TEST"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != OF_PYTEST}


class Forked:
    """A process that has imported the command, while the context lasts."""

    def __init__(self) -> None:
        self._environment = _environment()
        self._start()

    def _start(self) -> None:
        self._socket, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own = [sys.executable, __file__, str(others.fileno())]
        self._process = subprocess.Popen(own, pass_fds=[others.fileno()], stdout=subprocess.DEVNULL)
        others.close()

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    @property
    def is_as_here(self) -> bool:
        """Whether a command started here would find the same environment."""
        return self._environment == _environment()

    def run(
        self, arguments: list[str], folder: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of the command would; the streams are decoded likewise."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            request = json.dumps([arguments, str(folder)]).encode()
            files = [output.fileno(), errors.fileno()]
            try:
                code = self._code(request, files, timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(arguments, timeout) from None
            return subprocess.CompletedProcess(
                [str(FENCEPOST), *arguments], code, _text(output), _text(errors)
            )

    def _code(self, request: bytes, files: list[int], timeout: float) -> int:
        """With what the command ended. Where it did not, no answer is left for the next one."""
        process = 0
        try:
            socket.send_fds(self._socket, [request], files)
            process = int(self._socket.recv(MESSAGE_BYTES))
            self._socket.settimeout(timeout)
            code = int(self._socket.recv(MESSAGE_BYTES))
            self._socket.settimeout(None)
        except BaseException:
            if process > 0:
                os.kill(process, signal.SIGKILL)
            self.close()
            self._start()
            raise
        return code


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


# In the process that is forked


def _serve(requests: socket.socket) -> list[str] | None:
    """In each child the arguments of its command; None at the end of requests."""
    while True:
        request, files, _, _ = socket.recv_fds(requests, MESSAGE_BYTES, 2)
        if not request:
            return None
        arguments, folder = json.loads(request)
        child = os.fork()
        if child == 0:
            requests.close()
            for number, file in enumerate(files, start=1):
                os.dup2(file, number)
                os.close(file)
            os.chdir(folder)
            return [str(FENCEPOST), *arguments]
        for file in files:
            os.close(file)
        requests.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _serve_commands() -> int:
    for name in ("COLUMNS", "LINES"):  # of the line editor
        os.environ.pop(name, None)
    from fencepost import cli, start

    for module in pkgutil.walk_packages(cli.__path__, "fencepost.cli."):
        import_module(module.name)
    arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    if arguments is None:
        return 0
    sys.argv = arguments
    return start.main()


if __name__ == "__main__":  # not in what an executor of the command spawns
    raise SystemExit(_serve_commands())
