"""The Markdown summary."""

from __future__ import annotations

from ..analysis.frame import Results
from ..analysis.subset import chosen_of, text
from ..matrix.journal import Unusable
from . import tables
from .conclusions import conclusions
from .tables import Table

HEAD = """# The benchmark suite, and where backstory stands in it

Made by `backstory-bench report`; do not edit. What is measured and how: [method.md](method.md). What the figures say:
[discussion.md](discussion.md). The same with plots: `index.html`.
"""


def markdown(table: Table) -> str:
    """A table with its heading."""
    if not table.rows:
        return ""
    lines = [f"## {table.title}", "", *([table.about, ""] if table.about else [])]
    lines += ["| " + " | ".join(table.head) + " |", "|" + "---|" * len(table.head)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in table.rows
    ]
    return "\n".join(lines) + "\n"


def summary(results: Results) -> str:
    """Everything but the plots."""
    parts = [HEAD, "## What can be concluded\n\n" + "\n".join(f"- {line}" for line in conclusions(results)) + "\n"]
    for make in (tables.groups, tables.against_paper, tables.quality, tables.storage, tables.costs):
        parts.append(markdown(make(results)))
    try:
        table, _, chosen = chosen_of(results)
        parts.append(f"## The subset\n\n{text(table, chosen, results)}\n")
    except Unusable as reason:
        parts.append(f"## The subset\n\n{reason}\n")
    for make in (tables.workloads, tables.left_out, tables.machine):
        parts.append(markdown(make(results)))
    return "\n".join(p for p in parts if p)
