"""A real Slurm cluster of one node, as any user, without systemd, cgroups and accounting.

It is what Debian's packages install, on ports, a key and sockets of its own; the current user is
who runs the daemons, the administrator, and the only one whose jobs run. Nothing outlives the
thread that started it (see `no_process_left`), jobs and what they left behind neither. The folder
keeps the configuration and the logs.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

import no_process_left

# Debian's, by the daemons that are in them.
PACKAGES = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm"}
# Daemons are not in the PATH of an ordinary user.
_WHERE = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

NODE = "node"
FAST, LONG = "fast", "long"  # partitions; jobs that name none are in `fast`
FAST_MINUTES_MAX = 10
KEY_BYTES = 128
# A socket's path has at most 107 bytes; behind the folder of sockets there is the node's name, a
# job's number and a step's.
SOCKETS_FOLDER_BYTES_MAX = 60
# The controller writes down what has changed at most every five seconds.
UNWRITTEN_S = 6
PAUSE_S = 0.02
LINES_OF_LOG = 10

# `cred_expire`: a job that was requeued waits that long; less than 5 s is refused, the default is
# 120 s. The scheduler looks once a second, and at once when a job comes or ends. Jobs that ask for
# no memory get that of their share of processors, for otherwise each would get all of the node's.
_CONFIGURATION = """\
ClusterName=fencepost
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={sockets}/munge,cred_expire={requeue_delay_s}
StateSaveLocation={folder}/state
SlurmdSpoolDir={sockets}/spool
SlurmctldPidFile={sockets}/slurmctld.pid
SlurmdPidFile={sockets}/slurmd.pid
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SlurmdParameters=config_overrides
MaxArraySize={max_array_size}
MaxJobCount={max_job_count}
MessageTimeout={message_timeout_s}
MinJobAge={min_job_age_s}
KillWait={kill_wait_s}
ReturnToService=2
JobRequeue=1
DefMemPerCPU={memory_per_cpu_mb}
NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb}
PartitionName={fast} Nodes={node} Default=YES DefaultTime=5 MaxTime={fast_minutes_max}
PartitionName={long} Nodes={node} DefaultTime=60 MaxTime=1-00:00:00
"""


def require_slurm() -> None:
    """Skips the test where Slurm is not installed; in CI (FENCEPOST_CI) that is a failure."""
    missing = sorted({of for one, of in PACKAGES.items() if not shutil.which(one, path=_WHERE)})
    if missing:
        reason = f"not installed: {', '.join(missing)}; type: make slurm"
        if os.environ.get("FENCEPOST_CI"):
            pytest.fail(reason)
        pytest.skip(reason)


class Cluster:
    """Runs while the context lasts, or from `start` to `stop`. Start it in a thread that lives on.

    A job of the default partition may take `FAST_MINUTES_MAX` minutes, one of `LONG` a day. The
    node may have more processors than the machine.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cpus: int = 2,
        memory_mb: int = 2000,
        max_array_size: int = 1001,
        max_job_count: int = 10_000,
        min_job_age_s: int = 600,
        kill_wait_s: int = 2,
        requeue_delay_s: int = 5,
        message_timeout_s: int = 10,
    ) -> None:
        self._folder = folder
        self._settings = {
            "cpus": cpus,
            "memory_mb": memory_mb,
            "memory_per_cpu_mb": memory_mb // cpus,
            "max_array_size": max_array_size,
            "max_job_count": max_job_count,
            "min_job_age_s": min_job_age_s,
            "kill_wait_s": kill_wait_s,
            "requeue_delay_s": requeue_delay_s,
            "message_timeout_s": message_timeout_s,
        }
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._sockets: Path | None = None

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def environment(self) -> dict[str, str]:
        """What a child has to have so that Slurm's commands find this cluster."""
        return {"SLURM_CONF": str(self._folder / "slurm.conf")}

    def start(self) -> None:
        """Returns when the node is idle. Where that does not come, nothing is left."""
        assert self._sockets is None
        sockets = self._sockets = _folder_of_sockets()
        try:
            self._configure(sockets)
            self._start_munge(sockets)
            self.start_controller()
            # Only this one writes in that folder later, so it is the one that removes it.
            self._start("slurmd", "-D", "-N", NODE, removes=sockets)
            self.wait_until_idle()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends jobs and daemons at once, as a power cut would."""
        for name in reversed(list(self._daemons)):
            self._kill(name)
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)  # it may be gone by now
            self._sockets = None

    def run(
        self, *words: object, timeout: float = 60, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands, in the cluster's folder."""
        done = subprocess.run(
            list(map(str, words)),
            cwd=self._folder,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{words}: {done.returncode}, {done.stderr}"
        return done

    def kill_controller(self) -> None:
        """By SIGKILL: jobs go on, and commands find nobody. It forgets what it has not written
        down, accepted jobs too; their numbers are then given again."""
        self._kill("slurmctld")

    def start_controller(self) -> None:
        """It knows the jobs that were written down. Returns when it answers; that it hears of the
        node takes a few seconds more."""
        self._start("slurmctld", "-D")
        self._wait_until(
            lambda: self.run("scontrol", "ping", check=False).returncode == 0, "slurmctld answers"
        )

    def wait_until_written(self) -> None:
        """Until the controller has written down what it was told before."""
        time.sleep(UNWRITTEN_S)

    def drain(self) -> None:
        """The node starts no more jobs; those that run go on."""
        self._set_node("State=DRAIN", "Reason=test")

    def resume(self) -> None:
        """Ends `drain`."""
        # That is an error for a node that is not drained, or that has not been heard of yet.
        self._set_node("State=RESUME", check=False)
        self._wait_until(lambda: "drain" not in self._node_state(), "the node resumes")

    def wait_until_idle(self, timeout: float = 60) -> None:
        """Until no job waits, runs or is just ending, and the node would take one."""

        def is_idle() -> bool:
            return self._node_state() == "idle" and not self.run("squeue", "--noheader").stdout

        self._wait_until(is_idle, "the cluster is idle", timeout)

    def _set_node(self, *words: str, check: bool = True) -> None:
        self.run("scontrol", "update", f"NodeName={NODE}", *words, check=check)

    def _node_state(self) -> str:
        told = self.run("sinfo", "--noheader", "--Node", f"--partition={FAST}", "--format=%T")
        return told.stdout.strip()

    def _configure(self, sockets: Path) -> None:
        (self._folder / "state").mkdir(parents=True, exist_ok=True)
        controller_port, node_port = _free_ports(2)
        (self._folder / "slurm.conf").write_text(
            _CONFIGURATION.format(
                **self._settings,
                folder=self._folder,
                sockets=sockets,
                user=pwd.getpwuid(os.getuid()).pw_name,
                controller_port=controller_port,
                node_port=node_port,
                node=NODE,
                fast=FAST,
                long=LONG,
                fast_minutes_max=FAST_MINUTES_MAX,
            )
        )

    def _start_munge(self, sockets: Path) -> None:
        """It is forced to, as the folder of its socket may be in one that is only ours."""
        key, its_socket = self._folder / "munge.key", sockets / "munge"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(KEY_BYTES))
        self._start(
            *("munged", "--foreground", "--force", f"--socket={its_socket}", f"--key-file={key}"),
            f"--pid-file={sockets / 'munged.pid'}",
            f"--seed-file={sockets / 'munged.seed'}",
            f"--log-file={self._folder / 'munged.log'}",
        )
        self._wait_until(lambda: _accepts(its_socket), "munged answers")

    def _start(self, name: str, *words: str, removes: Path | None = None) -> None:
        assert name not in self._daemons
        program = shutil.which(name, path=_WHERE)
        assert program is not None, f"there is no {name}"
        with (self._folder / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                no_process_left.command(program, *words, folder=removes),
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt from the terminal is not for it
            )

    def _kill(self, name: str) -> None:
        daemon = self._daemons.pop(name)
        daemon.terminate()
        daemon.wait()

    def _wait_until(self, is_so: Callable[[], bool], what: str, timeout: float = 30) -> None:
        end = time.monotonic() + timeout
        while not is_so():
            dead = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                reason = f"{', '.join(dead)} ended" if dead else f"not in {timeout} s"
                raise AssertionError(f"{what}: {reason}\n{self._ends_of_logs()}")
            time.sleep(PAUSE_S)

    def _ends_of_logs(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        ends = [log.read_text(errors="replace").splitlines()[-LINES_OF_LOG:] for log in logs]
        return "\n".join(
            f"{log.name}: {line}" for log, lines in zip(logs, ends, strict=True) for line in lines
        )


def _folder_of_sockets() -> Path:
    """With a short name. The user's own, but to pass through: munged asks for that."""
    parent = tempfile.gettempdir()
    is_short = len(os.fsencode(parent)) <= SOCKETS_FOLDER_BYTES_MAX
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=parent if is_short else "/tmp"))
    folder.chmod(0o711)
    return folder


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0
