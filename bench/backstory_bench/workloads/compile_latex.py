"""Compile w/latex: a paper of a few pages with a table of contents, twice for its references."""

from __future__ import annotations

from pathlib import Path

from .base import Instance, program

GROUP = "Compile w/latex"


def _prepare(root: Path) -> None:
    sections = "".join(
        f"\\section{{Part {i}}}\\label{{s{i}}} See part~\\ref{{s{(i + 1) % 12}}}. "
        + " ".join(
            f"Sentence {k} of part {i} has some words, and $x_{{{k}}}^2 + \\sum_{{j=0}}^{{{i}}} y_j = {k}$."
            for k in range(60)
        )
        + "\n\n"
        for i in range(12)
    )
    (root / "paper.tex").write_text(
        "\\documentclass{article}\n\\usepackage{graphicx}\n\\begin{document}\n\\tableofcontents\n"
        + sections
        + "\\end{document}\n"
    )


INSTANCES = [
    Instance(
        GROUP,
        "paper",
        "pdflatex of a paper, twice",
        "for pass in 1 2; do pdflatex -interaction=batchmode paper.tex; done",
        (program("pdflatex", "texlive-latex-base"),),
        _prepare,
        ("paper.aux", "paper.log", "paper.pdf", "paper.toc"),
        ("paper.aux", "paper.toc"),
        before="export SOURCE_DATE_EPOCH=1700000000 FORCE_SOURCE_DATE=1",
    )
]
