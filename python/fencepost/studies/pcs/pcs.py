"""The study "The Case for Persistent CXL switches", part by part; its outcome as one document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fencepost import evidence_shape, machines, reliability
from fencepost.replay import LIMITS
from fencepost.rows.row import Row
from fencepost.runs.cells import Watch
from fencepost.runs.simulator import simulator
from fencepost.runs.task import Run
from fencepost.studies.pcs import (
    adaptive,
    assumptions,
    chains,
    cost,
    elapsed,
    key_values,
    pictures,
    series,
    stacks,
    tornado,
)
from fencepost.studies.pcs.claims import Claim, claims
from fencepost.studies.pcs.reasons import explained
from fencepost.studies.pcs.replays import (
    MACHINE,
    QUICK_INSTRUCTIONS,
    QUICK_PLAN,
    Cell,
    Replays,
)
from fencepost.studies.pcs.study import Cells, Study
from fencepost.studies.study import Outcome as StudyOutcome
from fencepost.studies.study import Part as StudyPart

Document = dict[str, Any]


@dataclass(frozen=True)
class Part(StudyPart):
    """A part of the study that can be asked for alone, with its replays."""

    cells: Cells


PARTS = (
    Part("schemes", "Figures 5 to 7: the schemes on every program", Study.headline),
    Part("switches", "Figure 1: persist latency behind switches", Study.behind_switches),
    Part("entries", "Figure 8: the size of the persist buffer", Study.entries),
    Part("levels", "How often programs persist, and persists inserted for them", Study.variants),
    Part("assumptions", "What the study leaves open, one by one", assumptions.cells),
    Part("sizes", "The third scheme at every size of the buffer", adaptive.cells),
    Part("chains", "Chains and trees of switches, and where persists are accepted", chains.cells),
    Part("hosts", "Several hosts with keys of their own and shared ones", Study.headline),
)

QUICK_PARTS = ("schemes", "switches")


@dataclass(frozen=True)
class Outcome(StudyOutcome):
    """All that came of the parts that were run."""

    study: Study
    replays: Replays
    parts: list[Part]
    claims: list[Claim]
    sensitivity: tornado.Sensitivity | None  # the part `assumptions`
    adaptive: Document | None  # the part `sizes`
    figures: dict[str, series.Figure]
    pictures: dict[str, str]  # SVG by file name
    programs_file: str | None = None  # whoever's, if not the study's own

    @property
    def rows(self) -> Sequence[Row]:  # type: ignore[override]
        """The published figures."""
        return self.claims

    @property
    def markdown(self) -> str:
        """docs/pcs.md."""
        from fencepost.studies.pcs import page

        return page.markdown(self)

    @property
    def report(self) -> str:
        """The report for a browser."""
        from fencepost.studies.pcs import report

        return report.html(self)

    @property
    def tornado(self) -> dict[str, list[tornado.Bar]]:
        """The bars of the assumptions, by figure."""
        return self.sensitivity.bars if self.sensitivity else {}

    @property
    def document(self) -> Document:
        """experiments/pcs/README.md says what its members are."""
        return {
            "provenance": self.provenance,
            "rows": [claim.entry() for claim in self.claims],
            "figures": {name: figure.entry() for name, figure in self.figures.items()},
            "runs": [self._entry(cell) for cell in self._cells],
            "stacks": stacks.rows(self.study) if self._has("schemes") else [],
            "cost": self.cost,
            "assumptions": self.sensitivity.document if self.sensitivity else None,
            "adaptive": self.adaptive,
            "chains": chains.rows(self.study) if self._has("chains") else [],
            "hosts": self.study.key_values.rows if self.study.key_values else [],
            "elapsed": self.elapsed_rows,
        }

    @property
    def provenance(self) -> Document:
        """All that is needed to do it again."""
        is_quick = self.replays.is_quick
        return {
            **evidence_shape.provenance(),
            "simulator": simulator()[:16],
            "study": "pcs",
            "parts": [part.name for part in self.parts],
            "quick": is_quick,
            "sample": QUICK_PLAN if is_quick else None,
            "sample_above_instructions": QUICK_INSTRUCTIONS if is_quick else None,
            "limit_pm_writes": self.study.limit,
            "limit_instructions": self.study.limit_instructions,
            "schemes": list(self.study.schemes),
            "programs_file": self.programs_file,
            "programs": [asdict(program) for program in self.study.programs],
            "records": self.records,
            "machine": machines.resolve(MACHINE, []),
        }

    @property
    def command(self) -> str:
        """What has to be typed for this outcome."""
        words = ["fencepost", "reproduce", "pcs"]
        names = [part.name for part in self.parts]
        usual = QUICK_PARTS if self.replays.is_quick else tuple(part.name for part in PARTS)
        words += ["--quick"] if self.replays.is_quick else []
        words += [] if set(names) == set(usual) else [f"--part {name}" for name in names]
        words += [f"--programs {shlex.quote(self.programs_file)}"] if self.programs_file else []
        return " ".join(words)

    @property
    def records(self) -> list[Document]:
        """What was replayed, as the provenance of a result has it."""
        keys = dict.fromkeys((cell.program, cell.variant) for cell in self._cells)
        return [
            {"name": key[0], "variant": key[1], **self.replays.records[key].provenance}
            for key in keys
        ]

    @property
    def cost(self) -> list[Document]:
        """What the schemes cost in hardware, and what they gain."""
        return cost.rows(self.study, {part.name for part in self.parts})

    @property
    def elapsed_rows(self) -> list[Document]:
        """What each part took."""
        return elapsed.rows(self.study, self.replays, self.parts)

    @property
    def elapsed(self) -> list[str]:
        """The same, a line each."""
        return [
            f"{row['part']}: {row['replays']} replays, {row['records']} records, "
            f"{elapsed.duration(row['seconds'])}"
            for row in self.elapsed_rows
        ]

    @property
    def _cells(self) -> list[Cell]:
        cells = (cell for part in self.parts for cell in self.study.cells(part.cells))
        return list(dict.fromkeys(cells))

    @property
    def jobs(self) -> int:
        """Replays at once."""
        return self.replays.lab.jobs

    def _has(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)

    def _entry(self, cell: Cell) -> Document:
        run = self.study.run(cell)
        figures = {path: self.study.value(cell, path) for path in RUN_FIGURES}
        options = self.replays.options(cell)
        chosen = {name: options[name] for name in ("pm", "persist", *LIMITS, "sample")}
        said = {name: value for name, value in asdict(cell).items() if name not in ENDS}
        trust = reliability.members(run or {})
        return {**said, **chosen, "failed": run is None, **trust, **figures}

    @property
    def runs(self) -> list[tuple[str, Run]]:
        """By the labels of cells."""
        return [(cell.label, self.replays[cell]) for cell in self._cells]


ENDS = ("limit", "limit_instructions")  # of a cell; the options say them

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


def reproduce(
    study: Study,
    replays: Replays,
    parts: list[Part],
    watch: Watch,
    programs_file: str | None = None,
) -> Outcome:
    """Does what is missing of the parts, and reads everything off."""
    lab = replays.lab
    study.replay([part.cells for part in parts], watch)
    names = {part.name for part in parts}
    if "hosts" in names:
        study.key_values = key_values.KeyValues(lab)
        study.key_values.run(watch)
    found = explained(claims(study, names), study, names)
    sensitivity = tornado.measure(study) if "assumptions" in names else None
    sized = adaptive.document(study, names) if "sizes" in names else None
    figures = series.figures(study, found, sensitivity.bars if sensitivity else {}, names)
    # A quick look is at the report, which draws for itself.
    svgs = {} if replays.is_quick else drawn(study, found, sensitivity, names)
    return Outcome(study, replays, parts, found, sensitivity, sized, figures, svgs, programs_file)


def drawn(
    study: Study, found: list[Claim], sensitivity: tornado.Sensitivity | None, names: set[str]
) -> dict[str, str]:
    """The pictures of the page, as far as the parts were run: SVG by file name."""
    svgs: dict[str, str] = {}
    if "schemes" in names:
        for figure, metric, label in series.BAR_FIGURES:
            svgs[figure] = pictures.bars(study, found, metric, label)
    if "switches" in names and list(study.behind_switches()):
        svgs["fig1"] = pictures.switches(study, found)
    if "entries" in names:
        svgs["fig8"] = pictures.entries(study)
    if "chains" in names:
        svgs["chains"] = chains.picture(study)
    if study.key_values:
        svgs["hosts"] = key_values.picture(study.key_values)
    if sensitivity:
        svgs["tornado"] = tornado.picture(sensitivity)
        svgs["decided"] = tornado.matrix(sensitivity)
    if "sizes" in names:
        svgs["adaptive"] = adaptive.picture(study)
    return {f"pcs-{name}.svg": svg for name, svg in svgs.items()}
