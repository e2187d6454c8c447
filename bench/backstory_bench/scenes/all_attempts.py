"""The calls and the time of all attempts at a request, and what copies of the start spare.

An attempt starts the program, or begins in a copy of the started program. A copy spares one start.
Builds before 2026-11-30 made no copies. Of their series, the table has what copies could have
spared at most: the starts of further attempts.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

Row = Mapping[str, object]


def number(row: Row, field: str) -> float | None:
    """Returns a number of a row. `None`: the series does not have the column."""
    value = row.get(field)
    return None if value in (None, "") else float(str(value))


def executed(row: Row) -> float | None:
    """Returns the calls of all attempts of a row. `None`: the series does not have them."""
    known = number(row, "executed_calls")
    return number(row, "calls") if known is None and number(row, "tries") == 1 else known


def servers(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Returns the servers in the order of the rows, with their rows that count all attempts."""
    own = [row for row in rows if row.get("kind") == "server" and number(row, "executed_calls") is not None]
    for name in dict.fromkeys(str(row["case"]) for row in own):
        yield name, [row for row in own if row["case"] == name]


def total(rows: Sequence[Row], field: str) -> float | None:
    """Returns the sum of a column. `None`: a row does not have it."""
    values = [number(row, field) for row in rows]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def first_starts(rows: Sequence[Row]) -> float | None:
    """Returns the calls of one start for each request.

    Earlier series have no column `start_calls`. All starts of a request have about the same calls.
    """
    known = total(rows, "start_calls")
    if known is not None:
        return known
    parts = [(number(row, "executed_start_calls"), number(row, "tries")) for row in rows]
    return sum(calls / tries for calls, tries in parts if calls is not None and tries)


def percent(part: float | None, whole: float | None) -> str:
    """Returns a share with two digits; empty if it is not known."""
    if part is None or not whole:
        return ""
    share = 100 * part / whole
    digits = 2 if share < 1 else 1 if share < 10 else 0
    return f"{share:.{digits}f} %"


def attempts_table(rows: Sequence[Row]) -> list[str]:
    """Returns the shares of the recorded calls: of the last attempt, and of all attempts.

    Servers whose requests all took one attempt are left out.
    """
    lines = [
        "| program | requests | last attempt: median | largest | all attempts: median | largest |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, own in servers(rows):
        if all(number(row, "tries") == 1 for row in own):
            continue
        shares = [
            [(number(row, field) or 0) / (number(row, "recorded_calls") or 1) for row in own]
            for field in ("calls", "executed_calls")
        ]
        cells = [percent(value, 1) for of in shares for value in (statistics.median(of), max(of))]
        lines.append(f"| {name} | {len(own)} | {' | '.join(cells)} |")
    return lines


def copies(rows: Sequence[Row]) -> float | None:
    """Returns the number of attempts that began in copies. `None`: the build made no copies."""
    return total(rows, "executed_in_copies")


def spared_by_copies(rows: Sequence[Row], of_start: str) -> float | None:
    """Returns what copies spared: a start for each. `of_start`: the column of its cost."""
    parts = [(number(row, "executed_in_copies"), number(row, of_start)) for row in rows]
    known = [made * cost for made, cost in parts if made is not None and cost is not None]
    return sum(known) if len(known) == len(parts) else None


def starts_table(rows: Sequence[Row]) -> list[str]:
    """Returns what copies of the start spare, as a share of what all attempts would cost without.

    Series before 2026-11-29 did not measure the time.
    """
    lines = [
        "| program | requests | attempts | in copies | calls spared | time spared | time of a start (median) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    found: list[tuple[float, str]] = []
    for name, own in servers(rows):
        tries, calls, seconds = (total(own, field) for field in ("tries", "executed_calls", "executed_s"))
        made = copies(own)
        if made is None:
            in_starts, first = total(own, "executed_start_calls"), first_starts(own)
            spared = None if in_starts is None or first is None else max(in_starts - first, 0)
            started, first_s = total(own, "executed_start_s"), total(own, "start_s")
            spared_s = None if started is None or first_s is None else max(started - first_s, 0)
        else:
            spared, spared_s = (spared_by_copies(own, field) for field in ("start_calls", "start_s"))
            calls, seconds = (calls or 0) + (spared or 0), (seconds or 0) + (spared_s or 0)
        times = [value for row in own if (value := number(row, "start_s")) is not None]
        median = f"{statistics.median(times):.2f} s" if times else ""
        in_copies = "–" if made is None else f"{made:.0f}"
        shares = [percent(spared, calls), percent(spared_s, seconds)]
        cells = [str(len(own)), f"{tries or 0:.0f}", in_copies, *shares, median]
        found.append(((spared or 0) / (calls or 1), f"| {name} | {' | '.join(cells)} |"))
    found.sort(key=lambda one: -one[0])
    return lines + [line for _, line in found]
