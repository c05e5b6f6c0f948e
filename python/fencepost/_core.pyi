"""The simulator, compiled from crates/python. JSON texts cross the border, nothing richer."""

class InputError(Exception):
    """Wrong input (a machine file, a record, an option); its text is one clear message."""

class InternalError(Exception):
    """A fault of the simulator, caught at the border; its text names the run."""

def machine_schema() -> str:
    """The JSON Schema of machine files."""

def machine_resolve(machine: str, directories: list[str], sets: list[str]) -> str:
    """A machine as JSON, with `extends` followed, `sets` (`PATH=VALUE`) applied, defaults written.

    `machine` is the path of a file, or a name to be looked for in `directories`.
    """

def options_resolve(options: str) -> str:
    """Checks the options of a replay (JSON, `provenance.options` of docs/results.md), writes
    defaults out; raises InputError."""

def record_info(path: str, allow_cut: bool) -> str:
    """What a record holds, as JSON: program, threads, memory map, flushes, synchronisation."""

class Job:
    """One replay: a record on a machine under a scheme."""

    def __new__(cls, machine: str, record: str, scheme: str, options: str) -> Job:
        """`machine` and `options` are JSON; raises InputError before any work is done."""

    def run(self) -> str:
        """Replays, with the interpreter's lock released; gives one entry of `runs` as JSON."""

    def progress(self) -> tuple[int, int, int]:
        """(simulated picoseconds, instructions, instructions in all); from any thread."""

    def cancel(self) -> None:
        """Makes `run` end soon, with InterruptedError; from any thread."""
