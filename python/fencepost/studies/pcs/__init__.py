"""The study "The Case for Persistent CXL switches", rebuilt from scratch.

`programs` are recorded (`records`), `replays` says where cells have their records, machines and
options from; `study` says which replays the parts of the study need; `claims` holds them to the
published figures, `series` is the data of the figures, `cost`, `stacks` and `elapsed` that of
tables. `page` makes docs/pcs.md, with `pictures`; `report` makes the HTML, with `charts`; both have
the same `sections`. `evaluation` gives single rows on other machines.
"""

from fencepost.rows.lab import Lab
from fencepost.rows.row import Row
from fencepost.runs.cells import Watch
from fencepost.studies.pcs import adaptive, evaluation, pcs, programs
from fencepost.studies.pcs.replays import Replays
from fencepost.studies.pcs.study import Study as Figures
from fencepost.studies.study import Asked, Outcome, Study


class _PersistentSwitch(Study):
    name = "pcs"
    title = "The persistent CXL switch study, reproduced"
    parts = pcs.PARTS
    quick_parts = pcs.QUICK_PARTS
    takes_programs = True

    def check(self, asked: Asked) -> None:
        listed = programs.read(asked.programs_file or programs.OWN_LIST)
        programs.check(listed, asked.programs_file is None)

    def run(self, lab: Lab, asked: Asked, watch: Watch) -> Outcome:
        is_own = asked.programs_file is None
        listed = programs.read(asked.programs_file or programs.OWN_LIST)
        replays = Replays(lab, listed, is_own)
        return pcs.reproduce(
            Figures(listed, replays, adaptive.SCHEMES),
            replays,
            [part for part in pcs.PARTS if part.name in asked.parts],
            watch,
            None if is_own else str(asked.programs_file),
        )

    def rows(self, lab: Lab) -> list[Row]:
        return evaluation.rows(lab)


PCS = _PersistentSwitch()
