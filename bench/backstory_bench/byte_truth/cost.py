"""Measures what the byte engine costs: each command natively and under the engine, interleaved.

In: the engine's directory. Out: CPU time of each execution, of all its processes. Valgrind without
a tool is measured, too: no tool can be faster. The engine reports the memory of its labels.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .agreement import engine_command
from .programs import table

CSV_SUM = "import csv; print(sum(int(r[2]) for r in csv.reader(open('in', newline=''))))"
QUERY = "select substr(w, 1, 2), count(*), sum(n) from t group by 1"

MODES = ["native", "valgrind", "bytes"]
NO_TOOL = ["valgrind", "-q", "--tool=none", "--trace-children=yes"]

# Each reads inputs of prepare(), and writes `out`.
COMMANDS = {
    "gzip": "gzip -c in > out",
    "gzip -d": "gzip -dc in.gz > out",
    "sort": "sort in > out",
    "cut": "cut -d, -f2 in > out",
    "join": "join -t, sorted sorted > out",
    "sed": "sed s/elm/OAK/ in > out",
    "awk": "awk -F, '{s[$2]+=$3} END {for (k in s) print k, s[k]}' in > out",
    "jq": "jq -c '.[]|.word' in.json > out",
    "sqlite3": f"sqlite3 :memory: 'create table t(k, w, n)' '.mode csv' '.import in t' '{QUERY}' > out",
    "python3 csv": f'python3 -c "{CSV_SUM}" > out',
    "ImageMagick, resize": "convert in.ppm -resize 50% out.ppm",
}


@dataclass
class Execution:
    """One command, once. `mode`: one of MODES."""

    command: str
    round: int
    mode: str
    cpu_s: float
    memory: Memory | None


@dataclass
class Memory:
    """Resident bytes at most, of a command's largest process: its own, of labels, and of sets."""

    program: int
    labels: int
    sets: int


def prepare(directory: Path, copies: int) -> None:
    """Writes the inputs: `copies` times about 190 kB of lines, and an image."""
    lines = b"".join(table(9000, seed) for seed in range(copies))
    (directory / "in").write_bytes(lines)
    (directory / "sorted").write_bytes(b"".join(sorted(lines.splitlines(keepends=True))))
    rows = [line.split(",") for line in lines.decode().split()]
    entries = [{"key": k, "word": w, "number": int(n)} for k, w, n in rows[::3]]
    (directory / "in.json").write_text(json.dumps(entries))
    subprocess.run("gzip -c in > in.gz", shell=True, cwd=directory, check=True)
    side = 240 * max(1, round(copies**0.5))
    pixels = random.Random(7).randbytes(side * side * 3)
    (directory / "in.ppm").write_bytes(b"P6 %d %d 255\n" % (side, side) + pixels)


def execution(command: str, number: int, mode: str, words: list[str], directory: Path) -> Execution:
    """Runs a command, and measures the CPU time of it and of its children."""
    environment = os.environ | {"LC_ALL": "C"}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, stderr=said)
    return Execution(command, number, mode, usage.ru_utime + usage.ru_stime, memory(said))


def memory(said: bytes) -> Memory | None:
    """The engine's report of the process whose labels and sets are largest."""
    pattern = rb"memory: (\d+) bytes of the program, (\d+) of labels, (\d+) of sets"
    found = [Memory(*map(int, m)) for m in re.findall(pattern, said)]
    return max(found, key=lambda m: m.labels + m.sets, default=None)


def works(name: str, directory: Path) -> bool:
    """Whether the program is installed."""
    done = subprocess.run(COMMANDS[name], shell=True, cwd=directory, capture_output=True)
    if done.returncode:
        print(f"SKIPPED: {name}: {done.stderr.decode(errors='replace').strip()}")
    return done.returncode == 0


def executions(names: list[str], rounds: int, copies: int, engine: Path) -> Iterator[Execution]:
    """Each command in each mode, in each round in another order."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="backstory-bytes-") as name:
        directory = Path(name)
        prepare(directory, copies)
        results = directory / "engine"
        before = {"native": [], "valgrind": NO_TOOL, "bytes": engine_command(engine, results, ["--memory=yes"])}
        names = [name for name in names if works(name, directory)]
        for number in range(rounds):
            order = [(name, mode) for name in names for mode in MODES]
            rng.shuffle(order)
            for command, mode in order:
                shutil.rmtree(results, ignore_errors=True)
                results.mkdir()
                yield execution(command, number, mode, [*before[mode], "sh", "-c", COMMANDS[command]], directory)
