"""How far paced rates are from weighted max-min:

.venv/bin/python -m tests.channel_rates             where nothing else runs
chrt -r 1 .venv/bin/python -m tests.channel_rates   where other programs do

Threads report themselves what they use of an emulated pool, with weights 1 to 4 in turn. What else
runs takes processor time from them, hence no test. Printed are the thread that is furthest from its
share, what all of them got of the pool, and the processor time of handlers.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from installed import FENCEPOST
from test_channel import build

WEIGHTS = (1, 2, 3, 4)
# Of the pool, by the number of threads: the more of them, the more processor time a share has to be
# worth, or a pause would be longer than the longest.
CAPACITIES = {2: 0.05e9, 4: 0.05e9, 8: 0.1e9, 16: 0.2e9, 64: 0.4e9}
SECONDS, WARM_UP = 5, 2


def measure(stream: Path, folder: Path, threads: int) -> str:
    """One line of what so many threads got."""
    capacity = CAPACITIES[threads]
    weights = [WEIGHTS[at % len(WEIGHTS)] for at in range(threads)]
    groups = [(weight, weights.count(weight)) for weight in WEIGHTS if weight in weights]
    run = subprocess.run(
        [
            *(FENCEPOST, "channel", "run", "-q", "--config", "channels.toml"),
            *("--emulate", str(capacity / 1e9), "--json", "out.json", "--", stream),
            *(str(SECONDS), str(WARM_UP), *(f"w{weight}:{count}" for weight, count in groups)),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    errors, total = [], 0.0
    for line in run.stdout.splitlines():
        name, used, seconds = line.split()
        rate = int(used) / float(seconds)
        share = capacity * int(name.removeprefix("w")) / sum(weights)
        errors.append(abs(rate / share - 1))
        total += rate
    rows = json.loads((folder / "out.json").read_text())["channels"]
    handlers = sum(row["handler_cpu_seconds"] for row in rows)
    processor = sum(row["processor_seconds"] for row in rows)
    return (
        f"{threads:3} threads: worst {max(errors):.2%}, together {total / capacity:.2%} of the "
        f"pool, handlers {handlers / processor:.2%} of their processor time"
    )


def main() -> None:
    """Prints a line for each number of threads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        channels = "".join(f'[[channel]]\nname = "w{w}"\nweight = {w}\n' for w in WEIGHTS)
        (folder / "channels.toml").write_text(channels)
        stream = build(folder, "stream", reports=True)
        for threads in CAPACITIES:
            print(measure(stream, folder, threads), flush=True)


if __name__ == "__main__":
    main()
