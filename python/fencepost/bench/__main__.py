"""Measures everything, says it line by line, writes the file that is named."""

import sys
import tempfile
from pathlib import Path

from fencepost import documents
from fencepost.bench import fabric, history, noise, recording, reference, replay, this_machine


def main(output: Path) -> None:
    """Measures; `output` is the document, the history gets its line."""
    before = noise.measure()
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as name:
        folder = Path(name)
        recorded = recording.programs(folder)
        document = {
            "host": this_machine(),
            "record": {p.name: recording.measure(p, folder) for p in recorded},
            "replay": {p.name: replay.measure(p, folder) for p in replay.programs()},
            "memory": replay.measure_lengths(recorded[-1].record_path(folder), folder),
            "reference": reference.measure(folder),
            "fabric": fabric.measure(),
        }
    document["noise"] = {"before": before, "after": noise.measure()}
    for when, figures in document["noise"].items():
        print(f"noise {when}: the same work takes up to {figures['spread']:.0%} longer")
    documents.write_json(output, document)
    history.append(document)
    print(output)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
