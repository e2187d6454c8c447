"""Several requests of a server in one command, beside one command for each of them.

A series starts the program once, if copies of the started program can stand for new starts.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .replays import Row, backstory, completed, judged, output_directory
from .verdicts import EQUAL

SERIES = "series"
"""The kind of a row that has a whole series."""
SUMS = ("executed_in_copies", "executed_calls", "executed_start_calls", "executed_s", "executed_start_s")


def series_row(store: Path, run: str, numbers: Sequence[int], limit: float, owner: str | None) -> Row:
    """Reconstructs these requests in one command. The row has the counts of all of them."""
    requests = ",".join(map(str, numbers))
    with output_directory(owner) as out:
        words = backstory(store, "replay", run, "--deep", "--json", "--output-dir", str(out), "--request", requests)
        began = time.monotonic()
        try:
            done = completed(words, limit, owner, out.parent)
            answers = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            return {"request": requests, "verdict": "failed", "why": " ".join(str(error).split())[:300]}
    row: Row = {"request": requests, "seconds": f"{time.monotonic() - began:.2f}"}
    equal = sum(judged(answer)[0] in EQUAL for answer in answers)
    row |= {"verdict": f"{equal} of {len(answers)}", "why": ""}
    parts = [answer["reconstruction"]["request"] for answer in answers]
    row["tries"] = sum(part["tries"] for part in parts)
    return row | {name: round(sum(part[name] for part in parts), 6) for name in SUMS}


def series_table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Returns the time of each series, beside that of one command for each of its requests."""
    lines = [
        "| program | requests | one by one | in a series | ratio | equal | calls of starts: one by one | in a series |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row.get("kind") != SERIES:
            continue
        own = [one for one in rows if one.get("case") == row["case"] and one.get("kind") == "server"]
        if row["verdict"] == "failed":
            lines.append(f"| {row['case']} | {len(own)} | | failed | | | | |")
            continue
        alone = sum(float(str(one["seconds"])) for one in own)
        together = float(str(row["seconds"]))
        starts = sum(int(str(one["executed_start_calls"] or 0)) for one in own)
        cells = [str(row["case"]), str(len(own)), f"{alone:.1f} s", f"{together:.1f} s", f"{together / alone:.2f}"]
        cells += [str(row["verdict"]), str(starts), str(row["executed_start_calls"])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
