"""Shows progress in one line of the terminal. Without a terminal it prints nothing."""

from __future__ import annotations

import sys


def show(text: str) -> None:
    """Replaces the last text by `text`. An empty text ends the line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}" if text else "", end="" if text else "\n", file=sys.stderr, flush=True)
