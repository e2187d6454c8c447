#!/bin/sh
# A small pipeline as people write them: compile a tool, compute, join, sort, report.
set -e
cc -O2 -o tally tally.c
./tally < measurements.csv | sort -t, -k1,1 > means.csv
join -t, stations.csv means.csv | awk -F, '{ print $2, $4 }' | sort -k2,2nr > table.txt
if command -v python3 > /dev/null; then
    python3 report.py table.txt report.txt
else
    awk '{ printf "%-14s%6.1f\n", $1, $2 }' table.txt > report.txt
fi
