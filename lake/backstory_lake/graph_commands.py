"""The commands about the graph of a lake: `lineage`, `components`, `closure` and `history`.

DuckDB answers on this machine. With `--spark`, Spark answers the same SQL.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from . import closure, components, history, hubs, rounds, screen
from .engine import Duck, Engine
from .errors import LakeError, MisuseError
from .lake import Lake
from .printing import Answer, escaped, json_array, moment, table, text
from .questions import add_limits, chosen_limits
from .subjects import Subjects

EPILOG = (
    "FILES are named by key (column `file` of the view `files`), by digest, or by path. "
    "--spark needs the package backstory-lake[spark] and Iceberg's library: --jar FILE, or the "
    "variable BACKSTORY_ICEBERG_JAR."
)


def add(commands: Any) -> None:
    """Adds the commands to a parser."""
    asked = _command(commands, "lineage", "what made files, or what came from them", _lineage)
    asked.add_argument("--forth", action="store_true", help="what came from the files")
    _add_way(asked)
    _add_hubs(asked)

    asked = _command(commands, "components", "what came from withdrawn files, grouped", _components)
    _add_way(asked)
    asked.add_argument("--members", action="store_true", help="list all files and processes")
    asked = _command(commands, "history", "where a content was, and when", _history)

    asked = _command(commands, "closure", "keep a lineage, and update it", _closure)
    asked.add_argument("action", choices=("make", "update", "show"))
    asked.add_argument("directory", metavar="DIR", type=Path, help="the closure's own directory")
    asked.add_argument("--forth", action="store_true", help="what came from the files")
    _add_way(asked)
    _add_hubs(asked)


HUBS = "follow nothing from a content that more than N edges touch, and report each such hub"


def _command(commands: Any, name: str, what: str, run: Any) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=what, epilog=EPILOG)
    made.add_argument("--lake", required=True, metavar="LAKE")
    made.add_argument("--file", type=int, action="append", default=[], metavar="KEY")
    made.add_argument("--digest", action="append", default=[], metavar="DIGEST")
    made.add_argument("--path", action="append", default=[], metavar="PATH")
    made.add_argument("--json", action="store_true", help="print JSON")
    add_limits(made)
    made.add_argument("--spark", metavar="MASTER", help="such as local[4] or spark://host:7077")
    made.add_argument("--jar", metavar="FILE", help="iceberg-spark-runtime-*.jar")
    shared = "a directory that Spark's driver and workers share, for what does not fit into memory"
    made.add_argument("--scratch", metavar="DIR", help=shared)
    lasting = "such a directory for rounds, so that a worker may die; they are removed at the end"
    made.add_argument("--checkpoint", metavar="DIR", help=lasting)
    made.set_defaults(run=run)
    return made


def _add_way(command: argparse.ArgumentParser) -> None:
    command.add_argument("--depth", type=int, metavar="N", help="at most N processes on a path")
    command.add_argument(
        "--no-possible", action="store_true", help="leave out flows that were not observed"
    )


def _add_hubs(command: argparse.ArgumentParser) -> None:
    command.add_argument("--hubs", type=int, metavar="N", help=HUBS)
    command.add_argument(
        "--summary", action="store_true", help="also leave out the links into hubs, and count them"
    )
    command.add_argument(
        "--all", action="store_true", help="print all links, also those of system files"
    )


@contextmanager
def engine(given: argparse.Namespace) -> Iterator[Engine]:
    """The engine that the options name."""
    lake = Lake.open(given.lake)
    if not given.spark:
        duck = Duck(lake, chosen_limits(given))
        with closing(duck), duck.bounded():
            yield duck
        return
    try:
        from backstory_spark import SparkEngine, cluster
    except ImportError as error:
        raise LakeError(
            f"--spark needs pyspark ({error}): pip install 'backstory-lake[spark]'"
        ) from error
    jar = given.jar or os.environ.get("BACKSTORY_ICEBERG_JAR")
    if not jar or not os.path.isfile(jar):
        raise MisuseError(
            f"--spark needs Iceberg's library, and {jar or 'no file'} was given: download "
            "iceberg-spark-runtime-3.5_2.12-1.9.1.jar, and name it with --jar"
        )
    with cluster.session(given.spark, jar, log="OFF") as session:
        scratch = _address(given.scratch) if given.scratch else None
        made = SparkEngine(session, lake, scratch)
        with closing(made), made.bounded():
            if given.checkpoint:
                made.keep_rounds(_address(given.checkpoint))
            yield made


def _address(directory: str) -> str:
    """The address by which Spark finds a directory of this machine."""
    return directory if "://" in directory else Path(directory).absolute().as_uri()


def subjects(given: argparse.Namespace) -> Subjects:
    """The files that the options name."""
    return Subjects(tuple(given.file), tuple(given.digest), tuple(given.path))


def _way(given: argparse.Namespace) -> rounds.Way:
    return rounds.Way(
        "forth" if given.forth else "back",
        given.depth,
        not given.no_possible,
        given.hubs,
        given.summary,
    )


def _lineage(given: argparse.Namespace) -> int:
    way = _way(given)
    with engine(given) as made:
        rounds.lineage(made, subjects(given).files(made), way)
        _show(made, rounds.answer(), way, given)
    return 0


def _show(
    made: Engine,
    links: str,
    way: rounds.Way,
    given: argparse.Namespace,
    report: str = hubs.REPORT,
) -> None:
    """Prints links, and the hubs that the question came to."""
    # An engine has one answer at a time: all links are read before the hubs are asked for.
    answer = made.ask(rounds.named(links, way))
    if given.json:
        sys.stdout.write('{"links": ')
        json_array(answer, sys.stdout)
        sys.stdout.write(', "hubs": ')
        json_array(_reported(made, way, report), sys.stdout)
        sys.stdout.write("}\n")
        return
    screen.links(answer, given.all, sys.stdout)
    for row in _reported(made, way, report).rows:
        hub = dict(zip(hubs.NAMED, row))
        left_out = f"; {hub['links']} links to it are left out" if way.summary else ""
        print(
            f"hub {hub['rule']}: {escaped(text(hub['path']))}, touched by {hub['edges']} "
            f"edges: nothing is followed from {hub['files']} of its files "
            f"({hub['steps']} steps){left_out}"
        )


def _reported(made: Engine, way: rounds.Way, report: str) -> Answer:
    """The hubs of a report, those with the most edges first."""
    if way.hubs is None:
        return Answer(list(hubs.NAMED), iter(()))
    return made.ask(hubs.named(report, str(way.summary)))


def _components(given: argparse.Namespace) -> int:
    with engine(given) as made:
        files = subjects(given).files(made)
        components.components(made, files, given.depth, not given.no_possible)
        answer = made.ask(components.NAMED if given.members else components.SUMMARY)
        (json_array if given.json else table)(answer, sys.stdout)
    return 0


def _closure(given: argparse.Namespace) -> int:
    named = subjects(given)
    way = _way(given)
    if given.action != "make" and (named != Subjects() or way != rounds.Way()):
        raise MisuseError(f"the question of {given.directory} is fixed: make another closure")
    if given.action != "show" and given.all:
        raise MisuseError(f"`closure {given.action}` prints no links: `closure show` has --all")
    with engine(given) as made:
        if given.action == "make":
            kept = closure.make(given.directory, made, named, way)
            done = "made"
        else:
            kept = closure.Closure.open(given.directory, made)
            done = kept.update(made) if given.action == "update" else ""
        if given.action == "show":
            links, behind = closure.show(kept, made)
            _show(made, links, kept.way, given, closure.STORED_HUBS)
            if behind:
                print(
                    f"backstory-lake: the lake differs from {given.directory} by {behind} runs: "
                    "`backstory-lake closure update` it",
                    file=sys.stderr,
                )
        else:
            print(f"{given.directory}: {done}")
    return 0


def _history(given: argparse.Namespace) -> int:
    if given.file or given.path or len(given.digest) != 1:
        raise MisuseError("a history is that of one content: give one --digest")
    with engine(given) as made:
        subjects(given).files(made)
        answer = made.ask(history.history(given.digest[0], made.quoted))
        if given.json:
            json_array(answer, sys.stdout)
        else:
            table(_dated(answer), sys.stdout)
    return 0


def _dated(answer: Answer) -> Answer:
    """An answer with dates instead of ns."""
    names = [name.removesuffix("_ns") for name in answer.names]
    moments = {at for at, name in enumerate(answer.names) if name.endswith("_ns")}
    rows = (
        tuple(moment(one) if at in moments else one for at, one in enumerate(row))
        for row in answer.rows
    )
    return Answer(names, rows)
