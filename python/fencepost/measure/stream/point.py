"""One placement of threads and arrays: what a bandwidth was measured of."""

from dataclasses import dataclass, replace

from fencepost._core import InputError
from fencepost.plural import many

KERNELS = ("copy", "scale", "add", "triad")
MODES = ("memory", "app-direct")
AFFINITIES = ("close", "spread")
STORES = ("ordinary", "non-temporal", "library")
ACCESSES = ("pointer", "d_rw")


@dataclass(frozen=True)
class Point:
    """A point without its kernel: a run of the program gives all four."""

    mode: str = "memory"
    memory: str = "local"
    sockets: tuple[int, ...] = (0,)
    threads: int = 1
    affinity: str = "close"
    smt: bool = False
    first_touch: bool = True
    access: str = "pointer"
    stores: str = "ordinary"
    persist: str = "none"
    group: str | None = None  # of the study

    @property
    def name(self) -> str:
        """The same for a measured and a simulated one, in this document and in others; whatever is
        not as usual is in it."""
        sockets = f"socket{'s' * (len(self.sockets) > 1)} {'+'.join(map(str, self.sockets))}"
        usual = Point()
        extras = [
            f", {text}"
            for text, is_so in (
                ("SMT", self.smt),
                ("no first touch", not self.first_touch),
                (self.access, self.access != usual.access),
                (f"{self.stores} stores", self.stores != usual.stores),
                (f"persist {self.persist}", self.persist != usual.persist),
            )
            if is_so
        ]
        threads = many(self.threads, "thread")
        group = "" if self.group is None else f"{self.group}: "
        where = f"{self.mode} {self.memory}, {sockets}, {threads} {self.affinity}"
        return f"{group}{where}{''.join(extras)}"

    def with_threads(self, threads: int) -> "Point":
        """The same with so many threads."""
        return replace(self, threads=threads)


def check(point: Point) -> None:
    """Refuses what no run of the program can do; raises `InputError`."""
    if point.mode == "memory" and point.access == "d_rw":
        raise InputError("--access d_rw is a way to reach a pool: it needs --mode app-direct")
    if point.mode == "memory" and point.persist != "none":
        raise InputError(f"--persist {point.persist} needs a pool: --mode app-direct")
    if point.access == "d_rw" and point.stores != "ordinary":
        raise InputError(
            f"--access d_rw stores each element by itself: --stores {point.stores} needs "
            "--access pointer"
        )
