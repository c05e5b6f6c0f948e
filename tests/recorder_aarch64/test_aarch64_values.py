"""The tests of recorded values, on AArch64 programs."""

from test_record_values import (  # noqa: F401
    test_file_is_rebuilt_from_what_was_written,
    test_only_selected_memory_has_values,
    test_threads_lines_are_rebuilt,
)
