"""Which programs there are, and in which variants they are built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

WAITS = ("plain", "pause", "backoff", "yield", "sleep", "adaptive")
COMPILERS = ("gcc", "clang")
LEVELS = ("O0", "O1", "O2", "O3")


@dataclass(frozen=True)
class Program:
    """A program, and what is known of it."""

    name: str
    sources: tuple[str, ...]  # from this folder; linked by the last one's language
    waits: tuple[str, ...] = WAITS  # empty: it waits in one way only
    reference: str | None = None  # the same program, with a call that the recorder knows
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    options: tuple[str, ...] = ()  # of the compiler
    arguments: tuple[str, ...] = ()


def _written(name: str, *others: str, **known: Any) -> Program:
    """A program of programs/."""
    sources = (f"programs/{name}.c", *(f"programs/{other}" for other in others))
    return Program(name, sources, **known)


def _workload(name: str, source: str, *arguments: str) -> tuple[Program, Program]:
    """A program of workloads/ with barriers that poll, and as it is."""
    is_as_it_is = Program(
        f"{name}_pthread",
        (f"../../workloads/{source}",),
        (),
        arguments=arguments,
    )
    spinning = replace(
        is_as_it_is,
        name=f"{name}_spinning",
        waits=WAITS,
        reference=is_as_it_is.name,
        options=("-include", "spinning_barrier.h"),
    )
    return is_as_it_is, spinning


_BARRIER, _LOCK, _RING = "barrier_pthread", "lock_pthread", "ring_pthread"
_BLOCKING, _LONG = "barrier_pthread_long", ("-DLONG_ROUNDS",)


def _blocking(name: str, *others: str, options: tuple[str, ...] = (), **known: Any) -> Program:
    """A barrier that polls for a while and then blocks in the kernel."""
    options = (*_LONG, *options)
    return _written(name, *others, waits=(), reference=_BLOCKING, options=options, **known)


def _lock(name: str) -> tuple[Program, Program]:
    """A lock that some thread surely waits for, and one that perhaps none does."""
    lock = _written(name)
    return lock, replace(lock, name=f"{name}_uncontended", options=("-DUNCONTENDED",))


def _messages(*sizes: int) -> Iterator[Program]:
    """Messages of so many bytes, which are polled as a whole."""
    messages = _written("rotating_messages", reference=_BARRIER)
    for size in sizes:
        options = (f"-DMESSAGE_BYTES={size}",)
        yield replace(messages, name=f"{messages.name}_{size}", options=options)


PROGRAMS = (
    _written(_BARRIER, waits=()),
    _written("barrier_sense", reference=_BARRIER),
    _written("barrier_tree", reference=_BARRIER),
    _written("barrier_dissemination", reference=_BARRIER),
    _written("barrier_splash", waits=(), reference=_BARRIER),
    Program(_BLOCKING, ("programs/barrier_pthread.c",), (), options=_LONG),
    _blocking("barrier_atomic_wait", "atomic_wait.cpp"),
    _blocking("barrier_std", "std_barrier.cpp"),
    _blocking("barrier_openmp", environment={"OMP_WAIT_POLICY": "active"}, options=("-fopenmp",)),
    _written(_LOCK, waits=()),
    *_lock("lock_test_and_set"),
    *_lock("lock_test_first"),
    *_lock("lock_ticket"),
    *_lock("lock_mcs"),
    *(replace(lock, waits=()) for lock in _lock("lock_futex")),
    _written("rotating_flags", reference=_BARRIER),
    _written("rotating_vectors", reference=_BARRIER),
    *_messages(16, 32),
    _written("task_queues"),
    _written(_RING, waits=()),
    _written("ring", reference=_RING),
    _written("wait_under_lock"),
    _written("lock_kept"),
    _written("versions"),
    _written("version_held"),
    _written("version_tree"),
    _blocking("barrier_condition"),
    _written("countdown_condition", waits=(), options=_LONG),
    _blocking("barrier_latch", "std_latch.cpp"),
    _written("ring_std", "std_semaphore.cpp", waits=(), options=_LONG),
    _written("ring_pipe", waits=(), options=_LONG),
    _written("token_socketpair", waits=(), options=_LONG),
    _written("lock_readers"),
    _written("pool_condition", waits=(), options=_LONG),
    _written("shared_index", waits=()),
    _written("for_openmp", waits=(), options=(*_LONG, "-fopenmp")),
    *_workload("lu", "lu.c", "-n64", "-b8", "-p4"),
    *_workload("fft", "fft.c", "-m10", "-p4"),
)

# Whose critical path is known where one thread's memory is slower, whoever does what.
_FAR = (
    "barrier_*",
    "countdown_condition",
    "for_openmp",
    "lock_*",
    "ring*",
    "rotating_*",
    "shared_index",
    "token_socketpair",
    "version*",
    "wait_under_lock",
)

# Each thread's memory is a file of its own.
FAR = tuple(
    replace(
        program, name=f"{program.name}_far", reference=None, options=(*program.options, "-DFAR")
    )
    for program in PROGRAMS
    if any(fnmatch(program.name, name) for name in _FAR)
)

# They look like waiting, and are work.
WORKING = tuple(
    _written(f"work_{name}", waits=())
    for name in (
        "one_word",
        "pointer_ring",
        "array_sum",
        "memset",
        "memset_stack",
        "flushes",
        "counters",
        "cas_counter",
        "lock_pairs",
        "own_lock_pairs",
        "clock_delay",
        "poll_counted",
        "poll_timed",
        "while_polling",
        "tree_search",
    )
)


@dataclass(frozen=True)
class Case:
    """A program in one variant, by one compiler."""

    program: Program
    wait: str | None
    compiler: str
    level: str

    @property
    def name(self) -> str:
        """What it is called on the command line, and its file in build/waits."""
        wait = "" if self.wait is None else f"-{self.wait}"
        return f"{self.program.name}{wait}-{self.compiler}-{self.level}"

    @property
    def reference(self) -> Case | None:
        """What it is compared with besides its critical path."""
        for program in PROGRAMS:
            if program.name == self.program.reference:
                return Case(program, None, self.compiler, self.level)
        return None


def every_case(programs: Iterable[Program]) -> Iterator[Case]:
    """The whole matrix of these programs."""
    for program in programs:
        for wait in program.waits or (None,):
            for compiler in COMPILERS:
                for level in LEVELS:
                    yield Case(program, wait, compiler, level)


def matching(patterns: list[str], programs: Iterable[Program] = PROGRAMS) -> list[Case]:
    """The cases of these programs whose name matches one of the patterns, as a shell's."""
    return [c for c in every_case(programs) if any(fnmatch(c.name, p) for p in patterns)]
