"""A control group for one run. It measures resources, and can kill all processes of the run.

The controllers may be of cgroup v2, of v1, or of both (hybrid mode). Without permission to create a
group the caller uses rusage instead, and marks the row.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = {"cpu": "cpuacct", "memory": "memory", "io": "blkio"}


@dataclass(frozen=True)
class Used:
    """The resources that a group used. `None` if the controller does not exist."""

    cpu_s: float | None = None
    memory: int | None = None
    """The peak, in bytes."""
    read: int | None = None
    written: int | None = None
    """Bytes written to block devices; `read` counts the bytes read from them."""


def _mine() -> dict[str, Path]:
    """Returns the directory of our own group by controller (v1), and under `""` that of v2."""
    found: dict[str, Path] = {}
    mounts: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options = line.split(" ")[:4]
        if kind == "cgroup2":
            mounts[""] = Path(where)
        elif kind == "cgroup":
            mounts.update({option: Path(where) for option in options.split(",")})
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounts:
                found[name] = mounts[name] / path.lstrip("/")
    return found


def _wanted() -> dict[str, Path]:
    """Returns the parent directories of new groups, by controller."""
    mine = _mine()
    return {name: mine[name] for name in (*CONTROLLERS.values(), "") if name in mine}


def clear_stale() -> None:
    """Kills the processes in groups that a killed matrix left, and removes the groups."""
    for parent in _wanted().values():
        for directory in parent.glob("backstory-bench-*"):
            maker = directory.name.split("-")[2]
            if maker.isdigit() and not Path("/proc", maker).exists():
                stale = Group({"": directory})
                stale.kill()
                stale.remove()


class Group:
    """The group of one run, in every usable hierarchy."""

    def __init__(self, directories: dict[str, Path]) -> None:
        self.directories = directories

    @staticmethod
    def make(name: str, memory: int | None, maker: int | None = None) -> Group | None:
        """Creates a group with a memory limit in bytes. Returns `None` without permission.

        The group is named after the process that is responsible for it, by default this process.
        """
        wanted = _wanted()
        made: dict[str, Path] = {}
        for controller, parent in wanted.items():
            directory = parent / f"backstory-bench-{maker or os.getpid()}-{name}"
            with contextlib.suppress(OSError):
                directory.mkdir()
                made[controller] = directory
        if not made:
            return None
        group = Group(made)
        for controller, limit in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
            if memory and controller in made:
                with contextlib.suppress(OSError):
                    (made[controller] / limit).write_text(str(memory))
        return group

    def enter(self) -> None:
        """Moves the calling process into the group."""
        for directory in self.directories.values():
            with open(directory / "cgroup.procs", "w") as file:
                file.write("0")

    def members(self) -> set[int]:
        """Returns the processes in the group."""
        found: set[int] = set()
        for directory in self.directories.values():
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in (directory / "cgroup.procs").read_text().split())
        return found

    def kill(self) -> None:
        """Kills all processes in the group, including those that they fork meanwhile."""
        deadline = time.monotonic() + 10
        while members := self.members():
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)

    def _number(self, controller: str, name: str) -> int | None:
        directory = self.directories.get(controller)
        try:
            return int((directory / name).read_text()) if directory else None
        except (OSError, ValueError):
            return None

    def used(self) -> Used:
        """Returns the resources that have been used so far."""
        cpu = self._number("cpuacct", "cpuacct.usage")
        seconds = cpu / 1e9 if cpu is not None else _keyed(self.directories.get(""), "cpu.stat", "usage_usec", 1e-6)
        memory = self._number("memory", "memory.max_usage_in_bytes") or self._number("", "memory.peak")
        read, written = self._blocks()
        return Used(seconds, memory, read, written)

    def _blocks(self) -> tuple[int | None, int | None]:
        directory = self.directories.get("blkio")
        if directory is None:
            directory = self.directories.get("")
            lines = _lines(directory, "io.stat")
            words = [word.partition("=") for line in lines or [] for word in line.split()[1:]]
            return (
                (sum(int(v) for k, _, v in words if k == "rbytes"), sum(int(v) for k, _, v in words if k == "wbytes"))
                if lines is not None
                else (None, None)
            )
        rows = [line.split() for line in _lines(directory, "blkio.throttle.io_service_bytes") or []]
        return (
            sum(int(r[2]) for r in rows if len(r) == 3 and r[1] == "Read"),
            sum(int(r[2]) for r in rows if len(r) == 3 and r[1] == "Write"),
        )

    def remove(self) -> None:
        """Removes the group. Its processes must have ended."""
        for directory in self.directories.values():
            for _ in range(50):
                try:
                    directory.rmdir()
                    break
                except OSError:
                    time.sleep(0.01)


def _lines(directory: Path | None, name: str) -> list[str] | None:
    try:
        return (directory / name).read_text().splitlines() if directory else None
    except OSError:
        return None


def _keyed(directory: Path | None, name: str, key: str, unit: float) -> float | None:
    for line in _lines(directory, name) or []:
        words = line.split()
        if len(words) == 2 and words[0] == key:
            return int(words[1]) * unit
    return None
