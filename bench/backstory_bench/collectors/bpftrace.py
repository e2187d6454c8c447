"""bpftrace: opens and executed programs, from kernel tracepoints. Needs root."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .base import Collector, Log, apt, as_root, needs

PROGRAM = (
    'tracepoint:syscalls:sys_enter_openat { printf("o %d %s\\n", pid, str(args->filename)); } '
    'tracepoint:syscalls:sys_enter_execve { printf("x %d %s\\n", pid, str(args->filename)); }'
)

# The option -c of bpftrace starts a program by its path and changes the words. So the command runs
# beside bpftrace, after bpftrace has attached.
_SCRIPT = """
bpftrace -o "$LOG" -e "$PROGRAM" >"$LOG.messages" 2>&1 &
tracer=$!
n=0
until grep -q Attaching "$LOG" 2>/dev/null; do
    kill -0 $tracer 2>/dev/null || { cat "$LOG.messages" >&2; exit 125; }
    n=$((n + 1)); [ $n -lt 600 ] || { kill $tracer; exit 125; }
    sleep 0.05
done
"$@"
status=$?
kill -INT $tracer; wait $tracer
exit $status
"""


POINT = "tracepoint:syscalls:sys_enter_openat"


@functools.cache
def _missing() -> str | None:
    absent = needs("bpftrace", "Debian package bpftrace")()
    if absent:
        return absent
    listed = subprocess.run(["bpftrace", "-l", POINT], capture_output=True, text=True, errors="replace", check=False)
    return None if POINT in listed.stdout else f"this kernel has no {POINT}, or /sys/kernel/tracing is not mounted"


def _whole(argv: Sequence[str], log: Path) -> list[str]:
    return ["env", f"LOG={log}/bpftrace.log", f"PROGRAM={PROGRAM}", "sh", "-c", _SCRIPT, "sh", *argv]


def read(log: Path) -> Log:
    """Reads absolute paths of opens and execs, of all processes of the machine."""
    files = set()
    for line in (log / "bpftrace.log").read_text(errors="surrogateescape").splitlines():
        words = line.split(" ", 2)
        if len(words) == 3 and words[0] in "ox" and words[2].startswith("/"):
            files.add(words[2])
    return Log(files)


COLLECTORS = [
    Collector(
        "bpftrace",
        lambda _: [],
        as_root(_missing),
        what="opens and executed programs of the whole machine",
        install=apt("bpftrace"),
        privileged=True,
        read=read,
        whole=_whole,
        version=("bpftrace", "--version"),
    )
]
