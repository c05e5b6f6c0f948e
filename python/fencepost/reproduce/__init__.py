"""A published study, rebuilt from scratch and laid beside what it published.

`programs` are recorded (`records`), `replays` runs each of them on each machine under each scheme
once and keeps what came out, so that an interrupted run goes on; `study` says which replays the
parts of the study need; `claims` holds them to the published figures, `series` is the data of the
figures, `cost`, `stacks` and `elapsed` that of tables. `page` makes docs/pcs.md, with `pictures`;
`report` makes the HTML, with `charts`; both have the same `sections`.
"""
