"""What the intervals support, and nothing else."""

from __future__ import annotations

import numpy as np

from ..analysis.frame import Results, holds
from ..analysis.ratios import Mean, by_group, common_groups, total

OURS = "backstory"


def _apart(a: Mean, b: Mean) -> bool:
    """Whether `a` is surely below `b`; what was cut off is surely below nothing."""
    return not a.at_least and not np.isnan(a.high) and not np.isnan(b.low) and a.high < b.low


def conclusions(results: Results) -> list[str]:
    """Sentences, each held by its 95 % interval."""
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
        if not np.isnan(mean.low):
            found.append(f"Over {len(common_groups(cells))} groups {OURS} takes {mean} times the native time.")
        slower = [c for c in sums if not c.startswith(OURS) and _apart(mean, sums[c])]
        if slower:
            found.append(
                f"Over all groups {OURS} is faster than {', '.join(sorted(slower))}: the intervals do not meet."
            )
    for (group, c), m in sorted(groups.items()):
        own = groups.get((group, OURS))
        if own and not c.startswith(OURS) and _apart(m, own):
            found.append(f"In {group}, {c} ({m}) is faster than {OURS} ({own}).")
    if not found:
        found.append(f"Nothing yet: in {rounds} iterations at most, no interval lies apart from that of {OURS}.")
    fewest = min((m.rounds for m in groups.values()), default=0)
    if fewest < rounds:
        found.append(f"Some groups have fewer than {rounds} iterations; what has no interval has one.")
    return found
