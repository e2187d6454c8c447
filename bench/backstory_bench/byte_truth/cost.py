"""Measures what the byte engine costs: each command natively and under the engine, interleaved.

In: the engine's directory. Out: CPU time of each execution, of all its processes.
"""

from __future__ import annotations

import json
import os
import random
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
    "ImageMagick": "convert in.ppm -resize 50% out.ppm",
}


@dataclass
class Execution:
    """One command, once. `engine`: under the engine."""

    command: str
    round: int
    engine: bool
    cpu_s: float


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


def cpu_time(command: list[str], directory: Path) -> float:
    """Runs a command, and returns the CPU time of it and of its children."""
    process = subprocess.Popen(command, cwd=directory, env=os.environ | {"LC_ALL": "C"}, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def works(name: str, directory: Path) -> bool:
    """Whether the program is installed."""
    done = subprocess.run(COMMANDS[name], shell=True, cwd=directory, capture_output=True)
    if done.returncode:
        print(f"SKIPPED: {name}: {done.stderr.decode(errors='replace').strip()}")
    return done.returncode == 0


def executions(names: list[str], rounds: int, copies: int, engine: Path) -> Iterator[Execution]:
    """Each command, natively and under the engine, in each round in another order."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="backstory-bytes-") as name:
        directory = Path(name)
        prepare(directory, copies)
        names = [name for name in names if works(name, directory)]
        for number in range(rounds):
            order = [(name, mode) for name in names for mode in (False, True)]
            rng.shuffle(order)
            for command, under in order:
                shell = ["sh", "-c", COMMANDS[command]]
                results = directory / "engine"
                shutil.rmtree(results, ignore_errors=True)
                results.mkdir()
                full = [*engine_command(engine, results, []), *shell] if under else shell
                yield Execution(command, number, under, cpu_time(full, directory))
