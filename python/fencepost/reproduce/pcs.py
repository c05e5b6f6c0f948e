"""The study "The Case for Persistent CXL switches", part by part; its outcome as one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from fencepost import machines
from fencepost._core import __version__
from fencepost.figures import Value
from fencepost.reproduce import adaptive, chains, key_values, pictures, tornado
from fencepost.reproduce.claims import Claim, claims
from fencepost.reproduce.replays import MACHINE, Cell, Replays, Watch
from fencepost.reproduce.study import BASELINE, Study

Document = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A part of the study that can be asked for alone."""

    name: str
    title: str
    cells: Callable[[Study], Iterator[Cell]]


PARTS = (
    Part("schemes", "Figures 5 to 7: the schemes on every program", Study.headline),
    Part("switches", "Figure 1: persist latency behind switches", Study.behind_switches),
    Part("entries", "Figure 8: the size of the persist buffer", Study.entries),
    Part("levels", "How often programs persist, and persists inserted for them", Study.variants),
    Part("assumptions", "What the study leaves open, one by one", Study.assumptions),
    Part("sizes", "A scheme that never loses, at every size of the buffer", adaptive.cells),
    Part("chains", "Chains and trees of switches, and where persists are accepted", chains.cells),
    Part("hosts", "Several hosts with keys of their own and shared ones", lambda _: iter(())),
)

# Figure, metric, label of the axis.
BAR_FIGURES = (
    ("fig5", "speedup_over_nopb", "speedup over nopb"),
    ("fig6a", "persist_latency_over_nopb", "persist latency over nopb"),
    ("fig6b", "read_latency_over_nopb", "PM read latency over nopb"),
    ("fig7a", "pb_read_hit_rate", "reads answered by the buffer"),
    ("fig7b", "write_coalescing_rate", "writes merged in the buffer"),
)


@dataclass(frozen=True)
class Outcome:
    """All that came of the parts that were run."""

    study: Study
    parts: list[Part]
    claims: list[Claim]
    tornado: dict[str, list[tornado.Bar]]
    adaptive: Document | None  # the part `sizes`
    pictures: dict[str, str]  # SVG by name

    @property
    def document(self) -> Document:
        """docs/pcs.md says what its members are."""
        return {
            "provenance": {
                "fencepost": __version__,
                "study": "pcs",
                "parts": [part.name for part in self.parts],
                "machine": machines.resolve(MACHINE, []),
                "programs": [asdict(program) for program in self.study.programs],
            },
            "rows": [claim.entry() for claim in self.claims],
            "runs": [self._entry(cell) for part in self.parts for cell in part.cells(self.study)],
            "assumptions": {
                title: [{"width": bar.width, **asdict(bar)} for bar in bars]
                for title, bars in self.tornado.items()
            },
            "adaptive": self.adaptive,
            "chains": chains.rows(self.study) if self._has("chains") else [],
            "hosts": self.study.key_values.rows if self.study.key_values else [],
        }

    def _has(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)

    def _entry(self, cell: Cell) -> Document:
        run = self.study.run(cell)
        figures = {path: self.study.value(cell, path) for path in RUN_FIGURES}
        said = {name: value for name, value in asdict(cell).items() if name != "limit"}
        return {**said, "failed": run is None, **figures}

    @property
    def failures(self) -> list[str]:
        """The replays that failed, for people."""
        cells = [cell for part in self.parts for cell in part.cells(self.study)]
        return [cell.label for cell in dict.fromkeys(cells) if self.study.run(cell) is None]


# What the document has of each run; the whole result stays in the folder of replays.
RUN_FIGURES = (
    "simulated_ns",
    "instructions",
    "persist.count",
    "persist.latency_ns.mean",
    "llc_read.count",
    "llc_read.latency_ns.mean",
    "fence_stall.total_ns",
    "persist_buffer.read_hit_rate",
    "persist_buffer.write_coalescing_rate",
    "persist_buffer.stall_ns",
    "explanation.pm_writes",
)


def reproduce(study: Study, replays: Replays, parts: list[Part], watch: Watch) -> Outcome:
    """Does what is missing of the parts, and reads everything off."""
    replays.run((cell for part in parts for cell in part.cells(study)), watch)
    names = {part.name for part in parts}
    if "hosts" in names:
        study.key_values = key_values.KeyValues(replays.folder, replays.jobs)
        study.key_values.run(watch)
    found = claims(study, names)
    bars = tornado.bars(study) if "assumptions" in names else {}
    drawn: dict[str, str] = {}
    if "schemes" in names:
        for figure, metric, label in BAR_FIGURES:
            drawn[figure] = pictures.bars(study, found, metric, label)
    if "switches" in names and list(study.behind_switches()):
        drawn["fig1"] = pictures.switches(study, found)
    if "entries" in names:
        drawn["fig8"] = pictures.entries(study)
    if "chains" in names:
        drawn["chains"] = chains.picture(study)
    if study.key_values:
        drawn["hosts"] = key_values.picture(study.key_values)
    if bars:
        drawn["tornado"] = pictures.tornado(bars)
    sized = adaptive.document(study) if "sizes" in names else None
    if sized:
        drawn["adaptive"] = adaptive.picture(study)
    return Outcome(study, parts, found, bars, sized, drawn)


def by_level(study: Study) -> dict[str, dict[str, tuple[Value, ...]]]:
    """Speedups by variant and program, in the order of the schemes that have a buffer."""
    found: dict[str, dict[str, tuple[Value, ...]]] = {}
    for program in study.programs:
        for variant in (program.levels[0], *study.other_variants(program)):
            cells = [study.cell(program.name, scheme, variant=variant) for scheme in study.schemes]
            speedups = tuple(study.speedup(cell) for cell in cells if cell.scheme != BASELINE)
            found.setdefault(variant, {})[program.name] = speedups
    return found
