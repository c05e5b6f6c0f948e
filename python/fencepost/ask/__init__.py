"""Questions about one machine or one result, each answered by replays or synthetic traffic.

`explanation` says which lines of a program pay for its memory, `sensitivity` what each key of a
machine changes, `trace` what became of single requests, `latencies` what a machine's memory takes.
Each room makes a document, and text or a picture from it; the commands `explain`, `whatif`,
`timeline` and `latency` and the functions of `api` are called by those names, so no module is.
"""
