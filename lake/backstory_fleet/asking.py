"""Measures fleets of several sizes, one after the other. A lake is removed when it was measured.

Each row is in the file as soon as it is measured. With a given directory, an interrupted
measurement goes on there: the corpus and the lake stay. All that is removed lies in a directory
that this module made. Questions that the file has an answer to are not asked again. A lake is known
by its number of edges: two fleets hardly have the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from backstory_lake.errors import LakeError, MisuseError
from backstory_lake.lake import Lake
from backstory_lake.questions import Limits, Question

from . import corpus, distributions, measure, templates
from .corpus import Recorded
from .fleet import Parameters, Size
from .generate import generate
from .measure import Asked, Measurement

#: The directory in a given one, and the file in it that says who made it.
OWN, MARK = "backstory-scale", "made-by-backstory-fleet"


def measure_all(
    out: Path,
    sizes: list[float],
    engines: list[tuple[str, float | None]],
    workers: int,
    recorded: str | None = None,
    directory: Path | None = None,
) -> None:
    """Makes a fleet of each size, and asks each engine. An engine may have a greatest size."""
    with _scratch(directory) as here:
        if recorded is None:
            recorded = str(_once(here, "corpus", lambda at: _record(here, at, out)))
        for edges in sizes:
            if (here / f"measured-{edges:.0f}").exists():
                continue

            def make(at: Path, edges: float = edges, recorded: str = recorded) -> None:
                _make(Lake.open(recorded), at, edges, out)

            lake = _once(here, f"fleet-{edges:.0f}", make)
            for engine, most in engines:
                if most is None or edges <= most:
                    _in_a_process(lake, out, engine, workers)
            (here / f"measured-{edges:.0f}").touch()
            _remove(lake)


@contextmanager
def _scratch(directory: Path | None) -> Iterator[Path]:
    """The directory of a measurement. In a given one it stays until everything is measured."""
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="backstory-scale-") as made:
            yield Path(made)
        return
    here = directory.resolve() / OWN
    if not (here / MARK).exists():
        try:
            here.mkdir(parents=True)
        except FileExistsError as error:
            raise LakeError(
                f"{here} is not of an earlier measurement, and would be removed: "
                "rename it, or give another --dir"
            ) from error
        (here / MARK).touch()
    yield here
    _remove(here)


def _once(here: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The lake of this name. A part that an interrupted measurement left is made anew."""
    lake, made = here / name, here / f"made-{name}"
    if not made.exists():
        _remove(lake)
        make(lake)
        made.touch()
    return lake


def _remove(directory: Path) -> None:
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def _record(here: Path, lake: Path, out: Path) -> None:
    # Its sources must not be there twice.
    with tempfile.TemporaryDirectory(prefix="corpus-", dir=here) as sources:
        recorded = corpus.record(Path(sources) / "work", lake)
    add_shipments(out, Lake.open(str(lake)), recorded)


def add_shipments(out: Path, lake: Lake, recorded: Recorded) -> None:
    """Adds what shipping a corpus to this lake cost, and shipping it again."""
    size = measure.sizes(lake)[0]
    costs = {"ship": recorded.shipped, "ship again": recorded.shipped_again}
    _add(
        out,
        [
            Measurement("lake", name, size.edges, size.runs, seconds=cost.seconds, cpu=cost.cpu)
            for name, cost in costs.items()
        ],
    )


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
    compared = distributions.compare(recorded, lake)
    checks = [
        Measurement("check", one.quantity, *rows, distance=one.distance, bound=one.bound)
        for one in compared
    ]
    _add(out, [*sizes, made, written, hub, *checks])


def _add(out: Path, rows: Iterable[Measurement]) -> None:
    """Adds each row as soon as it is there, but those that the file has."""
    known = {_key(one) for one in measure.read(out)} if out.exists() else set()
    for row in rows:
        if _key(row) not in known:
            measure.append(out, [row])


def _key(one: Measurement) -> tuple[str, str, int, int]:
    return one.engine, one.question, one.edges, one.workers


def _in_a_process(lake: Path, out: Path, engine: str, workers: int) -> None:
    words = ["ask", "--lake", str(lake), "--out", str(out), "--engine", engine]
    command = [sys.executable, "-m", "backstory_fleet.cli", *words, "--workers", str(workers)]
    if subprocess.run(command).returncode != 0:
        raise LakeError(f"measuring {engine} failed; its messages are above")


def ask(
    lake: Lake, out: Path, engine: str, workers: int, only: Sequence[str] | None = None
) -> None:
    """Asks one engine the questions about a lake that it has not answered with these workers.

    `only` are names of questions; without it, all are asked.
    """
    edges = measure.sizes(lake)[0].edges
    known = measure.read(out) if out.exists() else []
    cores = workers if engine == "spark" else os.cpu_count() or 1
    asker = (engine, edges, cores)
    done = {one.question for one in known if (one.engine, one.edges, one.workers) == asker}
    asked = measure.questions(Question(lake, Limits(0, measure.MEMORY)))
    if only is not None:
        asked = _chosen(asked, only)
    left = [one for one in asked if one.name not in done]
    if not left and "open" in done:
        return
    measure.append(out, [measure.others(edges)])
    if engine == "spark":
        from .measure_spark import spark

        found = spark(lake, left or asked[:1], workers)
    else:
        found = measure.duckdb(lake, left or asked[:1])
    _add(out, found)


def _chosen(asked: list[Asked], only: Sequence[str]) -> list[Asked]:
    names = [one.name for one in asked]
    unknown = [name for name in only if name not in names]
    if unknown:
        known = "; ".join(names)
        raise MisuseError(f"no question of this lake is named {unknown[0]!r}; there are: {known}")
    return [one for one in asked if one.name in only]
