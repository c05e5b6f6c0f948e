"""Runs go through any executor, are known by what decides them, and vary along axes."""

import json
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import fencepost as fp
from fencepost import _core, machines
from fencepost.replay import options, resolved
from fencepost.runs import executors
from fencepost.runs.axes import Key, name_among, values_of
from fencepost.runs.experiment import Experiment
from fencepost.runs.store import Store, identity
from fencepost.runs.task import Task, perform
from fencepost.tree import RECORDS
from fencepost.validation.persist import ARENA

RECORD = RECORDS / "persist_loops.fencepost"
HOST_TIMES = {"host_seconds", "mips"}


def task(scheme="pb", *sets, **changes):
    chosen = resolved(options([scheme], [ARENA], **changes))
    document = machines.resolve("pcs-table1", list(sets))
    record = _core.Record(str(RECORD), False)
    return Task.of(Key.of("pcs-table1", scheme=scheme), document, (record,), chosen)


def without_host_times(node):
    if isinstance(node, dict):
        return {key: without_host_times(node[key]) for key in node.keys() - HOST_TIMES}
    return [without_host_times(one) for one in node] if isinstance(node, list) else node


def compared(**more):
    return fp.compare("pcs-table1", RECORD, schemes=["nopb", "pb"], pm=[ARENA], **more).document


def test_any_executor_gives_the_same_result():
    here = compared(limit_pm_writes=500)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        there = compared(limit_pm_writes=500, executor=processes)
    assert without_host_times(there) == without_host_times(here)
    assert here["runs"][0]["ended"] == "limit_pm_writes"


def test_a_timeline_can_be_followed_in_another_process():
    chosen = resolved(options(["nopb", "pb"], [ARENA], limit_pm_writes=50))
    on = {"pcs-table1": machines.resolve("pcs-table1", [])}
    experiment = Experiment([_core.Record(str(RECORD), False)], [RECORD.name], on, chosen)
    key, first = Key.of("pcs-table1", scheme="pb"), {"slices_max": 1000, "persist": 1}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        there = experiment.timeline(key, first, executor=processes)
    assert there == experiment.timeline(key, first)
    assert [request["cause"] for request in there[1]["requests"]]


def many_threads():
    return ThreadPoolExecutor(3)


def another_process():
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def test_the_environment_can_name_an_executor(monkeypatch):
    monkeypatch.setenv(executors.VARIABLE, "test_runs:many_threads")
    assert without_host_times(compared()) == without_host_times(compared(jobs=1))
    for wrong in ("nowhere:at_all", "json:dumps", "json", "json:no_such", "builtins:dict"):
        monkeypatch.setenv(executors.VARIABLE, wrong)
        with pytest.raises(fp.InputError, match=f"{executors.VARIABLE}={wrong}: "):
            compared()


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("traffic_measure", ["hazard"]),
        ("traffic_measure", ["hazard", "--copies"]),
        ("bursts_follow", ["timeline", "agilex-type2", "--request", "nc_read", "-o", "t.pftrace"]),
    ],
)
def test_commands_simulate_where_the_environment_says(
    missing, arguments, fencepost_here, monkeypatch
):
    own = fencepost_here(*arguments)
    assert own.returncode == 0
    monkeypatch.delattr(_core, missing)
    monkeypatch.setenv(executors.VARIABLE, "test_runs:another_process")
    there = fencepost_here(*arguments)
    assert (there.returncode, there.stdout) == (0, own.stdout)


@pytest.mark.parametrize(("start", "is_taken"), [(many_threads, True), (another_process, False)])
def test_what_cannot_be_sent_goes_to_the_executor_only_if_that_is_threads(start, is_taken):
    with start() as given, executors.in_process(given) as executor:
        assert (executor is given) is is_taken
        assert executor.submit(lambda: 1).result() == 1


def test_of_several_works_the_first_that_fails_is_raised():
    works = [lambda: 1, lambda: 1 // 0, lambda: {}["x"]]
    with pytest.raises(ZeroDivisionError):
        executors.performed(works)
    assert executors.performed(works[:1] * 3, 2) == [1, 1, 1]


def test_a_task_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(task()))
    assert perform(sent).run["statistics"] == perform(task()).run["statistics"]


def test_a_task_is_known_by_what_decides_its_result():
    same = [identity(task()), identity(task(power=True)), identity(task("pb", "description=x"))]
    assert len(set(same)) == 1
    others = [
        task("nopb"),
        task("pb", "link.latency_ns=30"),
        task(seed=1),
        task(persist="every:3"),
        task(place=["stack=pm0"]),
    ]
    identities = [identity(other) for other in others]
    identities.append(identity(task(), stops_with=task("nopb", limit_pm_writes=9)))
    assert len({same[0], *identities}) == len(identities) + 1


def test_a_run_that_failed_is_not_kept(tmp_path):
    store = Store(tmp_path)
    store.keep("a", {"error": "a fault"})
    store.keep("b", {"simulated_ns": 1.0})
    assert store.load("a") is None and store.load("b") == {"simulated_ns": 1.0}
    (tmp_path / "b.json").write_text('{"simula')
    assert store.load("b") is None, "a part of one is none"


def test_placements_are_compared_with_each_other(tmp_path, fencepost):
    axes = ["--axis", f"placement={ARENA}=dram0", "--axis", f"placement={ARENA}=pm0"]
    arguments = ["compare", "pcs-table1", RECORD, "--schemes", "nopb,pb", *axes, "-q"]
    done = fencepost(*arguments, "--baseline", f"placement={ARENA}=dram0", "--json", "r.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "r.json").read_text())
    keys = [(run["scheme"], run["axes"]["placement"]) for run in document["runs"]]
    near, far = f"{ARENA}=dram0", f"{ARENA}=pm0"
    assert keys == [("nopb", near), ("pb", near), ("nopb", far), ("pb", far)]
    times = [run["simulated_ns"] for run in document["runs"]]
    speedups = [row["speedup"] for row in fp.Result(document).rows()]
    assert speedups == pytest.approx([1, 1, times[0] / times[2], times[1] / times[3]])
    assert f"Ratios are over the same with placement {near}." in " ".join(done.stdout.split())
    # A trace of one of them runs the program in the placement that it had.
    arguments = ["timeline", "r.json", "--record", RECORD, "--run", f"pcs-table1:pb:{far}"]
    done = fencepost(*arguments, "--persist", "1", "-o", "t.perfetto-trace")
    assert done.returncode == 0, done.stderr
    done = fencepost(*arguments[:-1], f"pcs-table1:pb:{near}", "--persist", "1", "-o", "t")
    assert done.returncode == 2 and "there is no such request" in done.stderr


def test_axes_that_are_none_are_refused(fencepost_here):
    for arguments, message in (
        (
            ["--axis", "color=red"],
            "--axis color=red: there is no axis `color`; there are: scheme, ",
        ),
        (["--axis", "scheme=pb", "--axis", "scheme=pb"], "one value is given twice"),
        (["--axis", "scheme=pb", "--schemes", "pb"], "say the same"),
        (["--axis", "scheme="], "--axis scheme=: it has to be AXIS=VALUE"),
        (["--axis", "placement='heap=pm0"], "No closing quotation"),
        (["--axis", "placement=heap=dram0", "--pm", "heap"], "it contradicts"),
        (["--axis", "placement=heap=dram0", "--place", "stack=pm0"], "or --axis placement= beside"),
        (["--axis", "threads=near"], "free, close, spread"),
        (["--axis", "threads=close", "--threads", "0"], "or --axis threads= beside the others"),
        (
            [
                *("--axis", "placement=heap=pm0", "--axis", "placement=heap=dram0"),
                "--limit-pm-writes",
                "9",
            ],
            "what is PM differs between placements",
        ),
        (["--baseline", "scheme=pc"], "no run has it; of scheme there are: nopb, pb"),
    ):
        done = fencepost_here("compare", "pcs-table1", RECORD, *arguments)
        assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr


def test_a_run_is_named_by_what_differs():
    nopb, pb = (Key.of("m", scheme=scheme) for scheme in ("nopb", "pb"))
    placed = Key.of("m", scheme="pb", placement="heap=pm0", threads="")
    keys = [nopb, pb, placed]
    assert name_among(nopb, keys[:2]) == "nopb"
    assert name_among(nopb, keys) == "nopb default placement"
    assert name_among(placed, keys) == "pb heap=pm0"
    assert name_among(placed, [placed._replace(machine="n")]) == "m pb"
    assert placed.name == "m:pb:heap=pm0"
    assert placed.with_value("placement", "") == pb != pb.with_value("threads", "close")


def test_values_of_axes_are_read_as_a_shell_would():
    chosen = ["scheme=pb", "placement= heap=a  'file:my pool=b'", "placement=", "threads=0,2"]
    assert values_of(chosen, options(place=["heap=pm0"])) == {
        "scheme": ["pb"],
        "placement": ["heap=a 'file:my pool=b'", ""],
        "threads": ["0,2"],
    }


def compared_along(fencepost, folder, *arguments):
    fencepost("compare", "pcs-table1", RECORD, *arguments, "-q", "--json", "r.json", check=True)
    return json.loads((folder / "r.json").read_text())


BOTH = ["--place", "heap=dram0", "--place", "file:a b=pm0"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("axis", "option"),
    [
        # A stack that is placed leaves the heap in PM, and a heap that is placed is not PM.
        (["placement=stack=dram0"], ["--place", "stack=dram0"]),
        (
            ["placement=heap=dram0 'file:a b=pm0'"],
            ["--place", "heap=dram0", "--place", "file:a b=pm0"],
        ),
        (["placement=all=pm0", "threads=0"], ["--place", "all=pm0", "--threads", "0"]),
        (["placement=", "threads="], []),
        (["transport=waterfill"], ["--transport", "waterfill"]),
    ],
)
@pytest.mark.parametrize("pm", [[], ["--pm", ARENA]])
def test_a_value_of_an_axis_does_what_its_option_does(axis, option, pm, tmp_path, fencepost):
    schemes = ["--schemes", "nopb"]
    axes = [word for value in axis for word in ("--axis", value)]
    along = compared_along(fencepost, tmp_path, *schemes, *pm, *axes)
    alone = compared_along(fencepost, tmp_path, *schemes, *pm, *option)
    [run], [expected] = along["runs"], alone["runs"]
    options = along["provenance"]["options"] | run["options"]
    assert options == alone["provenance"]["options"]
    named = run.pop("axes"), expected.pop("axes")
    assert named[1] == {"scheme": "nopb", "placement": "", "threads": "", "transport": ""}
    assert without_host_times(run) == without_host_times(expected)


def test_the_default_can_be_compared_with_other_values(tmp_path, fencepost):
    axes = ["--axis", "threads=", "--axis", "threads=spread", "--axis", "placement="]
    axes += ["--axis", "placement=all=dram0", "--place", "all=pm0", "--schemes", "nopb"]
    document = compared_along(fencepost, tmp_path, *axes, "--baseline", "placement=")
    made = [run["options"] for run in document["runs"]]
    far, near = (
        {"pm": [], "place": [f"all={node}"], "transport": "none"} for node in ("pm0", "dram0")
    )
    assert made == [
        far | {"threads": "free"},
        near | {"threads": "free"},
        far | {"threads": "spread"},
        near | {"threads": "spread"},
    ]
    first, second, *_ = (run["simulated_ns"] for run in document["runs"])
    assert first > second
    speedups = [row["speedup"] for row in fp.Result(document).rows()]
    assert speedups == pytest.approx([1, first / second] * 2)


def test_threads_are_an_axis():
    """Memory of a socket is further away from the cores of the other one."""
    machine = fp.Machine.load("spr-cxl")
    far_core = machine.document["core"]["count"] - 1
    axes = ["threads=0", f"threads={far_core}"]
    where = {"place": ["all=dram0"], "axes": axes, "baseline": axes[0]}
    near, far = fp.compare(machine, RECORD, schemes=["nopb"], **where).rows()
    assert (near["threads"], far["threads"]) == ("0", str(far_core))
    assert near["speedup"] == 1 and far["simulated_ns"] > 1.1 * near["simulated_ns"]
    assert far["speedup"] == pytest.approx(near["simulated_ns"] / far["simulated_ns"])
