"""`fencepost measure stream`: the bandwidth of this machine's memories."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost import documents, machines, terminal
from fencepost._core import InputError
from fencepost.cli import console, outputs
from fencepost.cli.exit_codes import CHECK_FAILED
from fencepost.cli.measure.group import group
from fencepost.measure.stream import against, plot, study, text, threads
from fencepost.measure.stream.document import RUNS_MAX, Plan, Settings, measure, plan
from fencepost.measure.stream.memories import NAMES
from fencepost.measure.stream.point import ACCESSES, AFFINITIES, MODES, STORES, Point, check
from fencepost.measure.stream.program import Libraries
from fencepost.measure.topology import nodes
from fencepost.measure.topology.document import Topology
from fencepost.measure.topology.tree import as_list, listed
from fencepost.schemes import VOLATILE

REPETITIONS_MAX = 1000
ELEMENTS_LEAST = 1024
ELEMENTS_MAX = 1 << 36

Document = dict[str, Any]


@group.command("stream")
def stream_command(
    memory: Annotated[
        list[str] | None,
        typer.Option(metavar="WHERE", help=f"{', '.join(NAMES)}; repeatable (default: local)."),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="memory, or app-direct: arrays in a libpmemobj pool.")
    ] = "memory",
    thread_counts: Annotated[
        str | None,
        typer.Option(
            "--threads", metavar="LIST", help="As 1-8 or 1,2,4; N is all (default: all cores)."
        ),
    ] = None,
    affinity: Annotated[
        str, typer.Option(help="close: one socket after the other; spread: in turn.")
    ] = "close",
    sockets: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Sockets that compute (default: the first)."),
    ] = None,
    smt: Annotated[
        bool, typer.Option("--smt", help="Use both hardware threads of a core.")
    ] = False,
    first_touch: Annotated[
        bool,
        typer.Option(
            "--first-touch/--no-first-touch", help="Each thread touches its own part first."
        ),
    ] = True,
    stores: Annotated[
        str, typer.Option(help="ordinary, non-temporal, or library: copy by memcpy.")
    ] = "ordinary",
    access: Annotated[
        str | None,
        typer.Option(help="pointer, or d_rw for each element (default in a pool: d_rw)."),
    ] = None,
    persist: Annotated[
        str,
        typer.Option(metavar="WHAT", help="none, kernel, block:N or transaction[:N]."),
    ] = "none",
    pool_folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the pool (default: on DAX, or a file in memory)."
        ),
    ] = None,
    elements: Annotated[
        int | None,
        typer.Option(
            min=ELEMENTS_LEAST,
            max=ELEMENTS_MAX,
            help="Elements of an array (default: 100 million or more).",
        ),
    ] = None,
    repetitions: Annotated[
        int, typer.Option(min=2, max=REPETITIONS_MAX, help="Repetitions of each kernel in a run.")
    ] = 10,
    runs: Annotated[
        int, typer.Option(min=2, max=RUNS_MAX, help="Runs of the program for each point.")
    ] = 5,
    is_study: Annotated[
        bool, typer.Option("--study", help="The groups 1a to 2b of the published study.")
    ] = False,
    simulate: Annotated[
        str | None,
        typer.Option(metavar="MACHINE", help="Record the same program and replay it there."),
    ] = None,
    scheme: Annotated[str, typer.Option(help="Scheme of the simulated machine.")] = VOLATILE,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a key of that machine."),
    ] = None,
    place: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHERE=NODE", help="Which node of that machine a memory is; repeatable."
        ),
    ] = None,
    simulate_elements: Annotated[
        int | None,
        typer.Option(
            min=ELEMENTS_LEAST,
            max=ELEMENTS_MAX,
            help="Elements of a simulated array (default: 4 times its LLC, 4 million at most).",
        ),
    ] = None,
    against_file: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE.json", help="Compare with another measurement."),
    ] = None,
    libnuma: Annotated[str, typer.Option(help="The library's name or path.")] = "libnuma.so.1",
    libpmemobj: Annotated[
        str, typer.Option(help="The library's name or path.")
    ] = "libpmemobj.so.1",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured.")
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write a line for each rate.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw rates by threads.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """STREAM's four kernels on this machine's memories, near and far; exit 1 if they are wrong."""
    outputs.check_svg("--plot", plot_file)
    inputs = [
        path for path in (against_file, machines.file_of(simulate) if simulate else None) if path
    ]
    outputs.check({"--json": json_file, "--csv": csv_file, "--plot": plot_file}, inputs)
    if simulate is None and (sets or place or simulate_elements or scheme != VOLATILE):
        raise InputError(
            "--scheme, --set, --place and --simulate-elements are of a simulated machine: name one "
            "by --simulate"
        )
    for option, name, names in (
        ("--mode", mode, MODES),
        ("--affinity", affinity, AFFINITIES),
        ("--stores", stores, STORES),
        ("--access", access, (*ACCESSES, None)),
    ):
        if name not in names:
            raise InputError(f"{option} {name}: it is {' or '.join(filter(None, names))}")
    other = None if against_file is None else against.read(against_file)
    topology = Topology()
    point = Point(
        mode=mode,
        sockets=_sockets(topology, sockets),
        affinity=affinity,
        smt=smt,
        first_touch=first_touch,
        access=access or ("d_rw" if mode == "app-direct" and stores == "ordinary" else "pointer"),
        stores=stores,
        persist=persist,
    )
    check(point)
    if pool_folder is not None and mode == "memory" and not is_study:
        raise InputError("--pool-folder is of a pool: --mode app-direct")
    if pool_folder is not None and memory:
        raise InputError("--pool-folder says where the pool lies: leave out --memory")
    if is_study:
        _refuse_with_study(point, memory, sockets, pool_folder)
        wanted = list(study.points(_usable_sockets(topology)))
    else:
        usual = "local" if pool_folder is None else str(pool_folder)
        where = dict.fromkeys(memory or [usual])
        wanted = [(replace(point, memory=one), None) for one in where]
    settings = Settings(runs, repetitions, elements, pool_folder, Libraries(libnuma, libpmemobj))
    found = plan(topology, settings, wanted, _counts(thread_counts, is_study), is_study=is_study)
    with console.messages().status("") as status:

        def watch(said: str) -> None:
            if not quiet:
                status.update(said)

        document = _measured(
            topology,
            settings,
            found,
            simulate,
            scheme,
            sets or [],
            place or [],
            simulate_elements,
            watch,
        )
    if other is not None:
        document["against"] = against.compare(document, other, str(against_file))
    try:
        if json_file is not None:
            documents.write_json(json_file, document)
        if csv_file is not None:
            documents.write_whole(csv_file, text.as_csv(document))
        if plot_file is not None:
            documents.write_whole(plot_file, plot.svg(document))
    finally:  # a full disk costs files, and not what was measured
        _print(document)
    if not all(one["validated"] for one in document["results"]):
        raise typer.Exit(CHECK_FAILED)
    if simulate is not None and not document["simulated"]:
        raise InputError(f"--simulate {simulate}: no point could be simulated, as said above")


def _measured(
    topology: Topology,
    settings: Settings,
    found: Plan,
    simulate: str | None,
    scheme: str,
    sets: list[str],
    place: list[str],
    elements: int | None,
    watch: Callable[[str], None],
) -> Document:
    if simulate is None:
        return measure(topology, settings, found, watch)
    from fencepost.api import Machine  # the simulator: only where it is asked for
    from fencepost.measure.stream import simulated

    machine = Machine(simulate, machines.name_of(simulate), tuple(sets))
    length = elements or simulated.elements_for(machine)
    simulation = simulated.Simulation(machine, scheme, dict(map(_pair, place)), length)
    # What is wrong is said before anything is measured.
    simulated.check(simulation, [placed.point.memory for placed in found.placed])
    document = measure(topology, settings, found, watch)
    simulated.add(document, found, simulation, watch)
    return document


def _pair(rule: str) -> tuple[str, str]:
    memory, equals, node = rule.partition("=")
    if not (memory and equals and node):
        raise InputError(f"--place {rule}: it is WHERE=NODE, such as cxl=expander0")
    return memory, node


def _sockets(topology: Topology, text_of_list: str | None) -> tuple[int, ...]:
    """Those asked for, or the first of which this process may use a processor."""
    usable = _usable_sockets(topology)
    if text_of_list is None:
        return (usable[0],)
    wanted = listed(text_of_list)
    if not wanted or not set(wanted) <= set(usable):
        raise InputError(
            f"--sockets {text_of_list}: processors are allowed on socket {as_list(usable)}"
        )
    return tuple(wanted)


def _usable_sockets(topology: Topology) -> list[int]:
    """Those of which this process may use a processor."""
    allowed = set(nodes.allowed_processors())
    each = topology.sockets.items()
    return [socket for socket, own in each if {processor.number for processor in own} & allowed]


def _counts(text_of_list: str | None, is_study: bool) -> Callable[[Point, int], list[int]]:
    """All cores, as asked, or in the study from 1 to all cores."""

    def of(_: Point, most: int) -> list[int]:
        if text_of_list is None:
            return list(range(1, most + 1)) if is_study else [most]
        return threads.counts(text_of_list, most)

    return of


def _refuse_with_study(
    point: Point, memory: list[str] | None, sockets: str | None, folder: Path | None
) -> None:
    """What the study fixes."""
    usual = Point(sockets=point.sockets)
    if memory or sockets or folder or point != usual:
        raise InputError(
            "--study fixes memories, mode, sockets, affinity, access, stores and what is "
            "persisted; beside it --threads, --elements, --repetitions and --runs "
            "can be given"
        )


def _print(document: Document) -> None:
    for line in (*text.summary(document), *text.stream_layout(document)):
        terminal.print_line(console.output(), line)
    print()
    terminal.print_table(console.output(), text.table(document))
    simulated_on = document.get("simulated_on", {"skipped": [], "notes": []})
    for skipped in simulated_on["skipped"]:
        terminal.print_line(
            console.output(), f"not simulated: {skipped['name']}: {skipped['reason']}"
        )
    for note in simulated_on["notes"]:
        terminal.print_line(console.output(), note)
    if "against" in document:
        print()
        terminal.print_table(console.output(), text.against_table(document["against"]))
        elements = document["platform"]["elements"]
        for line in text.against_notes(document["against"], elements):
            terminal.print_line(console.output(), line)
