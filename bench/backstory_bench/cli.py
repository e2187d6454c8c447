"""`backstory-bench`: list, run, subset, report, predict, questions, lineage, mounted, replay.

The commands `bills`, `bytes`, `durability`, `engines`, `flushes`, `functions`, `granularity`,
`hunt`, `inspected`, `instructions`, `logforms`, `profiles`, `prompt`, `scenes`, `servers`, `tpcc`
and `watch` are of the same kind. So is `indexing`. So are `background`, `hashing`, `naming` and
`requests`, which measure designs that were not chosen. `tables` puts results into documents.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import backstory_program, promises, report
from .background import add_background
from .bills import main_bills
from .byte_truth.command import main_bytes
from .collectors import COLLECTORS, Collector, chosen
from .collectors.template import BadTemplate, from_template
from .database_servers import SERVERS
from .durability import main_durability
from .engines import ARITY, main_engines
from .false_alarms import main_false_alarms
from .flushes import main_flushes
from .functions import main_functions
from .granularity import main_granularity
from .hashing import add_hashing
from .indexing_time import add_indexing
from .inspected import main_inspected
from .instructions import add_instructions
from .lineage import main_lineage
from .log_forms import main_log_forms
from .matrix.journal import Journal, Unusable
from .mounted import LIBFUSE, main_mounted
from .naming import add_naming
from .paired import run_paired
from .preserve_requests import add_requests
from .profiles import add_profiles
from .prompt import STARTUP, main_prompt
from .questions import main_questions
from .replay import run_replay
from .result_tables import add_parser as add_tables
from .scenes import CASES as SCENES
from .scenes import main_scenes
from .scenes.tools import TOOLS as SCENE_TOOLS
from .scenes.tools import tool_names
from .servers import MODES as SERVER_MODES
from .servers import USUAL as USUAL_SERVER_MODES
from .servers import USUAL_CALLS, main_servers
from .tpcc import MODES as TPCC_MODES
from .tpcc import PROMISED as TPCC_PROMISED
from .tpcc import main_tpcc
from .watch_delay import add_watch
from .web_load import LOADS
from .web_servers import WEB_SERVERS
from .workloads import EVERY, Instance, select, suite
from .workloads.sources import VARIABLE

MATRIX_SUITES = ("full", "minimal", "groups")
EXTRA = "this needs the extra `report`: pip install -r bench/requirements-report.txt"

EPILOG = """examples:
  backstory-bench list collectors                       list collectors, and why some cannot run here
  backstory-bench run --suite ci                        compare the promised commands with the known ratios
  backstory-bench run --suite groups --out results      one workload of each group under every collector
  backstory-bench run --resume --out results            continue after an interruption
  backstory-bench run --suite full --collector 'mine=mytool --log {log} -- {cmd}'
  backstory-bench report results                        write docs/benchmark from the results
  backstory-bench predict results -- make -j4           predict the cost of each collector on this command
"""


def _paired(args: argparse.Namespace) -> bool:
    if args.resume or args.suite in MATRIX_SUITES:
        return False
    return not args.workloads or all(name in promises.WORKLOADS for name in args.workloads.split(","))


def _run(args: argparse.Namespace) -> int:
    if _paired(args):
        args.suite = args.suite or "promises"
        args.collectors = args.collectors or "backstory,backstory-guard-off,strace-flow"
        return run_paired(args)
    from .matrix.start import run_matrix

    return run_matrix(args, *_matrix_choice(args))


def _matrix_choice(args: argparse.Namespace) -> tuple[list[Instance], list[Collector]]:
    own = [from_template(text) for text in args.collector]
    if args.resume:
        plan = Journal(Path(args.out)).plan()
        own = [from_template(text) for text in plan["templates"]]
        by_name = COLLECTORS | {c.name: c for c in own}
        return select(plan["workloads"]), [by_name[name] for name in plan["collectors"]]
    instances = select(args.workloads.split(",")) if args.workloads else suite(args.suite)
    usual = [c.name for c in COLLECTORS.values() if not c.privileged and not c.by_name_only]
    named = args.collectors.split(",") if args.collectors else usual
    return instances, [*chosen(["none", *(n for n in named if n != "none")]), *own]


def _list(args: argparse.Namespace) -> int:
    rows: list[dict[str, str | None]] = []
    if args.what == "workloads":
        rows += [
            {"name": w.name, "group": "promises", "what": w.what, "missing": promises.lacking(w.name)}
            for w in promises.WORKLOADS.values()
        ]
        rows += [{"name": i.key, "group": i.group, "what": i.what, "missing": i.lacking()} for i in EVERY.values()]
    else:
        rows += [
            {"name": c.name, "what": c.what, "missing": c.missing(), "install": c.how_to_install()}
            for c in COLLECTORS.values()
        ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        state = f"SKIPPED: {row['missing']}" if row["missing"] else "can run here"
        print(f"{row['name']:32} {row['what']}: {state}")
        if row["missing"] and row.get("install"):
            print(f"{'':32} to install: {row['install']}")
    return 0


def _report(args: argparse.Namespace) -> int:
    if args.results.is_file() and args.results.suffix == ".csv":
        print(report.markdown(report.load(args.results)))
        return 0
    from .reporting import write

    for path in write(args.results, args.out):
        print(path)
    return 0


def _subset(args: argparse.Namespace) -> int:
    from .analysis.subset import main_subset

    return main_subset(args.results, args.k, args.write)


def _predict(args: argparse.Namespace) -> int:
    from .analysis.predict import main_predict

    return main_predict(args.results, args.cmd, args.run, args.store, args.native)


def _questions(args: argparse.Namespace) -> int:
    return main_questions(args.builds, args.small_runs, args.dir, args.rounds)


def _lineage(args: argparse.Namespace) -> int:
    backstory, out = backstory_program.chosen(), Path(args.out) if args.out else None
    return main_lineage(args.dir, backstory, args.edges, args.files, args.fewest, args.minutes, out)


def _workdir() -> str:
    """Returns the default directory of workloads: a file system in memory, if there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def _add_libfuse(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--libfuse", default=LIBFUSE, metavar="DIR", help="where passthrough_hp and passthrough_ll are"
    )


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    p = commands.add_parser("run", help="measure workloads under collectors; suite ci lists what has become slower")
    p.add_argument(
        "--suite",
        choices=[*promises.SUITES, *MATRIX_SUITES],
        help="paired rounds (promises, ci, ...), or the matrix (full, minimal, groups)",
    )
    p.add_argument("--workloads", help="comma-separated names or groups instead of a suite")
    p.add_argument(
        "--collectors",
        help="comma-separated names; default of the matrix: all that need no privilege, without -functions and -bytes",
    )
    p.add_argument("--workdir", default=_workdir(), help="the directory in which workloads are prepared")
    p.add_argument("--out", help="the CSV file of paired rounds, or the directory of the matrix (must not exist)")
    p.add_argument("--rounds", type=int, default=11, help="rounds of the paired suites")
    p.add_argument(
        "--kept-stores",
        action="store_true",
        help="paired suites: all runs of a mode of backstory share a store, as those of a user do",
    )
    m = p.add_argument_group("the matrix")
    m.add_argument(
        "--collector", action="append", default=[], metavar="NAME='WORDS {log} {cmd}'", help="add a collector"
    )
    m.add_argument("--resume", action="store_true", help="continue the matrix in the directory --out")
    m.add_argument("--iterations", type=int, default=3, help="the number of blocks for each workload")
    m.add_argument("--seed", type=int, default=int(time.time()), help="seed of the random order")
    m.add_argument("--target", type=float, default=3.0, metavar="SECONDS", help="repeat short programs until this time")
    m.add_argument(
        "--cut", type=float, default=20.0, help="stop and mark a cell after this multiple of the native time"
    )
    m.add_argument("--tolerance", type=float, default=1.15, help="repeat a block whose native runs differ by more")
    m.add_argument(
        "--memory", type=int, default=4096, metavar="MIB", help="memory limit of each run, if control groups permit"
    )
    m.add_argument("--processor", type=int, default=max(os.sched_getaffinity(0)), help="the processor to use; -1: all")
    m.add_argument("--sources", help="directory with the built lmbench, splash-3 and byte-unixbench")
    m.add_argument("--install", action="store_true", help="first install the missing collectors that a registry has")
    m.add_argument("--no-profile", action="store_true", help="leave out syscall counts and quality")
    p.set_defaults(do=_run)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="backstory-bench", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    _add_run(commands)
    p = commands.add_parser("report", help="print the table of a CSV file, or write docs/benchmark from a matrix")
    p.add_argument("results", type=Path, help="a CSV file, a directory that `run` wrote, or a directory of such")
    p.add_argument("--out", type=Path, default=Path("docs/benchmark"))
    p.set_defaults(do=_report)
    p = commands.add_parser("subset", help="choose few workloads that represent all of them")
    p.add_argument("results", type=Path)
    p.add_argument("--k", type=int, help="the number of workloads; default: the point of diminishing returns")
    p.add_argument("--write", action="store_true", help="make the result the suite `minimal`")
    p.set_defaults(do=_subset)
    p = commands.add_parser("predict", help="predict the cost of each collector on a program")
    p.add_argument("results", type=Path, help="the matrix to which the model is fitted")
    p.add_argument("--run", help="a recorded run, instead of a command")
    p.add_argument("--store", type=Path, help="the store of the run")
    p.add_argument("--native", type=float, metavar="SECONDS", help="the time of the program without a collector")
    p.add_argument("cmd", nargs="*", metavar="CMD")
    p.set_defaults(do=_predict)
    p = commands.add_parser("list", help="list workloads or collectors")
    p.add_argument("what", choices=["workloads", "collectors"])
    p.add_argument("--json", action="store_true")
    p.set_defaults(do=_list)
    p = commands.add_parser("questions", help="measure the time and memory of answers from large stores")
    p.add_argument("--builds", default="", metavar="STORE", help="a store of builds, made by the test `measure`")
    p.add_argument(
        "--small-runs", default="", metavar="STORE", help="a store of many small runs, made by the same test"
    )
    p.add_argument("--dir", required=True, help="the directory of the large runs; a second call uses them again")
    p.add_argument("--rounds", type=int, default=9)
    p.set_defaults(do=_questions)

    p = commands.add_parser("lineage", help="fill a store by recording real builds, then measure `of` in it")
    p.add_argument("--dir", type=Path, required=True, help="directory of store and builds; the same one resumes")
    p.add_argument("--edges", type=int, default=10_000_000, help="the number of edges to record")
    p.add_argument("--files", type=int, default=1000, help="the number of files to ask about; 0: only build")
    p.add_argument("--fewest", type=int, default=1000, help="leave out files with fewer edges in their ancestry")
    p.add_argument("--minutes", type=float, default=1e6, help="stop building after this time")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=_lineage)
    p = commands.add_parser("bills", help="compare the packages that runs used with those that `syft` declares")
    report.add_directory(p, "directory of the results; the same one makes them again")
    p.add_argument("--cases", help="comma-separated results; default: all")
    p.add_argument("--syft", default="syft", help="the program of github.com/anchore/syft")
    p.add_argument("--out", help="CSV to write: a row for each package of a result")
    backstory_program.add_option(p)
    p.set_defaults(do=main_bills)
    p = commands.add_parser("hunt", help="count what `backstory hunt` finds in ordinary runs")
    report.add_directory(p, "directory of store and workloads; the same one resumes")
    p.add_argument("--runs", type=int, default=1000, help="the number of runs to record; 0: only count")
    p.add_argument("--workloads", help="comma-separated workloads; default: ordinary work that can be done here")
    p.add_argument("--out", help="CSV to write: a row for each rule and workload")
    backstory_program.add_option(p)
    p.set_defaults(do=main_false_alarms)
    add_watch(commands)
    p = commands.add_parser("replay", help="measure replays of the promised commands against native runs")
    p.add_argument("--workloads", help="comma-separated names of the promised commands")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--workdir", default=_workdir(), help="the directory in which workloads are prepared")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=run_replay)
    p = commands.add_parser("mounted", help="measure Postmark below `backstory mount` and other file systems (root)")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory whose file system is measured")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument(
        "--part", type=int, default=1, metavar="N", help="take an N-th of the paper's files and transactions"
    )
    p.add_argument(
        "--larger", type=int, default=1, metavar="N", help="take an N-th of the files, each N times as large"
    )
    p.add_argument(
        "--other", action="append", default=[], metavar="NAME='WORDS {behind} {at}'", help="add a file system"
    )
    _add_libfuse(p)
    p.add_argument("--katcher", action="store_true", help="run the original Postmark in 30 processes")
    p.add_argument("--places", metavar="NAME,...", help="the places to measure, by their names in the table")
    p.add_argument("--perf", type=Path, metavar="DIR", help="profile all processors in each place into DIR (root)")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_mounted)
    p = commands.add_parser("inspected", help="measure Postmark with text files, whose changes are then inspected")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory whose file system is measured")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--part", type=int, default=1, metavar="N", help="take an N-th of the work")
    p.add_argument(
        "--text", type=int, nargs="+", default=[0, 5, 10, 25], metavar="PERCENT", help="shares of text files"
    )
    p.add_argument(
        "--mounted",
        action="store_true",
        help="record by `mount --contents=all` instead of `record`, beside passthrough_ll (root)",
    )
    _add_libfuse(p)
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_inspected)
    p = commands.add_parser("durability", help="measure `record --durability` with programs that make files durable")
    p.add_argument("--workloads", help="comma-separated: postmark, sqlite, mail, mail1")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory whose file system is measured")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--part", type=int, default=1, metavar="N", help="take an N-th of the work")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_durability)
    p = commands.add_parser("flushes", help="measure flushes of messages, each after one of a log, without backstory")
    p.add_argument("--messages", type=int, default=100, help="the number of deliveries of each kind")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory whose file system is measured")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_flushes)
    add_instructions(commands)
    add_hashing(commands)
    add_background(commands)
    add_naming(commands)
    add_requests(commands)
    add_indexing(commands)
    p = commands.add_parser("engines", help="measure storage engines with the workload of the Story Book paper")
    p.add_argument("--engines", default="sqlite,lsm,redb,berkeleydb,rocksdb", help="comma-separated; also: postgresql")
    p.add_argument("--levels", default="3,4,5", help="comma-separated depths of the tree (the paper's: 5)")
    p.add_argument("--arity", type=int, default=ARITY)
    p.add_argument("--size", type=int, default=64 << 10, help="bytes of each file")
    p.add_argument("--block", type=int, default=4096, help="bytes that one call copies")
    p.add_argument("--every-block", action="store_true", help="record every call, without suppression")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of tree and stores")
    p.add_argument("--out", help="CSV to write")
    p.add_argument("--keep", help="directory in which the recorded stores stay, for the comparison by memory")
    p.set_defaults(do=main_engines)
    p = commands.add_parser("functions", help="run UnixBench and real programs in all granularities")
    p.add_argument("--sources", help="directory with byte-unixbench, and if present gzip, sqlite and nginx")
    p.add_argument("--modes", help="comma-separated; without it, all")
    p.add_argument("--tests", help="comma-separated; without it, all")
    p.add_argument("--seconds", type=int, default=2, help="the duration of each test")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--workdir", default=tempfile.gettempdir())
    p.add_argument("--programs", help="the directory of the compiled programs, which stay there")
    p.add_argument("--results", nargs="+", metavar="CSV", help="show earlier results, and measure nothing")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_functions)
    p = commands.add_parser("granularity", help="make all tables of docs/benchmark/granularity.md")
    p.add_argument("--functions", nargs="+", metavar="CSV", help="results of `functions`; without it, measured")
    p.add_argument("--bytes", nargs="+", metavar="CSV", help="results of `bytes`; without it, measured")
    p.add_argument("--page", default="docs/benchmark/granularity.md", help="the page whose tables are renewed")
    p.add_argument("--sources", help="directory with byte-unixbench, and if present gzip, sqlite and nginx")
    p.add_argument("--seconds", type=int, default=2, help="the duration of each test")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--rows", type=int, default=200, help="lines of input for the comparison with known dependence")
    p.add_argument("--copies", type=int, default=20, help="size of the input for the cost, in parts of 190 kB")
    p.add_argument("--engine", metavar="DIR", help="the directory of `bytes/build` (built if it is not given)")
    p.add_argument("--workdir", default=tempfile.gettempdir())
    p.add_argument("--programs", help="the directory of the compiled programs, which stay there")
    p.add_argument("--out", metavar="PREFIX", help="write PREFIX-functions.csv and PREFIX-bytes.csv")
    p.set_defaults(do=main_granularity, modes=None, tests=None, cases=None)
    p = commands.add_parser("prompt", help="measure the time to the next prompt in `backstory shell`")
    p.add_argument("--shells", default=",".join(STARTUP), help="comma-separated: bash, zsh, fish")
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of the shells' home and store")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_prompt)
    p = commands.add_parser("tpcc", help="measure TPC-C on a database that `backstory watch` records")
    p.add_argument("--server", choices=list(SERVERS), default="postgres")
    p.add_argument("--warehouses", type=int, default=1)
    p.add_argument(
        "--wait",
        action="store_true",
        help="let clients pause for keying and thinking, as TPC-C demands (go-tpc's --wait); the modes of the results "
        "then have other names, as native-wait, and no table compares them with modes without pauses",
    )
    p.add_argument("--threads", type=int, help="the number of clients (default: 1; with --wait, 10 for each warehouse)")
    p.add_argument(
        "--seconds",
        type=int,
        default=60,
        help="the duration of each measurement; with --wait up to 140 s longer, since go-tpc interrupts no pause",
    )
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--go-tpc", default="go-tpc", help="the program go-tpc")
    p.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the server in all modes but native (repeatable)",
    )
    p.add_argument(
        "--modes",
        default=TPCC_PROMISED,
        help=f"comma-separated: {', '.join(TPCC_MODES)} (default: {TPCC_PROMISED})",
    )
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of the servers' data")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_tpcc)
    p = commands.add_parser("logforms", help="measure what each form of PostgreSQL's log adds to a statement")
    p.add_argument("--orders", type=int, default=300, help="the number of transactions of a turn")
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--go-tpc", default="go-tpc", help="the program go-tpc, which makes the data")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of the servers' data")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_log_forms)
    p = commands.add_parser("bytes", help="compare the byte engine with known dependence, and measure its cost")
    p.add_argument("--engine", metavar="DIR", help="the directory of `bytes/build` (built if it is not given)")
    p.add_argument("--rows", type=int, default=200, help="lines of input for the comparison; 0: none")
    p.add_argument("--cases", help="comma-separated functions of byte_truth/programs.py")
    p.add_argument("--rounds", type=int, default=0, help="executions of each command for the cost; 0: none")
    p.add_argument("--copies", type=int, default=20, help="size of the input for the cost, in parts of 190 kB")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_bytes)
    p = commands.add_parser("servers", help="measure web servers under load, natively and recorded")
    p.add_argument("--servers", default=",".join(WEB_SERVERS), help=f"comma-separated: {', '.join(WEB_SERVERS)}")
    p.add_argument(
        "--modes",
        help=f"comma-separated: {', '.join(SERVER_MODES)} (default: {','.join(USUAL_SERVER_MODES)}; "
        f"with --calls: {','.join(USUAL_CALLS)})",
    )
    p.add_argument("--load", choices=list(LOADS), default="ab", help="the program that makes the requests")
    p.add_argument("--requests", type=int, help="the number of requests of ab (default: 1000000; with --calls: 2000)")
    p.add_argument("--seconds", type=int, default=60, help="the time of wrk, which has no number of requests")
    p.add_argument("--clients", type=int, default=8, help="requests that are made at the same time")
    p.add_argument("--keep-alive", action="store_true", help="make many requests on one connection")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of the servers' files and stores")
    instead = p.add_mutually_exclusive_group()
    instead.add_argument(
        "--perf", type=Path, metavar="DIR", help="profile all processors under each load into DIR (root)"
    )
    instead.add_argument(
        "--calls",
        action="store_true",
        help="count the system calls of requests by strace, and no rates: one client, a connection for each request",
    )
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_servers)
    p = commands.add_parser(
        "scenes", help="record real servers and clients deeply, and reconstruct parts of the records"
    )
    p.add_argument("--cases", default=",".join(SCENES), help=f"comma-separated: {', '.join(SCENES)}")
    p.add_argument(
        "--tools",
        type=tool_names,
        metavar="TOOL,TOOL",
        help=f"reconstruct a request of each server without a tool and under these: {', '.join(SCENE_TOOLS)}",
    )
    p.add_argument(
        "--requests",
        type=int,
        help="requests made of each server (default: 5000; with --tools: 30); with 20000, the share is below 1 %%",
    )
    p.add_argument(
        "--picks",
        type=int,
        help="random requests, or runs of a client, that are reconstructed (default: 10; with --tools: 1)",
    )
    p.add_argument("--tries", type=int, default=14, help="attempts for each request (the paper: 14)")
    p.add_argument("--seed", type=int, default=18)
    p.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="time for one reconstruction")
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of records and stores")
    p.add_argument("--keep", action="store_const", const=True, help="keep the directories of the records")
    p.add_argument("--series", action="store_true", help="reconstruct the chosen requests in one command, too")
    p.add_argument("--record", action="append", default=[], help="an option of each record: --record=--fixed-addresses")
    p.add_argument("--out", help="CSV to write")
    p.add_argument("--results", nargs="+", metavar="CSV", help="show earlier results, and reconstruct nothing")
    p.add_argument("--page", help="the page whose tables are renewed")
    p.set_defaults(do=main_scenes)
    add_profiles(commands)
    add_tables(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the console script."""
    backstory_program.keep_path()
    parser = _parser()
    args = parser.parse_args(argv)
    backstory_program.complete(parser, args)
    if getattr(args, "sources", None):
        os.environ[VARIABLE] = str(Path(args.sources).resolve())
    try:
        return int(args.do(args))
    except (Unusable, BadTemplate, KeyError) as error:
        print(f"backstory-bench: {error.args[0]}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"backstory-bench: the module {error.name} is missing: {EXTRA}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nbackstory-bench: interrupted; the results so far are stored: continue with --resume", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has exited (`… | head`). Flushing the rest must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except subprocess.CalledProcessError as error:
        print(f"backstory-bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
