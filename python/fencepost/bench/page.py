"""The figures of the benchmark in docs/performance.md, between two marks."""

from pathlib import Path

from fencepost import documents
from fencepost.bench import Figures, history
from fencepost.tree import ROOT

PAGE = ROOT / "docs" / "performance.md"
BEGINS = "<!-- figures of make bench -->\n"
ENDS = "<!-- end of the figures -->"


def write(document: Figures, path: Path = PAGE) -> None:
    """Puts the figures of a bench document into the page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    documents.write_page(path, f"{before}{BEGINS}{markdown(document)}{ENDS}{after}")


def markdown(document: Figures) -> str:
    """All figures, as tables."""
    commit, processor = (history.line(document)[key] for key in history.KEYS)
    processors = document["host"]["processors"]
    noise = max(document["noise"][when]["spread"] for when in ("before", "after"))
    return "\n".join(
        [
            f"Commit {commit}, {processors} × {processor}; the same work varied by up to "
            f"{noise:.0%}.\n",
            *_replays(document["replay"]),
            *_costs(document),
            *_fabric(document["fabric"]),
            *_targets(document["targets"]),
            "",
        ]
    )


def _replays(replays: Figures) -> list[str]:
    rows = [
        f"| {_spaced(name)} | {item['mips']:.1f} | {item['mips_spread']:.0%} "
        f"| {item['peak_mb']:.0f} |"
        for name, item in replays.items()
    ]
    title = "replay on `pcs-table1`, the slowest of three schemes"
    return [f"| {title} | MIPS | spread of repetitions | peak MB |", "|---|---|---|---|", *rows, ""]


def _costs(document: Figures) -> list[str]:
    lengths = [
        f"{item['peak_mb']:.0f} MB for {item['instructions'] / 1e6:,.0f} million instructions"
        for item in document["memory"].values()
    ]
    records = [
        f"{name} {item['slowdown']:.1f} times native, {item['bytes_per_instruction']:.3f} bytes "
        "per instruction"
        for name, item in document["record"].items()
    ]
    crashes = [
        f"{item['images_per_minute']:,.0f} images a minute" for item in document["crash"].values()
    ]
    return [
        f"- Memory by the length of the record: {', '.join(lengths)}.",
        f"- Recording: {'; '.join(records)}.",
        f"- Crash images of an 8 MB pool, made and checked: {', '.join(crashes)}.",
        f"- Protocol exploration with two hosts: {_proofs(document['prove'])}.",
        f"- Exploration of coherence with two devices and two cores: "
        f"{_proofs(document['coherence'])}.",
        "- The fabric alone; a message counts once for each link that it crosses:\n",
    ]


def _proofs(proofs: Figures) -> str:
    return ", ".join(
        f"{item['transitions_per_second'] / 1e6:.2f} million transitions a second on "
        f"{item['processors']} processor{'' if item['processors'] == 1 else 's'}"
        for item in proofs.values()
    )


def _fabric(fabric: Figures) -> list[str]:
    items = sorted((int(name.removeprefix("hosts_")), item) for name, item in fabric.items())

    def row(title: str, key: str) -> str:
        return f"| {title} | {' | '.join(f'{item[key] / 1e6:.2f}' for _, item in items)} |"

    return [
        f"| hosts | {' | '.join(f'{hosts:,}' for hosts, _ in items)} |",
        "|---" * (1 + len(items)) + "|",
        row("million messages a second", "messages_per_second"),
        row("million requests a second", "requests_per_second"),
        "",
    ]


def _targets(targets: list[Figures]) -> list[str]:
    lines = ["| target | measured | bound | |", "|---|---|---|---|"]
    for target in targets:
        words, key = ("at most", "at_most") if "at_most" in target else ("at least", "at_least")
        verdict = "holds" if target["holds"] else "**missed**"
        measured = f"{target['measured']:.4g}"
        lines.append(f"| {target['name']} | {measured} | {words} {target[key]:.4g} | {verdict} |")
    return lines


def _spaced(name: str) -> str:
    """A name like `fft_8core` for people."""
    workload, _, cores = name.rpartition("_")
    count = cores.removesuffix("core")
    return f"{workload} on {count} core{'' if count == '1' else 's'}"
