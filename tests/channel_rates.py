"""How far paced rates are from weighted max-min: `.venv/bin/python -m tests.channel_rates`.

Threads report themselves what they use of an emulated pool, with weights 1 to 4 in turn. The
machine should have nothing else to do meanwhile, hence no test. Printed are the thread that is
furthest from its share, what all of them got of the pool, and the processor time of handlers.
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
CAPACITY = 0.2e9
SECONDS, WARM_UP = 5, 2


def measure(stream: Path, folder: Path, threads: int) -> str:
    """One line of what so many threads got."""
    weights = [WEIGHTS[at % len(WEIGHTS)] for at in range(threads)]
    groups = [(weight, weights.count(weight)) for weight in WEIGHTS if weight in weights]
    run = subprocess.run(
        [
            *(FENCEPOST, "channel", "run", "-q", "--config", "channels.toml"),
            *("--emulate", str(CAPACITY / 1e9), "--json", "out.json", "--", stream),
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
        share = CAPACITY * int(name.removeprefix("w")) / sum(weights)
        errors.append(abs(rate / share - 1))
        total += rate
    rows = json.loads((folder / "out.json").read_text())["channels"]
    handlers = sum(row["handler_cpu_seconds"] for row in rows)
    processor = sum(row["processor_seconds"] for row in rows)
    return (
        f"{threads:3} threads: worst {max(errors):.2%}, together {total / CAPACITY:.2%} of the "
        f"pool, handlers {handlers / processor:.2%} of their processor time"
    )


def main() -> None:
    """Prints a line for each number of threads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        channels = "".join(f'[[channel]]\nname = "w{w}"\nweight = {w}\n' for w in WEIGHTS)
        (folder / "channels.toml").write_text("[timing]\nquantum_us = 100\n" + channels)
        stream = build(folder, "stream", reports=True)
        for threads in (2, 4, 8, 16, 64):
            print(measure(stream, folder, threads), flush=True)


if __name__ == "__main__":
    main()
