"""Measures the Python package: its import, and a frame of a million edges.

usage: python crates/python/benches/frames.py [EDGES]

Prints the medians, on the clock and of the processor. Records a run for the
measurement: a program looks for EDGES paths that do not exist, and writes a file.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import backstory as bs

PROGRAM = """
import os, sys
exists = os.path.exists
for number in range(int(sys.argv[1])):
    exists(f"missing/{number}")
open("out", "w").write("x")
"""


def spent() -> float:
    """Returns the seconds of processor time of this process and its ended children."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Cost:
    """Median times of an action in milliseconds: on the clock, and of the processor."""

    def __init__(self, act: Callable[[], object], rounds: int) -> None:
        clock, processor = [], []
        for _ in range(rounds):
            began, used = time.perf_counter(), spent()
            act()
            clock.append((time.perf_counter() - began) * 1000)
            processor.append((spent() - used) * 1000)
        self.clock = statistics.median(clock)
        self.processor = statistics.median(processor)

    def __str__(self) -> str:
        return f"{self.clock:.1f} ms (cpu {self.processor:.1f})"


def start(code: str) -> Callable[[], object]:
    """Returns a function that starts a Python interpreter with this code."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def main(edges: int) -> None:
    """Measures, and prints the results."""
    alone, imported = Cost(start("pass"), 21), Cost(start("import backstory"), 21)
    clock, processor = imported.clock - alone.clock, imported.processor - alone.processor
    print(f"import backstory: {clock:.1f} ms (cpu {processor:.1f}); Python alone: {alone}")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        store = os.path.join(place, "store")
        run = bs.run([sys.executable, "-c", PROGRAM, str(edges)], store=store)
        answers = bs.Store(store)
        print(f"edges of a run: {len(run.edges())}")
        print(f"  question:     {Cost(lambda: len(run.edges()), 3)}")
        table = run.edges()
        len(table)
        print(f"  to_pandas():  {Cost(table.to_pandas, 5)}")
        lineage = answers.of("out", lookups=True)
        print(f"links of a lineage: {len(lineage)}")
        print(f"  question:     {Cost(lambda: len(answers.of('out', lookups=True)), 3)}")
        print(f"  to_pandas():  {Cost(lineage.to_pandas, 5)}")
        print(f"  to_arrow():   {Cost(lineage.to_arrow, 5)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
