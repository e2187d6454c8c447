"""Reads the lines of `perf script`: samples, and the starts and names of processes.

In: the output of `reading`. Out: samples with the time of CLOCK_MONOTONIC, and what happened to
processes between them. Threads are left out of the latter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

HEAD = re.compile(r"\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/-?\d+\s+(?P<time>\d+\.\d+):\s+")
# A symbol of Rust may have blanks, and so may the name of an object.
PLACE = re.compile(r"(?P<address>[0-9a-f]+) (?P<symbol>.*?) \((?P<object>[/\[].*|[^\s()]*)\)$")
FORK = re.compile(r"PERF_RECORD_FORK\((?P<pid>\d+):\d+\):\((?P<parent>\d+):\d+\)")
COMM = re.compile(r"PERF_RECORD_COMM(?P<exec> exec)?: (?P<name>.*):(?P<pid>\d+)/(?P<tid>\d+)$")
LOST = re.compile(r"PERF_RECORD_LOST\S* lost (?P<number>\d+)")


@dataclass(frozen=True)
class Sample:
    """A processor at one moment: the thread and the function that it executed."""

    thread: str
    """The name of the thread."""
    pid: int
    time: float
    address: int
    symbol: str
    object: str
    """The program or library, or `[kernel.kallsyms]`."""

    @property
    def in_kernel(self) -> bool:
        """True if the processor executed the kernel: its addresses are the upper half."""
        return self.address >> 63 == 1


@dataclass(frozen=True)
class Fork:
    """A process started."""

    pid: int
    parent: int


@dataclass(frozen=True)
class Named:
    """A process got a name: its own choice, or that of the program that it executed."""

    pid: int
    name: str
    executed: bool


@dataclass(frozen=True)
class Lost:
    """Events that perf had no memory for."""

    number: int


Event = Sample | Fork | Named | Lost


def reading(data: Path) -> list[str]:
    """Returns the command that prints what `events` reads."""
    fields = ["-F", "comm,pid,tid,time,ip,sym,dso"]
    return ["perf", "script", "-i", str(data), *fields, "--show-task-events", "--show-lost-events"]


def event(line: str) -> Event | None:
    """Reads one line. `None` if it says nothing about samples and processes."""
    head = HEAD.match(line)
    if head is None:
        return None
    rest = line[head.end() :].rstrip()
    if place := PLACE.match(rest):
        address = int(place["address"], 16)
        return Sample(head["comm"], int(head["pid"]), float(head["time"]), address, place["symbol"], place["object"])
    if fork := FORK.match(rest):
        pid, parent = int(fork["pid"]), int(fork["parent"])
        return Fork(pid, parent) if pid != parent else None
    if comm := COMM.match(rest):
        is_process = comm["pid"] == comm["tid"]
        return Named(int(comm["pid"]), comm["name"], comm["exec"] is not None) if is_process else None
    if lost := LOST.match(rest):
        return Lost(int(lost["number"]))
    return None


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Reads all lines."""
    for line in lines:
        if (found := event(line)) is not None:
            yield found
