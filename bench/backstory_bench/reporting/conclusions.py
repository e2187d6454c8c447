"""States the conclusions that the intervals support."""

from __future__ import annotations

import numpy as np

from ..analysis.frame import Results, holds
from ..analysis.ratios import Mean, by_group, common_groups, total
from ..analysis.standing import standings

OURS = "backstory"


def _apart(a: Mean, b: Mean) -> bool:
    """Returns true if the interval of `a` lies below that of `b`. A censored `a` is never below."""
    return not a.at_least and not np.isnan(a.high) and not np.isnan(b.low) and a.high < b.low


def _cost_and_sight(results: Results) -> list[str]:
    """Returns a sentence for each collector: its cost, and its recall of files and process
    starts.
    """
    found = []
    order = sorted(standings(results), key=lambda s: (s.collector != OURS, not s.collector.startswith(OURS)))
    for s in order:
        if np.isnan(s.cost.low) and not s.cost.at_least:
            continue
        sight = f", and sees {s.sees()}" if s.files == s.files else ""
        found.append(f"{s.collector} takes {s.cost} times the native time{sight}.")
    if found:
        groups = len(common_groups(results.cells))
        found[0] = f"Over {groups} groups {found[0]}"
    return found


def conclusions(results: Results) -> list[str]:
    """Returns sentences, each supported by its 95 % interval."""
    cells = results.cells
    sums, groups = total(cells), by_group(cells)
    rounds = max((m.rounds for m in groups.values()), default=0)
    found = []
    if rounds < 2:
        found.append("One iteration gives no interval: these are rows, not conclusions.")
    kept = holds(results.rows, "block", "kept")
    share = len(holds(kept, "block", "disturbed")) / max(1, len(kept))
    if share > 0.1:
        found.append(
            f"The machine was not quiet: in {100 * share:.0f} % of the blocks the native runs differ although they were repeated."
        )
    if OURS in sums:
        mean = sums[OURS]
        found += _cost_and_sight(results)
        slower = [c for c in sums if not c.startswith(OURS) and _apart(mean, sums[c])]
        if slower:
            found.append(
                f"Over all groups {OURS} is faster than {', '.join(sorted(slower))}: the intervals do not meet."
            )
    faster: dict[str, list[str]] = {}
    for (group, c), m in sorted(groups.items()):
        own = groups.get((group, OURS))
        if own and not c.startswith(OURS) and _apart(m, own):
            faster.setdefault(c, []).append(f"{group} ({m}; {OURS} {own})")
    found += [f"{c} is faster than {OURS} in: {', '.join(where)}." for c, where in sorted(faster.items())]
    if not found:
        found.append(f"Nothing yet: in {rounds} iterations at most, no interval lies apart from that of {OURS}.")
    fewest = min((m.rounds for m in groups.values()), default=0)
    if fewest < rounds:
        found.append(
            f"Some groups have fewer than {rounds} iterations; a mean without an interval comes from one iteration."
        )
    return found
