"""The tables of papers in the data files."""

from __future__ import annotations

import csv
from importlib import resources


def paper_table(name: str) -> list[dict[str, str]]:
    """Reads a table of a paper from the data files, without the line that names its source."""
    text = resources.files("backstory_bench.data").joinpath(name).read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
