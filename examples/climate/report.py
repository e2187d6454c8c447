"""Writes the report from a table of "name mean" lines."""

import sys

rows = [line.rsplit(" ", 1) for line in open(sys.argv[1], encoding="utf-8")]
warmest = max(rows, key=lambda row: float(row[1]))
with open(sys.argv[2], "w", encoding="utf-8") as report:
    report.write("Mean temperature of 2025\n\n")
    for name, mean in rows:
        report.write(f"{name:<14}{float(mean):6.1f}\n")
    report.write(f"\nWarmest: {warmest[0]}\n")
