"""The tests of synchronisation and threads, on AArch64 programs."""

from test_record_synchronisation import *  # noqa: F403
from test_record_threads import (  # noqa: F401
    test_threads_come_and_go,
    test_threads_without_a_library,
)
