"""`fencepost latency`: idle latency, and latency against bandwidth, of a machine's memory."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

import typer

from fencepost import documents, machines
from fencepost._core import InputError
from fencepost.ask import latencies
from fencepost.ask.latencies import plot, text
from fencepost.cli import console, outputs
from fencepost.cli.application import app
from fencepost.cli.machine_argument import MachineName
from fencepost.cli.numbers import COUNT_MAX
from fencepost.schemes import VOLATILE
from fencepost.traffic import Machine

PATTERNS = ("random", "sequential")
LEVELS = ("request", "flow")

REQUEST_BYTES_LEAST, REQUEST_BYTES_MAX = 64, 16_384  # as the core has them


@app.command("latency")
def latency_command(
    machine: MachineName,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="MEMORY",
            help="dram, pm, expander, accelerator or a device's name (default: what is behind "
            "the fabric).",
        ),
    ] = None,
    mixes: Annotated[
        list[str] | None,
        typer.Option("--mix", metavar="R:W", help="Reads to writes; repeatable. 1:0: reads only."),
    ] = None,
    scheme: Annotated[str, typer.Option(help="nopb, pb, pb_rf or pb_adaptive.")] = VOLATILE,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads that make the load (default: the cores).")
    ] = None,
    outstanding: Annotated[
        int | None,
        typer.Option(min=1, help="Requests that each keeps under way (default: cache.l1d.mshrs)."),
    ] = None,
    size: Annotated[
        int,
        typer.Option(
            min=REQUEST_BYTES_LEAST,
            max=REQUEST_BYTES_MAX,
            metavar="BYTES",
            help="Bytes of a request: a multiple of 64 up to 16384.",
        ),
    ] = 64,
    pattern: Annotated[
        str,
        typer.Option(help="Pattern of the load, random or sequential; latency is of random reads."),
    ] = "sequential",
    delays: Annotated[
        list[int] | None,
        typer.Option(
            "--delay",
            min=0,
            max=COUNT_MAX,
            metavar="CYCLES",
            help="Only these inject delays; repeatable.",
        ),
    ] = None,
    measure_us: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=1e6,
            help="Simulated time of a point, after a warm-up (default: 100; two intervals of a "
            "transport).",
        ),
    ] = None,
    transport: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How the pool is shared: none, credits, memchannel, waterfill or switch_wfq.",
        ),
    ] = "none",
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="request, or flow: rates instead of single requests, for many hosts and long "
            "times.",
        ),
    ] = "request",
    seed: Annotated[
        int, typer.Option(min=0, max=COUNT_MAX, help="Which places random requests go to.")
    ] = 0,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="Change a key of the machine; repeatable."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Write the curves as SVG.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Points at once (default: one per processor)."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Measure idle and loaded memory latency of a machine by synthetic traffic, as MLC does."""
    if pattern not in PATTERNS:
        raise InputError(f"--pattern {pattern}: it has to be {' or '.join(PATTERNS)}")
    if level not in LEVELS:
        raise InputError(f"--level {level}: it has to be {' or '.join(LEVELS)}")
    outputs.check_svg("--plot", plot_file)
    outputs.check({"--json": json_file, "--plot": plot_file}, [machines.file_of(machine)])
    resolved = Machine(machines.name_of(machine), machines.resolve(machine, sets or []), scheme)
    shared = dataclasses.replace(
        latencies.usual_load(resolved, memory), transport=transport, level=level
    )
    usual = latencies.settling(resolved, shared)
    load = dataclasses.replace(
        usual,
        threads=threads or usual.threads,
        outstanding=outstanding or usual.outstanding,
        request_bytes=size,
        pattern=pattern,
        mixes=tuple(map(_mix, mixes)) if mixes else usual.mixes,
        delays=tuple(delays) if delays else usual.delays,
        measure_ns=measure_us * 1000 if measure_us is not None else usual.measure_ns,
        seed=seed,
    )
    hosts = len(latencies.loaded_hosts(resolved, load.memory))
    if hosts * load.threads * load.outstanding > latencies.REQUESTS_MAX:
        on_hosts = f"on each of {hosts} hosts " if hosts > 1 else ""
        raise InputError(
            f"{load.threads} threads with {load.outstanding} requests each {on_hosts}(--threads, "
            f"--outstanding): at most {latencies.REQUESTS_MAX:,} can be under way in all"
        )
    with console.messages().status("") as status:

        def watch(done: int, in_all: int) -> None:
            if not quiet:
                status.update(f"{done} of {in_all} points")

        document = latencies.measure(resolved, load, jobs or os.cpu_count() or 1, watch)
    try:
        if json_file is not None:
            documents.write_json(json_file, document)
        if plot_file is not None:
            documents.write_whole(plot_file, plot.svg(document))
    finally:  # a full disk costs files, and not what was measured
        for line in text.lines(document):
            print(line)
    if text.has_gaps(document):
        console.messages().print(
            "–: no read of the chain came to its end in the time measured; see --measure-us",
            highlight=False,
            soft_wrap=True,
        )


def _mix(written: str) -> tuple[int, int]:
    reads, colon, writes = written.partition(":")
    if not (colon and reads.isdecimal() and writes.isdecimal() and int(reads) + int(writes) > 0):
        raise InputError(f"--mix {written}: it has to be R:W, for example 2:1 or 1:0")
    if int(reads) > 1000 or int(writes) > 1000:
        raise InputError(f"--mix {written}: parts of at most 1000 can be")
    return int(reads), int(writes)
