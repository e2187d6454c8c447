"""Writes the page `docs/scale.md` from measurements.

All numbers of the page come from the measurements, or from the model that is fitted to them. The
page says which of them are extrapolated.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import fields

from . import measure
from .fleet import Parameters
from .measure import MOST, Measurement
from .model import Model, models
from .plan import CORES, MEMORY, Plan

WIDTH = 100
#: The engines by their names in measurements.
ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}
#: Other programs that use more cores than this disturb wall times.
QUIET = 0.2

_BEGIN = """# Scale, measured and planned

<!-- Made by `scripts/scale`: change lake/backstory_fleet/page.py instead. -->

This page is for administrators who plan a [lake](howto/lake.md) for many machines. It answers what
a lake and its questions cost, what larger lakes would cost, and what would break first.

"Measured" is what ran on one machine. "Extrapolated" is what a model of these measurements says,
and no machine has run it.
"""

_METHOD = """
## How it is measured

`scripts/scale` records about 40 ordinary commands, makes fleets like them, asks both engines, and
writes this page. A fleet repeats recorded runs on many machines and days. Its machines share
directories, copies of files, and container layers. The measurements are the rows of `{source}`.

- `s` is wall time. `core s` is the time of all cores, which other programs hardly change. The time
  of Spark's driver is not in it.
- DuckDB runs in one process on all cores, with {duckdb_memory} MB of memory and no limit of time.
  `query --lake` needs `--memory` and `--timeout` for that.
- Spark runs on a cluster of this machine: a master, and workers of one core and {worker_memory} MB.
{others}
- Measurements can be added to earlier ones, so not all rows need be of one version of the engines.
- Each question is asked once. For Spark, the first question is asked twice, because it also finds
  where runs meet, and fills the workers' memory. If only uses were asked for, their row includes
  that.
{lacking}
These commands measure lakes of about these sizes, and add rows to FILE:

```console
{commands}
```

A call records a corpus of its own, unless `--corpus LAKE` names one. `backstory-fleet ask --only`
asks single questions about a lake. `backstory-fleet corpus --to LAKE --out FILE` measures only what
shipping a corpus costs.
"""


def text(measured: list[Measurement], source: str) -> str:
    """The page. Small lakes come first, whenever they were measured. `source` has the rows."""
    measured = sorted(measured, key=lambda one: one.edges)
    found = models(measured)
    plan = Plan(measured, found)
    method = _METHOD.replace("{others}", _others(measured))
    method = method.replace("{lacking}", "".join(f"- {one}\n" for one in _lacking(measured)))
    method = method.replace("{commands}", "\n".join(_commands(measured)))
    method = method.replace("{source}", source)
    method = method.replace("{duckdb_memory}", f"{measure.MEMORY:,}")
    method = method.replace("{worker_memory}", f"{measure.WORKER_MEMORY:,}")
    parts = [_BEGIN, method, _fleet(measured), _lakes(measured), _questions(measured)]
    parts += [_model(found), plan.text()]
    return "".join(map(_wrapped, "".join(parts).splitlines()))


def _others(measured: list[Measurement]) -> str:
    """The remark about what else ran."""
    found = [one for one in measured if (one.engine, one.question) == ("machine", "others")]
    if not found:
        # Earlier measurements did not look.
        return (
            "- The wall times of this version are provisional: other programs used most of the two "
            "cores. The largest lake has no core seconds of writing, because they were not counted "
            "yet."
        )
    most: dict[int, float] = {}
    for one in found:
        most[one.edges] = max(one.cpu, most.get(one.edges, 0.0))
    busy = {edges: cores for edges, cores in most.items() if cores > QUIET}
    quietest = max((cores for edges, cores in most.items() if edges not in busy), default=None)
    lines = []
    if quietest is not None:
        but = "" if not busy else ", but for the lakes named next"
        lines.append(
            f"- Before each engine was asked, other programs used at most {number(quietest)} of "
            f"{found[0].workers} cores{but}."
        )
    lines += [
        f"- Before the lake of {number(edges)} edges was asked, other programs used up to "
        f"{number(cores)} of {found[0].workers} cores. So its wall times are provisional."
        for edges, cores in busy.items()
    ]
    return "\n".join(lines)


def _asked(measured: list[Measurement]) -> dict[tuple[str, int], dict[str, Measurement]]:
    """The answers of each engine about each lake, by their questions."""
    found: dict[tuple[str, int], dict[str, Measurement]] = {}
    for one in measured:
        if one.engine in ENGINES:
            found.setdefault((one.engine, one.edges), {})[one.question] = one
    return found


def _lacking(measured: list[Measurement]) -> Iterator[str]:
    """Remarks about questions that smaller lakes were asked, and lakes that one engine has."""
    asked = _asked(measured)
    for (engine, edges), answers in asked.items():
        smaller = [one for one in measured if one.engine == engine and one.edges < edges]
        lacking = dict.fromkeys(one.question for one in smaller if one.question not in answers)
        if lacking:
            about = f"The lake of {number(edges)} edges has"
            if len(lacking) <= len(answers):
                says = f"no row of {ENGINES[engine]} for these: {'; '.join(lacking)}"
            else:
                says = f"rows of {ENGINES[engine]} for these alone: {'; '.join(answers)}"
            yield f"{about} {says}."
    for edges in _alone(asked, "duckdb"):
        for other in _alone(asked, "spark"):
            if _size(edges) == _size(other):
                yield _unlike(asked["duckdb", edges], asked["spark", other])


def _alone(asked: dict[tuple[str, int], dict[str, Measurement]], engine: str) -> list[int]:
    """The lakes that only this engine was asked about."""
    shared = {edges for name, edges in asked if name != engine}
    return [edges for name, edges in asked if name == engine and edges not in shared]


def _unlike(duckdb: dict[str, Measurement], spark: dict[str, Measurement]) -> str:
    """A remark about two lakes of one size, each asked about by another engine."""
    one, other = next(iter(duckdb.values())), next(iter(spark.values()))
    both = [name for name in duckdb if duckdb[name].links and name in spark and spark[name].links]
    examples = sorted(both, key=lambda name: -abs(math.log(duckdb[name].links / spark[name].links)))
    example = "".join(
        f" For example, `{name}` has {number(duckdb[name].links)} rows in the first and "
        f"{number(spark[name].links)} in the second."
        for name in examples[:1]
    )
    return (
        f"Only DuckDB was asked about the lake of {number(one.edges)} edges, and only Spark about "
        f"the lake of {number(other.edges)}. They are different fleets, so their rows do not "
        f"compare the engines.{example}"
    )


def _commands(measured: list[Measurement]) -> list[str]:
    """The commands with the options that measure lakes of these sizes."""
    engines: dict[int, list[str]] = {}
    for engine, edges in _asked(measured):
        engines.setdefault(edges, []).append(engine)
    lakes: dict[tuple[str, ...], list[int]] = {}
    for edges, names in engines.items():
        lakes.setdefault(tuple(sorted(names)), []).append(edges)
    lines = []
    for names, sizes in lakes.items():
        wanted = dict.fromkeys(map(_size, sizes))
        line = f"$ scripts/scale FILE --sizes {','.join(wanted)}"
        if names != tuple(ENGINES):
            line += f" --engines {','.join(names)}"
        largest = max(wanted, key=float)
        if "spark" in names and float(largest) > MOST:
            line += f" --most {largest}"
        lines.append(line)
    return lines


def _size(edges: int) -> str:
    """The size that was probably asked for: 1 or 3 times a power of ten."""
    half = round(2 * math.log10(edges))
    return f"{3 if half % 2 else 1}e{half // 2}"


def _wrapped(line: str) -> str:
    """A line of at most 100 columns; tables stay as they are."""
    if len(line) <= WIDTH or line.startswith("|"):
        return line + "\n"
    indent = "  " if line.startswith("- ") else ""
    lines = textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """A number with three digits that matter."""
    if value == 0:
        return "0"
    if value >= 1e6:
        digits = f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
        mantissa, exponent = digits.split("e")
        return f"{mantissa.rstrip('0').rstrip('.')} × 10^{exponent}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _fleet(measured: list[Measurement]) -> str:
    checks = [one for one in measured if one.engine == "check"]
    sizes = sorted({one.edges for one in checks})
    names = list(dict.fromkeys(one.question for one in checks))
    cells = {(one.question, one.edges): one for one in checks}
    rows = []
    for name in names:
        row = [name]
        for size in sizes:
            one = cells[name, size]
            mark = "" if one.distance <= one.bound else " (too far)"
            row.append(f"{one.distance:.3f} of {one.bound:.3f}{mark}")
        rows.append(row)
    given = Parameters()
    assumed = ", ".join(f"`{one.name}` {getattr(given, one.name)}" for one in fields(Parameters))
    return f"""
## The fleets and their corpus

The distance of Kolmogorov and Smirnov between a fleet and the recorded runs, and its bound. The
last row compares two shares.
{table(["quantity", *(f"{number(size)} edges" for size in sizes)], rows)}
Nothing recorded decides about these parameters of a fleet; they are assumptions: {assumed}.
"""


def _lakes(measured: list[Measurement]) -> str:
    rows = []
    for one in measured:
        if (one.engine, one.question) != ("lake", "all tables"):
            continue
        same = {
            other.question: other
            for other in measured
            if other.engine == "lake" and other.edges == one.edges
        }
        written = same["write"]
        rows.append(
            [
                number(one.edges),
                number(one.runs),
                f"{same['make'].bytes} × {same['make'].rounds}",
                number(one.files),
                f"{one.bytes / one.edges:.1f}",
                f"{same['the table edges'].bytes / one.edges:.1f}",
                number(one.edges / max(written.seconds, 1e-9)),
                number(written.cpu / one.edges * 1e6) if written.cpu else "",
            ]
        )
    head = ["edges", "runs", "machines × days", "data files", "bytes an edge"]
    head += ["in `edges` alone", "edges written a second", "core s for 10^6 edges"]
    return f"""
## Lakes, measured

"Bytes an edge" are those of all tables over the number of edges. The goal is at most 16. Small
lakes have small files, which compress less. Writing is that of `ship`, without its questions to a
store.
{table(head, rows)}{_shipments(measured)}"""


def _shipments(measured: list[Measurement]) -> str:
    """The costs of whole shipments, which do more than write Parquet."""
    found = {(one.question, one.edges): one for one in measured if one.engine == "lake"}
    rows = []
    for (question, edges), one in found.items():
        if question == "ship":
            rate = number(edges / max(one.seconds, 1e-9))
            costs = [number(one.seconds), number(one.cpu), rate]
            again = number(found["ship again", edges].seconds)
            rows.append([number(one.runs), number(edges), *costs, again])
    if not rows:
        return """
Whole shipments by `backstory store ship`, with their questions to a store, were not measured here.
"""
    head = ["runs", "edges", "s", "core s", "edges shipped a second", "s, without a new run"]
    return f"""
Whole shipments of recorded runs by `backstory store ship`: it starts, asks the store, looks for
known runs, and writes. The last column is a second shipment, which finds no new run.
{table(head, rows)}"""


def _questions(measured: list[Measurement]) -> str:
    rows = []
    for one in measured:
        if one.engine not in ENGINES:
            continue
        rows.append(
            [
                ENGINES[one.engine] + (f", {one.workers} workers" * (one.engine == "spark")),
                number(one.edges),
                one.question,
                number(one.seconds),
                number(one.cpu) if one.cpu else "",
                number(one.links) if one.links else "",
                str(one.rounds or ""),
                number(one.shuffled / 1e6) if one.engine == "spark" and one.cpu else "",
                f"{one.skew:.1f}" if one.skew else "",
            ]
        )
    head = ["engine", "edges", "question", "s", "core s", "rows", "rounds", "MB shuffled", "skew"]
    return f"""
## Questions, measured

`of` is the ancestry of files, and `uses` what came from one. A lineage has a row for each link.
"Skew" is the most bytes that a task of the largest shuffle reads, over the mean. Near 1 the tasks
have even work. The causes of higher values were not examined.
{table(head, rows)}"""


def _model(found: list[Model]) -> str:
    rows = []
    for one in found:
        terms = " + ".join(
            f"{factor:.2g} for each {name}" for name, factor in one.factors.items() if factor
        )
        beyond = "" if one.beyond is None else f"{one.beyond:.0%}"
        counts = f"{one.fitted}, {one.checked}"
        rows.append([one.kind.name, terms, counts, f"{one.median:.0%}", f"{one.worst:.0%}", beyond])
    head = ["kind", "core s", "fitted, checked", "median error", "worst error", "error beyond"]
    return f"""
## The model, fitted

Every second measurement decided about the factors, and the others checked them. "Error beyond" is
the worst error for the largest lake if only smaller lakes decide: this is the error that an
extrapolation has at least.
{table(head, rows)}
The plan below has workers with {CORES} cores and {MEMORY / 1e9:.0f} GB of memory.
"""
