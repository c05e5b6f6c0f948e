"""`fencepost calibrate`: values of unpublished keys so that measured rows come out."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, machines, studies
from fencepost._core import InputError
from fencepost.calibrate import data, machine_file, mlc, page, study_rows, text
from fencepost.calibrate.calibration import Plan
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.numbers import COUNT_MAX
from fencepost.progress import WholeWatch
from fencepost.rows.row import last_line


def _studies() -> list[str]:
    """Those with rows that may be set."""
    return [study.name for study in studies.STUDIES if study.can_be_set]


MEASURE_US = 100.0  # simulated, of a row


@app.command("calibrate")
def calibrate_command(
    machine: MachineName,
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            metavar="FILE|STUDY",
            help="Rows (CSV), what Intel MLC printed, or a study with rows that may be set "
            f"({', '.join(_studies())}).",
        ),
    ],
    free: Annotated[
        list[str] | None,
        typer.Option(
            "--free",
            metavar="KEY=LO..HI",
            help="A key of a device, of links or of the fabric, and its range; repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.toml", help="The machine found.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything found.")
    ] = None,
    page_file: Annotated[
        Path | None, typer.Option("--page", metavar="FILE.md", help="Write it as a page.")
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="Keep these rows from the search; repeatable."),
    ] = None,
    cross_validate: Annotated[
        bool,
        typer.Option("--cross-validate", help="Search again without each group of set rows."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Only rows of a study whose condition has this; repeatable."
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="N=MEMORY",
            help="The memory that a NUMA node of MLC is (default: 0 is dram, 1 what is behind "
            "the fabric); repeatable.",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Machines that are searched (default: 24 per key)."),
    ] = None,
    alike: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=100,
            metavar="PERCENT",
            help="How much more error still fits as well: the noise of the measurement.",
        ),
    ] = 1.0,
    measure_us: Annotated[
        float | None,
        typer.Option(min=1, max=1e6, help="Simulated time of a row (100)."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=COUNT_MAX, help="Seed of the search and of the traffic.")
    ] = 0,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the unfinished search is kept (default: out/calibrate).",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Rows at once (default: one per processor)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Fit unpublished values of a machine to measured latencies and bandwidths.

    After an interruption, the same command continues where it stopped.
    """
    is_study = str(to) in _studies()
    inputs = [machines.file_of(machine), *([] if is_study else [to])]
    files = {"--output": output, "--json": json_file, "--page": page_file, "--journal": journal}
    outputs.check(files, inputs)
    if output is not None:
        machine_file.check_place(machine, output)
    machines.resolve(machine, [])  # a machine that there is not is said before what is wrong of it
    if not is_study and len(to.parts) == 1 and not to.suffix and not to.exists():
        raise InputError(
            f"--to {to}: there is no such file, nor study; studies: {', '.join(_studies())}"
        )
    written = "" if is_study else data.text_of(to)
    notes: list[str] = []
    if is_study and (nodes or measure_us is not None):
        option = f"--node {nodes[0]}" if nodes else f"--measure-us {measure_us:g}"
        raise InputError(f"{option}: it is of synthetic traffic, and {to} is a study")
    if only and not is_study:
        raise InputError(f"--only {only[0]}: {to} is a file; leave its other rows out there")
    if is_study:
        targets = study_rows.targets(studies.study(str(to)).set_rows(), machine, only or [])
    elif mlc.is_output(written):
        targets, notes = mlc.rows(written, str(to), mlc.memories(machine, nodes or []))
    elif nodes:
        raise InputError(f"--node {nodes[0]}: {to} is a CSV file, whose rows name their memory")
    else:
        targets = data.from_csv(written, str(to))
        notes += [
            f"{to}: {row.condition}: so near to the bandwidth, a latency says how many requests "
            "were under way"
            for row in data.saturated(targets)
        ]
    plan = Plan.checked(
        machine,
        free or [],
        data.held_out(targets, hold_out or []),
        draws=draws,
        alike=alike / 100,
        measure_ns=(measure_us or MEASURE_US) * 1000,
        seed=seed,
        is_cross_validated=cross_validate,
    )
    for note in notes:
        console.warn(note)
    with WholeWatch(console.messages(), quiet, "machines") as watch:
        found = plan.run(jobs or os.cpu_count() or 1, watch.show_count, journal)
    name = to.name
    rows = plan.rows(found)
    try:
        if output is not None:
            documents.write_whole(output, machine_file.text(found, name))
        if json_file is not None:
            documents.write_json(json_file, found)
        if page_file is not None:
            documents.write_page(page_file, page.markdown(found, rows, name))
    finally:  # a full disk costs files, and not what was found
        text.show(found, name, console.output())
        print(last_line("calibrate", rows))
