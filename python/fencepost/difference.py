"""What differs between two result documents: their provenance, their figures and memory nodes."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from fencepost import figures, memory_nodes, reliability, terminal
from fencepost.plural import many
from fencepost.runs.axes import baseline_name, baseline_run, key_of

Document = dict[str, Any]


def between(a: Document, b: Document) -> Document:
    """A document: `provenance` (path, a, b where they differ), `runs` with figures side by side.

    Memory nodes are among them where a rule placed memory, or the two used more than one together.

    Runs belong together by machine and scheme; if each document names one machine only, by
    scheme, so that two machines can be compared. `only_a` and `only_b` name the others.
    """
    runs_a, runs_b = _by_key(a), _by_key(b)
    made_a, made_b = a["provenance"], b["provenance"]
    if len(made_a["machines"]) == len(made_b["machines"]) == 1:
        runs_a = {key._replace(machine=""): run for key, run in runs_a.items()}
        runs_b = {key._replace(machine=""): run for key, run in runs_b.items()}
        name = _both(*made_a["machines"], *made_b["machines"])
        made_a, made_b = _with_machine_as(name, made_a), _with_machine_as(name, made_b)
    shared = [key for key in runs_a if key in runs_b]
    has_nodes = (
        memory_nodes.is_placed(a)
        or memory_nodes.is_placed(b)
        or memory_nodes.are_several([*a["runs"], *b["runs"]])
    )
    return {
        "provenance": _leaves_that_differ(made_a, made_b),
        "sampled": [_is_sampled(document) for document in (a, b)],
        "runs": [
            {
                "machine": _both(runs_a[key]["machine"], runs_b[key]["machine"]),
                "scheme": runs_a[key]["scheme"],
                "reliable": [reliability.is_reliable(of[key]) for of in (runs_a, runs_b)],
                "axes": key.axes,
                "figures": _figures(runs_a[key], a, runs_b[key], b),
                "nodes": _nodes(runs_a[key], runs_b[key]) if has_nodes else [],
            }
            for key in shared
        ],
        "notes": [
            reliability.gathered(document["runs"], list(map(_name, document["runs"])))
            for document in (a, b)
        ],
        "only_a": [_name(run) for key, run in runs_a.items() if key not in runs_b],
        "only_b": [_name(run) for key, run in runs_b.items() if key not in runs_a],
    }


def show(found: Document, output: Console, messages: Console) -> None:
    """The tables a person reads: how the results were made, what came of it, and what each memory
    node got; on the side, what there is to say of the runs."""
    if found["provenance"]:
        columns = [Column(name, overflow="fold") for name in "AB"]
        table = Table("made differently", *columns, box=SIMPLE_HEAD, pad_edge=False)
        for entry in found["provenance"]:
            table.add_row(entry["path"], _shown(entry["a"]), _shown(entry["b"]))
        terminal.print_table(output, table)
    if any(found["sampled"]):
        one, other = found["sampled"]
        which = "both are" if one and other else "A is" if one else "B is"
        terminal.print_line(
            output, f"{which} estimated from a sample: see the confidence intervals in the report"
        )
    terminal.print_table(output, _side_by_side(found["runs"], "figures", "figure"))
    if any(run["nodes"] for run in found["runs"]):
        terminal.print_table(output, _side_by_side(found["runs"], "nodes", "memory nodes"))
    for letter in ("a", "b"):
        for name in found[f"only_{letter}"]:
            terminal.print_line(output, f"only in {letter.upper()}: {name}")
    for letter, notes in zip("AB", found["notes"], strict=True):
        for note in notes:
            terminal.print_line(messages, f"{letter}: {note}")


def _side_by_side(runs: list[Document], member: str, heading: str) -> Table:
    """What that member of each run lists, in A and in B."""
    table = Table("run", heading, box=SIMPLE_HEAD, pad_edge=False)
    for letters in ("A", "B", "B to A"):
        table.add_column(letters, justify="right")
    for run in runs:
        name = _name(run)
        for entry in run[member]:
            unit = entry["unit"]
            a, b = figures.shown(entry["a"], unit), figures.shown(entry["b"], unit)
            table.add_row(name, entry["label"], a, b, figures.shown(entry["ratio"], "ratio"))
            name = ""
    return table


def _is_sampled(document: Document) -> bool:
    return any(run.get("sampling") for run in document["runs"])


def _by_key(document: Document) -> dict[Any, figures.Run]:
    return {key_of(run): run for run in document["runs"]}


def _name(run: figures.Run) -> str:
    return " ".join(filter(None, key_of(run).words))


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a} | {b}"


def _with_machine_as(name: str, provenance: Document) -> Document:
    """With its one machine under another name, so that its keys have that of another document's."""
    [machine] = provenance["machines"].values()
    return {**provenance, "machines": {name: machine}}


def _figures(
    a: figures.Run, result_a: Document, b: figures.Run, result_b: Document
) -> list[Document]:
    found = []
    names = [baseline_name(result) for result in (result_a, result_b)]
    over = names[0] if names[0] == names[1] else None
    are_alone = len(result_a["runs"]) == len(result_b["runs"]) == 1
    for figure in figures.HEADLINE:
        if are_alone and figure.is_over_baseline:
            continue
        value_a = figure.value(a, baseline_run(a, result_a))
        value_b = figure.value(b, baseline_run(b, result_b))
        if value_a is None and value_b is None:
            continue
        found.append(
            {
                "key": figure.key,
                "label": figure.label_over(over),
                "unit": figure.unit,
                "a": value_a,
                "b": value_b,
                "ratio": figures.ratio(value_b, value_a),
            }
        )
    return found


def _nodes(a: figures.Run, b: figures.Run) -> list[Document]:
    """What each memory node got that either of the two used."""
    return [
        {
            "node": name,
            "label": f"{measure.label}: {name}",
            "unit": measure.unit,
            "a": value_a,
            "b": value_b,
            "ratio": figures.ratio(value_b, value_a),
        }
        for measure in memory_nodes.of_runs([a, b])
        for name, (value_a, value_b) in measure.values.items()
    ]


def _leaves_that_differ(a: Any, b: Any, path: str = "") -> list[Document]:
    if isinstance(a, dict) and isinstance(b, dict):
        return [
            entry
            for name in sorted(a.keys() | b.keys())
            for entry in _leaves_that_differ(
                a.get(name), b.get(name), f"{path}.{name}" if path else name
            )
        ]
    return [] if a == b else [{"path": path, "a": a, "b": b}]


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return f"({many(len(value), 'member')})"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
