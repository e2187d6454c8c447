"""Keeps the rows of a table that have a height."""

import sys


def clean(source: str, target: str) -> None:
    with open(source) as rows, open(target, "w") as out:
        for row in rows:  # <b>no markup</b>
            if row.strip() and row.split(",")[1].strip():
                out.write(row)


clean(*sys.argv[1:])
