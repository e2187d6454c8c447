"""`report`: docs/benchmark from results: one HTML page that needs no network, one Markdown summary, by one command."""

from __future__ import annotations

from pathlib import Path

from ..analysis.frame import load
from .page import page
from .summary import summary


def write(results: Path, out: Path) -> list[Path]:
    """Writes `index.html` and `README.md` into `out` from the results; says which files."""
    found = load(results)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for name, text in (("index.html", page(found)), ("README.md", summary(found))):
        (out / name).write_text(text)
        made.append(out / name)
    return made
