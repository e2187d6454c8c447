"""The program `backstory-lake`.

Exit status: 0 for success; 1 if something failed or does not exist; 2 for misuse.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

from . import (
    erasure,
    graph_commands,
    place_commands,
    printing,
    run_graphs,
    schema,
    shipping,
    upkeep,
    verification,
)
from .errors import LakeError, first_line
from .lake import Lake
from .privacy import Config
from .program import Program
from .questions import Question, add_limits, chosen_limits


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command, and reports a failure in one line."""
    given = _parser().parse_args(words)
    given.is_program = words is None
    try:
        return int(given.run(given) or 0)
    except LakeError as error:
        print(f"backstory-lake: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"backstory-lake: {first_line(error)}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="backstory-lake",
        description="Runs of many machines in one lake of Iceberg tables.",
        epilog="LAKE is a directory, or catalog:NAME for a catalog of PyIceberg's configuration.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    ship = commands.add_parser("ship", help="append the runs of a store, each once")
    ship.add_argument("--store", required=True, metavar="DIR", help="the store")
    ship.add_argument("--to", required=True, metavar="LAKE")
    ship.add_argument("--config", metavar="FILE", help="what may leave this machine (TOML)")
    ship.add_argument(
        "--forget",
        action="store_true",
        help="also erase the runs that this store sent and no longer has",
    )
    ship.add_argument("--json", action="store_true", help="print JSON")
    ship.add_argument("runs", nargs="*", metavar="RUN", help="ids or names; by default all")
    ship.set_defaults(run=_ship)

    query = commands.add_parser("query", help="answer a question in SQL")
    query.add_argument("--lake", required=True, metavar="LAKE")
    query.add_argument("--schema", action="store_true", help="list the tables and their columns")
    query.add_argument("--json", action="store_true", help="print JSON: an array of objects")
    query.add_argument("--csv", action="store_true", help="print comma-separated values")
    add_limits(query)
    query.add_argument("sql", nargs="?", metavar="SQL", help="a SELECT; -: standard input")
    query.set_defaults(run=_query)

    graphs = commands.add_parser(
        "graphs", help="give `backstory hunt --lake` the runs that a request on the input means"
    )
    graphs.add_argument("--lake", required=True, metavar="LAKE")
    add_limits(graphs)
    graphs.set_defaults(run=_graphs)

    forget = commands.add_parser("forget", help="erase runs from the lake, and check that")
    forget.add_argument("--lake", required=True, metavar="LAKE")
    forget.add_argument("runs", nargs="+", metavar="RUN", help="ids of the runs")
    forget.set_defaults(run=_forget)

    compact = commands.add_parser("compact", help="join small files, and drop unpublished rows")
    compact.add_argument("--lake", required=True, metavar="LAKE")
    compact.set_defaults(run=_compact)

    check = commands.add_parser("check", help="compare all data files with their digests")
    check.add_argument("--lake", required=True, metavar="LAKE")
    check.set_defaults(run=_check)

    expire = commands.add_parser("expire", help="erase runs that began before a day")
    expire.add_argument("--lake", required=True, metavar="LAKE")
    expire.add_argument("--before", required=True, metavar="DAY", help="such as 2026-11-01")
    expire.set_defaults(run=_expire)

    graph_commands.add(commands)
    place_commands.add(commands)
    return parser


def _ship(given: argparse.Namespace) -> int:
    config = Config.read(given.config)
    lake = Lake.open(given.to, create=True)
    done = shipping.ship(Program(given.store), lake, given.runs, config, given.forget)
    if given.json:
        print(json.dumps(vars(done)))
    else:
        print(f"{_count(done.sent)} shipped to {given.to}, {len(done.present)} there already")
        if given.forget:
            print(f"{_count(done.erased)} erased from {given.to}")
    warn = [
        (
            done.cloned,
            "another machine shipped under this store's name: a clone of its disk, "
            "perhaps. This store has a new name in the lake",
        ),
        (
            done.namesakes,
            "other machines of the lake have the same host name: " + ", ".join(done.namesakes),
        ),
        (done.forgotten, "forgotten in the lake, and not sent again: " + ", ".join(done.forgotten)),
        (done.expired, "older than the lake keeps, and not sent: " + ", ".join(done.expired)),
        (
            done.clashes,
            "not sent, because other runs have their ids in the lake: " + ", ".join(done.clashes),
        ),
    ]
    for is_so, message in warn:
        if is_so:
            print(f"backstory-lake: {message}", file=sys.stderr)
    return 1 if done.clashes else 0


def _query(given: argparse.Namespace) -> int:
    question = Question(Lake.open(given.lake), chosen_limits(given))
    question.ends_program = given.is_program
    question.advice = "narrow the question (`WHERE run = ...`)"
    sql = given.sql
    if given.schema:
        sql = schema.COLUMNS
    elif sql is None:
        raise LakeError("a question is needed: one SELECT statement")
    elif sql == "-":
        sql = sys.stdin.read()
    with closing(question), question.rows(sql) as found:
        answer = printing.Answer.of(found, question.watched)
        if given.schema:
            answer = schema.described(answer)
        if given.json:
            printing.json_array(answer, sys.stdout)
        elif given.csv:
            rows = csv.writer(sys.stdout, lineterminator="\n")
            rows.writerow(answer.names)
            for row in answer.rows:
                rows.writerow(["" if one is None else printing.text(one) for one in row])
        else:
            printing.table(answer, sys.stdout)
    return 0


def _graphs(given: argparse.Namespace) -> int:
    request = run_graphs.Request.read(sys.stdin.read())
    question = Question(Lake.open(given.lake), chosen_limits(given))
    question.advice = "choose fewer runs"
    with closing(question):
        run_graphs.RunGraphs(question, request).write(sys.stdout)
    return 0


def _forget(given: argparse.Namespace) -> int:
    report = erasure.forget(Lake.open(given.lake), given.runs)
    print(f"{_count(given.runs)} forgotten; {report.checked} data files checked, none has a row")
    return 0


def _compact(given: argparse.Namespace) -> int:
    report = upkeep.compact(Lake.open(given.lake))
    print(f"{report.before} data files joined to {report.after}; {report.removed} files removed")
    return 0


def _check(given: argparse.Namespace) -> int:
    report = verification.verify(Lake.open(given.lake))
    for error in report.unread + report.damaged:
        print(f"backstory-lake: {error}", file=sys.stderr)
    sound, damaged = report.sound, len(report.damaged)
    print(
        f"{sound} data {'file is as it was' if sound == 1 else 'files are as they were'} written, "
        f"{damaged} {'is' if damaged == 1 else 'are'} not"
    )
    if report.unknown:
        print(
            f"{report.unknown} data files of an older backstory-lake have no digest: they have "
            "the right size and number of rows, and other changes are not found"
        )
    if report.unread:
        print(f"tables whose data files were not checked: {len(report.unread)}")
    return 1 if report.damaged or report.unread else 0


def _count(runs: list[str]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def _expire(given: argparse.Namespace) -> int:
    try:
        day = datetime.strptime(given.before, "%Y-%m-%d").date()
    except ValueError as error:
        raise LakeError(f"{given.before} is no day such as 2026-11-01") from error
    runs = erasure.expire(Lake.open(given.lake), day)
    print(f"runs erased that began before {day}: {runs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
