"""Attributes samples of a profile to the parts of a recording.

In: the events of `perf script`, in the order of time. Out: the seconds of each part, until the end
of the command (before the prompt) and later. The role of a process follows from its parent and from
the programs that it executes. A part of the supervisor is known by the names of its threads, and a
part of the indexer by its symbols.

Absent: the call from which a function of the kernel was called, since no stack is sampled. So the
look-ups of the indexer are those functions of the kernel that only serve look-ups.
"""

from __future__ import annotations

import enum
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .perf_script import Event, Fork, Lost, Named, Sample

PROGRAM = "program"
PROGRAM_KERNEL = "program: kernel"
FILTER = "program: filter, in the kernel"
RECORDER = "recorder in the program"
LAUNCHER = "launcher"
GUARD = "supervisor: guard"
DRAIN = "supervisor: drain"
COPIER = "supervisor: copier of contents"
COMPRESSOR = "supervisor: compression of the deep log"
SUPERVISOR = "supervisor: rest"
HASHING = "indexer: hashing"
COMPRESSION = "indexer: compression"
DATABASE = "indexer: database"
FOLD = "indexer: log and fold"
LOOK_UPS = "indexer: look-ups, in the kernel"
INDEX_KERNEL = "indexer: rest of the kernel"
INDEX = "indexer: rest"
INDEX_PROGRAMS = "programs of the indexer"
OTHERS = "other processes"
IDLE = "idle"

OWN = (
    *(PROGRAM, PROGRAM_KERNEL, FILTER, RECORDER, LAUNCHER, GUARD, DRAIN, COPIER),
    *(COMPRESSOR, SUPERVISOR),
    *(HASHING, COMPRESSION, DATABASE, FOLD, LOOK_UPS, INDEX_KERNEL, INDEX, INDEX_PROGRAMS),
)
"""The parts of a run and its recording."""
PARTS = (*OWN, OTHERS, IDLE)
BEFORE, AFTER = "before the prompt", "after the prompt"
PHASES = (BEFORE, AFTER)

LIBRARY = "linux-backstory.so"
"""The file name of the recorder's library."""
NAMES = {"backstory-super", "backstory-keep", "backstory-brok"}
"""The names that processes of a recording give themselves."""
THREADS = {
    **dict.fromkeys(("guard", "guard-late", "guard-exits", "guard-spare", "guard-request", "serve"), GUARD),
    **dict.fromkeys(("drain", "commit", "commit-late"), DRAIN),
    "guard-keep": COPIER,
    "deep": COMPRESSOR,
}
"""The parts of the supervisor by the names of threads, in crates/guard and crates/session."""
CODE = (
    (HASHING, re.compile(r"blake3|sha1|sha2")),
    (COMPRESSION, re.compile(r"zstd|ZSTD|HUF_|FSE_|HIST_|XXH|(huf_|fse_|hist|entropy_common)\w*\.c$")),
    (DATABASE, re.compile(r"sqlite|backstory_store")),
    (FOLD, re.compile(r"backstory_graph|backstory_eventlog|crc32")),
)
"""The parts of the indexer by symbol and C source. The first one that matches counts."""
LOOKS_UP = re.compile(
    r"(?<!slow)(?<!fast)path|(?<!tree_)(?<!vma_)lookup|namei|walk_comp|step_into|dentry|d_hash|dget|dput|lockref"
    r"|getname|strncpy_from_user|inode_permission|generic_permission|statx|fstat|_stat$|getattr|open|filp|fput"
    r"|alloc_empty_file|mntput|readdir|iterate_dir|filldir|getdents"
)
"""Functions of the kernel that find, open, list and describe files."""
FILTERS = re.compile(r"seccomp|secure_computing|syscall_trace_enter|syscall_exit_work|bpf_prog_")


class Role(enum.Enum):
    """The role of a process in a measurement."""

    PROGRAM = enum.auto()
    LAUNCHER = enum.auto()
    SUPERVISOR = enum.auto()
    INDEXER = enum.auto()
    OF_INDEXER = enum.auto()
    """A program that the indexer started, as `git`."""


class Roles:
    """The roles of processes at the present moment of a profile."""

    def __init__(self, root: int, programs: Collection[str]) -> None:
        """`root`: the process that started the command. `programs`: the names of backstory."""
        self.root, self.programs = root, programs
        self.of: dict[int, Role] = {}
        self.first: set[int] = set()

    def take(self, event: Fork | Named) -> None:
        """Takes what happened to a process."""
        if isinstance(event, Named):
            self._name(event)
        elif event.parent == self.root:
            self.of[event.pid] = Role.PROGRAM
            self.first.add(event.pid)
        elif (role := self.of.get(event.parent)) is not None:
            self.of[event.pid] = role
        else:
            self.of.pop(event.pid, None)  # the number of an ended process was used again

    def _name(self, event: Named) -> None:
        role = self.of.get(event.pid)
        if role is None:
            return
        if not event.executed:
            if role is Role.LAUNCHER and event.name in NAMES:
                self.of[event.pid] = Role.SUPERVISOR
        elif event.name in self.programs:
            if role is not Role.PROGRAM:
                self.of[event.pid] = Role.INDEXER
            elif event.pid in self.first:
                self.of[event.pid] = Role.LAUNCHER
        elif role in (Role.LAUNCHER, Role.SUPERVISOR):
            self.of[event.pid] = Role.PROGRAM  # the command itself
        elif role is Role.INDEXER:
            self.of[event.pid] = Role.OF_INDEXER


def _of_program(sample: Sample) -> str:
    if sample.in_kernel:
        return FILTER if FILTERS.search(sample.symbol) else PROGRAM_KERNEL
    return RECORDER if LIBRARY in sample.object else PROGRAM


def _of_indexer(sample: Sample, sources: Mapping[str, str]) -> str:
    if sample.in_kernel:
        return LOOK_UPS if LOOKS_UP.search(sample.symbol) else INDEX_KERNEL
    text = f"{sample.symbol} {sources.get(sample.symbol, '')}".rstrip()
    return next((part for part, pattern in CODE if pattern.search(text)), INDEX)


def part_of(sample: Sample, role: Role | None, sources: Mapping[str, str]) -> str:
    """Returns the part that a sample belongs to.

    `sources` has the C files of the functions of backstory that are known in one file only.
    """
    if role is Role.PROGRAM:
        return _of_program(sample)
    if role is Role.LAUNCHER:
        return LAUNCHER
    if role is Role.SUPERVISOR:
        return THREADS.get(sample.thread, SUPERVISOR)
    if role is Role.INDEXER:
        return _of_indexer(sample, sources)
    if role is Role.OF_INDEXER:
        return INDEX_PROGRAMS
    return OTHERS if sample.pid else IDLE


@dataclass(frozen=True)
class Span:
    """The time of a measurement, by CLOCK_MONOTONIC."""

    began: float
    prompt: float
    """The end of the command."""
    ended: float
    """The end of the last process."""

    def phase(self, time: float) -> str | None:
        """Returns the phase of a moment, or `None` outside of the measurement."""
        if not self.began <= time <= self.ended:
            return None
        return BEFORE if time <= self.prompt else AFTER


@dataclass(frozen=True)
class Attribution:
    """The samples of each part and phase."""

    samples: Counter[tuple[str, str]]
    lost: int
    """The number of events that perf lost."""


def attributed(found: Iterable[Event], roles: Roles, span: Span, sources: Mapping[str, str]) -> Attribution:
    """Counts the samples of each part and phase."""
    samples: Counter[tuple[str, str]] = Counter()
    lost = 0
    for event in found:
        if isinstance(event, Lost):
            lost += event.number
        elif not isinstance(event, Sample):
            roles.take(event)
        elif (phase := span.phase(event.time)) is not None:
            samples[part_of(event, roles.of.get(event.pid), sources), phase] += 1
    return Attribution(samples, lost)


def symbol_sources(table: str) -> dict[str, str]:
    """Reads what `readelf -sW` prints: the C files of local functions, which follow their file."""
    found: dict[str, str] = {}
    source = ""
    for line in table.splitlines():
        words = line.split()
        if len(words) < 8:
            continue
        kind, binding, name = words[3], words[4], words[7]
        if kind == "FILE":
            source = name if name.endswith(".c") else ""
        elif kind == "FUNC" and binding == "LOCAL" and source:
            found[name] = source
    return found


def c_sources(program: str) -> dict[str, str]:
    """Returns the C files of the local functions of a program; empty without `readelf`."""
    if shutil.which("readelf") is None:
        return {}
    words = ["readelf", "-sW", program]
    return symbol_sources(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
