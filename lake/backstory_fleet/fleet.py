"""A fleet: its machines, projects, images and container layers, and which job runs when.

A job is a run of the corpus, repeated in a directory of its own. Days have `SHIFTS` shifts. The
inputs of a job are files of its project, or files that jobs of earlier shifts made. Those jobs ran
on its machine, or on another one, from which the file was copied. A run on the first machine builds
each version of a layer, in which some files are new. All machines have the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from backstory_lake.batches import BUCKETS

from .identities import below, mixed, shares
from .templates import Templates

Array = np.ndarray[Any, Any]

SHIFTS = 3
DAY = 86_400 * 10**9
SHIFT = DAY // SHIFTS
#: The first day: 1 October 2026.
BEGIN = 20_727 * DAY
#: Jobs whose rows are in memory at the same time have about so many edges.
BLOCK = 1_000_000


@dataclass(frozen=True)
class Parameters:
    """Numbers that are not fitted to the corpus. The page lists them as assumptions."""

    seed: int = 1
    #: Jobs of a machine on a day, and projects on it.
    jobs: int = 10
    projects: int = 4
    #: The share of jobs that repeat their work, and the most repetitions (as 1/n²).
    large: float = 0.1
    largest: int = 32
    #: The share of made inputs that come from another machine.
    copied: float = 0.2
    #: The share of jobs whose results equal those of earlier jobs of the project.
    reproducible: float = 0.2
    images: int = 3
    layers: int = 4
    #: Days between the builds of a layer, and the share of its files that a build changes.
    layer_days: int = 7
    layer_changes: float = 0.1


@dataclass(frozen=True)
class Size:
    """Machines and days."""

    machines: int
    days: int

    @classmethod
    def of(cls, edges: float, templates: Templates, parameters: Parameters) -> Size:
        """The size of a fleet with about so many edges."""
        jobs = edges / (templates.edges * mean_repeats(parameters))
        days = max(2, round(jobs**0.25))
        return cls(max(1, round(jobs / days / parameters.jobs)), days)


def mean_repeats(parameters: Parameters) -> float:
    """The mean number of repetitions of a job."""
    counts = np.arange(2, parameters.largest + 1)
    weights = 1.0 / counts**2
    return 1 + parameters.large * (float((counts * weights).sum() / weights.sum()) - 1)


@dataclass
class Jobs:
    """Jobs of one shift, by column."""

    machine: Array
    project: Array
    template: Array
    repeats: Array
    start: Array
    #: A number that no other job has: its run's number in the lake.
    number: Array
    #: The layer that a job builds, or -1.
    layer: Array
    shift: int

    def __len__(self) -> int:
        return len(self.machine)

    def part(self, chosen: Any) -> Jobs:
        """Some of the jobs."""
        columns = (self.machine, self.project, self.template, self.repeats, self.start)
        return Jobs(
            *(column[chosen] for column in columns),
            self.number[chosen],
            self.layer[chosen],
            self.shift,
        )


class Fleet:
    """Draws jobs. All numbers depend on the seed alone."""

    def __init__(self, templates: Templates, parameters: Parameters, size: Size) -> None:
        self.templates, self.parameters, self.size = templates, parameters, size
        self.hosts = [f"node-{machine:05}" for machine in range(size.machines)]
        codes = [zlib.crc32(host.encode()) % BUCKETS for host in self.hosts]
        self.buckets = np.array(codes, dtype=np.int32)
        # Machines of one bucket are neighbours in a block, so that files are large.
        self._ordered = np.argsort(self.buckets, kind="stable")
        self._edges = templates.count("edges")
        self._count = 0

    def blocks(self) -> Iterator[Jobs]:
        """The jobs in the order of their shifts, as many at once as fit into memory."""
        layer_shifts = self.parameters.layer_days * SHIFTS
        for shift in range(-1, self.size.days * SHIFTS):
            if (shift + 1) % layer_shifts == 0:
                yield self._builds(shift)
            if shift >= 0:
                yield from _cut(self._shift(shift), self._edges)

    def versions(self, start: Array) -> Array:
        """The versions of the layers that machines have at some moments."""
        return np.asarray((start - BEGIN) // (self.parameters.layer_days * DAY))

    def _shift(self, shift: int) -> Jobs:
        seed, given = self.parameters.seed, self.parameters
        machines = self._ordered
        mean = given.jobs / SHIFTS
        random = np.random.default_rng((seed, shift + 1))
        counts = random.poisson(mean, len(machines))
        machine = np.repeat(machines, counts)
        count = len(machine)
        template = random.integers(0, len(self.templates.runs), count)
        weights = 1.0 / np.arange(2, given.largest + 1) ** 2
        large = random.choice(np.arange(2, given.largest + 1), count, p=weights / weights.sum())
        repeats = np.where(random.random(count) < given.large, large, 1)
        # A run without a process below its root has nothing to repeat.
        repeats = np.where(self.templates.repeated("processes")[template] > 0, repeats, 1)
        start = BEGIN + shift * SHIFT + random.integers(0, SHIFT * 9 // 10, count)
        project = random.integers(0, given.projects, count)
        layer = np.full(count, -1)
        return Jobs(machine, project, template, repeats, start, self._numbers(count), layer, shift)

    def _builds(self, shift: int) -> Jobs:
        """The builds of all layers, on the first machine."""
        images, layers = self.parameters.images, self.parameters.layers
        layer = np.arange(images * layers)
        zeros = np.zeros(len(layer), np.int64)
        start = BEGIN + shift * SHIFT + layer * 60 * 10**9
        number = self._numbers(len(layer))
        return Jobs(zeros, zeros, zeros, zeros + 1, start, number, layer, shift)

    def _numbers(self, count: int) -> Array:
        """Numbers of runs: each of 31 bits, once, and in no order, as `ship` draws them."""
        at = self._count + np.arange(count, dtype=np.uint64)
        self._count += count
        return np.asarray(
            (at * np.uint64(1_540_483_477) + np.uint64(97)) % np.uint64(1 << 31)
        ).astype(np.int64)

    def layer_of(self, path: Array, machine: Array) -> Array:
        """The layer in which the file with a path lies on a machine."""
        given = self.parameters
        at = below(given.layers, given.seed, 11, path)
        # The lower half of the layers is common to all images.
        image = np.where(at < given.layers // 2, 0, machine % given.images)
        return np.asarray(image * given.layers + at)

    def layer_content(self, layer: Array, version: Array, path: Array, content: Array) -> Array:
        """The content of a file in a version of its layer."""
        given = self.parameters
        last = np.zeros(len(path), np.int64)
        for number in range(1, int(version.max(initial=0)) + 1):
            changes = shares(given.seed, 12, layer, path, number) < given.layer_changes
            last = np.where(changes & (number <= version), number, last)
        return mixed(given.seed, 13, layer, last, content)


def _cut(jobs: Jobs, edges: Array) -> Iterator[Jobs]:
    sums = np.cumsum(edges[jobs.template] * jobs.repeats)
    part = sums // BLOCK
    for number in np.unique(part):
        yield jobs.part(part == number)
