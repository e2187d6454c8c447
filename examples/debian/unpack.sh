#!/bin/sh
# Unpacks the source package that `scripts/setup test` has fetched.
set -e
dpkg-source --no-check -x "$HOME/.venvs/hello/hello_2.10-3.dsc" hello > /dev/null
