"""The rooms of the code, which import which, and their pictures in docs/rooms-*.md.

.venv/bin/python -m tests.rooms            which room imports which, and through which files
.venv/bin/python -m tests.rooms --write    renews the pictures in docs/rooms-*.md
"""
