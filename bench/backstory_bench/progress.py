"""Progress for somebody who watches: on a terminal only, in place of what was shown before."""

from __future__ import annotations

import sys


def show(text: str) -> None:
    """Shows `text` in place of the last; nothing ends the line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}" if text else "", end="" if text else "\n", file=sys.stderr, flush=True)
