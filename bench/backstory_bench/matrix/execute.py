"""Runs one command line, and measures time, memory and I/O of the command and its descendants.

The command runs in its own session and control group, on one processor. This process is the
subreaper of orphaned descendants. Processes that exceed the time limit are killed by process group
and control group, and the row says so. The matrix then continues.
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
    """The limits of a run."""

    wall_s: float
    """The run is killed after this wall time, and marked `cut`."""
    background_s: float = 60.0
    """The time limit for processes that run on after the command, such as a collector's log
    writer.
    """
    memory: int | None = None
    processor: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The measurement of one finished run."""

    status: int
    """The exit status, or the negated number of the signal."""
    wall_s: float
    cpu_s: float
    background_s: float
    """Seconds from the end of the command to the end of its last descendant."""
    memory: int
    read: int
    written: int
    counted_by: str
    """`cgroup`, or `rusage` without a group. `memory` is then that of the largest process."""
    cut: bool
    left: tuple[str, ...]
    """Names of processes that were killed because they ran on after the command."""
    stdout: bytes
    stderr: str
    """The end of the standard error output."""


def randomized() -> bool:
    """Returns true if address space randomisation is on for the programs that we start."""
    kernel = Path("/proc/sys/kernel/randomize_va_space").read_text().strip()
    own = int(Path("/proc/self/personality").read_text(), 16)
    return kernel == "2" and not own & ADDR_NO_RANDOMIZE


def run(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], limits: Limits, group: Group | None, io: Path
) -> Outcome:
    """Runs `argv` in `cwd`. Its output goes to files in `io`.

    The caller must be a subreaper (`measure.become_subreaper`).
    """

    begun, begins = os.pipe()

    def ready() -> None:
        if limits.processor is not None:
            os.sched_setaffinity(0, {limits.processor})
        if group is not None:
            group.enter()
        # Moving a process into a group takes the kernel up to 20 ms.
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
            # The program existed when the matrix was planned.
            err.write(f"{argv[0]}: {error.strerror}\n".encode())
            err.flush()
            return _outcome(127, 0.0, 0.0, Used(), before, before, False, (), io)
        finally:
            os.close(begins)
            moment = os.read(begun, 8)
            os.close(begun)
        start = struct.unpack("d", moment)[0]
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
    left = () if cut else _left_after(child.pid, group, limits.background_s)
    if cut or left:
        _end(child.pid, group)
    background = time.perf_counter() - start - wall
    used = group.used() if group is not None else Used()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _outcome(status, wall, background, used, before, after, cut, left, io)


def _ends_within(pid: int, seconds: float) -> bool:
    """Waits for a child by a pidfd. `Popen.wait` would poll, and return up to 50 ms late."""
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
    background: float,
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
        background_s=background,
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
    """Returns all descendants of this process."""
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


def _left_after(session: int, group: Group | None, limit: float) -> tuple[str, ...]:
    """Waits until no process of the run is left. Returns the names of those left at the limit."""
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
