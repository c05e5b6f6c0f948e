"""Programs beside as much load as there can be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fencepost import traffic
from fencepost.rows.lab import Lab
from fencepost.rows.page import Picture
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cell, Cells
from fencepost.studies.memchannel import metrics, programs
from fencepost.studies.memchannel.pictures import bars
from fencepost.studies.memchannel.points import results
from fencepost.studies.memchannel.programs import Tenant, Together
from fencepost.studies.memchannel.published import SOURCE, with_transport, without
from fencepost.studies.memchannel.streams import CONTENDERS, PORT, stencil, streaming
from fencepost.studies.memchannel.topic import PART, PROGRAMS, STUDY, Topic, row, table
from fencepost.studies.memchannel.transport import (
    ALL,
    BOTH,
    TRANSPORT,
    at_rest,
    both_runs,
    fallen_latencies,
    less,
    reductions,
)
from fencepost.studies.study import Part
from fencepost.traffic import Result

SLOWDOWN = "slowdown at 100% contending load"


@dataclass(frozen=True)
class Victim:
    """A program of one thread, and what it runs beside."""

    together: Together
    place: str
    has_latencies: bool = False


def _beside(victim: Tenant, others: Tenant, settling: int, timed: int) -> Together:
    return Together((victim, others), settling, timed)


# As many threads as stand for the load elsewhere. They have more to do than the victim needs.
STREAMS = Tenant("stream", CONTENDERS, 7_000, 32)
BLOCKS = Tenant("blocks", CONTENDERS, 7_000, 64)
LONG_BLOCKS = Tenant("blocks", CONTENDERS, 30_000, 64)
WITHIN_PORT = "beside streams that saturate its port"
WITHIN_FABRIC = "beside 4 KB blocks behind its port"
# With a transport they settle for at least ten of its intervals; then four of them are timed.
VICTIMS = {
    "Bwaves": Victim(_beside(Tenant("bwaves", 1, 140, 64), STREAMS, 100, 40), WITHIN_PORT, True),
    "Roms": Victim(_beside(Tenant("roms", 1, 1700, 128), STREAMS, 1200, 500), WITHIN_PORT, True),
    "BC": Victim(_beside(Tenant("bc", 1, 120, 20), LONG_BLOCKS, 80, 40), WITHIN_FABRIC),
    "PR": Victim(_beside(Tenant("pr", 1, 1000, 21), BLOCKS, 700, 300), WITHIN_FABRIC),
}
# Ten intervals and three of one victim: as few as let its figures settle.
QUICK = {
    "Bwaves": replace(
        VICTIMS["Bwaves"],
        together=_beside(Tenant("bwaves", 1, 105, 64), replace(STREAMS, units=5_000), 80, 25),
    )
}
# The study says of two programs together how much of the port is used.
UTILISATIONS = {"Bwaves+Roms": ("Bwaves", "Roms"), "BC+PR": ("BC", "PR")}
# What the transport does for this one was seen while its load limit was chosen among three values.
LOOKED_AT, IN_SIGHT = "Bwaves", "transport.load_limit, chosen with these rows in sight"
PICTURE = "Latency of a victim's lines beside twelve threads that stream, by transport"
ANSWER = (
    "In a switched pool a thread waits for the lines of every thread that shares its port.\n"
    "Pausing greedy threads at the hosts takes most of that wait away; fair queueing in the "
    "switch does not.\n"
    "A thread with sixteen lines in flight, beside twelve that stream through its port:\n"
)
OF_PROGRAMS = (
    "Recorded programs slow down less than in the paper and gain less, because our cores keep "
    "fewer lines in flight.\n"
    "Their time beside such threads, over their time alone:\n"
)
# The study does not say how long an interval is; these show what hangs on it.
INTERVALS_US = (300, 500, 1000)


class Victims(Topic):
    """Slowdowns of one thread beside as much load as there can be."""

    part = Part("victims", "A victim with and without the transport")
    page = PROGRAMS
    description = (
        "One thread of a stencil (Bwaves, Roms) beside twelve that stream, or of a graph kernel "
        "(betweenness centrality BC, PageRank PR) beside twelve that read blocks of 4 KB, all "
        "behind one port. "
        "Slowdown is the victim's time over its time alone."
    )

    def cells(self, lab: Lab) -> Iterable[Cell]:
        """Each alone, and beside the others without and with the transport."""
        for victim in self._victims(lab).values():
            yield victim.together.alone.cell()
            yield from (victim.together.cell(transport) for transport in BOTH)
        if not lab.quick:
            yield from self._of_intervals().values()

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """Slowdowns without and with, latencies, utilisation."""
        victims = self._victims(lab)
        rows = [
            one for name, victim in victims.items() for one in self._rows_of(runs, name, victim)
        ]
        for published, names in UTILISATIONS.items():
            if victims.keys() >= set(names):
                rows.append(self._utilisation(runs, published, [victims[name] for name in names]))
        return rows

    def _utilisation(self, runs: Cells, published: str, victims: list[Victim]) -> Row:
        """Percent of what the port carries without the transport, the mean of these victims."""
        [used] = with_transport(published, "bandwidth utilisation")
        parts = []
        for victim in victims:
            together = victim.together
            cores = [*together.cores(0), *together.cores(1)]
            before, after = (
                programs.gb_per_second(run, cores) for run in both_runs(runs, together)
            )
            parts.append(100 * after / before)
        condition = f"{published}, {victims[0].place}"
        ours = sum(parts) / len(parts)
        # Utilisation and load limit were chosen by the one, with the other in sight.
        is_set = victims[0] == VICTIMS[LOOKED_AT]
        follows = "" if is_set else IN_SIGHT
        return row(
            condition,
            "utilisation with the transport",
            used,
            ours,
            "%",
            is_set=is_set,
            follows=follows,
        )

    def _rows_of(self, runs: Cells, name: str, victim: Victim) -> list[Row]:
        together = victim.together
        before, after = both_runs(runs, together)
        slow, mended = self._slowdowns(runs, victim)
        condition = f"{name}, {victim.place}"
        [published], [published_mended] = without(name, SLOWDOWN), with_transport(name, SLOWDOWN)
        rows = [
            row(condition, "slowdown without the transport", published, slow, ""),
            row(condition, "slowdown with the transport", published_mended, mended, ""),
            less(condition, "slowdown with the transport over without", slow, mended),
        ]
        if victim.has_latencies:
            falls = fallen_latencies(before, after, together.cores(0))
            rows += reductions(condition, name, *falls)
        if name == LOOKED_AT:
            rows = [rows[0], *(replace(one, follows=IN_SIGHT) for one in rows[1:])]
        if name == "Bwaves":
            [times] = with_transport(name, "throughput increase")
            gain = slow / mended
            metric = "throughput with the transport over without"
            rows.append(row(condition, metric, times, gain, "", follows="the two slowdowns"))
            least, most = with_transport("overall", "improvement")
            middle = (least + most) / 2
            rows.append(
                Row(
                    STUDY,
                    condition,
                    "improvement",
                    middle,
                    gain,
                    Tolerance("..", PART * middle, middle - least),
                    source=SOURCE,
                    follows="the two slowdowns",
                    machine="xconn-emr",
                )
            )
        return rows

    def _slowdowns(self, runs: Cells, victim: Victim) -> list[float]:
        """Without and with the transport."""
        alone = programs.timed_ns(runs[victim.together.alone.cell()])
        return [programs.timed_ns(run) / alone for run in both_runs(runs, victim.together)]

    def pictures(self, runs: Cells, lab: Lab) -> dict[str, Picture]:
        """Slowdowns, and the latency under each transport."""
        victims = self._victims(lab)
        slow = list(zip(*(self._slowdowns(runs, one) for one in victims.values()), strict=True))
        found = self._streams(lab)
        return {
            "memchannel-victims.svg": bars(
                "Slowdown of a thread beside as much load as there can be; marks are published",
                dict(zip(("without", "with the transport"), slow, strict=True)),
                list(victims),
                "time over alone",
                {
                    "without": [without(name, SLOWDOWN)[0] for name in victims],
                    "with the transport": [with_transport(name, SLOWDOWN)[0] for name in victims],
                },
            ),
            "memchannel-victim.svg": bars(
                PICTURE,
                {
                    "mean": [metrics.mean_latency(one, [0]) for one in found.values()],
                    "99th percentile": [
                        metrics.mean_latency(one, [0], "p99") for one in found.values()
                    ],
                },
                list(found),
                "ns",
            ),
        }

    def _streams(self, lab: Lab) -> dict[str, Result]:
        """Every transport beside the others, for the streams of a stencil."""
        streams = [*stencil(1, PORT[:1]), *streaming()]
        transports = BOTH if lab.quick else ALL
        found = results(lab, [at_rest(streams, transport) for transport in transports])
        return dict(zip(transports, found, strict=True))

    def answer(self, runs: Cells, lab: Lab) -> str:
        """What the transport does, for the front page."""
        programs_of = {name: self._slowdowns(runs, one) for name, one in self._victims(lab).items()}
        published = {
            name: [figures(name, SLOWDOWN)[0] for figures in (without, with_transport)]
            for name in programs_of
        }
        lines = [
            [name, *(f"{number:.1f}" for number in (*ours, *published[name]))]
            for name, ours in programs_of.items()
        ]
        heads = ["program", "without", "with the transport", "published: without", "with"]
        return f"""{ANSWER}
{self._by_transport(lab)}
![{PICTURE}](memchannel-victim.svg)

{OF_PROGRAMS}
{table(heads, lines)}"""

    def _by_transport(self, lab: Lab) -> str:
        """Every transport beside the others, for streams."""
        lines = [
            [
                name,
                f"{traffic.bandwidth(one, 0):.2f}",
                f"{metrics.mean_latency(one, [0]):.0f}",
                f"{metrics.mean_latency(one, [0], 'p99'):.0f}",
                f"{traffic.bandwidth(one):.1f}",
                f"{metrics.jain(metrics.rates(one)):.3f}",
            ]
            for name, one in self._streams(lab).items()
        ]
        heads = [
            "transport",
            "victim, GB/s",
            "mean latency, ns",
            "p99, ns",
            "all, GB/s",
            "Jain's index",
        ]
        return table(heads, lines)

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """What hangs on the interval."""
        return [] if lab.quick else [self._about_intervals(runs)]

    def data(self, runs: Cells, lab: Lab) -> dict[str, str]:
        """What the interval changes."""
        return {} if lab.quick else {"Intervals": self._table_of_intervals(runs)}

    def _about_intervals(self, runs: Cells) -> str:
        """How little depends on the interval, which is not published."""
        alone = programs.timed_ns(runs[VICTIMS["Bwaves"].together.alone.cell()])
        *first, last = self._of_intervals()
        slow = [
            f"{programs.timed_ns(runs[cell]) / alone:.1f}" for cell in self._of_intervals().values()
        ]
        return (
            f"With intervals of {', '.join(map(str, first))} and {last} us Bwaves slows down "
            f"{', '.join(slow[:-1])} and {slow[-1]} times."
        )

    def _of_intervals(self) -> dict[int, Cell]:
        """The stencil with the transport, by its interval in us."""
        together = VICTIMS["Bwaves"].together
        return {
            interval: together.cell(TRANSPORT, f"transport.interval_us={interval}")
            for interval in INTERVALS_US
        }

    def _table_of_intervals(self, runs: Cells) -> str:
        """The same, with latencies and what the port carries."""
        together = VICTIMS["Bwaves"].together
        alone = programs.timed_ns(runs[together.alone.cell()])
        everybody = [*together.cores(0), *together.cores(1)]
        lines = [
            [
                str(interval),
                f"{programs.timed_ns(runs[cell]) / alone:.2f}",
                f"{programs.latency(runs[cell], together.cores(0)):.0f}",
                f"{programs.latency(runs[cell], together.cores(0), 'p99'):.0f}",
                f"{programs.gb_per_second(runs[cell], everybody):.1f}",
            ]
            for interval, cell in self._of_intervals().items()
        ]
        heads = [
            "interval of the transport, us",
            "slowdown of Bwaves",
            "mean latency, ns",
            "p99, ns",
            "all, GB/s",
        ]
        return table(heads, lines)

    def _victims(self, lab: Lab) -> dict[str, Victim]:
        return QUICK if lab.quick else VICTIMS
