"""`predict`: records a program once with backstory, and predicts the cost of each collector on
it.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..collectors.backstory import program
from ..matrix.journal import Unusable
from .calls import BY_OPERATION, by_category
from .frame import load
from .model import Model, models

_OPERATION = re.compile(r"^ *\d+ \d+ ([A-Z_0-9]+) ")
RECORDER = "backstory"


def operations(raw: str) -> Counter[str]:
    """Counts the operations by name in the output of `backstory log --raw`."""
    return Counter(m.group(1) for line in raw.splitlines() if (m := _OPERATION.match(line)))


def _ask(store: Path, *words: str) -> str:
    argv = [program(), "log", "--store", str(store), *words]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Unusable(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def native_seconds(recorded_s: float, calls: Counter[str], model: Model | None) -> float:
    """Estimates a program's native time, from its time under backstory and backstory's cost
    model.
    """
    if model is None:
        return recorded_s
    spent = model.start_s + sum(calls[kind] * cost for kind, cost in model.cost.items())
    return max(recorded_s - spent, recorded_s / 2)


def table(found: Sequence[Model], calls: Counter[str], native_s: float) -> str:
    """Returns a table of the predicted ratios, with intervals of two standard errors."""
    rates = {kind: count / native_s for kind, count in calls.items()}
    lines = ["| collector | predicted | within | fitted to |", "|---|---|---|---|"]
    for model in sorted(found, key=lambda m: m.ratio(rates, native_s)):
        ratio, spread = model.ratio(rates, native_s), 2.718281828459045 ** (2 * model.error)
        lines.append(
            f"| {model.collector} | {ratio:.2f} | {max(1, ratio / spread):.2f} to {ratio * spread:.2f} | {model.workloads} workloads |"
        )
    return "\n".join(lines)


def main_predict(results: Path, cmd: Sequence[str], run: str | None, store: Path | None, native: float | None) -> int:
    """Runs the command `predict`. Returns 0, whatever the exit status of the recorded command."""
    if not cmd and not run:
        raise Unusable("predict needs a command, or --run RUN with a run that was recorded with --suppress=off")
    found = models(load(results))
    if not found:
        raise Unusable(f"{results} has too few workloads for a model: run a larger suite")
    with tempfile.TemporaryDirectory(prefix="backstory-bench-") as scratch:
        home = store or Path(scratch)
        if cmd:
            subprocess.run([program(), "record", "--store", str(home), "--suppress=off", "--", *cmd])
        runs = json.loads(_ask(home, "--json"))
        chosen = next((r for r in runs if run is None or run in (r["run"], r["name"])), None)
        if chosen is None:
            raise Unusable(f"there is no run {run} in the store {home}")
        calls = by_category(operations(_ask(home, "--raw", chosen["run"])), BY_OPERATION)
    calls.pop("other", None)  # marks of the recorder, which are not calls
    recorded = float(chosen["ended"]) - float(chosen["started"])
    seconds = native or native_seconds(recorded, calls, next((m for m in found if m.collector == RECORDER), None))
    how = "given" if native else "from the recording"
    print(
        f"{seconds:.3f} s without a collector ({how}); calls: {', '.join(f'{k} {v}' for k, v in calls.most_common())}\n"
    )
    print(table(found, calls, seconds))
    return 0
