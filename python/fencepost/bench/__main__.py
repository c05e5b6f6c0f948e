"""Measures everything, says it line by line, and writes the named file and the docs' figures."""

import sys
import time
from pathlib import Path

from fencepost import built, documents, scratch
from fencepost.bench import (
    Figures,
    crash,
    fabric,
    history,
    noise,
    page,
    prove,
    recording,
    reference,
    replay,
    study,
    sweeps,
    targets,
    this_machine,
)


def main(output: Path) -> None:
    """Measures; `output` is the document, the history gets its line, the page its tables."""
    start = time.perf_counter()
    print(f"simulator: {built.slower_than() or 'the optimised build'}")
    before = noise.measure()
    with scratch.made() as folder:
        recorded = recording.programs(folder)
        document: Figures = {
            "host": this_machine(),
            "record": {p.name: recording.measure(p, folder) for p in recorded},
            "replay": {p.name: replay.measure(p, folder) for p in replay.programs()},
            "memory": replay.measure_lengths(folder),
            "reference": reference.measure(folder),
            "fabric": fabric.measure(),
            "crash": crash.measure(folder),
            "prove": prove.measure(folder),
            "coherence": prove.measure_coherence(folder),
            "study": study.measure(folder),
            "sweep": sweeps.measure(folder),
        }
    document["noise"] = {"before": before, "after": noise.measure()}
    for when, figures in document["noise"].items():
        print(f"noise {when}: the same work takes up to {figures['spread']:.0%} longer")
    document["seconds"] = time.perf_counter() - start
    reached = list(targets.targets(document))
    document["targets"] = [target.to_json() for target in reached]
    documents.write_json(output, document)
    history.append(document)
    page.write(document)
    for target in reached:
        print(target.line())
    print(output)
    print(f"bench: {sum(target.holds for target in reached)} of {len(reached)} targets hold")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
