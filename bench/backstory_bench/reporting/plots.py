"""The report's figures, as SVG text for the page."""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter
from scipy.cluster.hierarchy import dendrogram, linkage
from sklearn.decomposition import PCA

from ..analysis.frame import Results
from ..analysis.ratios import by_group
from ..analysis.standing import standings
from ..analysis.subset import METHODS, Subset, standardised
from .tables import collectors

# The same results make the same page, byte for byte.
matplotlib.rcParams["svg.hashsalt"] = "backstory"

RATIOS = (0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50, 100)
"""The possible ticks of the axis of ratios."""


def _svg(figure: Figure) -> str:
    with io.StringIO() as out:
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        text = out.getvalue()
    return text[text.index("<svg") :]


def _label(axes: Axes, labels: list[tuple[tuple[float, float], str]]) -> None:
    """Writes each label beside its point, towards the middle. Labels that would overlap move up."""
    highest: dict[str, float] = {"left": -np.inf, "right": -np.inf}
    for at, text in sorted(labels, key=lambda label: label[0][1]):
        side = "right" if at[0] > 50 else "left"
        y = axes.transData.transform(at)[1] * 72 / axes.figure.dpi
        highest[side] = max(y, highest[side] + 11)
        shift = (-8 if side == "right" else 8, highest[side] - y - 3)
        axes.annotate(text, at, xytext=shift, textcoords="offset points", ha=side, fontsize=8)


def standing(results: Results) -> str:
    """Plots overhead against recall of files and of process starts, one point for each collector.

    The best corner is at the lower right.
    """
    points = [s for s in standings(results) if s.files == s.files]
    if not points:
        return ""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True)
    shares = (("files", "recall of files"), ("starts", "recall of process starts"))
    for axes, (share, title) in zip(panels, shares, strict=True):
        axes.set_yscale("log")
        axes.set_xlim(-4, 104)
        labels = []
        for point in points:
            recall, mean = getattr(point, share), point.cost
            seen = recall == recall
            colour = "C3" if point.collector.startswith("backstory") else "C0"
            at = (100 * recall if seen else 0.0, mean.value)
            if mean.low == mean.low and not mean.at_least:
                axes.plot([at[0]] * 2, [mean.low, mean.high], color=colour, linewidth=0.8)
            axes.plot(*at, "^" if mean.at_least else "o", color=colour, fillstyle="full" if seen else "none")
            labels.append((at, point.collector if seen else f"{point.collector} (records none)"))
        axes.yaxis.set_major_locator(FixedLocator(RATIOS))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.axhline(1, color="gray", linewidth=0.8)
        axes.set_xlabel(f"{title}, percent")
        axes.grid(alpha=0.3)
        _label(axes, labels)
    panels[0].set_ylabel("wall time, ratio to native\n(a triangle was cut off: its ratio is higher)")
    return _svg(figure)


def overhead(results: Results) -> str:
    """Plots each group's ratio by collector, with its interval.

    A triangle marks a censored value.
    """
    means, names = by_group(results.cells), collectors(results)
    groups = sorted({g for g, _ in means}, reverse=True)
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(groups) + 1.5))
    for number, name in enumerate(names):
        # The first collector is at the top, as in the legend.
        shift = 0.7 * (0.5 - number / (len(names) - 1)) if len(names) > 1 else 0.0
        points = [(y + shift, means[g, name]) for y, g in enumerate(groups) if (g, name) in means]
        ys, values = [y for y, _ in points], [m.value for _, m in points]
        spans = [[max(0.0, m.value - (m.low if m.low == m.low else m.value)) for _, m in points], [max(0.0, (m.high if m.high == m.high else m.value) - m.value) for _, m in points]]  # fmt: skip
        axes.errorbar(values, ys, xerr=spans, fmt="o", markersize=4, label=name, color=f"C{number % 10}")
        cut = [(m.value, y) for y, m in points if m.at_least]
        if cut:
            axes.plot(*zip(*cut, strict=True), ">", color=f"C{number % 10}", markersize=8)
    for y in range(0, len(groups), 2):
        axes.axhspan(y - 0.5, y + 0.5, color="0.95", zorder=0)
    axes.set_ylim(-0.5, len(groups) - 0.5)
    axes.set_xscale("log")
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_yticks(range(len(groups)), groups)
    axes.xaxis.set_major_locator(FixedLocator(RATIOS))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("wall time, ratio to native (a triangle was cut off: its ratio is higher)")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return _svg(figure)


def competition(found: list[Subset], chosen: Subset) -> str:
    """Plots figure 2 of the paper: both scores against the size of the subset, by method."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for panel, score in zip(axes, ("representativeness", "accuracy"), strict=True):
        for method in METHODS:
            curve = sorted((s for s in found if s.method == method), key=lambda s: s.k)
            panel.plot([s.k for s in curve], [getattr(s, score) for s in curve], marker=".", label=method)
        panel.axvline(chosen.k, linestyle=":", color="gray")
        panel.axhline(getattr(chosen, score), linestyle=":", color="gray")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_xlabel("size of the subset")
        panel.set_ylabel(f"{score}: root mean square")
    axes[0].legend(fontsize=8)
    return _svg(figure)


def scatter(table: pd.DataFrame, chosen: Subset, groups: Mapping[str, str] | None = None) -> str:
    """Plots figure 3 of the paper: the workloads by two principal components.

    The colours show clusters, or the workloads' groups. The chosen workloads have larger points.
    """
    space = PCA(2, svd_solver="full").fit_transform(standardised(table))
    names = list(table.index)
    kinds = [groups[n] if groups else chosen.chosen[chosen.cluster[n]] for n in names]
    figure, axes = plt.subplots(figsize=(7, 5))
    colours = plt.get_cmap("tab20")
    for number, kind in enumerate(sorted(set(kinds))):
        at = np.array([i for i, k in enumerate(kinds) if k == kind])
        large = np.array([60 if names[i] in chosen.chosen else 14 for i in at])
        # After twenty kinds the colours repeat, with another marker.
        colour, form = colours(number % 20), "o^s"[number // 20 % 3]
        axes.scatter(space[at, 0], space[at, 1], s=large, color=colour, marker=form, label=kind)
        if not groups:
            axes.plot(*space[at].mean(axis=0), "x", color=colour)
    axes.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1, 1))
    axes.set_xlabel("first principal component")
    axes.set_ylabel("second principal component")
    return _svg(figure)


def tree(table: pd.DataFrame) -> str:
    """Plots figure 4 of the paper: the distances between workloads, by Ward's method."""
    figure, axes = plt.subplots(figsize=(8, 0.18 * len(table) + 1))
    dendrogram(
        linkage(standardised(table), "ward"), labels=list(table.index), orientation="right", ax=axes, leaf_font_size=7
    )
    axes.set_xlabel("distance")
    return _svg(figure)
