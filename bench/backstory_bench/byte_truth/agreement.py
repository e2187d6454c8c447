"""Runs each case under the engine, and counts the pairs of output and input bytes.

Recall: of the pairs that the generator knows, how many the engine found. Precision: of the pairs
that the engine found, how many the generator knows. The file level says of each output byte that
it depends on every byte of every input.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .programs import Case
from .reading import Flow


@dataclass
class Agreement:
    """The result of a case. Fractions; None if nothing was to be found."""

    name: str
    moves: bool
    output_bytes: int
    recall: float | None
    precision: float | None
    file_precision: float
    note: str = ""


def engine_command(engine: Path, output: Path, options: list[str]) -> list[str]:
    """The words that start a program under the engine in a directory of `bytes/build`."""
    return [
        "env", f"VALGRIND_LIB={engine}", "valgrind", "-q", "--tool=bytes", "--trace-children=yes",
        f"--output={output}", *options,
    ]  # fmt: skip


def compared(case: Case, engine: Path, options: list[str]) -> Agreement:
    with TemporaryDirectory(prefix="backstory-bytes-") as name:
        directory = Path(name)
        for file, content in case.inputs.items():
            (directory / file).write_bytes(content)
        (directory / "engine").mkdir()
        command = engine_command(engine, directory / "engine", options)
        subprocess.run([*command, "sh", "-c", case.command], cwd=directory, check=True)
        out = (directory / "out").read_bytes()
        expected = bytes(byte % 256 for byte, _ in case.truth)
        known = all(byte >= 0 for byte, _ in case.truth)
        if len(out) != len(case.truth) or (known and out != expected):
            raise AssertionError(f"{case.name}: the generator does not know this output: {out[:80]!r}")
        sizes = {directory / file: len(content) for file, content in case.inputs.items()}
        flow = Flow(directory / "engine", sizes)
        found = flow.file_masks(directory / "out", len(out))
        base = {path.name: start for path, (start, _) in zip(sizes, flow.base.values(), strict=True)}
        return counted(case, found, base, sum(sizes.values()), flow.possible)


def counted(case: Case, found: list[int], base: dict[str, int], inputs: int, possible: list[str]) -> Agreement:
    true = claimed = both = 0
    for mask, (_, origin) in zip(found, case.truth, strict=True):
        truth = sum(1 << base[name] + offset for name, offset in origin)
        true += truth.bit_count()
        claimed += mask.bit_count()
        both += (mask & truth).bit_count()
    return Agreement(
        case.name,
        case.moves,
        len(found),
        both / true if true else None,
        both / claimed if claimed else None,
        true / (len(found) * inputs),
        "; ".join(sorted(set(possible))),
    )


def agreements(cases: list[Callable[[int], Case]], rows: int, engine: Path, options: list[str]) -> Iterator[Agreement]:
    for make in cases:
        case = make(rows)
        if shutil.which(case.needs) is None:
            yield Agreement(case.name, case.moves, 0, None, None, 0.0, f"SKIPPED: no {case.needs}")
            continue
        yield compared(case, engine, options)
