"""The kernel's audit, read by auditd. Needs root; it observes the whole machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .base import Collector, Log, apt, as_root

# Each run has its own key, because the machine's log also has the records of earlier runs. The
# length of the backlog is that of Debian's rules.
_SCRIPT = """
key=backstory-bench-$$
auditctl -b 8192 >/dev/null
auditctl -a always,exit -F arch=b64 -S open,openat,creat,execve,rename,renameat2,unlink,unlinkat,link,symlink,clone,vfork -k $key >/dev/null || exit 125
auditctl -e 1 >/dev/null
"$@"
status=$?
auditctl -D -k $key >/dev/null
auditctl -e 0 >/dev/null
ausearch --input-logs -k $key --raw >"$LOG" 2>/dev/null
exit $status
"""
_FIELD = re.compile(r'\b(\w+)=("[^"]*"|\S+)')
_SERIAL = re.compile(r"msg=audit\(([^)]*)\)")
EXECVE = "59"


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


def _text(value: str) -> str:
    """Decodes a string of the log: quoted, or hexadecimal if it has special bytes."""
    if value.startswith('"'):
        return value[1:-1]
    try:
        return os.fsdecode(bytes.fromhex(value))
    except ValueError:
        return value


def read(log: Path) -> Log:
    """Reads the paths and executed programs of successful calls, of all processes of the
    machine.
    """
    files: set[str] = set()
    starts: set[tuple[str, str]] = set()
    program: dict[str, str] = {}
    failed: set[str] = set()
    executes: dict[str, tuple[str, str | None]] = {}
    directory: dict[str, str] = {}
    for line in (log / "audit.log").read_text(errors="surrogateescape").splitlines():
        serial = _SERIAL.search(line)
        if serial is None:
            continue
        fields = dict(_FIELD.findall(line.split("\x1d", 1)[0]))
        kind = fields.get("type")
        if kind == "SYSCALL":
            if fields.get("success") != "yes":
                failed.add(serial[1])
                continue
            pid = fields["pid"]
            before = program.get(pid) or program.get(fields["ppid"])
            if fields["syscall"] == EXECVE:
                executes[serial[1]] = pid, before
            else:
                program[pid] = before or os.path.basename(_text(fields["exe"]))
        elif kind == "CWD":
            directory[serial[1]] = _text(fields["cwd"])
        elif kind == "PATH" and serial[1] not in failed and fields.get("nametype") in ("NORMAL", "CREATE", "DELETE"):
            name = _text(fields["name"])
            files.add(os.path.normpath(os.path.join(directory.get(serial[1], "/"), name)))
            pid, before = executes.pop(serial[1], ("", None))
            if pid:
                program[pid] = os.path.basename(name)
            if before:
                starts.add((before, program[pid]))
    return Log(files, starts)


COLLECTORS = [
    Collector(
        "auditd",
        lambda _: [],
        as_root(_missing),
        what="file and process calls of the whole machine",
        install=apt("auditd"),
        privileged=True,
        read=read,
        whole=_whole,
        version=("auditctl", "-v"),
    )
]
