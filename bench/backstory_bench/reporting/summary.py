"""The summary in Markdown."""

from __future__ import annotations

import textwrap

from ..analysis.frame import Results
from ..analysis.subset import chosen_of, text
from ..matrix.journal import Unusable
from . import plots, tables
from .conclusions import conclusions
from .tables import Table

HEAD = """# Benchmark results

This page is for readers who compare provenance collectors. It answers what each collector costs and
sees, on every workload of the suite. `backstory-bench report` writes this page; do not edit it.
[The method](method.md) says how the figures were measured, and [the discussion](discussion.md) what
follows from them. `index.html` beside this file has the same tables with plots.
"""

PICTURE = """![Wall time against recall of files and of process starts, one point for each
collector](standing.svg)

The best position is the lower right corner: everything is recorded, at no cost.
"""


def markdown(table: Table) -> str:
    """Formats a table with its heading."""
    if not table.rows:
        return ""
    lines = [f"## {table.title}", "", *([textwrap.fill(table.about, 98), ""] if table.about else [])]
    lines += ["| " + " | ".join(table.head) + " |", "|" + "---|" * len(table.head)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in table.rows
    ]
    return "\n".join(lines) + "\n"


def _item(text: str) -> str:
    """Formats one item of a list, wrapped."""
    return textwrap.fill(text, 98, initial_indent="- ", subsequent_indent="  ")


def summary(results: Results) -> str:
    """Returns everything except the plots."""
    parts = [HEAD, "## Conclusions\n"]
    if plots.standing(results):
        parts.append(PICTURE)
    parts.append("\n".join(_item(line) for line in conclusions(results)) + "\n")
    for make in (tables.groups, tables.against_paper, tables.quality, tables.storage, tables.deep, tables.costs):
        parts.append(markdown(make(results)))
    try:
        table, _, chosen = chosen_of(results)
        parts.append(f"## The subset\n\n{text(table, chosen, results)}\n")
    except Unusable as reason:
        parts.append(f"## The subset\n\n{reason}\n")
    for make in (tables.workloads, tables.left_out, tables.machine):
        parts.append(markdown(make(results)))
    return "\n".join(p for p in parts if p)
