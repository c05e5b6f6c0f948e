"""How names of files and programs are shown: their bytes may be anything."""

import os
import re
import unicodedata
from pathlib import Path


def shown_name(name: str | Path) -> str:
    """Control characters, and what is not UTF-8, as `\\xNN`: as names within records are shown."""
    text = os.fsencode(name).decode("utf-8", "surrogateescape")
    return "".join(_escaped(c) if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def shown_text(text: str) -> str:
    """A message, which may repeat what was typed or printed: the same, but for white space."""
    return "".join(
        part if part in "\n\t" else shown_name(part) for part in re.split(r"([\n\t])", text)
    )


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
