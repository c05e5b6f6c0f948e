"""The history of the figures, one line for each commit and processor: docs/bench-history.csv."""

import csv
import io
import subprocess
from pathlib import Path

from fencepost import documents
from fencepost.bench import Figures
from fencepost.tree import ROOT

FILE = ROOT / "docs" / "bench-history.csv"
KEYS = ("commit", "processor")


def line(document: Figures) -> dict[str, str]:
    """The main figures of a bench document, by column."""
    figures = {f"replay.{name}.mips": item["mips"] for name, item in document["replay"].items()}
    figures |= {f"record.{name}.slowdown": r["slowdown"] for name, r in document["record"].items()}
    reference = document["reference"]
    figures |= {f"reference.{name}": reference[name] for name in reference if name != "rows"}
    figures |= {
        f"fabric.{name}.messages_per_second": item["messages_per_second"]
        for name, item in document["fabric"].items()
    }
    figures |= {
        f"crash.{name}.images_per_minute": item["images_per_minute"]
        for name, item in document["crash"].items()
    }
    figures |= {
        f"{what}.{name}.transitions_per_second": item["transitions_per_second"]
        for what in ("prove", "coherence")
        for name, item in document[what].items()
    }
    noise = max(document["noise"][when]["spread"] for when in ("before", "after"))
    named = {"commit": _commit(), "processor": document["host"]["processor"]}
    return {**named, "noise": f"{noise:.3f}", **{key: f"{x:.4g}" for key, x in figures.items()}}


def with_line(text: str, new: dict[str, str]) -> str:
    """The file `text` with `new` at its end, in place of a line of the same commit and processor.

    Columns that one of the two does not have are empty there.
    """
    old = [row for row in csv.DictReader(io.StringIO(text)) if any(row[k] != new[k] for k in KEYS)]
    columns = list(dict.fromkeys([*(key for row in old for key in row), *new]))
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*old, new])
    return file.getvalue()


def append(document: Figures, path: Path = FILE) -> None:
    """Adds the figures of `document` to the history."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    documents.write_whole(path, with_line(text, line(document)))


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    # The benchmark itself writes to the docs, which no figure depends on.
    but_docs = (".", ":(exclude)docs")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *but_docs)
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+changes" if changed else "")
