"""IO bench postmark: creates, reads, appends to and removes many small files."""

from __future__ import annotations

from pathlib import Path

from .base import Instance, program


def _prepare(root: Path) -> None:
    (root / "config").write_text(
        "set size 500 10000\nset number 500\nset transactions 2000\nset seed 42\nset location mail\nrun\nquit\n"
    )


INSTANCES = [
    Instance(
        "IO bench postmark",
        "main",
        "Postmark: 500 files, 2,000 transactions a loop",
        "mkdir -p mail; postmark config >postmark.txt; grep -q 'seconds of transactions' postmark.txt",
        (program("postmark"),),
        _prepare,
        ("mail", "postmark.txt"),
    )
]
