"""Lines that are typed into a recorded shell at a pseudo-terminal.

Goes in: a run of the form `typed`. Comes out: its recording; natively the same lines are a script
for bash. Each line is a run of its own for backstory.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path


def type_lines(words: list[str], lines: list[str], cwd: Path, env: dict[str, str], seconds: float) -> bool:
    """Starts a program at a pseudo-terminal and types lines; returns whether it ended in time."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        words, cwd=cwd, env={**env, "TERM": "dumb"}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    os.write(master, ("\n".join(lines) + "\nexit 0\n").encode())
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        drain(master)
    drain(master)
    os.close(master)
    if process.poll() is None:
        process.kill()
        process.wait()
        return False
    return True


def drain(master: int) -> None:
    """Reads what the program printed."""
    while select.select([master], [], [], 0.02)[0]:
        try:
            if not os.read(master, 65536):
                return
        except OSError:
            return
