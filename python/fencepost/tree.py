"""Where the rooms of the repository are, seen from the package, whatever the working folder."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ROOT / "machines"
BUILD = ROOT / "build"
RECORDER = BUILD / "recorder"
CHANNEL = BUILD / "channel"
WORKLOADS = BUILD / "workloads"
EXPERIMENTS = ROOT / "experiments"
RECORDS = EXPERIMENTS / "records"
RESULTS = ROOT / "out" / "results"  # of replays, whichever command made them
