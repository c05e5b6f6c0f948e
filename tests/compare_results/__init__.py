"""The results of two versions of the simulator on the same records, member by member.

    .venv/bin/python -m tests.compare_results HEAD~1          or: make compare-results BASE=HEAD~1

A change that only moves code must not move a result. The simulator of the commit BASE is built in a
git worktree, both versions run the same commands (`runs.py`), and whatever differs between their
documents is printed.
"""
