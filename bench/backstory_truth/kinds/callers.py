"""Kinds of line for shells that start other callers: static and compiled programs, Go, node.

`world.py` builds the programs of `callers/` once, and puts their directory into TRUTH_BIN.
"""

import os

from . import row

if os.environ.get("TRUTH_BIN"):
    for caller in ("static", "dynamic", "go"):
        if os.path.exists(os.path.join(os.environ["TRUTH_BIN"], caller)):
            row(f"{caller}-word", f'"$TRUTH_BIN"/{caller} word {{num}} {{lines}} > {{out}}')
            row(f"{caller}-status", f'"$TRUTH_BIN"/{caller} status {{flag}} {{lines}} > {{out}}')
            looks = "" if caller == "dynamic" else "unseen"
            row(f"{caller}-look", f'"$TRUTH_BIN"/{caller} look {{maybe}} {{lines}} > {{out}}', flags=looks)
            row(f"{caller}-size", f'"$TRUTH_BIN"/{caller} size {{lines}} > {{out}}', flags=looks)
            row(f"{caller}-copy", f'"$TRUTH_BIN"/{caller} copy {{lines}} {{out}}')
row(
    "node-read",
    'node -e \'f=require("fs");f.writeFileSync("{out}",f.readFileSync("{lines}"))\'',
    needs="node",
    flags="slow",
)
