"""Measures the contents of a git clone: stored as they are, or named by the blobs that git has.

backstory stores committed files of less than 256 KiB. For files of each size, this command makes a
repository and a clone of it, and measures two things:

- The parts of both ways, by the program of `bench/content-costs`. A content is stored by BLAKE3,
  zstd, a record in a pack, and one sync for all. It is named by a look-up in the trees of git, both
  sums of the file in one pass, and a comparison with the blob.
- `cat` of all files as it is: the processor time of the indexing, without contents and with `lazy`,
  and the bytes of the store's contents.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import backstory_program, content_costs, progress
from .measure import become_subreaper
from .pending_runs import checked, environment, held, recorded
from .report import write_rows

FIELDS = ["bytes", "what", "round", "files", "wall_us", "cpu_us", "store_bytes"]
CAT = "git ls-files -z | xargs -0 cat >/dev/null"
OFF, LAZY = "off", "lazy"
PARTS = {
    "read": "read the file",
    "blake3": "BLAKE3",
    "sha1": "SHA-1",
    "zstd": "zstd",
    "store": "**store it**",
    "look-up": "look for the blob",
    "both-sums": "BLAKE3 and SHA-1",
    "blob": "read the blob, BLAKE3",
    "note": "note of the place",
}
"""The parts of the program, with their names in the table."""
NAMED = ("look-up", "both-sums", "blob")
"""The parts that name a content. A note is not among them, since a fact might serve, too."""
LETTERS = "etaoinshrdlu_"


def text(length: int, seed: int) -> bytes:
    """Returns text that zstd compresses as well as sources: few words are most of it."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 10))) for _ in range(3000)]
    lines: list[str] = []
    size = 0
    while size < length:
        chosen = (words[int(rng.expovariate(1 / 200)) % len(words)] for _ in range(rng.randint(1, 14)))
        lines.append(" ".join(chosen) + "\n")
        size += len(lines[-1])
    return "".join(lines).encode()[:length]


def clone(top: Path, files: int, size: int) -> Path:
    """Makes a repository with so many files of this size, and returns a clone."""
    whole, rng = text(max(2 << 20, 2 * size), 1), random.Random(2)
    stream = [b"reset refs/heads/main\ncommit refs/heads/main\ncommitter B <b@localhost> 1700000000 +0000\ndata 0\n\n"]
    for number in range(files):
        at = rng.randrange(len(whole) - size)
        content = (b"file %d\n" % number + whole[at : at + size])[:size]
        name = b"src/d%03d/f%05d.txt" % (number // 100, number)
        stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name, size, content))
    origin, cloned = top / "origin", top / "clone"
    subprocess.run(["git", "init", "-q", "-b", "main", str(origin)], check=True)
    subprocess.run(["git", "-C", str(origin), "fast-import", "--quiet"], input=b"".join(stream), check=True)
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(origin), str(cloned)], check=True)
    return cloned


def indexed(work: Path, store: Path, backstory: str, contents: str) -> dict[str, object]:
    """Records `cat` of all committed files, and returns the cost of indexing it, for one file."""
    with held(store):
        checked(recorded(["sh", "-c", CAT], store, backstory, contents), work)
    cost = checked([backstory, "index", "--store", str(store), "--wait"], work)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=work, capture_output=True, check=True)
    files = listed.stdout.count(b"\0")
    words = [backstory, "store", "stats", "--json", "--store", str(store)]
    stats = subprocess.run(words, capture_output=True, check=True, env=environment())
    shutil.rmtree(store)
    return {
        "files": files,
        "wall_us": f"{cost.wall * 1e6 / files:.3f}",
        "cpu_us": f"{cost.cpu * 1e6 / files:.3f}",
        "store_bytes": json.loads(stats.stdout)["contents"]["disk_bytes"],
    }


def measure(top: Path, files: int, size: int, rounds: int, backstory: str, program: Path) -> list[dict[str, object]]:
    """Returns the rows of files of one size."""
    work, stores = clone(top, files, size), top / "stores"
    stores.mkdir()
    rows: list[dict[str, object]] = []
    for part in content_costs.measured(program, ["name", str(rounds), str(stores), str(work)]):
        named = {name: value for name, value in part.items() if name != "part"}
        rows.append({**named, "bytes": size, "what": part["part"], "store_bytes": ""})
    for number in range(rounds):
        for contents in random.sample((OFF, LAZY), k=2):
            found = indexed(work, top / f"store-{contents}-{number}", backstory, contents)
            rows.append({**found, "bytes": size, "what": contents, "round": number})
        progress.show(f"{size} bytes: round {number + 1} of {rounds}")
    progress.show("")
    return rows


def by_round(rows: Sequence[Mapping[str, object]], what: str, field: str) -> dict[str, float]:
    """Returns the figures of a part in each round."""
    return {str(row["round"]): float(str(row[field])) for row in rows if row["what"] == what}


def middle(values: Sequence[float]) -> str:
    """Returns the median of times, with the range."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def sizes(rows: Sequence[Mapping[str, object]]) -> dict[int, list[Mapping[str, object]]]:
    """Returns the rows of each size."""
    found: dict[int, list[Mapping[str, object]]] = {}
    for row in rows:
        found.setdefault(int(str(row["bytes"])), []).append(row)
    return found


def parts(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table of the parts: processor time of one file, and the wall time of a note."""
    by_size = sizes(rows)
    heads = [f"{size:,} bytes" for size in by_size]
    lines = [f"| processor time of a file (µs) | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for part, name in PARTS.items():
        cells = [middle(list(by_round(own, part, "cpu_us").values())) for own in by_size.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    cells = []
    for own in by_size.values():
        of_parts = [by_round(own, part, "cpu_us") for part in NAMED]
        cells.append(middle([sum(part[number] for part in of_parts) for number in of_parts[0]]))
    lines.append(f"| **name it**: look-up, both sums, blob | {' | '.join(cells)} |")
    for part, name in (("store", "store it"), ("note", "note of the place")):
        cells = [middle(list(by_round(own, part, "wall_us").values())) for own in by_size.values()]
        lines.append(f"| wall time: {name} | {' | '.join(cells)} |")
    return lines


def whole(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the table of the indexing as it is."""
    lines = [
        "| files | indexing without contents (µs of processor time a file) | with `lazy` | contents (bytes a file) |",
        "| --- | ---: | ---: | ---: |",
    ]
    for size, own in sizes(rows).items():
        times = [middle(list(by_round(own, mode, "cpu_us").values())) for mode in (OFF, LAZY)]
        files = {int(str(row["files"])) for row in own if row["what"] == LAZY}
        held_bytes = statistics.median(by_round(own, LAZY, "store_bytes").values()) / max(files)
        lines.append(f"| {max(files):,} of {size:,} bytes | {' | '.join(times)} | {held_bytes:,.0f} |")
    return lines


def main_naming(args: argparse.Namespace) -> int:
    """Runs the command."""
    become_subreaper()
    backstory, program = backstory_program.needed(), content_costs.built()
    rows: list[dict[str, object]] = []
    for size in args.sizes:
        with tempfile.TemporaryDirectory(prefix="bench-naming-", dir=args.workdir) as top:
            rows += measure(Path(top), args.files, size, args.rounds, backstory, program)
    if args.out:
        write_rows(args.out, FIELDS, rows, backstory)
    print("\n".join([*parts(rows), "", *whole(rows)]))
    return 0


def add_naming(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    p = commands.add_parser(
        "naming", help="measure storing committed files, and naming git's blobs instead (compiles bench/content-costs)"
    )
    p.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000], metavar="BYTES")
    p.add_argument("--files", type=int, default=2000, help="the number of files of each size")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--workdir", default=tempfile.gettempdir(), help="the directory of clones and stores")
    p.add_argument("--out", help="CSV to write")
    p.set_defaults(do=main_naming)
