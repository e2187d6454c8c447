#!/bin/sh
# The whole analysis, in the environment that is on the path.
set -e
python clean.py
python fit.py
python figure.py
