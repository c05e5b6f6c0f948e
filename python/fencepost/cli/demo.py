"""`fencepost demo`: a first record, comparison and report, made by the commands that it shows."""

import shlex
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from fencepost import recording, scratch
from fencepost.built import needed
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.replay import Jobs, Quiet, compare
from fencepost.schemes import PUBLISHED
from fencepost.tree import WORKLOADS

MACHINE = "pcs-table1"
SCHEMES = ",".join(PUBLISHED)
PROGRAM, ARGUMENTS = "fft", ["-m12", "-p8", "--flush", "clflush"]
RECORD, RESULT, REPORT = f"{PROGRAM}.fencepost", "result.json", "report.html"


@app.command()
def demo(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the files go.")
    ] = Path("fencepost-demo"),
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Record an example program, compare three persist-buffer schemes, write a report.

    The program is an FFT on eight threads that persists its results, on a machine whose persistent
    memory is behind one CXL switch. It takes less than a minute.
    """
    program = needed(WORKLOADS / PROGRAM)
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    outputs.check_folder("--output", folder)
    try:
        # All that is made goes to its place in the end: an interrupted demo leaves nothing.
        with scratch.made(folder) as made:
            _show("record", "-o", folder / RECORD, "--", program, *ARGUMENTS)
            command = [str(program), *ARGUMENTS]
            recording.record_to(made / RECORD, [], command, subprocess.DEVNULL)
            files = {"--json": RESULT, "--report": REPORT}
            shown = [word for option, name in files.items() for word in (option, folder / name)]
            _show("compare", MACHINE, "--schemes", SCHEMES, *shown, folder / RECORD)
            compare(
                context,
                [MACHINE, str(made / RECORD)],
                schemes=SCHEMES,
                json_file=made / RESULT,
                report_file=made / REPORT,
                jobs=jobs,
                quiet=quiet,
            )
            for name in (RECORD, RESULT, REPORT):
                (made / name).replace(folder / name)
    finally:
        for each in new:
            if each.exists() and not any(each.iterdir()):
                each.rmdir()
    for name, purpose in (
        (RECORD, "what the program did; replay it on any machine"),
        (RESULT, "every figure"),
        (REPORT, "open it in a browser"),
    ):
        print(f"{folder / name}: {purpose}")


def _show(*command: object) -> None:
    """A command as one would type it, before it is run."""
    line = shlex.join(["fencepost", *map(str, command)])
    console.output().print(f"$ {line}", soft_wrap=True, markup=False)
