"""What `fencepost crash` is shown on: the example programs, correct and broken, and what is found.

    python -m fencepost.crash.examples docs/crash-examples.md

builds and explores all of them (workloads/broken.h, workloads/ledger.c) and writes the table of
that page anew; it fails if a broken one is not found, or anything is said of a correct one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import documents, scratch
from fencepost.crash.text import FAULTS
from fencepost.tree import ROOT, WORKLOADS

TABLE_BEGIN = "<!-- table of fencepost.crash.examples -->"
TABLE_END = "<!-- end of the table of examples -->"

SIZES = {
    "hashmap": ["-n", "12", "-k", "6"],
    "queue": ["-t", "1", "-c", "1", "-n", "5"],
    "ledger": ["-n", "3"],
    "cold_pages": [
        *("--pages", str(ROOT / "workloads" / "cholesky.c")),  # real ones: a text
        *("-n", "4", "-m", "2", "-a", "8"),
    ],
}
# The others run where persists pass a switch.
MACHINES = {"cold_pages": "agilex-type2-pm"}


# Images of an instant, where there are too many combinations for all.
IMAGES_OF_BROKEN = 64
IMAGES_OF_CORRECT = 256


@dataclass(frozen=True)
class Example:
    """A variant of a program. The first violation that is reported of a broken one has to have a
    name of `faults` and lie in the function `where` (none in a library that has no DWARF); what
    else may be reported is in `extras`: the same mistake, seen at another instant."""

    program: str
    variant: str
    what: str
    faults: tuple[str, ...] = ()
    where: str = ""
    extras: frozenset[str] = frozenset()
    threads: int = 1  # of the hash map

    @property
    def binary(self) -> str:
        return f"{self.program}-{self.variant}" if self.variant else self.program

    @property
    def name(self) -> str:
        return self.binary if self.threads == 1 else f"{self.binary}-{self.threads}-threads"

    @property
    def is_buildable(self) -> bool:
        """Whether the library is there that it compresses with."""
        return self.program != "cold_pages" or (WORKLOADS / self.program).exists()

    @property
    def is_correct(self) -> bool:
        return not self.faults

    def command(self, programs: Path, pool: str) -> list[str]:
        """The program at work on a pool; variants of it lie in `programs`."""
        if self.program == "ledger":
            mistake = ["--mistake", self.variant] if self.variant else []
            return [str(WORKLOADS / "ledger"), *SIZES["ledger"], *mistake, "--pool", pool]
        program = programs / self.binary if self.variant else WORKLOADS / self.program
        threads = ["-t", str(self.threads)] if self.threads > 1 else []
        return [str(program), *SIZES[self.program], *threads, "--flush", "clwb", "--pool", pool]

    def check(self, programs: Path) -> str:
        """The command that examines an image."""
        own = " ".join([*self.command(programs, "{image}"), "--check"])
        return f"sh -c 'pmempool check -q {{image}} && {own}'" if self.program == "ledger" else own

    def prepare(self, pool: Path) -> None:
        """What has to be there before the program runs: a ledger with one booking."""
        if self.program == "ledger":
            pool.unlink(missing_ok=True)
            create = ["pmempool", "create", "obj", "--layout", "ledger", "--size", "8M", str(pool)]
            subprocess.run(create, check=True)
            begin = [str(WORKLOADS / "ledger"), "-n", "1", "--pool", str(pool)]
            subprocess.run(begin, check=True, stdout=subprocess.DEVNULL)

    def options(self, pool: Path, programs: Path, images: int | None = None) -> list[str]:
        """What explores it, from MACHINE to the program. A broken one may keep lines in doubt until
        the end, and libpmemobj has many at once: of these, `images` images of an instant do; more
        of the correct one, in which nothing is to be found."""
        own = [
            MACHINES.get(self.program, "pcs-table1"),
            "--pm",
            f"file:{pool}",
            "--check",
            self.check(programs),
        ]
        if not self.is_correct or self.program == "ledger":
            usual = IMAGES_OF_CORRECT if self.is_correct else IMAGES_OF_BROKEN
            own += ["--images", str(images or usual), "--no-reads"]
        elif self.program == "cold_pages":  # whose entries have many lines before they are read
            own += ["--reads"]
        return [*own, "--", *self.command(programs, str(pool))]


# Several threads take turns as they come: a mistake may show at other moments, too.
TURNS = ("across_threads", "later_store", "between_stores")


def _broken(
    program: str, variant: str, what: str, faults: str, where: str, *extras: str
) -> Example:
    """`faults` is one name, or two with a blank between them: which it is depends on how the
    threads of the recorded run took turns."""
    seen = {*extras, *TURNS} if program == "queue" else extras
    return Example(program, variant, what, tuple(faults.split()), where, frozenset(seen))


# libpmemobj flushes only where it takes the pool for persistent memory.
ENVIRONMENT = {"PMEM_IS_PMEM_FORCE": "1"}

EXAMPLES = (
    Example("hashmap", "", "as it is"),
    Example("hashmap", "TWO_LINES", "records of two lines"),
    Example("hashmap", "TWICE_IN_ONE_LINE", "two stores to one line, one flush"),
    Example("hashmap", "", "two threads, a lock for each bucket", threads=2),
    Example("queue", "", "as it is"),
    Example("queue", "TWO_LINES", "records of two lines"),
    _broken("hashmap", "NODE_NOT_FLUSHED", "only the link is flushed", "missing_flush", "put"),
    _broken("hashmap", "NO_FENCE", "no fence between record and link", "missing_fence", "put"),
    _broken(
        "hashmap",
        "FLUSH_BEFORE_STORE",
        "flush, then the checksum",
        "flush_before_store",
        "persist_node",
    ),
    _broken(
        "hashmap",
        "FENCE_BEFORE_FLUSH",
        "the fence comes before the flush",
        "fence_before_flush",
        "put",
        "missing_fence",
    ),
    _broken("hashmap", "WRONG_LINE", "the next line is flushed", "missing_flush", "put"),
    _broken(
        "hashmap",
        "ONE_FENCE",
        "record and link flushed together",
        "one_fence_for_both",
        "put",
        "later_store",
        "between_stores",
    ),
    _broken(
        "hashmap",
        "LINK_BEFORE_NODE",
        "the link is persisted first",
        "missing_flush",
        "put",
        "later_store",
        "between_stores",
    ),
    _broken("hashmap", "LINK_NOT_FLUSHED", "only the record is flushed", "missing_flush", "put"),
    _broken("hashmap", "FIRST_LINE_ONLY", "one of two lines is flushed", "missing_flush", "put"),
    _broken(
        "hashmap",
        "INTENT_NOT_FLUSHED",
        "the intent is not flushed",
        "missing_flush",
        "write_intent",
    ),
    _broken("hashmap", "IN_PLACE", "records overwritten in place", "later_store", "put"),
    Example(
        "hashmap",
        "NO_FENCE",
        "no fence between record and link, two threads",
        ("missing_fence",),
        "put",
        frozenset(TURNS),
        threads=2,
    ),
    _broken(
        "queue",
        "NODE_NOT_FLUSHED",
        "only the link is flushed",
        "missing_flush",
        "fill_node",
    ),
    _broken(
        "queue", "FIRST_LINE_ONLY", "one of two lines is flushed", "missing_flush", "fill_node"
    ),
    _broken(
        "queue", "ONE_FENCE", "record and link flushed together", "one_fence_for_both", "fill_node"
    ),
    _broken("queue", "HEAD_NOT_FLUSHED", "the head is not flushed", "missing_flush", "dequeue"),
    _broken(
        "queue",
        "LINK_NOT_FLUSHED",
        "the link is not flushed",
        "missing_flush later_store",
        "enqueue",
    ),
    _broken(
        "queue",
        "ACKNOWLEDGED_EARLY",
        "acknowledged before the link is durable",
        "between_stores later_store",
        "enqueue",
    ),
    Example("ledger", "", "libpmemobj, as it is"),
    _broken(
        "ledger",
        "no-snapshot",
        "the sum is not in the transaction",
        "missing_flush",
        "book",
        "later_store",
        "between_stores",
    ),
    _broken(
        "ledger",
        "no-persist",
        "the acknowledgement is not persisted",
        "missing_flush",
        "acknowledge",
    ),
    _broken(
        "ledger",
        "early-acknowledgement",
        "acknowledged before the transaction",
        "later_store",
        "book",
        "between_stores",
    ),
    _broken(
        "ledger",
        "no-transaction",
        "two fields without a transaction",
        "later_store",
        "book",
        "between_stores",
    ),
    Example("cold_pages", "", "pages compressed by a device"),
    _broken(
        "cold_pages",
        "PUBLISHED_FIRST",
        "a page's place is published before its entry",
        "later_store",
        "publish",
        "between_stores",
    ),
    _broken(
        "cold_pages",
        "ENTRY_NOT_FLUSHED",
        "the device leaves the entry in its cache",
        "missing_flush",
        "copy_lines",
    ),
    _broken(
        "cold_pages",
        "FREED_FIRST",
        "a frame is used again before its page's place is published",
        "between_stores",
        "publish",
    ),
    _broken(
        "cold_pages",
        "PAGE_NOT_FLUSHED",
        "a page that has come back stays in a cache",
        "missing_flush",
        "copy_lines",
    ),
    _broken(
        "cold_pages",
        "REUSED_EARLY",
        "an entry's room is used again too early",
        "between_stores",
        "publish",
    ),
)


def build(folder: Path, *settings: str) -> Path:
    """Builds the variants that are shown, with these of make; gives the folder where they lie."""
    of_own = [e for e in EXAMPLES if e.variant and e.program != "ledger" and e.is_buildable]
    wanted = sorted({str(folder / "broken" / example.binary) for example in of_own})
    make = ["make", "--silent", "-j2", "-C", str(ROOT / "workloads"), f"BIN={folder}", *settings]
    subprocess.run([*make, *wanted], check=True, stdout=subprocess.DEVNULL)
    return folder / "broken"


def _explore(example: Example, programs: Path, folder: Path) -> dict[str, Any]:
    own = folder / example.name
    own.mkdir()
    example.prepare(own / "pool")
    fencepost = Path(sys.executable).with_name("fencepost")
    command = [str(fencepost), "crash", "--out", str(own / "out"), "--quiet"]
    done = subprocess.run(
        [*command, *example.options(own / "pool", programs)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | ENVIRONMENT,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{example.name}: {done.stderr}")
    result: dict[str, Any] = json.loads((own / "out" / "crash.json").read_text())
    return result


def is_as_expected(example: Example, result: dict[str, Any]) -> bool:
    """Whether what is wrong was found first, where it is, and nothing that is not listed."""
    violations = result["violations"]
    if example.is_correct or not violations:
        return example.is_correct and not violations
    first = violations[0]
    stores = [store for store in (first["lost"], first["durable"]) if store]
    functions = {frame["function"] for store in stores for frame in store["source"]["frames"]}
    found = {violation["fault"] for violation in violations}
    is_named = first["fault"] in example.faults
    is_there = not example.where or example.where in functions
    return is_named and is_there and found <= example.extras | set(example.faults)


def _rows(results: list[tuple[Example, dict[str, Any]]]) -> Iterator[str]:
    yield "| program | variant | what it does | instants | images | failing | found | ok |"
    yield "|---|---|---|---|---|---|---|---|"
    for example, result in results:
        counts = result["counts"]
        faults = dict.fromkeys(violation["fault"] for violation in result["violations"])
        found = "; ".join(FAULTS[fault] for fault in faults) or "nothing"
        verdict = "ok" if is_as_expected(example, result) else "WRONG"
        yield (
            f"| {example.program} | {example.variant or '–'} | {example.what} "
            f"| {counts['instants']} | {counts['images']}{_share(counts)} | {counts['failing']} "
            f"| {found} | {verdict} |"
        )
    broken = [(example, result) for example, result in results if not example.is_correct]
    found_out = sum(is_as_expected(example, result) for example, result in broken)
    alarms = sum(example.is_correct and bool(r["violations"]) for example, r in results)
    yield ""
    yield (
        f"{found_out} of {len(broken)} broken variants found, {alarms} false alarms on "
        f"{len(results) - len(broken)} correct ones"
    )


def _share(counts: dict[str, Any]) -> str:
    """Says where a choice was made of an instant's images."""
    chosen = counts["bounded_instants"]
    return f", not all at {chosen} instant{'s' * (chosen > 1)}" if chosen else ""


def _with_table(text: str, rows: list[str]) -> str:
    before, begin, behind = text.partition(TABLE_BEGIN)
    _, end, after = behind.partition(TABLE_END)
    if not begin or not end:
        raise RuntimeError(f"the page has no table between {TABLE_BEGIN} and {TABLE_END}")
    return "".join([before, begin, "\n", *(f"{row}\n" for row in rows), end, after])


def main(page: Path) -> int:
    """Explores everything and writes the table into `page`."""
    with scratch.made() as folder:
        programs = build(folder)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            explored = pool.map(lambda example: _explore(example, programs, folder), EXAMPLES)
            results = list(zip(EXAMPLES, explored, strict=True))
    rows = list(_rows(results))
    documents.write_page(page, _with_table(page.read_text(), rows))
    print("\n".join(rows))
    return int(not all(is_as_expected(example, result) for example, result in results))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
