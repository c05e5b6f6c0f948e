"""An exploration's result as text."""

from collections.abc import Iterator
from typing import Any

from fencepost import source_place
from fencepost.plural import many

# Lines of the program that are named because no instant cut them; crash.json has them all.
NOT_CUT_SHOWN = 8

# Operations that are named by which a violation is seen; crash.json has them all.
OPERATIONS_SHOWN = 4

# Lines of a failing image of which the stores are printed; crash.json has them all.
LINES_SHOWN = 8
LINE_BYTES = 64

FAULTS = {
    "missing_flush": "missing flush",
    "flush_before_store": "flush before the store",
    "missing_fence": "missing fence",
    "fence_before_flush": "fence before the flush",
    "one_fence_for_both": "one fence for two stores that depend on each other",
    "later_store": "a store is durable before a later one that it needs",
    "between_stores": "stores that belong together, and a power cut between them",
    "across_threads": "nothing orders two threads' stores",
    "wrong_point": "flushed to the wrong point",
    "torn": "a torn store",
    "acknowledged_early": "flushed and fenced, but this machine acknowledges before it is durable",
    "nothing_durable": "the check fails before anything of the program is durable",
}


def place(source: dict[str, Any] | None, *, has_caller: bool = False) -> str:
    """A place in the source, with the line that called its function if that is wanted."""
    if source is None:
        return "(a call that wrote to the pool)"
    own = source if has_caller else {**source, "called_from": None}
    return f"{source_place.shown(own)}{'' if source['address'] else ', by a call'}"


def lines(result: dict[str, Any]) -> Iterator[str]:
    """The whole result."""
    has_operations = result["has_operations"]
    of_recovery = result["recoveries"]["violations"]
    yield from _violations("", result["violations"], result["out"], has_operations=has_operations)
    yield from _violations(
        " of the recovery", of_recovery, result["out"], has_operations=has_operations
    )
    for number, unexplained in enumerate(result["unexplained"], 1):
        yield from _unexplained(number, unexplained, result["out"])
    yield from _redundant(result["redundant_flushes"])
    yield from _summary(result)


def _violations(
    of: str, violations: list[dict[str, Any]], out: str, *, has_operations: bool
) -> Iterator[str]:
    """Each mistake once, by the operation that was in flight, with what else is found because of
    it."""
    mistakes = _mistakes(violations)
    operations = list(dict.fromkeys(mistake["operation"] for mistake in mistakes))
    mistakes.sort(key=lambda mistake: operations.index(mistake["operation"]))
    before = None
    for number, first in enumerate(mistakes, 1):
        if has_operations and first["operation"] != before:
            before = first["operation"]
            yield f"=== {before} ==="
        yield from _violation(f"violation {number}{of}", first, out)
        if has_operations:
            yield f"  {'during':8} {_by_operation(first['by_operation'])}"
        for same in violations:
            if same["same_as"] is not None and violations[same["same_as"]] is first:
                images = many(same["images"], "image")
                yield f"  {'also':8} {FAULTS[same['fault']]}: {images}, {out}/{same['image']}"
        yield ""


def _mistakes(violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [violation for violation in violations if violation["same_as"] is None]


def _by_operation(seen: list[dict[str, Any]]) -> str:
    """The operations in which a violation is seen, those with most images first."""
    shown = (f"{one['operation']} ({many(one['images'], 'image')})" for one in seen)
    more = len(seen) - OPERATIONS_SHOWN
    rest = f"; and {more:,} more" if more > 0 else ""
    return "; ".join(list(shown)[:OPERATIONS_SHOWN]) + rest


def _violation(title: str, violation: dict[str, Any], out: str) -> Iterator[str]:
    yield f"{title}: {FAULTS[violation['fault']]}"
    for label, store in (("durable", violation["durable"]), ("lost", violation["lost"])):
        if store:
            yield f"  {label:8} {_store(store, has_caller=True)}"
    if len(violation["called_from"]) > 1:
        callers = "; ".join(map(source_place.shown, violation["called_from"]))
        yield f"  {'called':8} from {callers}"
    advice = _advice(violation)
    if advice:
        yield f"  {'mend':8} {advice}"
    durable, lost = violation["durable"], violation["lost"]
    is_one_line = durable and lost and place(durable["source"]) == place(lost["source"])
    if is_one_line and violation["fault"] != "torn":
        where = f"the lost one stores at {_at(lost)}, the durable one at {_at(durable)}"
        yield f"  {'hint':8} both stores are on that line: {where}"
    if violation["fault"] == "missing_flush" and _is_of_commit(durable) and not _is_of_commit(lost):
        yield (
            f"  {'hint':8} the durable store is the commit of a transaction of libpmemobj: was the "
            "range of the lost one added to it (TX_ADD) before?"
        )
    if violation["has_ended"]:
        yield f"  {'hint':8} its operation has ended, so it has to be durable"
    if violation["idle_flush"]:
        idle = place(violation["idle_flush"])
        yield f"  {'hint':8} the flush at {idle} had nothing to write back: is it the wrong line?"
    yield from _said(violation, out)
    newer = violation["lines_newer_than_promised"]
    where = "as promised" if newer == 0 else f"{many(newer, 'line')} newer than promised"
    at = violation["instant_ps"] / 1e6
    yield f"  {'image':8} {out}/{violation['image']} ({where}; power cut at {at:.3f} us)"
    yield from _lines(violation["lines"], _deciding(violation))
    seen, instants = violation["images"], violation["instants"]
    yield f"  {'seen':8} in {many(seen, 'image')} at {many(instants, 'instant')}"
    yield f"  {'show':8} {violation['show']}"


def _said(failing: dict[str, Any], out: str) -> Iterator[str]:
    """How the check failed; the last line of what it printed, and where all of it is."""
    said = failing["output"].split("\n")
    yield f"  {'check':8} {failing['outcome']}{f': {said[-1]}' if said[-1] else ''}"
    if failing["whole_output"]:
        yield f"  {'output':8} {out}/{failing['whole_output']}"
    elif len(said) > 1:
        yield f"  {'output':8} {many(len(said), 'line')}, in crash.json"


def _unexplained(number: int, failing: dict[str, Any], out: str) -> Iterator[str]:
    """Images that fail, and nobody knows why: all instants, since each may be another fault."""
    yield f"not explained {number}: {many(failing['images'], 'failing image')}"
    yield from _said(failing, out)
    yield f"  {'image':8} {out}/{failing['image']}"
    at = (f"{at['ps'] / 1e6:.3f} us ({at['images']:,})" for at in failing["instants"])
    yield f"  {'cut at':8} {', '.join(at)}"
    yield f"  {'show':8} {failing['show']}"
    yield ""


def _store(store: dict[str, Any], *, has_caller: bool = False) -> str:
    what = f"{store['size']} bytes at {_at(store)}, thread {store['thread']}"
    return f"{place(store['source'], has_caller=has_caller)}: {what}"


def _is_of_commit(store: dict[str, Any] | None) -> bool:
    """Whether a transaction of libpmemobj makes it when it ends."""
    frames = store["source"]["frames"] if store and store["source"] else []
    return any(frame["function"] == "pmemobj_tx_commit" for frame in frames)


def _at(where: dict[str, Any]) -> str:
    """Where in the pool a store or a line begins."""
    return f"{where['offset']:#x}{' of ' + where['file'] if where['file'] else ''}"


def _deciding(violation: dict[str, Any]) -> set[tuple[str | None, int]]:
    """Where the lines of the durable and of the lost store begin."""
    stores = filter(None, (violation["durable"], violation["lost"]))
    return {(store["file"], store["offset"] // LINE_BYTES * LINE_BYTES) for store in stores}


def _lines(of_image: list[dict[str, Any]], deciding: set[tuple[str | None, int]]) -> Iterator[str]:
    """What the smallest image holds and lacks, line by line: first those that decide, then what is
    newer than promised."""
    ordered = sorted(
        of_image,
        key=lambda line: ((line["file"], line["offset"]) not in deciding, not line["durable"]),
    )
    for line in ordered[:LINES_SHOWN]:
        yield f"  {'in it':8} the line at {_at(line)}"
        if line["promised"]:
            yield f"    {'promised':9} {_store(line['promised'])}"
        for label in ("durable", "torn", "lost"):
            for run in line[label]:
                more = f" (and {run['stores'] - 1:,} more by it)" if run["stores"] > 1 else ""
                yield f"    {label:9} {_store(run['first'])}{more}"
    if (left := len(ordered) - LINES_SHOWN) > 0:
        yield f"    and {many(left, 'line')} more, in crash.json"


def _advice(violation: dict[str, Any]) -> str:
    lost, durable = violation["lost"], violation["durable"]
    flush, fence = violation["flush"], violation["fence"]
    store = place(lost["source"]) if lost else ""
    match violation["fault"]:
        case "missing_flush":
            if flush:
                return f"its flush at {place(flush)} comes too late"
            until = f" before the fence at {place(fence)}" if fence else ""
            return f"flush the line of {store}{until}"
        case "later_store":
            return "make the lost store durable first; if both are one change, log it"
        case "wrong_point":
            return (
                f"the flush at {place(flush)} reaches the point of coherence, which is not "
                "persistent here: flush to the point of persistence (dc cvap)"
            )
        case "torn":
            return _mend_of_torn(lost)
        case "flush_before_store":
            return f"the flush at {place(flush)} comes before the store; it has to follow it"
        case "missing_fence":
            other = f" before {place(durable['source'])}" if durable else ""
            if flush is None:
                return f"a fence behind the non-temporal store at {store}{other}"
            return f"a fence behind the flush at {place(flush)}{other}"
        case "fence_before_flush":
            return f"the fence at {place(fence)} comes before the flush at {place(flush)}"
        case "one_fence_for_both":
            other = place(durable["source"]) if durable else "the other store"
            return f"flush and fence between {store} and {other}"
        case "between_stores":
            return (
                "log what is changed, or change it with one store of at most 8 bytes; or the "
                "recovery is wrong, since everything that is visible is durable here"
            )
        case "across_threads":
            other = f" that stores at {place(durable['source'])}" if durable else ""
            return f"let the fence at {place(fence)} be over before the thread{other} goes on"
        case "acknowledged_early":
            return (
                "the machine, not the program: with core.flush_acknowledged_by"
                ' = "persistent_domain" it is durable'
            )
        case "nothing_durable":
            return f"make {store} durable before the program runs, or let the check pass without it"
    return ""


def _mend_of_torn(store: dict[str, Any]) -> str:
    """A store that is durable in part, because it is long, or not aligned, or in two lines."""
    offset, size = store["offset"], store["size"]
    last = offset + size - 1
    mend = "align it, give it a checksum, or keep two copies of what it changes"
    if offset // LINE_BYTES != last // LINE_BYTES:
        return f"the store lies in two lines, either of which may be durable alone: {mend}"
    wider = next(bytes for bytes in (8, 16, LINE_BYTES) if offset // bytes == last // bytes)
    return (
        f"it needs a torn {size}-byte store, which platform.atomicity_bytes={wider} rules out: "
        f"{mend}"
    )


def _redundant(redundant: dict[str, Any]) -> Iterator[str]:
    for flush in redundant["flushes"]:
        share = f"{flush['redundant']} of {flush['executions']} executions"
        evicted = f" ({flush['evicted']} more had been evicted)" if flush["evicted"] else ""
        idle = f"nothing to write back in {share}{evicted}"
        yield f"redundant flush: {place(flush['source'])}: {idle}{_cost_alone(flush, redundant)}"
    if (cost := redundant["cost"]) and cost["without_ps"] is not None:
        more = (cost["with_ps"] - cost["without_ps"]) / 1e6
        of = cost["with_ps"] / 1e6
        yield f"  those redundant each time cost {more:.3f} us of {of:.3f} us of simulated time"
    if redundant["flushes"]:
        yield ""


def _cost_alone(flush: dict[str, Any], redundant: dict[str, Any]) -> str:
    """What a flush costs that can be left out; of one that is needed at times nothing is known."""
    if flush["without_ps"] is None:
        return ""
    cost = (redundant["cost"]["with_ps"] - flush["without_ps"]) / 1e6
    return f"; without it {cost:.3f} us less"


def _summary(result: dict[str, Any]) -> Iterator[str]:
    counts = result["counts"]
    minutes = counts["seconds"] / 60
    yield f"machine {result['machine']}, scheme {result['scheme']}"
    promised = result["platform"]
    yield (
        f"platform: persistence {promised['persistence']} ({promised['persistence_from']}), stores "
        f"whole in {promised['atomicity_bytes']} aligned bytes ({promised['atomicity_from']})"
    )
    rate = f", {counts['checked'] / minutes:,.0f} a minute" if counts["checked"] else ""
    resumed = f", {counts['resumed']:,} known from before" if counts["resumed"] else ""
    yield (
        f"{counts['instants']:,} of {many(result['instants'], 'instant')}; "
        f"{many(counts['images'], 'image')}, {counts['duplicates']:,} more had the same content; "
        f"{many(counts['checked'], 'check')}{resumed}{rate}"
    )
    if result["skipped"]:
        yield (
            f"skipped: {many(result['skipped'], 'instant')} before the first operation"
            + ("" if result["is_check_equal"] else "; --creation explores them, too")
        )
    if counts["unjudged_instants"]:
        yield (
            f"not judged: {many(counts['unjudged_instants'], 'instant')}, where operations "
            "of several threads overlap, never end, or end before any FP_ACK of them: the run does "
            "not show all right outputs"
        )
    if counts["reduced_instants"]:
        yield (
            f"at {many(counts['reduced_instants'], 'instant')} only lines count that the check "
            f"reads of some image: up to {counts['reduced_to']:.3g} combinations of versions "
            f"instead of {counts['reduced_from']:.3g}"
        )
    if counts["unsure_instants"]:
        yield (
            f"not all: at {counts['unsure_instants']:,} of these, what the check reads differs "
            "from image to image, and it was not recorded on all of them"
        )
    if said := _reads(result["reads"]):
        yield said
    if bounded := counts["bounded_instants"] - counts["unsure_instants"]:
        yield (
            f"not all: at {many(bounded, 'instant')} there were more combinations of "
            f"versions than --images {result['bound']} (up to {counts['combinations_max']:.3g}); "
            f"a choice of them was made, drawn with --seed {result['seed']}"
        )
    for ignored in result["ignored"]:
        at = f" at {place(ignored['lost']['source'])}" if ignored["lost"] else ""
        yield (
            f"ignored: {FAULTS[ignored['fault']]}{at}: {many(ignored['images'], 'image')} at "
            f"{many(ignored['instants'], 'instant')}"
        )
    if result["unexplained"]:
        images = sum(failing["images"] for failing in result["unexplained"])
        yield f"{many(images, 'failing image')} not explained"
    yield from _recoveries(result["recoveries"])
    found = (result["violations"], result["recoveries"]["violations"])
    faults = sum(len(_mistakes(violations)) for violations in found)
    verdict = many(faults, "violation") if faults else "no violation"
    if not faults and (failing := counts["failing"] - counts["ignored"]):
        verdict = f"{many(failing, 'image')} failed"
    elif not faults and counts["ignored"]:
        verdict = "no violation but what --ignore names"
    if result["error"]:
        yield result["error"]
    elif (time := result["time"]) and time["is_up"]:
        yield from _time_is_up(time)
    elif result["interrupted"]:
        yield "interrupted; the same command continues from here"
    if not result["interrupted"] and counts["instants"] == result["instants"]:
        doubts = "".join(f"; warning: {doubt}" for doubt in result["check_doubts"])
        if unjudged := counts["unjudged_instants"]:
            doubts += f"; {unjudged:,} of {many(result['instants'], 'instant')} not judged"
        yield f"crash: {verdict} in {many(counts['images'], 'image')}{doubts}"
        return
    left = result["instants"] - counts["instants"]
    yield (
        f"crash: not finished, so far {'none failed' if verdict == 'no violation' else verdict} in "
        f"{many(counts['images'], 'image')}; {many(left, 'instant')} not done, "
        f"{many(counts['unchecked'], 'image')} of this one not checked"
    )


def _time_is_up(time: dict[str, Any]) -> Iterator[str]:
    """What an exploration looked at before its time was up, by the lines of the program."""
    cut = time["lines"] - len(time["not_cut"])
    yield f"cut: {cut:,} of {many(time['lines'], 'line')} that store to the pool"
    for source in time["not_cut"][:NOT_CUT_SHOWN]:
        yield f"not cut: {place(source)}"
    if (more := len(time["not_cut"]) - NOT_CUT_SHOWN) > 0:
        yield f"not cut: {more:,} more, in crash.json"
    yield f"--time {time['asked']} is up; the same command continues from here"


def _recoveries(recoveries: dict[str, Any]) -> Iterator[str]:
    """How much of what the check repairs was cut."""
    if recoveries["recorded"]:
        repairs = many(recoveries["recorded"], "repair")
        yield f"{repairs} by the check cut again: {many(recoveries['images'], 'image')}"
    if recoveries["obstacle"]:
        yield f"what the check repairs was not cut: {recoveries['obstacle']}"


def _reads(reads: dict[str, Any]) -> str:
    """Whether it was looked for what the check reads, and why."""
    if reads["used"] is None:
        return ""
    if reads["obstacle"]:
        return (
            "where there were too many combinations, lines that the check does not read were not "
            f"left out: {reads['obstacle']}"
        )
    if reads["wanted"] is not None:
        return ""
    plain, recorded = reads["check_seconds"], reads["recorded_check_seconds"]
    cost = f"recording the check takes {recorded:.3g} s, a plain run {plain:.3g} s"
    if reads["used"]:
        return f"--reads was chosen: {cost}; up to {reads['runs_max']} recorded runs an instant"
    return f"--no-reads was chosen: {cost}; it is cheaper to check more images"
