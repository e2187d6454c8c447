"""The cost of the byte engine is the same wherever the documentation or the help states it."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/benchmark/granularity.md"
PLACES = ("crates/cli/src/args/refine.rs", "crates/cli/src/args/record.rs", "docs/limits.md")
FILTER = "ImageMagick, resize"


def measured() -> dict[str, float]:
    """Returns the last column of the table of costs."""
    _, _, table = PAGE.read_text().partition("| command | native | Valgrind |")
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    return {row[0]: float(row[-1]) for row in rows}


def test_every_place_states_the_measured_cost() -> None:
    costs = measured()
    others = [cost for name, cost in costs.items() if name != FILTER]
    stated = f"{min(others):.0f} to {max(others):.0f} times as slow, and {costs[FILTER]:.0f} times with"
    for place in PLACES:
        # Comments and texts of Rust break lines.
        text = re.sub(r"\\n\\|///", " ", (TOP / place).read_text())
        assert stated in " ".join(text.split()), place
