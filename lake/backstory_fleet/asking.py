"""Measures fleets of several sizes, one after the other. A lake is removed when it was measured."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question

from . import corpus, distributions, measure, templates
from .fleet import Parameters, Size
from .generate import generate
from .measure import Measurement


def measure_all(
    out: Path,
    sizes: list[float],
    engines: list[tuple[str, float | None]],
    workers: int,
    recorded: str | None = None,
) -> None:
    """Makes a fleet of each size, and asks each engine. An engine may have a greatest size."""
    with tempfile.TemporaryDirectory(prefix="backstory-scale-") as scratch:
        here = Path(scratch)
        if recorded is None:
            recorded = str(here / "corpus.lake")
            corpus.record(here / "corpus", Path(recorded))
        for number, edges in enumerate(sizes):
            lake = here / f"fleet{number}"
            _make(Lake.open(recorded), lake, edges, out)
            for engine, most in engines:
                if most is None or edges <= most:
                    _in_a_process(lake, out, engine, workers)
            subprocess.run(["rm", "-rf", str(lake)], check=True)


def _make(recorded: Lake, directory: Path, edges: float, out: Path) -> None:
    found, lake = templates.read(recorded), Lake.open(str(directory), create=True)
    size = Size.of(edges, found, Parameters())
    done, seconds, cpu = measure.timed(lambda: generate(found, lake, size))
    sizes = measure.sizes(lake)
    rows = sizes[0].edges, sizes[0].runs
    made = Measurement(
        "lake", "make", *rows, seconds=done.making, bytes=size.machines, rounds=size.days
    )
    written = Measurement("lake", "write", *rows, seconds=done.writing)
    # The rest of the process's time makes the rows.
    written.cpu = round(cpu * done.writing / max(seconds, 1e-9), 3)
    hub = measure.hub(Question(lake, Limits(0, measure.MEMORY)), sizes[0])
    measure.append(out, [*sizes, made, written, hub])
    compared = distributions.compare(recorded, lake)
    measure.append(
        out,
        [
            Measurement("check", one.quantity, *rows, distance=one.distance, bound=one.bound)
            for one in compared
        ],
    )


def _in_a_process(lake: Path, out: Path, engine: str, workers: int) -> None:
    words = ["ask", "--lake", str(lake), "--out", str(out), "--engine", engine]
    command = [sys.executable, "-m", "backstory_fleet.cli", *words, "--workers", str(workers)]
    if subprocess.run(command).returncode != 0:
        raise LakeError(f"measuring {engine} failed; its messages are above")


def ask(lake: Lake, out: Path, engine: str, workers: int) -> None:
    """Asks one engine the questions about a lake."""
    asked = measure.questions(Question(lake, Limits(0, measure.MEMORY)))
    measure.append(out, [measure.others(measure.sizes(lake)[0].edges)])
    if engine == "spark":
        from .measure_spark import spark

        found = spark(lake, asked, workers)
    else:
        found = measure.duckdb(lake, asked)
    for one in found:
        measure.append(out, [one])
