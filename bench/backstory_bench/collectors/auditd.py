"""The kernel's audit, read by auditd. Privileged, for reference; it watches the whole machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .base import Collector, apt, as_root

_SCRIPT = """
for calls in open,openat,creat,execve,rename,renameat2,unlink,unlinkat,link,symlink,clone,vfork; do
    auditctl -q -a always,exit -F arch=b64 -S $calls -k backstory-bench >/dev/null || exit 125
done
auditctl -q -e 1 >/dev/null
"$@"
status=$?
auditctl -q -D -k backstory-bench >/dev/null
auditctl -q -e 0 >/dev/null
ausearch -k backstory-bench --raw >"$LOG" 2>/dev/null
exit $status
"""


def _missing() -> str | None:
    if not shutil.which("auditctl"):
        return "auditctl is not installed (Debian package auditd)"
    status = subprocess.run(["auditctl", "-s"], capture_output=True, text=True)
    if status.returncode != 0:
        return f"the kernel's audit does not answer: {status.stderr.strip()}"
    idle = any(line.split() == ["pid", "0"] for line in status.stdout.splitlines())
    return "auditd is not running" if idle else None


def _whole(argv: Sequence[str], log: Path) -> list[str]:
    return ["env", f"LOG={log}/audit.log", "sh", "-c", _SCRIPT, "sh", *argv]


COLLECTORS = [
    Collector(
        "auditd",
        lambda _: [],
        as_root(_missing),
        what="file and process calls of the whole machine",
        install=apt("auditd"),
        privileged=True,
        whole=_whole,
        version=("auditctl", "-v"),
    )
]
