"""Requests of servers that are reconstructed under tools: which tool works with which server.

In: the record of a server. Out: a row for each request and tool, with what the tool saw of the
request, and a table. Each tool runs without a terminal, and writes into one file. The first row of
each request is without a tool.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .exchange import Exchange, exchange_of, traced
from .replays import CLIENT_SOCKET, Replay, Row, output_directory, replayed
from .scene import found
from .verdicts import EQUAL, verdict_of
from .whole import PLACES

NO_TOOL = "none"
KIND = "tool"
FIELDS = [
    "case",
    "kind",
    "request",
    "tool",
    "verdict",
    "saw",
    "served",
    "tries",
    "bytes_compared",
    "files_compared",
    "seconds",
    "why",
]

GDB = """
# Stops where a program writes the answer of the request, and shows the stack there.
import gdb

report = open(OUTPUT, "w", buffering=1)
for words in ("pagination off", "confirm off", "breakpoint pending on", *FORKS):
    gdb.execute("set " + words)
gdb.execute("handle all nostop noprint pass")
stopped = []

class Writes(gdb.Breakpoint):
    def __init__(self, function, *offsets):
        super().__init__("-qualified " + function)
        self.silent, self.function, self.offsets = True, function, offsets

    def stop(self):
        try:
            machine = gdb.selected_frame().architecture().name()
            address = int(gdb.parse_and_eval("$x1" if "aarch64" in machine else "$rsi")) % 2**64
            memory = gdb.selected_inferior()
            for offset in self.offsets:
                address = int.from_bytes(bytes(memory.read_memory(address + offset, 8)), "little")
            is_answer = bytes(memory.read_memory(address, len(ANSWER))) == ANSWER
        except gdb.error:
            return False
        if is_answer:
            stopped.append(self.function)
        return is_answer

writes = [Writes("write"), Writes("send"), Writes("sendto"), Writes("writev", 0), Writes("sendmsg", 16, 0)]
ahead = "run"
for _ in range(200):
    try:
        gdb.execute(ahead)
    except gdb.error as error:
        report.write(f"error {error}\\n")
    ahead = "continue"
    if stopped and writes:
        report.write(f"stopped {stopped[0]}\\n" + gdb.execute("backtrace 8", to_string=True))
        for point in writes:
            point.enabled = False
        writes = []
    live = [inferior for inferior in gdb.inferiors() if inferior.pid and inferior.threads()]
    if not live:
        break
    if gdb.selected_inferior() not in live:
        try:
            gdb.execute(f"inferior {live[0].num}", to_string=True)
        except gdb.error as error:
            # It has ended meanwhile. gdb hears of it when it continues.
            report.write(f"error {error}\\n")
"""

NEWEST_CHILD = ("follow-fork-mode child",)
"""Settings of gdb for the program and its children: it goes on with the newest process."""
ALL_PROCESSES = ("detach-on-fork off", "schedule-multiple on")
"""Settings with which gdb holds all processes, and stops all of them at once."""

STOPPED = re.compile(r"^stopped \w+$", re.MULTILINE)
OF_VALGRIND = re.compile(
    r"^(?!==|--).*valgrind:.*|.*the 'impossible' happened.*|.*unhandled instruction.*", re.MULTILINE
)
"""Valgrind's messages about a fault of its own. Its findings in a program do not count."""


@dataclass(frozen=True)
class Seen:
    """The traces that a tool left, and the request that it should have seen."""

    output: str
    """The text in its file."""
    exchange: Exchange
    served: bool


def gdb_lacks(seen: Seen) -> str:
    """Returns why a debugger did not see the request. Empty: it stopped where its answer left.

    The answer of an earlier request can begin alike, so the request must have been served.
    """
    if not STOPPED.search(seen.output):
        return "no breakpoint was hit where the answer left"
    return served_lacks(seen)


def served_lacks(seen: Seen) -> str:
    """Returns the reason if the programs did not work on the request."""
    return "" if seen.served else "the request was not served"


def strace_lacks(seen: Seen) -> str:
    """Returns which bytes of the request a tracer did not see; empty if it saw them."""
    trace = traced(seen.output)
    if seen.exchange.received not in trace.received:
        return "no traced call read the request"
    return "" if seen.exchange.sent in trace.sent else "no traced call wrote the answer"


def perf_lacks(seen: Seen) -> str:
    """Returns why a profiler did not see the request.

    A count does not say what was counted, so the request must have been served.
    """
    counts = [line.split(",")[0] for line in seen.output.splitlines() if not line.startswith("#")]
    if not any(re.fullmatch(r"[0-9.]+", count) and float(count) > 0 for count in counts):
        return "nothing was counted"
    return served_lacks(seen)


def valgrind_lacks(seen: Seen) -> str:
    """Returns the own fault of Valgrind, or that the request was not served under it."""
    fault = OF_VALGRIND.search(seen.output)
    if fault:
        return " ".join(fault[0].split())
    return served_lacks(seen)


@dataclass(frozen=True)
class Tool:
    """A tool around the program, with what it needs to run without a terminal."""

    words: str
    """Its command, with `{output}` for its file and `{script}` for its commands."""
    lacks: Callable[[Seen], str]
    """Returns what it did not see; empty if it saw the request."""
    needs_bytes: bool = False
    """True if it is judged by bytes. A server that speaks first has read none."""
    script: str = ""
    """Its commands, which use `ANSWER`, `OUTPUT` and `FORKS`."""
    forks: Sequence[str] = ()
    """Its settings for programs with several processes."""

    @property
    def program(self) -> str:
        """The program that has to be installed."""
        return self.words.partition(" ")[0]

    def commands(self, answer: bytes, output: Path) -> str:
        """Returns its commands for this answer."""
        return f"ANSWER = {answer!r}\nOUTPUT = {str(output)!r}\nFORKS = {self.forks!r}\n{self.script}"


TOOLS = {
    "gdb": Tool("gdb -q -batch -x {script}", gdb_lacks, True, GDB, NEWEST_CHILD),
    "gdb-all": Tool("gdb -q -batch -x {script}", gdb_lacks, True, GDB, ALL_PROCESSES),
    "strace": Tool("strace -f -xx -s 64 -o {output}", strace_lacks, True),
    "perf": Tool("perf stat -x, -o {output}", perf_lacks),
    # A program that the first one executes gets a log of its own.
    "valgrind": Tool("valgrind -q --trace-children=yes --log-file={output}.%p", valgrind_lacks),
}


def tool_names(text: str) -> list[str]:
    """Reads the option `--tools`.

    Raises
    ------
    argparse.ArgumentTypeError
        A tool is not known.
    """
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in TOOLS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"no tool {', '.join(unknown)}; known are {', '.join(TOOLS)}")
    return names


def output_of(out: Path, output: Path) -> str | None:
    """Returns what a tool wrote into its file in a replay, or into several with numbers.

    `None`: it made no file.
    """
    name = out / "files" / output.relative_to("/")
    files = sorted(name.parent.glob(f"{name.name}*")) if name.parent.is_dir() else []
    return "\n".join(file.read_text(errors="replace") for file in files) if files else None


def saw_row(name: str, tool: Tool, replay: Replay, output: str | None, exchange: Exchange) -> Row:
    """Returns the row of a replay under a tool, with what went wrong."""
    row = dict(replay.row)
    if output is None and row["verdict"] == "failed":
        # A replay without an answer leaves no files, and has said why.
        return row | {"saw": "no"}
    if tool.needs_bytes and not exchange.sent:
        lacks = "the record does not show the bytes of the answer"
    elif output is None:
        said = replay.stderr.strip().splitlines()
        lacks = f"{name} wrote nothing" + (f": {said[-1][:100]}" if said else "")
    else:
        lacks = tool.lacks(Seen(output, exchange, replay.served))
    why = [str(row.get("why") or ""), lacks]
    row["saw"] = "no" if lacks else "yes"
    row["why"] = "; ".join(part for part in why if part)[:300]
    return row


def under_tool(
    name: str, store: Path, run: str, request: int, exchange: Exchange, args: argparse.Namespace, owner: str | None
) -> Row:
    """Reconstructs a request under a tool, or without one."""
    more = ["--request", str(request), "--tries", str(args.tries)]
    # The replay has directories of the record only, and this one.
    output, script = (store.parent / part for part in ("tool-output", "tool-commands.py"))
    tool = TOOLS.get(name)
    if tool:
        script.write_text(tool.commands(exchange.sent, output))
        more += ["--with", tool.words.format(output=output, script=script)]
    with output_directory(owner) as out:
        replay = replayed(store, run, more, args.limit, out, owner)
        row = saw_row(name, tool, replay, output_of(out, output), exchange) if tool else dict(replay.row)
    served = {"served": "yes" if replay.served else "no"}
    return {"case": run, "kind": KIND, "request": request, "tool": name} | row | served


def tool_rows(
    run: str, store: Path, requests: Sequence[Mapping[str, Any]], args: argparse.Namespace, owner: str | None
) -> list[Row]:
    """Reconstructs each of these requests without a tool, and then under each tool."""
    rows = []
    for request in requests:
        exchange = exchange_of(store, run, request, owner)
        for name in (NO_TOOL, *args.tools):
            if name != NO_TOOL and not found(TOOLS[name].program):
                print(f"SKIPPED: {TOOLS[name].program} is not installed", file=sys.stderr)
                continue
            rows.append(under_tool(name, store, run, int(request["number"]), exchange, args, owner))
            last = rows[-1]
            what = f"{last['verdict']}, seen: {last.get('saw', '-')}, {last['seconds']} s, {last['why']}"
            print(f"{run}: request {request['number']}, tool {name}: {what}", file=sys.stderr)
    return rows


def works(row: Mapping[str, object]) -> bool:
    """Returns whether a request was reconstructed, and was seen by the tool if there was one."""
    return verdict_of(row) in EQUAL and row.get("saw") != "no"


def tools_table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns with how many requests of each server each tool works, and what went wrong."""
    own = [row for row in rows if row.get("kind") == KIND]
    names = [name for name in (NO_TOOL, *TOOLS) if any(row.get("tool") == name for row in own)]
    heads = ["without a tool" if name == NO_TOOL else name for name in names]
    lines = [f"| program | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(names)]
    wrong = [
        "",
        "| program | tool | request | verdict | seen | what went wrong |",
        "| --- | --- | ---: | --- | --- | --- |",
    ]
    for case in dict.fromkeys(str(row["case"]) for row in own):
        mine = [row for row in own if row["case"] == case]
        cells = []
        for name in names:
            judged = [works(row) for row in mine if row.get("tool") == name]
            cells.append(f"{sum(judged)} of {len(judged)}" if judged else "–")
        lines.append(f"| {case} | {' | '.join(cells)} |")
        for row in mine:
            if not works(row):
                why = CLIENT_SOCKET.sub("the socket to its client", " ".join(str(row.get("why") or "").split()))
                columns = [case, row.get("tool"), row.get("request"), verdict_of(row), row.get("saw")]
                shown = [str(column or "") for column in columns] + [PLACES.sub("", why).replace("|", "\\|")]
                wrong.append(f"| {' | '.join(shown)} |")
    return lines + (wrong if len(wrong) > 3 else [])
