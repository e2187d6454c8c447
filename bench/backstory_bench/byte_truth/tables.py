"""The tables of the byte engine's results in `docs/benchmark/granularity.md`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from .cost import MODES
from .levels import LEVELS


def _truth(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = ["| case | recall | precision | precision of the file level |", "| --- | --- | --- | --- |"]
    for case, found in figures.items():
        cells = [f"{100 * found[name][0]:.2f} %" if name in found else "–" for name in ("recall", "precision")]
        lines.append(f"| {case} | {' | '.join(cells)} | {100 * found['file_precision'][0]:.2f} % |")
    return lines


def _levels(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    """Each cell has recall and precision. A level that nothing was measured at is left out."""
    shown = {level: name for level, name in LEVELS.items() if any(f"{level}_recall" in f for f in figures.values())}
    lines = [f"| case | {' | '.join(shown.values())} |", f"|{' --- |' * (1 + len(shown))}"]
    for case, found in figures.items():
        cells = []
        for level in shown:
            names = (f"{level}_recall", f"{level}_precision")
            cells.append(", ".join(f"{100 * found[name][0]:.2f} %" if name in found else "–" for name in names))
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return lines


def _decisions(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    names = {
        "recall_explicit": "recall of explicit flows",
        "recall": "recall with `--implicit`",
        "precision": "precision",
        "file_precision": "precision of the file level",
    }
    lines = [f"| case | {' | '.join(names.values())} |", f"| {' | '.join(['---'] * 5)} |"]
    for case, found in figures.items():
        cells = [f"{100 * found[name][0]:.2f} %" if name in found else "–" for name in names]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return lines


def _cost(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    times = []
    for command, found in figures.items():
        by_mode = [
            median(v for name, vs in found.items() if name.startswith(f"{mode}_cpu_s") for v in vs) for mode in MODES
        ]
        times.append((by_mode[2] / by_mode[0], command, by_mode))
    lines = ["| command | native | Valgrind | bytes | bytes/native |", "| --- | --- | --- | --- | --- |"]
    for ratio, command, by_mode in sorted(times):
        cells = " | ".join(f"{seconds:.3f} s" for seconds in by_mode)
        lines.append(f"| {command} | {cells} | {ratio:.1f} |")
    return lines


def _memory(figures: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [
        "| command | program | labels | sets | labels for each byte of the program |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows = []
    for command, found in figures.items():
        sizes = [found[f"{part}_bytes"][0] for part in ("program", "labels", "sets")]
        rows.append((sizes[1] / sizes[0], command, " | ".join(f"{size / 2**20:.1f} MiB" for size in sizes)))
    for share, command, cells in sorted(rows, reverse=True):
        lines.append(f"| {command} | {cells} | {share:.2f} |")
    return lines


MAKERS = {"truth": _truth, "levels": _levels, "decisions": _decisions, "cost": _cost, "memory": _memory}


def byte_tables(rows: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Returns the tables for which there are rows (`what`, case, measure, value)."""
    kinds: dict[str, dict[str, dict[str, list[float]]]] = {}
    for what, case, measure, value in rows:
        cases = kinds.setdefault(what, {})
        cases.setdefault(case, defaultdict(list))[measure].append(float(value))
    return {what: make(kinds[what]) for what, make in MAKERS.items() if what in kinds}
