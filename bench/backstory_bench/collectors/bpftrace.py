"""bpftrace: opens and executed programs from kernel tracepoints. Privileged, for reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base import Collector, Log, apt, as_root, needs

PROGRAM = (
    'tracepoint:syscalls:sys_enter_openat { printf("o %d %s\\n", pid, str(args->filename)); } '
    'tracepoint:syscalls:sys_enter_execve { printf("x %d %s\\n", pid, str(args->filename)); }'
)

# bpftrace's own -c starts one program of a path and mangles its words; so the command is run beside it, once it has attached.
_SCRIPT = """
bpftrace -o "$LOG" -e "$PROGRAM" >/dev/null 2>&1 &
tracer=$!
n=0
until grep -q Attaching "$LOG" 2>/dev/null; do
    n=$((n + 1)); [ $n -lt 600 ] || { kill $tracer; exit 125; }
    sleep 0.05
done
"$@"
status=$?
kill -INT $tracer; wait $tracer
exit $status
"""


def _whole(argv: Sequence[str], log: Path) -> list[str]:
    return ["env", f"LOG={log}/bpftrace.log", f"PROGRAM={PROGRAM}", "sh", "-c", _SCRIPT, "sh", *argv]


def read(log: Path) -> Log:
    """Absolute paths of opens and execs (of all processes of the machine: bpftrace knows no tree)."""
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
        as_root(needs("bpftrace", "Debian package bpftrace")),
        what="opens and executed programs of the whole machine",
        install=apt("bpftrace"),
        privileged=True,
        read=read,
        whole=_whole,
        version=("bpftrace", "--version"),
    )
]
