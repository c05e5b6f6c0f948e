"""The rooms of the code, which import which, and their picture in ARCHITECTURE.md.

.venv/bin/python -m tests.rooms            which room imports which, and through which files
.venv/bin/python -m tests.rooms --write    renews the picture in ARCHITECTURE.md
"""
