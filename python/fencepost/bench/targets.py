"""What the figures are to reach: the project's targets, each with what was measured."""

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.bench import Figures


@dataclass(frozen=True)
class Target:
    """A figure of the bench's document and its bound; `at_most` or at least."""

    name: str
    measured: float
    bound: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether what was measured is within the bound."""
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound

    def to_json(self) -> Figures:
        """As it stands in the document."""
        kind = "at_most" if self.at_most else "at_least"
        return {"name": self.name, "measured": self.measured, kind: self.bound, "holds": self.holds}

    def line(self) -> str:
        """As it is printed."""
        words = "at most" if self.at_most else "at least"
        verdict = "holds" if self.holds else "MISSED"
        return f"{self.name}: {self.measured:.4g}, {words} {self.bound:.4g}: {verdict}"


#: The study, from the recording of its programs on: which of it, and seconds.
STUDY_SECONDS_MAX = {
    "quick_seconds": ("seconds of a quick look at the study", 60),
    "figures_5_to_7_seconds": ("seconds of its Figures 5 to 7", 5 * 60),
    "everything_seconds": ("seconds of all of it, when it was made last", 30 * 60),
}

#: With `make validate`, which takes a minute and a half of it.
SECONDS_MAX = 15 * 60


def targets(document: Figures) -> Iterator[Target]:
    """Every target, from a bench document that has everything else."""
    replay, reference, fabric = document["replay"], document["reference"], document["fabric"]
    yield Target("MIPS of fft on one core, under each scheme", replay["fft_1core"]["mips"], 20)
    yield Target("MIPS of fft on 8 cores, under each scheme", replay["fft_8core"]["mips"], 10)
    yield Target(
        "times the reference's speed, geometric mean", reference["geometric_mean_ratio"], 100
    )
    slow = reference["lowest_ratio_below_400_kips"]
    yield Target("times the reference's speed, on each row below 400 kips", slow, 40)
    fast = reference["lowest_ratio_from_400_kips"]
    yield Target("times the reference's speed, on each row above", fast, 20)
    one, most = (fabric[f"hosts_{hosts}"]["messages_per_second"] for hosts in (1, 1024))
    name = "cost of a fabric message, 1,024 hosts over one"
    yield Target(name, one / most, 1.2, at_most=True)
    images = document["crash"]["hashmap_8mb"]["images_per_minute"]
    yield Target("crash states checked in a minute, 8 MB, 2 cores", images, 1000)
    rates = {name: figures["transitions_per_second"] for name, figures in document["prove"].items()}
    name = "million transitions of the protocol a second, one processor"
    yield Target(name, rates["one_processor"] / 1e6, 1)
    yield Target("... on all processors", rates["all_processors"] / 1e6, 4)
    rate = document["coherence"]["one_processor"]["transitions_per_second"]
    yield Target("million transitions of coherence a second, one processor", rate / 1e6, 1)
    for name, figures in document["record"].items():
        bound = figures["slowdown_max"]
        yield Target(f"recording {name}, times native", figures["slowdown"], bound, at_most=True)
    peaks = [figures["peak_mb"] for figures in document["memory"].values()]
    growth = max(peaks) / min(peaks)
    yield Target("memory for ten times the record", growth, 1.1, at_most=True)
    sweep = document["sweep"]
    yield Target("share that a sweep adds to its replays", sweep["overhead"], 0.05, at_most=True)
    growth = sweep["peak_mb"]["100000"] / sweep["peak_mb"]["1000"]
    yield Target("memory of a driver for 100,000 points over 1,000", growth, 1.1, at_most=True)
    status = sweep["status_seconds"]
    yield Target("seconds of sweep status with 100,000 points", status, 2, at_most=True)
    for key, (name, bound) in STUDY_SECONDS_MAX.items():
        if key in document["study"]:
            yield Target(name, document["study"][key], bound, at_most=True)
    yield Target("seconds of all this", document["seconds"], SECONDS_MAX, at_most=True)
