"""Runs one command line to its end, or ends it: time, processor, memory, I/O, and what it left behind.

The command is a session of its own on one processor and in a control group. We are the reaper of what it orphans. What does not end in
time is killed by process group and control group, and the row says so: the matrix goes on.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cgroup import Group, Used

STDERR_KEPT = 2000
ADDR_NO_RANDOMIZE = 0x0040000


@dataclass(frozen=True)
class Limits:
    """What a run may take."""

    wall_s: float
    """After so long it is killed and marked `cut`."""
    settle_s: float = 60.0
    """So long may what it left behind (a collector that writes its log) go on."""
    memory: int | None = None
    processor: int | None = None


@dataclass(frozen=True)
class Outcome:
    """One finished run."""

    status: int
    """Exit status; negative: the signal."""
    wall_s: float
    cpu_s: float
    settle_s: float
    """From the prompt until nothing of it was left."""
    memory: int
    read: int
    written: int
    counted_by: str
    """`cgroup`, or `rusage` where a group could not be made (memory is then that of the largest process)."""
    cut: bool
    left: tuple[str, ...]
    """Names of processes that had to be killed after the command had ended."""
    stdout: bytes
    stderr: str
    """Its end."""


def randomized() -> bool:
    """Address space randomisation is on for what we start."""
    kernel = Path("/proc/sys/kernel/randomize_va_space").read_text().strip()
    own = int(Path("/proc/self/personality").read_text(), 16)
    return kernel == "2" and not own & ADDR_NO_RANDOMIZE


def run(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], limits: Limits, group: Group | None, io: Path
) -> Outcome:
    """Runs `argv` in `cwd`; its output goes to files in `io`. The caller must be a subreaper (`measure.become_subreaper`)."""

    begun, begins = os.pipe()

    def ready() -> None:
        if limits.processor is not None:
            os.sched_setaffinity(0, {limits.processor})
        if group is not None:
            group.enter()
        # To move a process into a group takes the kernel up to 20 ms.
        os.write(begins, struct.pack("d", time.perf_counter()))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (io / "stdout").open("wb") as out, (io / "stderr").open("wb") as err:
        try:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=ready,
            )
        except OSError as error:
            # It was there when the matrix was planned.
            err.write(f"{argv[0]}: {error.strerror}\n".encode())
            err.flush()
            return _outcome(127, 0.0, 0.0, Used(), before, before, False, (), io)
        finally:
            os.close(begins)
            told = os.read(begun, 8)
            os.close(begun)
        start = struct.unpack("d", told)[0]
        try:
            cut = not _ends_within(child.pid, limits.wall_s)
            wall = time.perf_counter() - start
        except BaseException:
            _end(child.pid, group)
            child.wait()
            raise
        if cut:
            _end(child.pid, group)
        status = child.wait()
    left = () if cut else _settled(child.pid, group, limits.settle_s)
    if cut or left:
        _end(child.pid, group)
    settle = time.perf_counter() - start - wall
    used = group.used() if group is not None else Used()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _outcome(status, wall, settle, used, before, after, cut, left, io)


def _ends_within(pid: int, seconds: float) -> bool:
    """Waits for a child without looking at it now and then, as `Popen.wait` does: that would be up to 50 ms late."""
    child = os.pidfd_open(pid)
    try:
        end = select.poll()
        end.register(child, select.POLLIN)
        return bool(end.poll(seconds * 1000))
    finally:
        os.close(child)


def _outcome(
    status: int,
    wall: float,
    settle: float,
    used: Used,
    before: resource.struct_rusage,
    after: resource.struct_rusage,
    cut: bool,
    left: tuple[str, ...],
    io: Path,
) -> Outcome:
    own_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Outcome(
        status=status,
        wall_s=wall,
        cpu_s=used.cpu_s if used.cpu_s is not None else own_cpu,
        settle_s=settle,
        memory=used.memory if used.memory is not None else after.ru_maxrss * 1024,
        read=used.read if used.read is not None else (after.ru_inblock - before.ru_inblock) * 512,
        written=used.written if used.written is not None else (after.ru_oublock - before.ru_oublock) * 512,
        counted_by="cgroup" if used.cpu_s is not None and used.memory is not None else "rusage",
        cut=cut,
        left=left,
        stdout=(io / "stdout").read_bytes(),
        stderr=(io / "stderr").read_bytes()[-STDERR_KEPT:].decode(errors="replace"),
    )


def _children() -> set[int]:
    """All processes that descend from us."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    rest = [os.getpid()]
    while rest:
        for pid in parents.get(rest.pop(), []):
            found.add(pid)
            rest.append(pid)
    return found


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _settled(session: int, group: Group | None, limit: float) -> tuple[str, ...]:
    """Waits until nothing is left of the run; names what is there when the time is over."""
    deadline = time.monotonic() + limit
    while True:
        _reap()
        alive = _children() | (group.members() if group is not None else set())
        if not alive:
            return ()
        if time.monotonic() > deadline:
            return tuple(sorted(_name(pid) for pid in alive))
        time.sleep(0.005)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return str(pid)


def _end(session: int, group: Group | None) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    if group is not None:
        group.kill()
    deadline = time.monotonic() + 10
    while (alive := _children()) and time.monotonic() < deadline:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.005)
