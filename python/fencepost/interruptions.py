"""How Ctrl-C, a kill and a terminal that goes away end a command: all alike, with one exit code.

While a command runs, each is a KeyboardInterrupt in the main thread. `held` lets it wait where a
process has just been started and nobody yet knows that it is to be ended.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object]


class _State:
    received = 0


_state = _State()
_before: dict[signal.Signals, object] = {}  # the handlers in place of which ours were installed


def install(at_once: _Handler) -> None:
    """Handles the signals from now on: until a command begins, by what ends the process at once.
    SIGINT also in the background, where shells have it ignored. What `nohup` starts outlives its
    terminal."""
    for each in SIGNALS:
        handler = signal.getsignal(each)
        if each != signal.SIGHUP or handler is not signal.SIG_IGN:
            _before[each] = handler
            signal.signal(each, at_once)


def begin_command() -> None:
    """From here on there may be something to tidy up."""
    for each in _before:
        signal.signal(each, _interrupt)


def ignore() -> None:
    """Nothing disturbs what is still to be done."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def uninstall() -> None:
    """For a program that takes the place of this one: it is started as without us."""
    for each, handler in _before.items():
        if handler is signal.SIG_IGN:
            signal.signal(each, signal.SIG_IGN)
    _before.clear()


@contextmanager
def held(meanwhile: Callable[[], object] = lambda: None) -> Iterator[None]:
    """An interrupt waits until this is left, whichever handler answers it; when it comes,
    `meanwhile` is called."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes here
        yield
        return
    found = {each: signal.getsignal(each) for each in SIGNALS}
    handlers = {each: handler for each, handler in found.items() if callable(handler)}
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        meanwhile()

    for each in handlers:
        signal.signal(each, receive)
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in received[:1]:
            handlers[signal.Signals(number)](number, None)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _state.received += 1
    # The second one ends also what is made of the first; then what would be left is removed.
    if _state.received > 1:
        ignore()
    raise KeyboardInterrupt(signal.Signals(number))


def signal_of(error: BaseException) -> signal.Signals:
    """That a process gets which ends because of the error: the one that came to us, if one did."""
    came = error.args[0] if isinstance(error, KeyboardInterrupt) and error.args else None
    return came if isinstance(came, signal.Signals) else signal.SIGTERM
