"""Compares each granularity and engine with the known flows of the tasks of `tasks.c`.

In: the byte engine, and the program `backstory`. Out: recall and precision of pairs of an output
byte and an input byte, for:

- `files`: the inputs that `backstory of` names for a record without functions,
- `functions`: the same of a record of the functions `do_*`,
- `call`: only the inputs that were read by the function that wrote the output,
- `bytes`: the byte engine,
- `sanitizer`: clang's DataFlowSanitizer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .agreement import engine_command
from .programs import Origin
from .reading import Flow
from .tasks import TASKS, inputs, whole

SOURCE = Path(__file__).with_name("tasks.c")
LEVELS = {
    "files": "files",
    "functions": "functions",
    "call": "the writing call",
    "bytes": "bytes, engine",
    "sanitizer": "bytes, DFSan",
}
MOST_ROWS = 24
SANITIZED = ["clang", "-fsanitize=dataflow", "-DORACLE"]
Claims = dict[str, list[Origin]]
"""By output: the inputs of each of its bytes."""


@dataclass
class Level:
    """One case at one level. Fractions; None if nothing was to be found."""

    case: str
    level: str
    recall: float | None
    precision: float | None


def _compiled(compiler: list[str], program: Path) -> bool:
    done = subprocess.run([*compiler, "-O1", "-o", str(program), str(SOURCE)], capture_output=True, text=True)
    if done.returncode:
        print(f"SKIPPED: {' '.join(compiler)}: {done.stderr.strip()[-200:]}")
    return done.returncode == 0


def _answers(backstory: str, work: Path, options: list[str]) -> dict[str, dict[str, Any]]:
    """Records the program, and asks for each output."""
    environment = os.environ | {"BACKSTORY_STORE": str(work / "store")}
    record = [backstory, "record", "--wait", "--contents=off", *options, "--", "./tasks"]
    subprocess.run(record, cwd=work, env=environment, capture_output=True, check=True)
    found = {}
    for name in TASKS:
        of = [backstory, "of", "--json", f"{name}.out"]
        asked = subprocess.run(of, cwd=work, env=environment, capture_output=True, check=True)
        found[name] = json.loads(asked.stdout)
    return found


def sources(answer: Mapping[str, Any], work: Path, nearest: bool) -> set[str]:
    """The inputs in an answer: all of them, or those of the activity that wrote."""
    names = {node["id"]: Path(node["path"]) for node in answer["nodes"] if node["type"] == "entity" and node["path"]}
    numbers = [node["id"] for node in answer["nodes"]]
    links = [(numbers[link["from"]], numbers[link["to"]]) for link in answer["links"]]
    wrote = {cause for cause, effect in links if effect == numbers[0]}
    causes = {cause for cause, effect in links if not nearest or effect in wrote}
    read = {names[cause] for cause in causes if cause in names}
    return {path.name for path in read if path.parent == work and path.suffix == ".in"}


def _recorded(backstory: str, work: Path, given: dict[str, bytes], sizes: dict[str, int]) -> dict[str, Claims]:
    plain = _answers(backstory, work, [])
    shutil.rmtree(work / "store")
    by_function = _answers(backstory, work, ["--functions=do_*"])

    def claims(answers: dict[str, dict[str, Any]], nearest: bool) -> Claims:
        return {n: [whole(given, sources(a, work, nearest))] * sizes[n] for n, a in answers.items()}

    return {
        "files": claims(plain, False),
        "functions": claims(by_function, False),
        "call": claims(by_function, True),
    }


def _followed(engine: Path, work: Path, given: dict[str, bytes], sizes: dict[str, int]) -> Claims:
    (work / "engine").mkdir()
    subprocess.run([*engine_command(engine, work / "engine", []), "./plain"], cwd=work, check=True)
    flow = Flow(work / "engine", {work / name: len(content) for name, content in given.items()})
    places = [(name, at) for name, content in given.items() for at in range(len(content))]
    found: Claims = {}
    for name, size in sizes.items():
        masks = flow.file_masks(work / f"{name}.out", size)
        found[name] = [{place for at, place in enumerate(places) if mask >> at & 1} for mask in masks]
    return found


def _sanitized(work: Path, given: dict[str, bytes], sizes: dict[str, int]) -> Claims:
    """Runs the program once for each 8 bytes: the sanitizer has 8 labels."""
    found: Claims = {name: [set() for _ in range(size)] for name, size in sizes.items()}
    for file, content in given.items():
        for first in range(0, len(content), 8):
            subprocess.run(["./sanitized", file, str(first)], cwd=work, check=True)
            for name, origins in found.items():
                labels = (work / f"{name}.out").read_bytes()
                for origin, label in zip(origins, labels, strict=True):
                    origin |= {(file, first + bit) for bit in range(8) if label >> bit & 1}
    return found


def counted(level: str, claims: Claims, given: dict[str, bytes]) -> list[Level]:
    found = []
    for name, (case, truth_of) in TASKS.items():
        truth = truth_of(given)
        pairs = list(zip(claims[name], truth, strict=True))
        true, claimed = sum(len(origin) for origin in truth), sum(len(origin) for origin in claims[name])
        both = sum(len(origin & known) for origin, known in pairs)
        found.append(Level(case, level, both / true if true else None, both / claimed if claimed else None))
    return found


def levels(rows: int, engine: Path, backstory: str | None) -> list[Level]:
    """All cases at each level for which this machine has the tools."""
    with TemporaryDirectory(prefix="backstory-levels-") as name:
        work, given = Path(name).resolve(), inputs(min(rows, MOST_ROWS))
        for file, content in given.items():
            (work / file).write_bytes(content)
        if not _compiled(["gcc"], work / "plain"):
            return []
        subprocess.run(["./plain"], cwd=work, check=True)
        sizes = {name: (work / f"{name}.out").stat().st_size for name in TASKS}
        claims: dict[str, Claims] = {}
        if backstory and _compiled([backstory, "cc"], work / "tasks"):
            claims |= _recorded(backstory, work, given, sizes)
        claims["bytes"] = _followed(engine, work, given, sizes)
        if _compiled(SANITIZED, work / "sanitized"):
            claims["sanitizer"] = _sanitized(work, given, sizes)
        return [found for level, said in claims.items() for found in counted(level, said, given)]
