"""The comparison as a table for the terminal, made from a result document."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fencepost import figures, memory_nodes, reliability, terminal
from fencepost.runs.axes import (
    SCHEME,
    Key,
    baseline_name,
    baseline_run,
    baseline_text,
    key_of,
    name_among,
    parts,
)


def comparison(result: dict[str, Any], runs: Sequence[figures.Run]) -> Table:
    """Figures down, some of the runs across, named by what differs between them."""
    all_runs = result["runs"]
    table = _headed("", result, runs)
    if not all(map(reliability.is_reliable, all_runs)):
        table.add_row("reliable", *map(reliable_cell, runs))
    over = baseline_name(result)
    for figure in headline(result):
        table.add_row(figure.label_over(over), *(cell(figure, run, result) for run in runs))
    return table


def headline(result: dict[str, Any]) -> list[figures.Figure]:
    """The headline figures that any run of the result has; of a run alone, no ratio over itself."""
    is_alone = len(result["runs"]) == 1
    return [
        figure
        for figure in figures.HEADLINE
        if not (is_alone and figure.is_over_baseline)
        and any(_value(figure, run, result) is not None for run in result["runs"])
    ]


def nodes(result: dict[str, Any], runs: Sequence[figures.Run]) -> Table:
    """What each memory node got, some of the runs across; no rows where that says nothing."""
    table = _headed("memory nodes", result, runs)
    all_runs = result["runs"]
    places = [place for place, run in enumerate(all_runs) if any(run is one for one in runs)]
    for measure in memory_nodes.measures(result, all_runs):
        for number, (name, cells) in enumerate(measure.rows.items()):
            label = f"– {name}" if number else f"{measure.label}: {name}"
            table.add_row(label, *(cells[place] for place in places))
    return table


def _headed(corner: str, result: dict[str, Any], runs: Sequence[figures.Run]) -> Table:
    """A table with a column for each of these runs, and none of the rows yet."""
    keys = list(map(key_of, result["runs"]))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(corner, no_wrap=True)
    for run in runs:
        table.add_column("\n".join(parts(key_of(run), keys)), justify="right", no_wrap=True)
    return table


def _blocks(
    result: dict[str, Any],
    output: Console,
    of_runs: Callable[[dict[str, Any], Sequence[figures.Run]], Table],
) -> Iterator[Table]:
    """Tables that fit, of as many runs as have room beside each other."""
    beside: list[figures.Run] = []
    for run in result["runs"]:
        if beside and not terminal.fits(output, of_runs(result, [*beside, run])):
            yield of_runs(result, beside)
            beside = []
        beside.append(run)
    yield of_runs(result, beside)


def reliable_cell(run: figures.Run) -> str:
    """Whether the figures of a run can be used, in a row that is there where some cannot."""
    if "error" in run:
        return "–"
    return "yes" if reliability.is_reliable(run) else "no"


def cell(figure: figures.Figure, run: figures.Run, result: dict[str, Any]) -> str:
    """A figure of a run, with its confidence interval if it is an estimate; – if it failed."""
    if "error" in run:
        return figures.shown(None, figure.unit)
    baseline = baseline_run(run, result)
    half_width = figure.half_width(run, baseline)
    return figures.shown_with_error(_value(figure, run, result), half_width, figure.unit)


def _value(figure: figures.Figure, run: figures.Run, result: dict[str, Any]) -> figures.Value:
    return None if "error" in run else figure.value(run, baseline_run(run, result))


def title(result: dict[str, Any]) -> str:
    """What was replayed on what, and how if only a sample was."""
    said = (replayed(result["provenance"]), sampling(result), baseline_text(result))
    return "\n".join(filter(None, said))


def replayed(provenance: dict[str, Any]) -> str:
    """What was replayed on what, in a line."""
    records = [provenance["record"], *provenance.get("other_records", [])]
    commands = [" ".join([record["program"], *record["arguments"]]) for record in records]
    return f"{' | '.join(commands)} on {', '.join(provenance['machines'])}"


def sampling(result: dict[str, Any]) -> str:
    """That the figures are estimates, and from what; nothing if all was replayed in detail."""
    sampled = [run["sampling"] for run in result["runs"] if run.get("sampling")]
    if not sampled:
        return ""
    of = sampled[0]
    return (
        f"Sampled: {len(of['intervals'])} intervals of {of['detail']:,} instructions, one in "
        f"{of['period']:,}; times and rates are estimates with their 95 % confidence intervals."
    )


def hosts(result: dict[str, Any]) -> Table | None:
    """What each host of a run has alone; none if there is but one."""
    table = Table("run", "host", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("instructions", "finished", "persists", "mean", "PM reads", "mean"):
        table.add_column(heading, justify="right", no_wrap=True)
    for run in result["runs"]:
        for host in run.get("hosts", []) if len(run.get("hosts", [])) > 1 else []:
            measured = []
            for measure in (host["persist"], host["llc_read"]):
                mean = figures.shown(measure["latency_ns"]["mean"], "ns")
                measured += [figures.shown(measure["count"], "count"), mean]
            instructions = figures.shown(host["instructions"], "count")
            finished = figures.shown(host["finished_ns"], "ns")
            name = f"{run['machine']} {run['scheme']}"
            table.add_row(name, host["name"], instructions, finished, *measured)
    return table if table.row_count else None


NOTE = "note: "


def differing_persists(runs: Sequence[figures.Run]) -> list[str]:
    """Why schemes differ in how many persists the same program made; nothing if none do."""
    counts: dict[Key, set[int]] = {}
    for run in runs:
        if "error" not in run and run["persist"]["count"] is not None:
            setting = key_of(run).with_value(SCHEME.name, "")
            counts.setdefault(setting, set()).add(run["persist"]["count"])
    if all(len(of_one) == 1 for of_one in counts.values()):
        return []
    return [
        f"{NOTE}persists differ by scheme, because a flush of a line that is clean persists "
        "nothing, and whether an eviction or another thread's flush has cleaned it depends on "
        "timing"
    ]


def show(result: dict[str, Any], output: Console, messages: Console) -> None:
    """The table on standard output, warnings and failures on standard error."""
    for line in title(result).splitlines():
        terminal.print_line(output, line)
    for block in _blocks(result, output, comparison):
        terminal.print_table(output, block)
    for block in _blocks(result, output, nodes):
        if block.row_count:
            terminal.print_table(output, block)
    each_host = hosts(result)
    if each_host is not None:
        terminal.print_table(output, each_host)
    runs = result["runs"]
    keys = list(map(key_of, runs))
    names = [name_among(key, keys) for key in keys]
    for text in [*reliability.gathered(runs, names), *differing_persists(runs)]:
        terminal.print_line(messages, text)
