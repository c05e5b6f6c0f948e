"""Programs that wait for each other, and what their replays must come to.

`python -m tests.waits` at the top of the repository prints a table; tests/test_waits.py asserts it.
"""
