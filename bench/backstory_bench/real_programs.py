"""Real programs beside UnixBench: BLAST, gzip, sqlite and nginx.

The installed program is measured natively, under strace, as files, and as bytes. Calls of functions
need a program that `backstory cc` compiled. It is compiled from `--sources DIR`, if the tree is
there. The rate is 1 divided by the seconds of an execution, and for nginx the requests per second.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .byte_truth.programs import table
from .web_load import LOADS
from .web_servers import WEB_SERVERS
from .workloads import INSTANCES
from .workloads.base import find
from .workloads.sources import VARIABLE

LINES = 9000


def _lines(work: Path) -> None:
    (work / "in").write_bytes(b"".join(table(LINES, seed) for seed in range(4)))


def _blast(work: Path) -> None:
    INSTANCES["BLAST/blastn"].prepare(work)


QUERY = "select substr(w, 1, 2), count(*), sum(n) from t group by 1"


@dataclass(frozen=True)
class RealProgram:
    """A program, and its work."""

    program: str
    package: str
    script: str
    """The command in its directory, with `{program}`. Empty for a server."""
    prepare: Callable[[Path], None]
    source: str = ""
    """The tree in `--sources`. Empty if it is not compiled."""
    build: str = ""
    """Commands in a copy of the tree, with the compiler as `$CC`."""
    made: str = ""
    """The compiled program in the tree."""

    def installed(self) -> str | None:
        """Returns the path of the installed program."""
        return find(self.program)

    def missing(self) -> str | None:
        """Returns why it cannot be measured."""
        if self.installed() is None:
            return f"{self.program} is not installed (Debian package {self.package})"
        return None if self.script else LOADS["ab"].missing()

    def compiled(self, name: str, compiler: str, base: Path) -> str | None:
        """Compiles the program unless it is there already. `None` without its tree."""
        trees = os.environ.get(VARIABLE)
        tree = Path(trees) / self.source if trees and self.source else None
        if tree is None or not tree.is_dir():
            return None
        to = base / f"{self.source}-{name}"
        if not (to / self.made).exists():
            shutil.copytree(tree, to, symlinks=True)
            environment = os.environ | {"CC": compiler}
            done = subprocess.run(["sh", "-ec", self.build], cwd=to, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"backstory-bench: {self.source} does not compile: {done.stderr[-500:]}")
        return str(to / self.made)


BEYOND: Mapping[str, RealProgram] = {
    "BLAST": RealProgram(
        "blastn",
        "ncbi-blast+",
        "BLAST_USAGE_REPORT=false {program} -task blastn -query dna-query.fa -db dna -outfmt 6 -num_threads 1 >out",
        _blast,
    ),
    "gzip": RealProgram("gzip", "gzip", "{program} -c in >out", _lines, "gzip", './configure CC="$CC" && make', "gzip"),
    "sqlite": RealProgram(
        "sqlite3",
        "sqlite3",
        f"{{program}} :memory: 'create table t(k, w, n)' '.mode csv' '.import in t' '{QUERY}' >out",
        _lines,
        "sqlite",
        "$CC -O2 -DSQLITE_OMIT_LOAD_EXTENSION -o sqlite3 shell.c sqlite3.c -lpthread -lm",
        "sqlite3",
    ),
    "nginx": RealProgram(
        "nginx",
        "nginx",
        "",
        lambda _: None,
        "nginx",
        # A release has `configure` at its top, and a clone in `auto`.
        "if [ -x configure ]; then c=./configure; else c=auto/configure; fi; "
        '$c --with-cc="$CC" --without-http_rewrite_module --without-http_gzip_module && make',
        "objs/nginx",
    ),
}
"""By test. The trees are those of a release: gzip, the amalgamation of SQLite, nginx."""

REQUESTS = 2000


def _served(program: str, before: Sequence[str], work: Path) -> float:
    """Returns the requests per second of nginx."""
    (work / "files").mkdir()
    (work / "files/small").write_bytes(b"a" * 1024)
    server = WEB_SERVERS["nginx"].with_program(program)
    args = argparse.Namespace(requests=REQUESTS, clients=8, keep_alive=False)
    with server.running(work, before, stops_child="strace" in before) as running:
        return LOADS["ab"].make(args, f"http://127.0.0.1:{running.port}/small", work)["requests_s"]


def rate(real: RealProgram, program: str, before: Sequence[str], work: Path, store: Path) -> float:
    """Runs a program once behind the words `before`, and returns its rate."""
    real.prepare(work)
    if not real.script:
        return _served(program, ["env", f"BACKSTORY_STORE={store}", *before] if before else [], work)
    script = real.script.format(program=shlex.quote(program))
    began = time.perf_counter()
    done = subprocess.run(
        [*before, "sh", "-c", script],
        cwd=work,
        env=os.environ | {"BACKSTORY_STORE": str(store)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"backstory-bench: {script} failed: {done.stderr[-300:]!r}")
    return 1 / took
