"""The report's tables, as rows of cells. The page and the summary contain the same tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import deep_share
from ..analysis.frame import Results, holds
from ..analysis.model import models
from ..analysis.ratios import by_group, by_workload, common_groups, total, total_of_all
from ..paper_data import paper_table
from ..workloads import PAPER_GROUPS

OURS_IN_PAPER = {"fsatrace": "fsatrace", "care": "care", "strace": "strace", "rr": "rr", "reprozip": "reprozip"}


@dataclass(frozen=True)
class Table:
    """A table with its heading and an explanation."""

    title: str
    about: str
    head: list[str]
    rows: list[list[str]]
    sums: int = 0
    """The number of rows at the end that are totals. They are not sorted with the others."""
    prose: bool = False
    """True if the last column is text, which is broken into lines."""


def collectors(results: Results) -> list[str]:
    """Returns the measured collectors: backstory's modes first, then by their total."""
    means = total(results.cells)
    names = [str(c) for c in results.cells["collector"].unique() if c != "none"]
    return sorted(names, key=lambda c: (not c.startswith("backstory"), means[c].value if c in means else np.inf, c))


def groups(results: Results) -> Table:
    """Returns the geometric means of the ratios of wall time, by group."""
    cells, names = results.cells, collectors(results)
    means, sums = by_group(cells), total(cells)
    order = [g for g in PAPER_GROUPS if g in set(cells["group"])]
    order += sorted(set(map(str, cells["group"])) - set(order))
    rows = [[g, *(str(means.get((g, c), "–")) for c in names)] for g in order]
    common = common_groups(cells)
    rows.append(
        [f"geometric mean of the {len(common)} groups that all finished", *(str(sums.get(c, "–")) for c in names)]
    )
    if len(common) < len(order):
        whole = total_of_all(cells)
        rows.append([f"geometric mean of all {len(order)} groups", *(str(whole.get(c, "–")) for c in names)])
    about = "Wall time (or the figure that the program prints) as a ratio to native: geometric mean over the group's workloads, with a 95 % interval."
    return Table("Overhead by group", about, ["group", *names], rows, sums=len(rows) - len(order))


def workloads(results: Results) -> Table:
    """Returns all ratios of wall and processor time."""
    cells, names = results.cells, collectors(results)
    wall, cpu = by_workload(cells), by_workload(cells, "log_cpu")
    native = cells[(cells["collector"] == "none") & (cells["mark"] == "ok")].groupby("workload")["wall_s"].median()
    rows = []
    for w in sorted(map(str, cells["workload"].unique())):
        seconds = f"{native[w]:.2f}" if w in native.index else "–"
        cellsof = [
            f"{wall[w, c]}; cpu {cpu[w, c].value:.2f}" if (w, c) in wall and (w, c) in cpu else "–" for c in names
        ]
        rows.append([w, seconds, *cellsof])
    return Table(
        "All workloads", "Wall time and processor time as ratios to native.", ["workload", "native, s", *names], rows
    )


def storage(results: Results) -> Table:
    """Returns the sizes of logs, the memory, and the background time."""
    cells = results.cells
    rows = []
    for name in ["none", *collectors(results)]:
        part = cells[(cells["collector"] == name) & (cells["mark"] == "ok")]
        if part.empty:
            continue
        per_second = part["log_bytes"].astype(float) / part["native_wall"]
        memory = part["memory_bytes"].astype(float).median() / 2**20
        settle = part["settle_s"].astype(float)
        rows.append(
            [name, f"{per_second.median() / 1e6:.2f}", f"{memory:.1f}", f"{settle.median():.2f}", f"{settle.max():.2f}"]
        )
    head = [
        "collector",
        "log, MB per native second (median)",
        "peak memory, MB (median)",
        "background, s (median)",
        "longest",
    ]
    return Table(
        "Storage and memory",
        "Background time is the time from the end of the command to the end of the collector's last process.",
        head,
        rows,
    )


def deep(results: Results) -> Table:
    """Returns the deep logs before compression, beside the input and output that they describe."""
    cells = results.cells
    rows = []
    if deep_share.FIELDS[0] in cells:
        part = cells[cells[deep_share.FIELDS[0]].notna() & (cells["mark"] == "ok")]
        for workload, own in part.groupby("workload"):
            share = deep_share.of_rows([{str(k): v for k, v in row.items()} for row in own.to_dict("records")])
            if share is not None:
                line = [f"{share.moved / len(own):.0f}", f"{share.records / len(own):.0f}"]
                rows.append([str(workload), *line, f"{share.to_io:.3f}", f"{100 * share.other:.2f} %"])
    about = (
        "Bytes that calls read and wrote in a run, and bytes of the deep log before compression. A digest or a reference in the "
        "log stands for many bytes. The last column is the part of the log that is neither input nor output. "
        "That of the paper on C2SR is 2.12 %."
    )
    head = ["workload", "bytes of I/O", "log before compression", "log / I/O", "of the log not I/O"]
    return Table("Deep logs", about, head, rows)


def quality(results: Results) -> Table:
    """Returns precision and recall over all workloads, which have the same weight."""
    found = results.quality
    if found.empty or "files_true" not in found:
        return Table("Quality", "Not measured.", ["collector"], [])
    rows = []
    for name, part in found[found["files_true"].notna()].groupby("collector"):
        recall = (part["files_recalled"] / part["files_true"]).mean()
        precision = (part["files_right"] / part["files_found"].replace(0, np.nan)).mean()
        line = [str(name), str(len(part)), f"{recall:.4f}", f"{precision:.4f}"]
        starts = part[part["starts_recalled"].notna()] if "starts_recalled" in part else part.iloc[:0]
        if len(starts):
            line.append(f"{(starts['starts_recalled'] / starts['starts_true'].replace(0, np.nan)).mean():.4f}")
            line.append(f"{(starts['starts_right'] / starts['starts_found'].replace(0, np.nan)).mean():.4f}")
        else:
            line += ["–", "–"]
        rows.append(line)
    head = [
        "collector",
        "workloads",
        "files: recall",
        "files: precision",
        "process starts: recall",
        "process starts: precision",
    ]
    about = (
        "The reference is what the workload itself states (gcc -MD, Snakemake's metadata, generators), else strace of another run. "
        "It contains files that are used, not looked up. Process starts are pairs of program names. "
        "Collectors whose log is not read as a set of files are left out."
    )
    return Table("Quality", about, head, rows)


def against_paper(results: Results) -> Table:
    """Returns table 4 of the paper beside our results, in percent of overhead."""
    means = by_group(results.cells)
    ours = {c for _, c in means}
    names = [c for c in OURS_IN_PAPER if c in ours]
    rows = []
    for line in paper_table("paper_table4.csv"):
        group = line["group"]
        row = [group]
        for c in names:
            m = means.get((group, c)) or (total(results.cells).get(c) if group.startswith("Total") else None)
            row += [line[c], f"{'≥ ' if m.at_least else ''}{100 * (m.value - 1):z.0f}" if m else "–"]
        rows.append(row)
    head = ["group", *(f"{c}, {who}" for c in names for who in ("paper", "here"))]
    return Table(
        "Comparison with table 4 of the paper",
        f"Overhead of wall time in percent. The paper used another machine and other versions. The total here is over {len(common_groups(results.cells))} groups.",
        head,
        rows,
        sums=sum(row[0].startswith("Total") for row in rows),
    )


def costs(results: Results) -> Table:
    """Returns the fitted costs of calls, by kind."""
    rows = []
    found = models(results)
    kinds = [k for k in (found[0].cost if found else {}) if any(m.cost[k] > 0 for m in found)]
    for m in found:
        error = f"× {np.exp(m.error):.2f}"
        rows.append(
            [
                m.collector,
                f"{1000 * m.start_s:.1f}{'' if m.start_measured else ' (fitted)'}",
                *(f"{1e6 * m.cost[k]:.2f}" for k in kinds),
                str(m.workloads),
                error,
            ]
        )
    head = ["collector", "start, ms", *(f"{k}, µs" for k in kinds), "workloads", "standard error"]
    about = (
        "The model is: ratio − 1 = Σ calls per second × cost + start / native time. The start is the time added to a command "
        "without work. If it was not measured, it is fitted. The error is that of workloads left out of the fit."
    )
    return Table("The cost of a call", about, head, rows)


def left_out(results: Results) -> Table:
    """Returns everything that was not measured or failed, with the reasons."""
    rows: list[list[str]] = []
    for plan in results.plans:
        rows += [[name, "", "left out", why] for name, why in plan.get("skipped_collectors", {}).items()]
        rows += [["", name, "left out", why] for name, why in plan.get("skipped_workloads", {}).items()]
    cells = results.rows[(results.rows["kind"] == "cell") & (results.rows["mark"] != "ok")]
    for (c, w, mark), part in cells.groupby(["collector", "workload", "mark"]):
        rows.append([str(c), str(w), str(mark), str(part.iloc[0]["why"])])
    disturbed = holds(holds(results.rows, "block", "kept"), "block", "disturbed")
    for w, part in disturbed.groupby("workload"):
        rows.append(
            [
                "none",
                str(w),
                "disturbed",
                f"the native runs of {len(part)} blocks differ, although the blocks were repeated",
            ]
        )
    return Table("Omissions and failures", "", ["collector", "workload", "mark", "why"], rows, prose=True)


def machine(results: Results) -> Table:
    """Returns the machine, the versions and the options.

    Values that differ between sittings are listed.
    """
    found: dict[str, list[str]] = {}
    for plan in results.plans:
        options = {f"option: {key}": value for key, value in plan.get("options", {}).items()}
        for key, value in {**plan.get("machine", {}), "started": plan.get("started"), **options}.items():
            several = {f"{key}: {k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value}
            for name, one in several.items():
                found.setdefault(name, []).append(str(one))
    rows = [[name, "; ".join(dict.fromkeys(values))] for name, values in found.items()]
    return Table("Machine, versions and options", "", ["what", "value"], rows, prose=True)
