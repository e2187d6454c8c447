"""Measures the Python package: its import, and a frame of a million edges.

usage: python crates/python/benches/frames.py [EDGES]

Prints the medians. Records a run for the measurement: a program looks for EDGES paths that do not
exist, and writes a file.
"""

from __future__ import annotations

import os
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


def median(act: Callable[[], object], rounds: int) -> float:
    """Returns the median time in milliseconds."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def start(code: str) -> Callable[[], object]:
    """Returns a function that starts a Python interpreter with this code."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def main(edges: int) -> None:
    """Measures, and prints the results."""
    alone, imported = median(start("pass"), 21), median(start("import backstory"), 21)
    print(f"import backstory: {imported - alone:.1f} ms (Python alone: {alone:.1f} ms)")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        store = os.path.join(place, "store")
        run = bs.run([sys.executable, "-c", PROGRAM, str(edges)], store=store)
        answers = bs.Store(store)
        count = len(run.edges())
        print(f"edges of a run: {count}")
        print(f"  question:     {median(lambda: len(run.edges()), 3):.0f} ms")
        table = run.edges()
        len(table)
        print(f"  to_pandas():  {median(table.to_pandas, 3):.0f} ms")
        lineage = answers.of("out", lookups=True)
        print(f"links of a lineage: {len(lineage)}")
        print(f"  question:     {median(lambda: answers.of('out', lookups=True), 3):.0f} ms")
        links = median(lambda: answers.of("out", lookups=True).to_pandas(), 3)
        print(f"  question and to_pandas(): {links:.0f} ms")
        print(f"  to_pandas():  {median(lineage.to_pandas, 3):.0f} ms")
        print(f"  to_arrow():   {median(lineage.to_arrow, 3):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
