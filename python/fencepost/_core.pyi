"""The simulator, compiled from crates/python. JSON texts cross the border, nothing richer."""

from collections.abc import Callable
from typing import final

__version__: str
#: The digest of the sources that decide results: builds of one commit have the same.
SIMULATOR: str
#: How it was compiled: quick, release, or debug.
BUILD: str

__all__ = [
    "BUILD",
    "SIMULATOR",
    "CrashStates",
    "InputError",
    "InternalError",
    "Job",
    "LitmusProgress",
    "Record",
    "Service",
    "__version__",
    "bursts_follow",
    "bursts_measure",
    "coherence_bounds",
    "coherence_catalogue",
    "coherence_litmus",
    "coherence_mutant",
    "compressed_bytes",
    "lines_of_regions",
    "link_saturate",
    "link_soak",
    "litmus_examine",
    "litmus_fabrics",
    "litmus_tests",
    "machine_resolve",
    "machine_schema",
    "mapped_reads",
    "matched_ratio",
    "medium_probe",
    "nearest",
    "options_check",
    "options_resolve",
    "pcie_measure",
    "persist_buffer_cost",
    "prove_bounds",
    "prove_catalogue",
    "prove_mutant",
    "provoke_fault",
    "record_info",
    "record_waits",
    "there_is_no",
    "toml_read",
    "traffic_footprint_max",
    "traffic_measure",
    "transport_has_to_settle",
]

class InputError(Exception):
    """Wrong input; its text is one clear message."""

class InternalError(Exception):
    """A fault of the simulator; its text names the run."""

def compressed_bytes(page: bytes, compressor: str) -> int:
    """What a page of 4,096 bytes compresses to."""

def lines_of_regions(record: Record) -> list[int]:
    """How many lines the first thread touches in each of its regions."""

def link_saturate(link: str, mix: str, messages: int) -> str:
    """What a link carries of a mix of messages when there are always more, as JSON.

    `link` is `[link]` of a machine file as JSON. `mix` (JSON) says how many of each kind come in
    turn: `mem_rd`, `mem_wr`, `mem_wr_ptl`, `cmp`, `mem_data`. Gives `messages`, `payload_bytes`,
    `flits`, `wire_bytes`, `time_ns`, `flit_ns`, `crc_errors`, `replayed_flits`.
    """

def link_soak(link: str, messages: int, seed: int) -> str:
    """What becomes of random traffic in both directions of a link, as JSON.

    Gives `arrived` (by class), `disordered`, `lost`, `missing_credits`, `credit_stalls`,
    `control_flits`, `crc_errors`, `replayed_flits`.
    """

@final
class LitmusProgress:
    """How far the examination of a litmus test is."""

    def __new__(cls) -> LitmusProgress: ...
    def runs(self) -> tuple[int, int]:
        """How many of its runs have ended, and how many it has; zeros before it begins."""

    def cancel(self) -> None:
        """Makes the examination end after the present run, with KeyboardInterrupt."""

def litmus_examine(
    name: str,
    machines: list[tuple[str, str]],
    first: int,
    seeds: int,
    progress: LitmusProgress,
) -> str:
    """What was found about a litmus test of persistency, as JSON.

    `machines` are names with resolved machines (JSON). Each runs the test under every scheme with
    `seeds` variations of its timing, from number `first` on; the power is cut at every event.
    A run that fails by a fault of the simulator is the `error` of its cell.
    """

def litmus_fabrics() -> str:
    """The machines on which litmus tests run: `name`, `description`, `machine`, `sets`, as JSON."""

def litmus_tests() -> list[str]:
    """The names of all published litmus tests, in the order of their table."""

def machine_schema() -> str:
    """The JSON Schema of machine files."""

def machine_resolve(machine: str, directories: list[str], sets: list[str]) -> str:
    """A machine as JSON, with `extends` followed, `sets` (`PATH=VALUE`) applied, defaults written.

    `machine` is the path of a file, or a name to be looked for in `directories`.
    """

def mapped_reads(record: str, path: str) -> tuple[list[int] | None, int, bool]:
    """What a recorded process read of its mapping of the file at `path`: lines (offset / 64), None
    if it mapped no such file; how many children it had; whether its record is whole.
    """

def matched_ratio(
    above: tuple[float, list[float], int], below: tuple[float, list[float], int]
) -> tuple[float, float | None] | None:
    """The ratio of two totals that were estimated from the same intervals, and half the width of
    its 95 % confidence interval. Each total has what every interval contributes to its error, and
    how many coefficients it took.
    """

def nearest(wanted: str, valid: list[str]) -> str | None:
    """The valid name most like `wanted`, if any is like it."""

def there_is_no(kind: str, wanted: str, valid: list[str]) -> str:
    """What is said of a `kind` of which none is called `wanted`: the nearest name first, then all
    that there are."""

def medium_probe(machine: str, medium: str, script: str) -> str:
    """What a medium of `machine` (JSON) does alone under a script of requests, as JSON.

    `medium` is `dram` or the name of a PM device. `script` is a JSON list; each request has
    `at_ps`, `write` and `line`, or for DRAM `place`: rank, bank group, bank, row, column (the last
    in lines); a write may have `bytes`. Reads and writes enter apart, each kind in order, as soon
    as there is room. The answer has, parallel to the script, `requests` (`entered_ps`,
    `answered_ps`, `from_queue`); the `commands` of DRAM (`at_ps`, `command`, `rank`, `bank_group`,
    `bank`), `rested_ps` (nothing left to do) and the medium's `statistics`.
    """

def options_check(options: str, machine_name: str, machine: str) -> None:
    """Whether a machine (JSON) has the memory nodes and cores that options name; or InputError."""

def options_resolve(options: str) -> str:
    """Checks `provenance.options` of docs/results.md (JSON) and gives them back; or InputError."""

def persist_buffer_cost(scheme: str, entries: int) -> str:
    """The hardware cost (JSON) of a persist buffer: bits, comparators, bytes to drain.

    `null` for a scheme without one. Its fields are those of crates/sim's `Cost`.
    """

def coherence_bounds(
    bounds: str, memory_max: int, threads: int, observe: Callable[[str], None]
) -> str:
    """Explores coherence within `bounds` (JSON) as `prove_bounds` does the persist buffer.

    Gives `progress_seconds` as well; stories have no `invariants`.
    """

def coherence_mutant(name: str, observe: Callable[[str], None]) -> str:
    """Explores a broken variant in its own bounds until its predicate breaks; gives the same."""

def coherence_litmus(name: str) -> str:
    """What the litmus test `name` comes to, with its broken variants, as JSON."""

def coherence_catalogue() -> str:
    """`predicates`, `mutants` and the default `bounds` of the exploration, as JSON."""

def prove_bounds(bounds: str, memory_max: int, threads: int, observe: Callable[[str], None]) -> str:
    """Explores the protocol within `bounds` (JSON) and so many bytes; gives a report as JSON.

    `threads` find next states beside the caller, which looks them up and finds some itself.
    `observe` is called every few seconds with how far it is, as JSON. Gives `bounds`, `states`,
    `transitions`, `depth`, `seconds`, `bytes`, `counterexample` (null, or `predicate`,
    `invariants`, `says`, `steps`) and `ended_early` (null, or `out_of_memory`).
    """

def prove_mutant(name: str, observe: Callable[[str], None] | None) -> str:
    """Explores a broken variant in its own bounds until its predicate breaks; gives the same."""

def prove_catalogue() -> str:
    """`predicates`, `mutants` and the default `bounds` of the exploration, as JSON."""

def provoke_fault(part: str | None) -> None:
    """Makes every run panic whose name has `part` in it; None ends that.

    It is how tests see that a fault is caught and named, and leaves other runs whole.
    """

def record_info(path: str) -> str:
    """What a record holds, as JSON; also of one that was cut off or is damaged, up to there."""

def record_waits(path: str) -> str:
    """Where threads of a record waited, as JSON: a list of loops."""

def toml_read(text: str) -> str:
    """The tree of a TOML text as JSON: a node has its `line`, and `table`, `array` or `value`.

    A syntax error is an `InputError` that begins with its line and a colon.
    """

def bursts_follow(machine_name: str, machine: str, bursts: str) -> tuple[bytes, str]: ...
def bursts_measure(machine_name: str, machine: str, bursts: str) -> str:
    """What came of bursts of coherent requests on a machine; all are JSON.

    docs/type2.md has their members and those of the result.
    """

def pcie_measure(machine_name: str, machine: str, transfers: str) -> str:
    """What came of transfers by the PCIe device of a machine; all are JSON."""

def traffic_measure(machine_name: str, machine: str, scheme: str, experiment: str) -> str:
    """What came of synthetic traffic on a machine; `machine` and `experiment` are JSON.

    `experiment` has `streams` (a list for each host, or one for all), `warm_up_ns`, `measure_ns`
    and `seed`; docs/traffic.md has the members of a stream and of the result.
    """

def traffic_footprint_max(machine_name: str, machine: str, host: int, memory: str) -> int:
    """The bytes that all streams of a host, counted from 0, have together in that memory."""

def transport_has_to_settle(transport: str) -> bool:
    """Whether its shares settle only after some of its intervals; raises `InputError` where there
    is no such transport."""

@final
class Record:
    """A record that has been opened and checked, shared by all replays of it."""

    def __new__(cls, path: str, allow_cut: bool, children: bool = False) -> Record: ...
    def provenance(self) -> str:
        """What a result says of the record it was made from, as JSON."""
    def has(self, selector: str) -> bool:
        """Whether `selector` (`heap`, `file:PATTERN`, `range:LO-HI`) means any address of it."""
    def data_files(self) -> list[str]:
        """The files that the program mapped, besides itself and its libraries, in order."""

@final
class Service:
    """What a recorded redis-server did, for simulations of it whose memory does not suffice.

    `requests` are how many requests each measured operation had: the last that the server answered.
    """

    def __new__(cls, record: Record, requests: list[int]) -> Service: ...
    def summary(self, compressor: str) -> str:
        """`operations`, `instructions`, `lines`, `pages`, `classes` of pages and so on, as JSON."""
    def wanted(self, compressor: str, operations: list[int]) -> str:
        """What memory it wants for these operations, as JSON (`Wanted` of crates/reclaim)."""
    def sample(self, compressor: str, class_: str, count: int) -> list[bytes]:
        """So many loaded pages of a class, or all if there are fewer."""
    def run(self, cell: str) -> str:
        """Simulates a cell (JSON: `Cell` of crates/reclaim); gives `Measured`."""

@final
class Job:
    """One replay: a record for each host of a machine under a scheme."""

    def __new__(
        cls,
        machine_name: str,
        machine: str,
        records: list[Record],
        scheme: str,
        options: str,
        stop_at: list[list[int]],
    ) -> Job:
        """`machine` and `options` are JSON; raises InputError before any work is done.

        `records` has one for each host. `stop_at` ends each thread of each host after so many
        instructions; empty for no such end.
        """

    def run(self) -> str:
        """Replays, with the interpreter's lock released; gives one entry of `runs` as JSON."""

    def explain(self) -> str:
        """The same, and which lines of the program persist and wait: a member `persist_sites` more,
        with `flushes` and `fences` (docs/explain-reference.md).
        """

    def timeline(self, selection: str) -> tuple[bytes, str]:
        """Replays and follows single requests: a Perfetto trace, and the same requests as JSON.

        `selection` is JSON: `slices_max`, and `persist` (its number), or `region` (its index), or
        `from_ps` and `until_ps`; with none of these from the first persist on.
        """

    def power(self, phase_1_ns: float | None, phase_2_ns: float | None) -> str:
        """Runs, and finds the instant at which the most would have to be saved if power failed.

        The limits are those of the two phases of a Global Persistent Flush there; None: no limit.
        Gives the same as `run`, in which `power` is filled: `report` and `errors`.
        """

    def progress(self) -> tuple[int, int, int]:
        """(simulated picoseconds, instructions, instructions in all); from any thread."""

    def positions(self) -> list[list[int]]:
        """Instructions of each thread of each host at the end; empty before."""

    def cancel(self) -> None:
        """Makes `run` end soon, with KeyboardInterrupt; from any thread."""

@final
class CrashStates:
    """A way through the instants of a record's replay, with the images that a power cut can leave
    at each. A choice has a number for each line in doubt: which of its contents an image has.
    """

    def __new__(
        cls, machine_name: str, machine: str, record: Record, scheme: str, options: str
    ) -> CrashStates:
        """`machine` and `options` are JSON; the one PM selector in these is the pool's file."""

    def replay(self, operations: list[str]) -> str:
        """Replays, with the interpreter's lock released. Calls of the functions that `operations`
        names are operations; without them, what the program says is. Gives JSON: `path` and
        `mapped_bytes` of the pool, `lines` written, `stores`, `flushes`, `threads`, `marks`,
        `duration_ps`, `warnings`.
        """

    def left(self) -> list[tuple[int, bytes]]:
        """The pool as the program left it, everything visible: (offset, bytes); before the first
        call of `advance`.
        """

    def before_last_promise(self) -> list[tuple[int, bytes]]:
        """What is promised right before the last promise, and nothing newer: (offset, bytes);
        before the first call of `advance`.
        """

    def set_marks_matter(self, check_is_told: bool, skips_creation: bool) -> None:
        """Whether the check is told of the marks of operations, which makes an image another one
        once another mark was passed; and whether what comes before the first operation is skipped.
        """

    def survey(self, with_lines: bool) -> tuple[int, int, list[tuple[int, list[int]]]]:
        """What lies ahead: how many instants there are, how many are skipped, and, if `with_lines`,
        at which instants which lines of the program (their origins) have stores in doubt for the
        first time; before the first call of `advance`.
        """

    def rewind(self) -> None:
        """Goes back to before the first instant; images that were given are not given again."""

    def marks_passed(self) -> int:
        """How many marks were passed before the present instant."""

    def at_mark(self, number: int) -> list[tuple[int, bytes]]:
        """All that is performed before this mark, as if it were durable: (offset, bytes); before
        the first call of `advance`.
        """

    def cancel(self) -> None:
        """Makes `replay` or `redundant` end soon, with KeyboardInterrupt; from any thread."""

    def advance(self) -> int | None:
        """Goes on to the next instant; its time in picoseconds, None after the last."""

    def changes(self) -> list[tuple[int, bytes]]:
        """What has changed since the last call of what is promised: (offset, bytes)."""

    def doubtful(self) -> list[tuple[int, int]]:
        """The lines in doubt: (offset in the file, how many contents each may have)."""

    def whole_contents(self) -> list[list[int]]:
        """By line in doubt, which of its contents are a number of whole stores: the first and the
        last one are.
        """

    def choices(self, bound: int, seed: int, read: set[int] | None) -> tuple[list[list[int]], bool]:
        """What `images` would look at: the choices, and whether these are all combinations."""

    def images(
        self, bound: int, seed: int, read: set[int] | None
    ) -> tuple[list[tuple[str, list[int]]], int, float, bool]:
        """The images of this instant that were not given before.

        ((hash, choice) of each, duplicates, combinations, whether these are all). Of lines that are
        not in `read`, if that is given, only what is promised is taken.
        """

    def hash(self, choice: list[int]) -> str:
        """The hash of an image's content."""

    def patches(self, choice: list[int]) -> list[tuple[int, bytes]]:
        """How an image differs from what is promised: (offset, bytes)."""

    def stored_from(self) -> str:
        """The lines of the program that store to the pool, as JSON: `source`, and `origin`, the
        number that `lost` and `without_loss` know it by.
        """

    def lost(self, choice: list[int]) -> list[int]:
        """The origins whose stores an image lacks."""

    def without_loss(self, choice: list[int], origins: set[int]) -> tuple[list[int], list[int]]:
        """The image that lacks no store of these origins, and is otherwise as old; and the one that
        holds what comes before the first of them in each line, and not that.
        """

    def explain(self, choice: list[int], early: list[int], lost: list[int]) -> str:
        """Why an image fails, as JSON; `early` and `lost` are the lines that it depends on: it
        passes with the content before, or behind, the one that they have.
        """

    def stores(self, choice: list[int]) -> str:
        """What an image holds and lacks of each line in doubt, as JSON.

        By line: `offset` in the file, `promised` (the last store that was promised, or null), and
        `durable` and `lost`: stores that followed, as `first` of `stores` by one instruction.
        """

    def redundant(self) -> str:
        """The flushes that never mattered, and what they cost, as JSON."""
