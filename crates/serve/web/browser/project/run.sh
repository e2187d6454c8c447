#!/bin/sh
# A small project with one file of each kind that the page shows in its own way.
set -e
python3 clean.py stations.csv clean.csv
python3 picture.py clean.csv picture.png
sort -r clean.csv >sorted.csv
wc -l <sorted.csv >count.txt
