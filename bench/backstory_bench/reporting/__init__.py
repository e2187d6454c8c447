"""`report`: docs/benchmark from results: one HTML page that needs no network, one Markdown summary and its picture, by one command."""

from __future__ import annotations

from pathlib import Path

from ..analysis.frame import load
from . import plots
from .page import page
from .summary import summary


def write(results: Path, out: Path) -> list[Path]:
    """Writes `index.html`, `README.md` and `standing.svg` into `out` from the results; says which files.

    There is no picture where no quality was measured.
    """
    found = load(results)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    texts = [("index.html", page(found)), ("README.md", summary(found))]
    if picture := plots.standing(found):
        texts.append(("standing.svg", picture))
    for name, text in texts:
        (out / name).write_text(text)
        made.append(out / name)
    return made
