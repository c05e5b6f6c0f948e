"""What the report shows, as plain rows and bars, taken from a result document.

Nothing is computed here that is not a share of a total or a width on the page: the figures
and their ratios come from `fencepost.figures`.
"""

import json
from collections.abc import Callable
from typing import Any

from fencepost import figures, memory_nodes, reliability, table
from fencepost.figures import Run
from fencepost.report import power, topology
from fencepost.report.distribution import distribution
from fencepost.report.occupancy import occupancy
from fencepost.result_shape import PARTS
from fencepost.runs.axes import baseline_name, baseline_run, key_of, name_among, parts

View = dict[str, Any]

COLOURS = 6  # in page.css, as many dashes

BARS = (
    ("simulated_ns", "Run time"),
    ("persist.latency_ns.mean", "Persist latency, mean"),
    ("fence_stall.total_ns", "Fence stall, all cores"),
    ("llc_read.latency_ns.mean", "PM read latency, mean"),
)
DISTRIBUTIONS = (("persist", "Persist latency"), ("llc_read", "PM read latency"))
STACKS = (
    ("persist", "A persist"),
    ("drain", "A drain of the persist buffer"),
    ("writeback", "A write-back to PM"),
    ("llc_read", "A PM read"),
    ("dram_read", "A DRAM read"),
    ("dram_write", "A DRAM write"),
    ("prefetch_read", "A prefetch"),
    ("page_walk", "A page walk"),
    ("instruction_fetch", "An instruction fetch"),
)
EXPLANATION = (
    ("pb_full_stall_ns", "PM writes parked: no persist-buffer entry to be had"),
    (
        "pi_full_stall_ns",
        "reads and writes waiting for room in the persist buffer's input (PI)",
    ),
    ("pi_full_stalls", "– how many did"),
    ("pb_controller_busy_rate", "persist-buffer controller busy"),
    ("pb_drains", "entries drained to PM"),
    ("link_credit_stall_ns", "links: waiting for credits"),
    ("switch_arbitration_wait_ns", "switch: waiting for arbitration"),
    ("switch_head_of_line_ns", "switch: behind a message for another port"),
    ("pm_reads", "reads that reach the PM media"),
    ("pm_writes", "writes that reach the PM media"),
    ("pm_write_queue_full_ns", "PM write queue full"),
    ("pm_read_wait_ns", "PM reads waiting for a bank"),
    ("pm_write_amplification", "PM media: bytes written over bytes received"),
    ("pm_bank_busy_rate", "PM banks busy"),
    ("dram_row_hit_rate", "DRAM row hits"),
    ("llc_misses", "last-level cache misses"),
    ("llc_writebacks", "last-level cache write-backs"),
)


def view(result: dict[str, Any]) -> View:
    """Everything the page needs, by name."""
    runs = [run for run in result["runs"] if "error" not in run]
    keys = list(map(key_of, result["runs"]))
    names = [name_among(key_of(run), keys) for run in runs]
    columns = columns_of(runs)
    return {
        "title": table.title(result),
        "findings": _findings(result),
        "failures": [
            f"{name_among(key_of(run), keys)}: {run['error']}"
            for run in result["runs"]
            if "error" in run
        ],
        "unreliable": _gathered(runs, names, reliability.reasons),
        "warnings": _gathered(runs, names, reliability.remarks),
        "columns": columns,
        "headline": _headline(runs, result),
        "notes": [note.removeprefix(table.NOTE) for note in table.differing_persists(runs)],
        **drawn(runs, columns, result["provenance"]["machines"]),
        "explanation": _explanation(runs),
        "links": _links(runs),
        "memory_nodes": memory_nodes.measures(result, runs),
        "power": power.rows(runs, result["provenance"]["machines"]),
        "is_power_found": power.is_found(runs),
        "hosts": _hosts(runs, names),
        "regions": _regions(runs, names),
        "topologies": [
            {"name": name, "rows": topology.rows(machine)}
            for name, machine in result["provenance"]["machines"].items()
        ],
        "provenance": _provenance(result["provenance"]),
        "machines": [
            {"name": name, "text": json.dumps(machine, indent=2, ensure_ascii=False)}
            for name, machine in result["provenance"]["machines"].items()
        ],
    }


def drawn(runs: list[Run], columns: list[View], machines: View) -> View:
    """The charts of runs of one record, by name; what nobody met is not among them."""
    return {
        "bars": _bars(runs, columns),
        "distributions": _distributions(runs, columns),
        "occupancy": occupancy(runs, columns),
        "stacks": _stacks(runs, columns),
        "pictures": [
            {"column": column, "drawing": topology.picture(machines[run["machine"]], run)}
            for column, run in zip(columns, runs, strict=True)
        ],
    }


def columns_of(runs: list[Run]) -> list[View]:
    """How each run is named and drawn: a colour for each scheme, a dash for what else differs."""
    keys = list(map(key_of, runs))
    schemes = list(dict.fromkeys(key.scheme for key in keys))
    others = [" ".join(part for part in parts(key, keys) if part != key.scheme) for key in keys]
    # Where only the scheme differs, dashes help to tell the schemes apart.
    dashed = others if len(set(others)) > 1 else [key.scheme for key in keys]
    dashes = list(dict.fromkeys(dashed))
    return [
        {
            "name": name_among(key, keys),
            "machine": other,
            "scheme": key.scheme,
            "colour": schemes.index(key.scheme) % COLOURS,
            "dash": dashes.index(dash) % COLOURS,
        }
        for key, other, dash in zip(keys, others, dashed, strict=True)
    ]


def _gathered(runs: list[Run], names: list[str], notes: Callable[[Run], list[str]]) -> list[str]:
    said: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        for note in notes(run):
            said.setdefault(note, []).append(name)
    return [f"{text} ({', '.join(where)})" for text, where in said.items()]


def _findings(result: View) -> list[str]:
    by_key = {figure.key: figure for figure in figures.HEADLINE}
    keys = list(map(key_of, result["runs"]))
    found = []
    for run in result["runs"]:
        baseline = baseline_run(run, result)
        if baseline is None or baseline is run or "error" in run:
            continue
        persist = by_key["persist_ratio"].value(run, baseline)
        speedup = by_key["speedup"].value(run, baseline)
        if persist is None or speedup is None:
            continue
        if not (reliability.is_reliable(run) and reliability.is_reliable(baseline)):
            continue
        found.append(
            f"Under {name_among(key_of(run), keys)} a persist takes {persist:.2f} times as long as "
            f"under {name_among(key_of(baseline), keys)}, "
            f"and the program runs {speedup:.2f} times as fast."
        )
    return found


def _headline(runs: list[Run], result: View) -> list[View]:
    is_told = not all(map(reliability.is_reliable, runs))
    reliable = {
        "label": "reliable",
        "explanation": "whether the figures are those of the program that was recorded",
        "cells": list(map(table.reliable_cell, runs)),
    }
    return [
        *([reliable] if is_told else []),
        *_figures(runs, result),
    ]


def _figures(runs: list[Run], result: View) -> list[View]:
    over = baseline_name(result)
    return [
        {
            "label": figure.label_over(over),
            "explanation": figure.explanation,
            "cells": [table.cell(figure, run, result) for run in runs],
        }
        for figure in table.headline(result)
    ]


def _bars(runs: list[Run], columns: list[View]) -> list[View]:
    charts = []
    by_key = {figure.key: figure for figure in figures.HEADLINE}
    for path, label in BARS:
        values = [figures.member(run, path) for run in runs]
        largest = max((value for value in values if value is not None), default=0)
        if largest <= 0:
            continue
        rows = [
            {
                "column": column,
                "text": figures.shown_with_error(value, by_key[path].half_width(run, None), "ns"),
                "percent": 100 * (value or 0) / largest,
            }
            for column, run, value in zip(columns, runs, values, strict=True)
        ]
        charts.append({"label": label, "rows": rows})
    return charts


def _distributions(runs: list[Run], columns: list[View]) -> list[View]:
    charts = []
    for member, label in DISTRIBUTIONS:
        curves = [(column, run[member]["cdf"]) for column, run in zip(columns, runs, strict=True)]
        if any(points for _, points in curves):
            charts.append({"label": label, "chart": distribution(curves)})
    return charts


def _stacks(runs: list[Run], columns: list[View]) -> list[View]:
    charts = []
    for kind, label in STACKS:
        means = [
            (column, _mean_parts(run["latency_stacks"].get(kind)))
            for column, run in zip(columns, runs, strict=True)
        ]
        longest = max((sum(parts.values()) for _, parts in means), default=0)
        if longest <= 0:
            continue
        met = [part for part in PARTS if any(parts.get(part) for _, parts in means)]
        rows = [
            {
                "column": column,
                "total": figures.shown(sum(parts.values()) if parts else None, "ns"),
                "parts": [
                    {
                        "name": part.replace("pb_", "persist buffer ").replace("_", " "),
                        "index": PARTS.index(part),
                        "percent": 100 * parts.get(part, 0) / longest,
                        "text": figures.shown(parts.get(part), "ns"),
                    }
                    for part in met
                ],
            }
            for column, parts in means
        ]
        of_class = [run["latency_stacks"].get(kind) or {} for run in runs]
        charts.append(
            {
                "label": label,
                "rows": rows,
                "parts": rows[0]["parts"],
                # Where the time before the latency is another part of the whole.
                "latencies": [figures.shown(_mean_latency(stack), "ns") for stack in of_class]
                if any(stack.get("latency_ns") != stack.get("total_ns") for stack in of_class)
                else [],
            }
        )
    return charts


def _mean_latency(stack: View) -> float | None:
    return stack["latency_ns"] / stack["count"] if stack.get("count") else None


def _mean_parts(stack: View | None) -> dict[str, float]:
    if not stack or not stack["count"]:
        return {}
    unknown = stack["parts"].keys() - set(PARTS)
    assert not unknown, f"a latency stack has parts that the report does not know: {unknown}"
    return {part: ns / stack["count"] for part, ns in stack["parts"].items()}


def _explanation(runs: list[Run]) -> list[View]:
    rows = []
    units = {"ns": "ns", "rate": "rate", "amplification": "ratio"}
    for name, label in EXPLANATION:
        unit = units.get(name.rsplit("_", 1)[-1], "count")
        cells = [figures.shown(figures.member(run["explanation"], name), unit) for run in runs]
        if any(cell != "–" for cell in cells):
            rows.append({"label": label, "cells": cells})
    return rows


def _links(runs: list[Run]) -> list[View]:
    names = list(dict.fromkeys(link["name"] for run in runs for link in run["links"]))
    rows = []
    for name in names:
        cells = []
        for run in runs:
            link = next((link for link in run["links"] if link["name"] == name), None)
            cells.append(
                {
                    "utilisation": figures.shown(figures.member(link, "utilisation_rate"), "rate"),
                    "stall": figures.shown(figures.member(link, "credit_stall_ns"), "ns"),
                }
            )
        rows.append({"name": name, "cells": cells})
    return rows


def _hosts(runs: list[Run], names: list[str]) -> list[View]:
    """What each host has of what all share; one host alone has the run's own figures."""
    columns = (
        ("finished_ns", "ns"),
        ("instructions", "count"),
        ("persist.count", "count"),
        ("persist.latency_ns.mean", "ns"),
        ("persist.latency_ns.p99", "ns"),
        ("llc_read.count", "count"),
        ("llc_read.latency_ns.mean", "ns"),
    )
    return [
        {
            "host": host["name"],
            "name": name,
            "cells": [figures.shown(figures.member(host, path), unit) for path, unit in columns],
        }
        for name, run in zip(names, runs, strict=True)
        if len(run.get("hosts", [])) > 1
        for host in run["hosts"]
    ]


def _regions(runs: list[Run], names: list[str]) -> list[View]:
    columns = (
        ("simulated_ns", "ns"),
        ("instructions", "count"),
        ("persist.count", "count"),
        ("persist.latency_ns.mean", "ns"),
        ("llc_read.latency_ns.mean", "ns"),
    )
    return [
        {
            "index": region["index"],
            "name": name,
            "cells": [figures.shown(figures.member(region, path), unit) for path, unit in columns],
        }
        for name, run in zip(names, runs, strict=True)
        for region in run["regions"]
    ]


def _provenance(provenance: View) -> list[tuple[str, str]]:
    record, options = provenance["record"], provenance["options"]
    return [
        ("Fencepost", provenance["fencepost"]),
        ("record", f"{record['name']}, {record['bytes']:,} bytes"),
        ("record hash", record["hash"]),
        ("program", " ".join([record["program"], *record["arguments"]])),
        ("instructions, threads", f"{record['instructions']:,}, {record['threads']}"),
        ("recorded by", f"{record['recorder']}, {record['engine']} ({record['isa']})"),
        ("ended", record["ended"] or "not sealed"),
        *(
            (f"record of host {number}", f"{other['name']}, hash {other['hash']}")
            for number, other in enumerate(provenance.get("other_records", []), 1)
        ),
        ("PM", ", ".join(options["pm"]) or "as placed"),
        ("placement", ", ".join(options.get("place", [])) or "none but PM"),
        ("threads on cores", options.get("threads", "free")),
        ("transport", options.get("transport", "none")),
        ("persists", options["persist"]),
        ("machine changes", ", ".join(options["set"]) or "none"),
        ("seed", str(options["seed"])),
        (
            "limits",
            ", ".join(
                f"{options[key]:,} {label}"
                for key, label in (
                    ("limit_pm_writes", "PM writes"),
                    ("limit_instructions", "instructions"),
                )
                if options[key] is not None
            )
            or "none",
        ),
    ]
