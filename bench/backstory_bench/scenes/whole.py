"""Whole runs: programs without a peer, each recorded with exact time and reconstructed once.

A case is a set of short programs. Each prints much of what it computes, so a difference anywhere
in it is seen in its output.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..promises import WORKLOADS, lacking
from ..replay import CHOSEN
from ..workloads import INSTANCES
from .scene import Scene, found
from .verdicts import NOTHING, verdict_of

PYTHON = "/usr/bin/python3.11"
PYTHON_TESTS = Path("/usr/lib/python3.11/test")
"""Debian's Python, whose package libpython3.11-testsuite has the tests."""

MODULES = (
    "argparse array base64 binascii bisect bz2 cmath codecs collections configparser contextlib copy csv datetime "
    "decimal dict difflib enum fileinput float fnmatch fractions functools getopt glob gzip hashlib heapq hmac html "
    "httplib http_cookies io ipaddress itertools json lzma math mmap operator os pathlib pickle pprint queue random "
    "re sched select selectors shelve shlex shutil signal socket sqlite3 statistics string struct subprocess tarfile "
    "tempfile textwrap thread threading time timeit traceback unicodedata uuid weakref xml_etree zipfile zlib"
)

FOREIGN = Path(__file__).parents[3] / "target/foreign-sources"
LUA_TESTS = FOREIGN / "lua/testes"
"""Lua's own tests: a copy of its repository at the version of the program."""
SQLITE_TESTS = FOREIGN / "sqlite3"
"""SQLite's own tests, which `scripts/foreign-sources sqlite3` builds."""

SQLITE_SUITES = (
    "aggnested alter analyze autoinc between blob cast check coalesce collate1 conflict count date delete distinct "
    "expr fkey1 func hook in index insert insert2 intpkey join json101 like limit memdb minmax notnull null offset1 "
    "orderby1 pragma printf quote rowid savepoint select1 select2 select3 select4 select6 sort subquery table tempdb "
    "trans trigger1 types unique update vacuum view wal where window1 with1"
)

DURATION = r"in [0-9]+\.[0-9]+s"
"""The duration in the last line of Python's tests. How often they ask for the time differs."""

LUA = {
    "times": "for i=1,200 do io.write(os.time(),' ',os.clock(),' ',os.date('%c'),'\\n') end",
    "random": "for i=1,500 do io.write(math.random(1000000),' ') end print()",
    "queens": """
local n, found = 8, 0
local rows, up, down = {}, {}, {}
local function place(column)
  if column > n then found = found + 1 return end
  for row = 1, n do
    if not (rows[row] or up[row + column] or down[row - column]) then
      rows[row], up[row + column], down[row - column] = true, true, true
      place(column + 1)
      rows[row], up[row + column], down[row - column] = nil, nil, nil
    end
  end
end
place(1) print(found, os.clock())""",
    "strings": """
local parts = {}
for i = 1, 3000 do parts[#parts + 1] = string.format('%05d:%s', i, ('x'):rep(i % 7)) end
local text = table.concat(parts, ',')
print(#text, text:gsub('x+', function(s) return #s end), select(2, text:gsub('%d+', '')))
for word in text:sub(1, 200):gmatch('%d+') do io.write(word, ' ') end print(text:reverse():sub(1, 40))""",
    "files": """
local f = assert(io.open('data.txt', 'w'))
for i = 1, 2000 do f:write(i * i, '\\n') end f:close()
local sum = 0
for line in io.lines('data.txt') do sum = sum + tonumber(line) end
print(sum) os.remove('data.txt')
local name = os.tmpname() print(name) os.remove(name)""",
    "coroutines": """
local function numbers(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i, os.clock()) end end) end
for i, at in numbers(300) do io.write(i, ' ', at, ';') end print(collectgarbage('count') > 0)""",
    "programs": """
local pipe = io.popen('date +%N; echo $$; seq 3', 'r')
for line in pipe:lines() do print(line, os.time()) end print(pipe:close())
print(os.execute('exit 3')) print(os.getenv('HOME'))""",
    "addresses": "print({}, print, coroutine.create(print))",
}

SQL = {
    "rows": """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
insert into t select i, printf('%05d', i * 7 % 1000), i / 3.0 from n;
create index tb on t(b);
select b, count(*), sum(c) from t group by b order by 2 desc, 1 limit 50;
update t set c = c + 1 where b between '00100' and '00300'; delete from t where a % 5 = 0;
select count(*), total(c) from t; pragma integrity_check; vacuum; select count(*) from t;""",
    "times": """
.timer on
create table t(at); insert into t values (strftime('%Y-%m-%d %H:%M:%f', 'now')), (julianday('now'));
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i * i) from n;
select at from t; select datetime('now', 'localtime'), unixepoch();""",
    "random": """
create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
insert into t select random(), hex(randomblob(8)) from n;
select * from t order by a limit 100; select * from t order by random() limit 5;""",
    "wal": """
pragma journal_mode = wal; create table t(a);
begin; with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) insert into t select i from n;
commit; pragma wal_checkpoint(truncate); select count(*), sum(a) from t;""",
    "json": """
select json_group_array(json_object('n', value, 'at', strftime('%f', 'now'))) from generate_series(1, 50);
select key, value from json_each('{"a": [1, 2], "b": null}'); select json_extract('{"a":{"b":7}}', '$.a.b');""",
    "windows": """
create table t(g, v); with recursive n(i) as (select 1 union all select i + 1 from n where i < 400)
insert into t select i % 7, i * 13 % 101 from n;
select g, v, rank() over (partition by g order by v), sum(v) over (order by g, v) from t order by g, v limit 100;""",
    "dump": "create table t(a unique, b); insert into t values (1, 'x'), (2, x'00ff'), (3, null);\n.dump\n.schema",
}


@dataclass(frozen=True)
class WholeRun:
    """One program, and the function that makes its files."""

    name: str
    words: Sequence[str]
    prepare: Callable[[Path], None] = field(default=lambda work: None)


class Whole(Scene):
    """Programs that are recorded and reconstructed as a whole."""

    def __init__(
        self,
        name: str,
        program: str,
        runs: Callable[[], Iterator[WholeRun]],
        needs: Path | None = None,
        volatile: str | None = None,
    ):
        self.name, self.program, self.runs, self.needs = name, program, runs, needs
        self.volatile = volatile
        """Text that each run prints anew, as a regular expression. A run that differs has a second
        verdict, with that text as a volatile part."""

    def missing(self) -> str | None:
        """Returns why the case cannot run here."""
        if self.needs and not self.needs.exists():
            return f"{self.needs} is missing"
        return super().missing()


def _workloads() -> Iterator[WholeRun]:
    for name in CHOSEN:
        workload = WORKLOADS[name]
        if lacking(name) is None:
            # The command is made of its directory, which does not exist yet.
            yield WholeRun(name, [f"workload:{name}"], workload.prepare)


def _lua() -> Iterator[WholeRun]:
    for name, text in LUA.items():
        yield WholeRun(name, ["lua5.4", "script.lua"], partial(_write, "script.lua", text))
    yield _instance("lua", "words and permutations")


def _sqlite() -> Iterator[WholeRun]:
    for name, text in SQL.items():
        words = ["sh", "-c", "sqlite3 data.db < script.sql"]
        yield WholeRun(name, words, partial(_write, "script.sql", text))
    if found("speedtest1"):
        yield WholeRun("speedtest1", ["speedtest1", "--size", "2", "speed.db"])


def _lua_tests() -> Iterator[WholeRun]:
    # `all.lua` runs the others, and is a run of its own.
    for script in sorted(LUA_TESTS.glob("*.lua")):
        words = ["lua5.4", "-e", "_U=true", script.name]
        yield WholeRun(script.stem, words, partial(_copy, LUA_TESTS))


def _sqlite_tests() -> Iterator[WholeRun]:
    for suite in SQLITE_SUITES.split():
        script = SQLITE_TESTS / "test" / f"{suite}.test"
        if script.exists():
            yield WholeRun(suite, [str(SQLITE_TESTS / "built/testfixture"), str(script)])


def _python() -> Iterator[WholeRun]:
    for module in MODULES.split():
        yield WholeRun(f"test_{module}", [PYTHON, "-m", "unittest", f"test.test_{module}"])


def _instance(name: str, label: str) -> WholeRun:
    instance = INSTANCES[f"Computing/{name}"]
    return WholeRun(label, instance.command(1), instance.prepare)


def _copy(source: Path, work: Path) -> None:
    shutil.copytree(source, work, dirs_exist_ok=True)


def _write(name: str, text: str, work: Path) -> None:
    (work / name).write_text(text + "\n")


WHOLE = (
    Whole("workloads", "sh", _workloads),
    Whole("lua", "lua5.4", _lua),
    Whole("lua-tests", "lua5.4", _lua_tests, LUA_TESTS),
    Whole("sqlite", "sqlite3", _sqlite),
    Whole("sqlite-tests", "sh", _sqlite_tests, SQLITE_TESTS / "built/testfixture"),
    Whole("cpython", PYTHON, _python, PYTHON_TESTS, volatile=DURATION),
)


PLACES = re.compile(r":\[\d+\]|/[^ ]*/bench-scenes-[^/ ]*/\d+/work/|/tmp/backstory-test-\w+/work/")
"""The parts of a difference that each run of this command has anew: numbers and directories."""


LONG = re.compile(r"((?:recorded|came) .{24}).*?(?=, came|$)")
"""A side of a difference that is too long for the table."""


def command(run: WholeRun, work: Path) -> list[str]:
    """Returns the words of a run in its directory."""
    first = run.words[0]
    if first.startswith("workload:"):
        return WORKLOADS[first.partition(":")[2]].command(work)
    return list(run.words)


def record(words: Sequence[str], work: Path, env: Mapping[str, str], limit: float) -> None:
    """Records a program. Its status is its own matter: a test may fail."""
    out = subprocess.PIPE
    running = subprocess.Popen(
        words, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
    )
    try:
        running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        raise RuntimeError(f"its recording did not end within {limit:.0f} s") from None


def declared(rows: Sequence[Mapping[str, object]], good: Sequence[str]) -> str:
    """Returns how many runs are equal only if the declared text is volatile.

    Empty if none is declared.
    """
    known = [row for row in rows if row.get("volatile_verdict") not in (None, "")]
    return str(sum(row["volatile_verdict"] in good for row in known)) if known else ""


def whole_table(rows: Sequence[Mapping[str, object]], good: Sequence[str]) -> list[str]:
    """Returns the table of verdicts for each set of programs, and below it all differences.

    The verdicts are strict. If a series has verdicts with volatile durations, a last column has the
    further runs that are equal so. The runs in which nothing was compared stand among the
    differences, too.
    """
    own = [row for row in rows if row.get("kind") == "whole"]
    has_declared = declared(own, good) != ""
    lines = [
        "| programs | runs | calls recorded | equal | volatile | partly | nothing compared | other | unsteady |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    differs = ["", "| run | first difference |", "| --- | --- |"]
    if has_declared:
        lines = [lines[0] + " other, equal with volatile durations |", lines[1] + " ---: |"]
        differs = ["", differs[1] + " with volatile durations |", differs[2] + " --- |"]
    for name in dict.fromkeys(str(row["case"]) for row in own):
        mine = [row for row in own if row["case"] == name]
        verdicts = [verdict_of(row) for row in mine]
        counts = [verdicts.count(word) for word in (*good, NOTHING)]
        calls = sum(int(str(row.get("recorded_calls") or 0)) for row in mine)
        unsteady = sum(int(str(row.get("unsteady") or 0)) > 0 for row in mine)
        numbers: list[object] = [len(mine), calls, *counts, len(mine) - sum(counts), unsteady]
        numbers += [declared(mine, good)] if has_declared else []
        lines.append(f"| {name} | {' | '.join(map(str, numbers))} |")
        for row, verdict in zip(mine, verdicts, strict=True):
            further = f" {row.get('volatile_verdict') or ''} |" if has_declared else ""
            if verdict == NOTHING:
                differs.append(f"| {name}: {row['request']} | nothing was compared |{further}")
            elif verdict not in good:
                why = LONG.sub(r"\1…", PLACES.sub("", " ".join(str(row.get("why", "")).split()).replace("|", "\\|")))
                differs.append(f"| {name}: {row['request']} | {why} |{further}")
    return lines + (differs if len(differs) > 3 else [])
