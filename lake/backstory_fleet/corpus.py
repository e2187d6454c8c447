"""Records a small corpus: ordinary commands, each with backstory, shipped into a lake.

The commands build, search, pack and compute. Later ones read what earlier ones made, so the corpus
also shows how often runs meet. `backstory store ship` ships them, in processes of its own, so that
its whole cost is known.
"""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import backstory_lake
from backstory_lake.errors import LakeError

#: Source files of the C project, and tables of the analysis.
SOURCES, TABLES = 12, 6


@dataclass(frozen=True)
class Command:
    """A line of the shell, and the project in which it runs."""

    project: str
    line: str


#: The commands of the quick corpus: a few of each kind.
QUICK = (
    Command("app", "make -s"),
    Command("data", "for i in 1 2 3; do sort -t, -k2 table$i.csv > sorted$i.csv; done"),
    Command("data", "cat sorted*.csv | cut -d, -f2 | sort -n | uniq -c > counts.txt"),
    Command("data", "wc -l counts.txt"),
    Command("app", "tar cf ../release.tar app lib.h"),
    Command("data", "cp -p counts.txt ../report.txt && gzip -kf ../report.txt"),
)

#: The commands of the whole corpus, after the quick ones.
REST = (
    Command("app", "touch f3.c && make -s"),
    Command("app", "make -s clean && make -s -j4"),
    Command("app", "grep -rn --include='*.c' return . > found.txt"),
    Command("app", "cc -O2 -o all f*.c main.c"),
    Command("app", "./app > output.txt"),
    Command("app", "cc -E main.c > main.i && wc -c main.i"),
    Command("app", "ar rcs libparts.a f*.o && nm libparts.a > symbols.txt"),
    Command("app", "cc -o linked main.o libparts.a && ./linked"),
    Command("app", "sed -i s/return/return\\ 0+/ f2.c && make -s"),
    Command("app", "find . -name '*.c' | xargs cat > whole.txt"),
    Command("app", "find . -name '*.c' -exec cksum {} + | sort > sums.txt"),
    Command(
        "app",
        "git init -q . && git add *.c *.h Makefile && "
        "git -c user.name=a -c user.email=a commit -qm one",
    ),
    Command("app", "git log -p > history.txt"),
    Command("app", "git archive HEAD | tar tf - > listed.txt"),
    Command("app", "git clone -q . ../clone && make -s -C ../clone"),
    Command(".", "mkdir -p unpacked && tar xf release.tar -C unpacked && ./unpacked/app"),
    Command(".", "cp -a app copied && rm -rf copied"),
    Command(".", "gzip -dkc report.txt.gz | tee again.txt | md5sum"),
    Command(".", "cmp report.txt again.txt && diff -r app clone > differences.txt; true"),
    Command("data", "python3 means.py table1.csv means1.json"),
    Command("data", "for i in 2 3 4 5 6; do python3 means.py table$i.csv means$i.json; done"),
    Command("data", "python3 join.py means*.json > joined.json"),
    Command("data", "python3 -m json.tool joined.json > pretty.json"),
    Command(
        "data",
        "python3 -c \"import sqlite3; d = sqlite3.connect('d.sqlite'); "
        "d.execute('create table t(a)'); d.commit()\"",
    ),
    Command("data", "awk -F, '{ s += $2 } END { print s }' table*.csv > total.txt"),
    Command(
        "data",
        "join -t, sorted1.csv sorted2.csv > both.csv; split -l 50 table4.csv part. && ls part.*",
    ),
    Command(
        "data", "for p in part.*; do tr a-z A-Z < $p > $p.upper; done; cat part.*.upper > upper.csv"
    ),
    Command("data", "perl -ne 'print if /7/' table5.csv > sevens.txt && head -3 sevens.txt"),
    Command(
        "data", "sort -u sevens.txt -o sevens.txt && paste -d, sevens.txt sevens.txt > wide.txt"
    ),
    Command(
        "data", "xargs -n1 echo < total.txt; seq 50 | while read n; do echo $n; done > numbers.txt"
    ),
    Command("data", "ls -lR .. > listing.txt; du -s ..; id; uname -a"),
    Command("data", "cat total.txt numbers.txt pretty.json | sha256sum > seal.txt"),
    Command(
        "data",
        "sh -c 'cp seal.txt seal.bak; mv seal.bak seal.old; ln -f seal.old seal.link; rm seal.old'",
    ),
    Command("data", "true"),
    Command("data", "date > stamp.txt"),
    Command("data", "echo one >> log.txt; echo two >> log.txt; tail -1 log.txt"),
)

_MEANS = """import csv, json, sys
rows = list(csv.reader(open(sys.argv[1])))
json.dump({"mean": sum(float(r[1]) for r in rows) / len(rows)}, open(sys.argv[2], "w"))
"""
_JOIN = """import json, sys
print(json.dumps([json.load(open(name)) for name in sys.argv[1:]]))
"""


@dataclass(frozen=True)
class Cost:
    """Seconds on the wall, and of all cores."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Recorded:
    """A corpus: the number of its runs, and what shipping it cost."""

    runs: int
    #: All runs were new to the lake, and then none.
    shipped: Cost
    shipped_again: Cost


def record(directory: Path, lake: Path, quick: bool = False) -> Recorded:
    """Records the commands in a directory, and ships them."""
    program = os.environ.get("BACKSTORY_PROGRAM", "backstory")
    _write_projects(directory)
    store = directory.parent / f"{directory.name}.store"
    # Programs of the system only: a user's own wrappers differ from machine to machine.
    environment = os.environ | {"BACKSTORY_STORE": str(store), "PATH": "/usr/bin:/bin"}
    commands = QUICK if quick else QUICK + REST
    for command in commands:
        words = [program, "record", "--wait", "--", "sh", "-c", command.line]
        done = subprocess.run(
            words, cwd=directory / command.project, env=environment, capture_output=True
        )
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            raise LakeError(f"recording `{command.line}` failed: {message}")
    return Recorded(len(commands), _ship(program, store, lake), _ship(program, store, lake))


#: The program `backstory-lake` of the package that is running.
_PACKAGE = """#!/bin/sh
exec {python} -m backstory_lake.cli "$@"
"""


def _ship(program: str, store: Path, lake: Path) -> Cost:
    """Ships all runs by `backstory store ship`."""
    with tempfile.TemporaryDirectory(prefix="backstory-ship-") as directory:
        package = Path(directory, "backstory-lake")
        package.write_text(_PACKAGE.format(python=shlex.quote(sys.executable)))
        package.chmod(0o755)
        sources = [str(Path(backstory_lake.__file__).parents[1]), os.environ.get("PYTHONPATH")]
        environment = os.environ | {
            "BACKSTORY_STORE": str(store),
            "PATH": f"{directory}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(filter(None, sources)),
        }
        began, before = time.monotonic(), _of_children()
        words = [program, "store", "ship", "--to", str(lake)]
        done = subprocess.run(words, env=environment, capture_output=True)
        cost = Cost(round(time.monotonic() - began, 3), round(_of_children() - before, 3))
    if done.returncode != 0:
        raise LakeError(f"shipping failed: {done.stderr.decode(errors='replace').strip()}")
    return cost


def _of_children() -> float:
    """The seconds of all cores of the processes that this one waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_projects(directory: Path) -> None:
    app, data = directory / "app", directory / "data"
    app.mkdir(parents=True)
    data.mkdir()
    (app / "lib.h").write_text("".join(f"int f{i}(int);\n" for i in range(SOURCES)))
    for i in range(SOURCES):
        body = f"int f{i}(int a) {{\n  return a + {i};\n}}\n"
        (app / f"f{i}.c").write_text(f'#include <stdio.h>\n#include "lib.h"\n{body}')
    calls = " + ".join(f"f{i}(1)" for i in range(SOURCES))
    main = f'#include <stdio.h>\n#include "lib.h"\nint main(void) {{ printf("%d\\n", {calls}); }}\n'
    (app / "main.c").write_text(main)
    objects = " ".join(f"f{i}.o" for i in range(SOURCES))
    (app / "Makefile").write_text(
        f"app: {objects} main.o\n\tcc -o $@ $^\n%.o: %.c lib.h\n\tcc -c -o $@ $<\n"
        "clean:\n\trm -f *.o app\n"
    )
    (data / "means.py").write_text(_MEANS)
    (data / "join.py").write_text(_JOIN)
    for i in range(1, TABLES + 1):
        rows = "".join(f"row{k},{(k * 7919 * i) % 1009}\n" for k in range(200))
        (data / f"table{i}.csv").write_text(rows)
