"""Steps: how soon shares have settled when channels come and go."""

from __future__ import annotations

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.rows.tolerance import Tolerance
from fencepost.runs.cells import Cells
from fencepost.studies.memchannel import metrics
from fencepost.studies.memchannel.points import point, results
from fencepost.studies.memchannel.published import SOURCE, text, with_transport
from fencepost.studies.memchannel.streams import PORT
from fencepost.studies.memchannel.topic import PROGRAMS, STUDY, Topic, not_modelled, table
from fencepost.studies.memchannel.transport import PORT_LINK, TRANSPORT
from fencepost.studies.study import Part
from fencepost.traffic import Stream

STEP_NS = 10_000_000.0
QUICK_STEP_NS = 5_000_000.0
GROUP = 4
FREE = "Interrupts of the simulated transport take no time."


class Adaptation(Topic):
    """Channels that come and go."""

    part = Part("adaptation", "Steps, and what pacing costs")
    page = PROGRAMS
    description = (
        "Four threads stream; four more begin after 10 ms, four more after 20 ms, and the first "
        "eight end after 30 ms. "
        "The share has settled once it stays within a tenth of its final value for that step. "
        "The paper samples twice a second, so its reaction time is a bound. "
        "Pacing costs no simulated time; on real processes handlers take 1 to 2 % of the threads' "
        "processor time ([channel.md](channel.md#how-exact-it-is))."
    )

    def rows(self, runs: Cells, lab: Lab) -> list[Row]:
        """The slowest of the steps."""
        [published] = with_transport("adaptiveness", "reaction")
        slowest = max(self._times(lab).values()) / 1e9
        return [
            Row(
                STUDY,
                "threads begin and end",
                "time until shares have settled",
                published,
                slowest,
                Tolerance("<"),
                unit="s",
                source=SOURCE,
                machine="xconn-emr",
            ),
            not_modelled(
                "timer interrupts", "overhead", text("overhead", "timer interrupts"), FREE
            ),
        ]

    def _times(self, lab: Lab) -> dict[str, float]:
        step_ns = QUICK_STEP_NS if lab.quick else STEP_NS
        groups = [
            (0.0, 3 * step_ns),
            (step_ns, 3 * step_ns),
            (2 * step_ns, None),
        ]
        streams = [
            Stream(PORT[number % 2], 48, "sequential", begin_ns=begin, end_ns=end)
            for begin, end in groups
            for number in range(GROUP)
        ]
        [result] = results(
            lab, [point(streams, transport=TRANSPORT, warm_up_ns=0.0, measure_ns=4 * step_ns)]
        )
        history = metrics.intervals(result, PORT_LINK)
        names = ("four begin", "four more begin", "four more begin again", "eight end")
        return {
            name: metrics.settled_after(history, step * step_ns, (step + 1) * step_ns)
            for step, name in enumerate(names)
        }

    def tables(self, runs: Cells, lab: Lab) -> list[str]:
        """Each step."""
        lines = [[name, f"{ns / 1e6:.1f}"] for name, ns in self._times(lab).items()]
        return [table(["step", "settled after, ms"], lines)]
