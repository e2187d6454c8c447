"""Programs whose dependence is known, and inputs that are generated for them.

Each case has input files, and a shell command that writes `out`. It has the input bytes that each
byte of the output depends on by explicit flows. Moves and computing are explicit flows. Decisions
(comparisons, branches) are not. The dependence is derived from the inputs, and never from the
engine.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from .inflate import inflated

Where = tuple[str, int]
Origin = set[Where]


@dataclass
class Case:
    """One command. `moves`: its output is input bytes and constants."""

    name: str
    command: str
    inputs: dict[str, bytes]
    truth: list[tuple[int, Origin]]
    moves: bool
    needs: str


def constant(text: str | bytes) -> list[tuple[int, Origin]]:
    return [(b, set()) for b in (text.encode() if isinstance(text, str) else text)]


def copied(name: str, content: bytes, start: int, end: int) -> list[tuple[int, Origin]]:
    return [(content[i], {(name, i)}) for i in range(start, end)]


def computed(text: str, origin: Origin) -> list[tuple[int, Origin]]:
    return [(b, set(origin)) for b in text.encode()]


def table(rows: int, seed: int) -> bytes:
    """Lines of `key,word,number`."""
    rng = random.Random(seed)
    words = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "hazel", "ivy"]
    lines = [
        f"{k:05d},{rng.choice(words)}{rng.randrange(100)},{rng.randrange(10, 9999)}"
        for k in rng.sample(range(10000), rows)
    ]
    return ("\n".join(lines) + "\n").encode()


def spans(content: bytes) -> list[tuple[int, int]]:
    """The lines, with their ends."""
    found, start = [], 0
    while start < len(content):
        end = content.index(b"\n", start) + 1
        found.append((start, end))
        start = end
    return found


def fields(content: bytes, span: tuple[int, int]) -> list[tuple[int, int]]:
    start, found = span[0], []
    for at in range(span[0], span[1]):
        if content[at] in b",\n":
            found.append((start, at))
            start = at + 1
    return found


def permute(rows: int) -> Case:
    content = table(rows, 1)
    truth = [b for s, e in reversed(spans(content)) for b in copied("in", content, s, e)]
    return Case("permute (tac)", "tac in > out", {"in": content}, truth, True, "tac")


def filter_lines(rows: int) -> Case:
    content = table(rows, 2)
    truth = [b for s, e in spans(content) if b"elm" in content[s:e] for b in copied("in", content, s, e)]
    return Case("filter lines (grep)", "grep elm in > out", {"in": content}, truth, True, "grep")


def cut(rows: int) -> Case:
    content, truth = table(rows, 3), []
    for span in spans(content):
        start, end = fields(content, span)[1]
        truth += copied("in", content, start, end) + constant("\n")
    return Case("cut", "cut -d, -f2 in > out", {"in": content}, truth, True, "cut")


def ordered(rows: int) -> Case:
    content = table(rows, 4)
    lines = sorted(spans(content), key=lambda s: content[s[0] : s[1]])
    # sort takes the ends of lines away, and writes its own.
    truth = [b for s, e in lines for b in copied("in", content, s, e - 1) + constant("\n")]
    return Case("sort", "LC_ALL=C sort in > out", {"in": content}, truth, True, "sort")


def join(rows: int) -> Case:
    left, right, truth = bytearray(), bytearray(), []
    rng = random.Random(5)
    for key in range(rows):
        ours, theirs = rng.random() < 0.8, rng.random() < 0.8
        a, b = f"k{key:04d}".encode(), str(rng.randrange(10**6)).encode()
        if ours and theirs:
            at, there = len(left), len(right) + 6
            truth += copied("left", bytes(left) + a, at, at + 5) + constant(" ")
            truth += copied("left", bytes(left) + a + b" L" + b, at + 6, at + 7 + len(b))
            truth += constant(" ")
            truth += copied("right", bytes(right) + a + b" R" + b, there, there + 1 + len(b))
            truth += constant("\n")
        if ours:
            left += a + b" L" + b + b"\n"
        if theirs:
            right += a + b" R" + b + b"\n"
    inputs = {"left": bytes(left), "right": bytes(right)}
    return Case("join", "LC_ALL=C join left right > out", inputs, truth, True, "join")


def sed(rows: int) -> Case:
    content, truth = table(rows, 6), []
    for s, e in spans(content):
        at = content.find(b"elm", s, e)
        if at < 0:
            truth += copied("in", content, s, e - 1)
        else:
            truth += copied("in", content, s, at) + constant("OAK")
            truth += copied("in", content, at + 3, e - 1)
        truth += constant("\n")  # sed writes its own ends of lines
    return Case("sed", "sed s/elm/OAK/ in > out", {"in": content}, truth, True, "sed")


def awk_columns(rows: int) -> Case:
    content, truth = table(rows, 7), []
    for span in spans(content):
        f = fields(content, span)
        truth += copied("in", content, *f[2]) + constant(" ") + copied("in", content, *f[0])
        truth += constant("\n")
    command = "awk -F, '{print $3, $1}' in > out"
    return Case("awk, columns", command, {"in": content}, truth, True, "awk")


def digits(content: bytes, span: tuple[int, int]) -> Origin:
    return {("in", i) for i in range(*span)}


def total(rows: int) -> Case:
    content, origin, value = table(rows, 8), Origin(), 0
    for span in spans(content):
        start, end = fields(content, span)[2]
        origin |= digits(content, (start, end))
        value += int(content[start:end])
    truth = computed(str(value), origin) + constant("\n")
    command = "awk -F, '{s+=$3} END {print s}' in > out"
    return Case("aggregate: sum (awk)", command, {"in": content}, truth, False, "awk")


def grouped(rows: int) -> Case:
    content, groups = table(rows, 9), dict[bytes, tuple[int, Origin, tuple[int, int]]]()
    for span in spans(content):
        _, word, number = fields(content, span)
        key, n = content[word[0] : word[0] + 1], int(content[number[0] : number[1]])
        value, origin, first = groups.get(key, (0, set(), (word[0], word[0] + 1)))
        groups[key] = (value + n, origin | digits(content, number), first)
    truth = []
    for _, (value, origin, first) in sorted(groups.items()):
        truth += copied("in", content, *first) + constant(" ")
        truth += computed(str(value), origin) + constant("\n")
    program = "{k=substr($2,1,1); s[k]+=$3} END {for (k in s) print k, s[k]}"
    command = f"awk -F, '{program}' in | LC_ALL=C sort > out"
    return Case("aggregate: by key (awk, sort)", command, {"in": content}, truth, False, "awk")


def translate(rows: int) -> Case:
    content = table(rows, 10)
    truth = [(b, {("in", i)}) for i, b in enumerate(content.upper())]
    return Case("tr", "tr a-z A-Z < in > out", {"in": content}, truth, False, "tr")


def encode(rows: int) -> Case:
    content, truth = table(rows, 11), []
    for i, byte in enumerate(base64.b64encode(content)):
        if i and i % 76 == 0:
            truth += constant("\n")
        start, k = i // 4 * 3, i % 4
        places = {0: [0], 1: [0, 1], 2: [1, 2], 3: [2]}[k]
        origin = {("in", start + p) for p in places if start + p < len(content)}
        truth.append((byte, origin if byte != ord("=") else set()))
    truth += constant("\n")
    return Case("base64", "base64 in > out", {"in": content}, truth, False, "base64")


def encrypt(rows: int) -> Case:
    content = table(rows, 12)
    truth = [(-1, {("in", i)}) for i in range(len(content))]
    key = f"-K {'1f' * 32} -iv {'2e' * 16}"
    command = f"openssl enc -chacha20 {key} -in in -out out"
    return Case("encrypt (openssl chacha20)", command, {"in": content}, truth, False, "openssl")


def there_and_back(rows: int) -> Case:
    content = table(rows, 13)
    # A repeated string is sent as a distance. Its bytes flow from where they stood first: that the
    # strings are equal is a decision.
    packed = subprocess.run(["gzip", "-cn"], input=content, capture_output=True, check=True).stdout
    truth = [(b, {("in", first)}) for b, _, _, first in inflated(packed)]
    command = "gzip -cn < in | gzip -dc > out"
    return Case("compress and decompress (gzip)", command, {"in": content}, truth, False, "gzip")


def compress(rows: int) -> Case:
    content = table(rows, 18)
    packed = subprocess.run(["gzip", "-cn"], input=content, capture_output=True, check=True).stdout
    origins = [Origin() for _ in packed]
    for at, (_, first, last, index) in enumerate(inflated(packed)):
        # A literal is a code that the byte chooses. Repeated strings are found by comparisons, so
        # that lengths and distances have no explicit flow. Neither have the lengths of codes.
        if index == at:
            for place in range(first, last + 1):
                origins[place].add(("in", at))
    for origin in origins[-8:-4]:  # the checksum
        origin |= {("in", at) for at in range(len(content))}
    truth = list(zip(packed, origins, strict=True))
    return Case("compress (gzip)", "gzip -cn < in > out", {"in": content}, truth, False, "gzip")


def decompress(rows: int) -> Case:
    packed = gzip.compress(table(rows, 14), 6, mtime=0)
    truth = [(b, {("in", i) for i in range(first, last + 1)}) for b, first, last, _ in inflated(packed)]
    return Case("decompress (gzip -d)", "gzip -dc < in > out", {"in": packed}, truth, False, "gzip")


def jq(rows: int) -> Case:
    content, parts, truth = table(rows, 15), b"[", []
    for span in spans(content):
        key, word, number = (content[s:e].decode() for s, e in fields(content, span))
        entry = json.dumps({"key": key, "word": word, "number": int(number)}).encode()
        at = len(parts) + entry.index(b'"word": "') + 9
        truth += [(b, {("in", at + i)}) for i, b in enumerate(word.encode())] + constant("\n")
        parts += entry + b",\n"
    content = parts[:-2] + b"]\n"
    return Case("jq", "jq -r '.[].word' in > out", {"in": content}, truth, True, "jq")


def sqlite(rows: int) -> Case:
    content, truth = table(rows, 16), []
    for span in sorted(spans(content), key=lambda s: content[s[0] : s[1]]):
        key, word, _ = fields(content, span)
        truth += copied("in", content, *word) + constant("|") + copied("in", content, *key)
        truth += constant("\n")
    command = (
        "sqlite3 :memory: 'create table t(k text, w text, n text)' '.mode csv' '.import in t' "
        "'.mode list' 'select w, k from t order by k' > out"
    )
    return Case("sqlite3", command, {"in": content}, truth, True, "sqlite3")


def python_csv(rows: int) -> Case:
    content, truth = table(rows, 17), []
    for span in spans(content):
        f = fields(content, span)
        truth += copied("in", content, *f[1]) + constant(",") + copied("in", content, *f[0])
        truth += constant("\r\n")
    program = (
        "import csv; w = csv.writer(open('out', 'w', newline='')); "
        "[w.writerow([r[1], r[0]]) for r in csv.reader(open('in', newline=''))]"
    )
    command = f'python3 -c "{program}"'
    return Case("python3 csv", command, {"in": content}, truth, True, "python3")


CASES: list[Callable[[int], Case]] = [
    permute, filter_lines, cut, ordered, join, sed, awk_columns, jq, sqlite, python_csv,
    total, grouped, translate, encode, encrypt, compress, decompress, there_and_back,
]  # fmt: skip
