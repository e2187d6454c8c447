"""The program `backstory-fleet`.

Exit status: 0 for success; 1 if something failed or is not as it should be; 2 for misuse.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from backstory_lake.errors import LakeError
from backstory_lake.lake import Lake

from . import asking, corpus, distributions, measure, page, templates
from .fleet import Parameters, Size
from .generate import generate


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command, and reports a failure in one line."""
    given = _parser().parse_args(words)
    try:
        return int(given.run(given) or 0)
    except LakeError as error:
        print(f"backstory-fleet: {error}", file=sys.stderr)
        return error.status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="backstory-fleet",
        description="Lakes of fleets that never existed, made from recorded runs.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    record = commands.add_parser("corpus", help="record ordinary commands, and ship them")
    record.add_argument("--to", required=True, metavar="LAKE")
    record.add_argument("--quick", action="store_true", help="only a few of the commands")
    record.add_argument("--out", metavar="CSV", type=Path, help="add what shipping them cost")
    record.set_defaults(run=_corpus)

    make = commands.add_parser("generate", help="write a fleet like a corpus into a new lake")
    make.add_argument("--corpus", required=True, metavar="LAKE", help="a lake of recorded runs")
    make.add_argument("--to", required=True, metavar="LAKE")
    make.add_argument("--edges", type=float, default=1e5, help="about so many edges")
    make.add_argument("--machines", type=int, help="machines, with --days instead of --edges")
    make.add_argument("--days", type=int)
    make.add_argument("--seed", type=int, default=1)
    make.set_defaults(run=_generate)

    check = commands.add_parser("check", help="compare a fleet with its corpus")
    check.add_argument("--corpus", required=True, metavar="LAKE")
    check.add_argument("--lake", required=True, metavar="LAKE")
    check.set_defaults(run=_check)

    run = commands.add_parser("measure", help="make fleets, and measure questions about them")
    run.add_argument("--out", required=True, metavar="CSV", type=Path)
    run.add_argument("--sizes", default="1e5,3e5,1e6,3e6,1e7", help="numbers of edges")
    run.add_argument("--engines", default="duckdb,spark")
    run.add_argument("--most", type=float, default=measure.MOST, help="the most edges for Spark")
    run.add_argument("--workers", type=int, default=2, help="workers of Spark, of one core each")
    run.add_argument("--corpus", metavar="LAKE", help="recorded runs; by default, record some")
    kept = f"keep lakes in DIR/{asking.OWN} until all is measured; go on there if interrupted"
    run.add_argument("--dir", metavar="DIR", type=Path, help=kept)
    run.set_defaults(run=_measure)

    ask = commands.add_parser("ask", help="measure questions about one lake")
    ask.add_argument("--lake", required=True, metavar="LAKE")
    ask.add_argument("--out", required=True, metavar="CSV", type=Path)
    ask.add_argument("--engine", choices=("duckdb", "spark"), required=True)
    ask.add_argument("--workers", type=int, default=2)
    named = "ask only this question, by its name in the results; may be given several times"
    ask.add_argument("--only", metavar="NAME", action="append", help=named)
    ask.set_defaults(run=_ask)

    write = commands.add_parser("page", help="write what was measured, and what follows from it")
    write.add_argument("csv", metavar="CSV", type=Path)
    write.set_defaults(run=_page)
    return parser


def _corpus(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="backstory-fleet-") as scratch:
        recorded = corpus.record(Path(scratch) / "corpus", Path(given.to), given.quick)
    if given.out:
        asking.add_shipments(given.out, Lake.open(given.to), recorded)
    print(f"{recorded.runs} runs recorded into {given.to}")
    return 0


def _generate(given: argparse.Namespace) -> int:
    found = templates.read(Lake.open(given.corpus))
    parameters = Parameters(seed=given.seed)
    if given.machines or given.days:
        size = Size(given.machines or 1, given.days or 1)
    else:
        size = Size.of(given.edges, found, parameters)
    done = generate(found, Lake.open(given.to, create=True), size, parameters)
    edges = done.rows["edges"]
    print(
        f"{size.machines} machines, {size.days} days, {done.rows['runs']} runs, {edges} edges; "
        f"made in {done.making:.1f} s, written in {done.writing:.1f} s"
    )
    return 0


def _check(given: argparse.Namespace) -> int:
    found = distributions.compare(Lake.open(given.corpus), Lake.open(given.lake))
    for one in found:
        verdict = "like the corpus" if one.holds else "NOT like the corpus"
        print(f"{one.quantity}: distance {one.distance:.3f}, bound {one.bound:.3f}: {verdict}")
    return 0 if all(one.holds for one in found) else 1


def _measure(given: argparse.Namespace) -> int:
    sizes = [float(size) for size in given.sizes.split(",")]
    engines = [(name, given.most if name == "spark" else None) for name in given.engines.split(",")]
    asking.measure_all(given.out, sizes, engines, given.workers, given.corpus, given.dir)
    return 0


def _ask(given: argparse.Namespace) -> int:
    asking.ask(Lake.open(given.lake), given.out, given.engine, given.workers, given.only)
    return 0


def _page(given: argparse.Namespace) -> int:
    # The page names no directory of this machine.
    source = given.csv.name if given.csv.is_absolute() else str(given.csv)
    print(page.text(measure.read(given.csv), source), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
