"""`report` writes docs/benchmark: an HTML page that needs no network, a summary, and its
picture.
"""

from __future__ import annotations

from pathlib import Path

from ..analysis.frame import load
from . import plots
from .page import page
from .summary import summary


def write(results: Path, out: Path) -> list[Path]:
    """Writes `index.html`, `README.md` and `standing.svg` into `out`. Returns their paths.

    Without quality rows there is no picture.
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
