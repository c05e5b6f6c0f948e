"""The sections behind the figures, as Markdown: docs/pcs.md and the report show the same ones.

The words are in sections/NAME.md.j2; here is what stands in their tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.figures import Value, formatted, ratio, with_error
from fencepost.hold_up import NJ_PER_BYTE
from fencepost.studies.pcs import (
    adaptive,
    assumptions,
    chains,
    cost,
    elapsed,
    key_values,
    stacks,
    tornado,
)
from fencepost.studies.pcs.study import (
    AVERAGE,
    BASELINE,
    ENTRIES,
    PROBED,
    SHORT_INSTRUCTIONS,
    SHORT_PM_WRITES,
    VARIES,
    Study,
    average,
    own_entries,
)

if TYPE_CHECKING:
    from fencepost.studies.pcs.pcs import Outcome

FOLDER = Path(__file__).parent

Values = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A section of the page, if the part that it is about was run."""

    name: str  # of its template
    part: str
    values: Callable[[Outcome], Values]


def render(template: str, values: Values) -> str:
    """A Markdown template of this folder."""
    # Only here, because most commands make no page and should start quickly.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


def sections(outcome: Outcome) -> dict[str, str]:
    """The Markdown of each section that there is something for, by name."""
    parts = {part.name for part in outcome.parts}
    return {
        one.name: render(f"sections/{one.name}.md.j2", one.values(outcome))
        for one in SECTIONS
        if not one.part or one.part in parts
    }


def _wear(outcome: Outcome) -> Values:
    study = outcome.study
    rows = []
    for name in study.names:
        baseline = study.value(study.cell(name, BASELINE), "explanation.pm_writes")
        for scheme in study.schemes:
            cell = study.cell(name, scheme)
            writes = study.value(cell, "explanation.pm_writes")
            rows.append(
                [
                    name,
                    scheme,
                    with_error(
                        study.value(cell, "simulated_ns"),
                        study.own_half_width(cell, "simulated_ns"),
                        1,
                        1000,
                    ),
                    formatted(study.value(cell, "persist.count"), ",.0f"),
                    formatted(writes, ",.0f"),
                    formatted(ratio(writes, baseline)),
                    formatted(study.value(cell, "persist_buffer.stall_ns"), ",.1f", 1000),
                ]
            )
    return {"rows": rows, "variant": _variant(study), "sampled": _sampled(study)}


def _sampled(study: Study) -> list[str]:
    """The programs of Figures 5 to 7 that were replayed in part."""
    runs = {name: study.run(study.cell(name, BASELINE)) for name in study.names}
    return [name for name, run in runs.items() if run and run.get("sampling")]


def _stacks(outcome: Outcome) -> Values:
    found = stacks.rows(outcome.study)
    kinds = []
    for kind, name in stacks.KINDS.items():
        parts = stacks.parts_met(found, kind)
        rows = [
            [
                row["program"],
                row["scheme"],
                with_error(row["latency_ns"], row["half_width_ns"], 1),
                formatted(row["total_ns"], ",.1f"),
                *(formatted(row["parts_ns"][part], ",.1f") for part in parts),
            ]
            for row in found
            if row["kind"] == kind
        ]
        kinds.append({"name": name, "parts": [_words(part) for part in parts], "rows": rows})
    return {
        "kinds": kinds,
        "variant": _variant(outcome.study),
        "sampled": _sampled(outcome.study),
    }


def _adaptive(outcome: Outcome) -> Values:
    rows: dict[str, list[str]] = {}
    found = outcome.adaptive
    assert found is not None
    for point in found["points"]:
        text = with_error(point["to_better"], point["half_width"])
        is_missed = point["to_better"] is not None and not point["holds"]
        rows.setdefault(point["program"], []).append(f"**{text}**" if is_missed else text)
    return {
        "adaptive": found,
        "adaptive_rows": [[name, *cells] for name, cells in rows.items()],
        "has_starts": any(point["starts"] > 1 for point in found["points"]),
        "short_instructions": f"{SHORT_INSTRUCTIONS:,}",
        "short_pm_writes": f"{SHORT_PM_WRITES:,}",
        "probed": PROBED,
        "varies": 100 * VARIES,
        "starts": max(point["starts"] for point in found["points"]),
        "sizes": ENTRIES,
        "own_entries": own_entries(),
        "ends": adaptive.ends(found["points"]),
        "average_above": adaptive.AVERAGE_ABOVE,
        "losses": adaptive.losses(found["elsewhere"]),
    }


def _cost(outcome: Outcome) -> Values:
    found = outcome.cost
    rows = []
    for row in found:
        cells = [str(row["entries"]), row["scheme"]]
        cells += [f"{row[name]:,}" for name in cost.COUNTED[:-1]]
        speedup = with_error(row["speedup"], row["half_width"])
        rows.append([*cells, f"{row['energy_uj']:,.1f}", speedup])
    names = outcome.study.names
    return {
        "rows": rows,
        "nj_per_byte": NJ_PER_BYTE,
        "programs": names[0] if len(names) == 1 else f"all {len(names)} programs",
        "ends": adaptive.ends(outcome.adaptive["points"]) if outcome.adaptive else "",
    }


def _levels(outcome: Outcome) -> Values:
    study = outcome.study
    buffered = [scheme for scheme in study.schemes if scheme != BASELINE]
    rows = []
    for variant, by_program in by_level(study).items():
        for index, scheme in enumerate(buffered):
            values = [by_program.get(name, (None,) * len(buffered))[index] for name in study.names]
            rows.append([variant, scheme, *map(formatted, [*values, average(values)])])
    return {"rows": rows, "names": [*study.names, AVERAGE]}


def by_level(study: Study) -> dict[str, dict[str, tuple[Value, ...]]]:
    """Speedups by variant and program, in the order of the schemes that have a buffer."""
    found: dict[str, dict[str, tuple[Value, ...]]] = {}
    for program in study.programs:
        for variant in (program.levels[0], *study.other_variants(program)):
            cells = [study.cell(program.name, scheme, variant=variant) for scheme in study.schemes]
            speedups = tuple(study.mean_speedup(cell) for cell in cells if cell.scheme != BASELINE)
            found.setdefault(variant, {})[program.name] = speedups
    return found


def _assumptions(outcome: Outcome) -> Values:
    found = outcome.sensitivity
    assert found is not None
    losers = [f"{name} {scheme}" for name, scheme in found.loser_columns]
    return {
        "pm_writes": f"{assumptions.PM_WRITES:,}",
        "programs": ", ".join(assumptions.taken(outcome.study).names),
        "columns": [*found.bars, *losers],
        "moves": tornado.moves(found),
        "holding": found.holding,
        "last_start": assumptions.STARTS - 1,
        "decided": tornado.decided(found),
        "undecided": tornado.undecided(found),
    }


def _chains(outcome: Outcome) -> Values:
    return {"rows": chains.table(outcome.study)}


def _hosts(outcome: Outcome) -> Values:
    measured = outcome.study.key_values
    assert measured is not None
    return {
        "rows": key_values.table(measured),
        "prices": key_values.prices(measured),
        "latencies": key_values.latencies(measured),
        "hosts": key_values,
    }


def _elapsed(outcome: Outcome) -> Values:
    found = outcome.elapsed_rows
    rows = [
        [
            f"`{row['part']}`",
            row["title"],
            str(row["records"]),
            elapsed.duration(row["recording_seconds"]),
            f"{row['replays']:,}",
            elapsed.duration(row["seconds"]),
        ]
        for row in found
    ]
    if len(found) > 1:
        sums = {key: sum(row[key] for row in found) for key in elapsed.COUNTED}
        times = [elapsed.duration(sums[key]) for key in ("recording_seconds", "seconds")]
        counts = [f"{sums[key]:,}" for key in ("records", "replays")]
        rows.append(["", "in all", counts[0], times[0], counts[1], times[1]])
    return {"rows": rows, "jobs": outcome.jobs}


# In their order on the page.
SECTIONS = (
    Section("wear", "schemes", _wear),
    Section("stacks", "schemes", _stacks),
    Section("adaptive", "sizes", _adaptive),
    Section("cost", "schemes", _cost),
    Section("levels", "levels", _levels),
    Section("assumptions", "assumptions", _assumptions),
    Section("chains", "chains", _chains),
    Section("hosts", "hosts", _hosts),
    Section("elapsed", "", _elapsed),
)


def _variant(study: Study) -> str:
    levels = dict.fromkeys(program.levels[0] for program in study.programs)
    return ", ".join(f"`{level}`" for level in levels)


def _words(name: str) -> str:
    return name.replace("_", " ").replace("pb", "PB")
