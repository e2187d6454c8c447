"""The HTML page: sortable tables, and plots as SVG. It loads nothing from the network."""

from __future__ import annotations

import html

from ..analysis.frame import Results
from ..analysis.subset import chosen_of, members, misses, scores
from ..matrix.journal import Unusable
from ..paper_data import paper_table
from . import plots, tables
from .conclusions import conclusions
from .tables import Table

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; font-size: 13px; } .wide { overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 3px 8px; text-align: left; white-space: nowrap; vertical-align: top; background: #fff; }
th { cursor: pointer; background: #f4f4f4; } th:first-child, td:first-child { position: sticky; left: 0; }
th[data-way=up]::after { content: " ▲"; } th[data-way=down]::after { content: " ▼"; }
.prose td:last-child { white-space: normal; min-width: 20rem; } tfoot td { border-top: 1px solid #222; font-weight: bold; }
svg { max-width: 100%; height: auto; }
"""
SCRIPT = """
const text = cell => cell.textContent, number = cell => text(cell).match(/^(?:[≥×] )?([-+]?[0-9.]+)/);
for (const th of document.querySelectorAll('th')) th.addEventListener('click', () => {
  const table = th.closest('table'), column = [...th.parentNode.children].indexOf(th), body = table.tBodies[0];
  const up = th.dataset.way !== 'up';
  for (const other of th.parentNode.children) delete other.dataset.way;
  th.dataset.way = up ? 'up' : 'down';
  const cells = [...body.rows].map(row => row.cells[column]), there = cells.filter(cell => !['–', ''].includes(text(cell)));
  const by = there.every(number) ? (a, b) => number(a)[1] - number(b)[1] : (a, b) => text(a).localeCompare(text(b));
  there.sort((a, b) => up ? by(a, b) : by(b, a));
  body.append(...[...there, ...cells.filter(cell => !there.includes(cell))].map(cell => cell.parentNode));
});
"""


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.head)
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in table.rows]
    at = len(lines) - table.sums
    title, about = (
        f"<h2>{html.escape(table.title)}</h2>" if table.title else "",
        f"<p>{html.escape(table.about)}</p>" if table.about else "",
    )
    kind, foot = " class=prose" if table.prose else "", f"<tfoot>{''.join(lines[at:])}</tfoot>" if table.sums else ""
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines[:at])}</tbody>{foot}"
    return f"{title}{about}<div class=wide><table{kind}>{body}</table></div>\n"


def _subset(results: Results) -> str:
    try:
        table, found, chosen = chosen_of(results)
    except Unusable as reason:
        return f"<h2>The subset</h2><p>{html.escape(str(reason))}</p>"
    groups = dict(zip(results.cells["workload"], results.cells["group"], strict=True))
    parts = [
        _table(
            Table("The subset", scores(chosen), ["weight", "representative", "members"], members(chosen), prose=True)
        ),
        *(_table(Table("", f"{what}:", ["collector", "miss"], rows)) for what, rows in misses(table, chosen, results)),
        "<h3>Which method, how many (the paper's figure 2)</h3>" + plots.competition(found, chosen),
        "<h3>Clusters (figure 3a)</h3>" + plots.scatter(table, chosen),
        "<h3>Groups (figure 3b)</h3>" + plots.scatter(table, chosen, groups),
        "<h3>Distances (figure 4)</h3>" + plots.tree(table),
    ]
    theirs = paper_table("paper_table5.csv")
    rows = [[f"{row['weight']} %", f"{row['group']}/{row['representative']}"] for row in theirs]
    parts.append(_table(Table("The paper's subset (its table 5)", "Ward, k = 14.", ["weight", "representative"], rows)))
    return "\n".join(parts)


def page(results: Results) -> str:
    """Returns the whole page."""
    said = "".join(f"<li>{html.escape(line)}</li>" for line in conclusions(results))
    body = [
        "<h1>The benchmark suite, and where backstory stands in it</h1><h2>Conclusions</h2>",
        plots.standing(results),
        f"<ul>{said}</ul>",
        _table(tables.groups(results)),
        plots.overhead(results),
        *(
            _table(make(results))
            for make in (tables.against_paper, tables.quality, tables.storage, tables.deep, tables.costs)
        ),
        _subset(results),
        *(_table(make(results)) for make in (tables.workloads, tables.left_out, tables.machine)),
    ]
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Benchmark of provenance collectors</title>"
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(body) + f"<script>{SCRIPT}</script></body></html>\n"
    )
