"""Describes the machine of a matrix, and the versions of the measured programs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .. import backstory_program
from ..collectors import Collector, backstory
from ..workloads.sources import SOURCES, commit_of
from .execute import randomized


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines[0].strip() if lines else ""


def version_of(collector: Collector) -> str:
    """Returns the version that a collector prints, and the commit of one built from sources."""
    if any(collector is mode for mode in backstory.COLLECTORS):
        return backstory_program.build(backstory.program())
    said = _first_line(collector.version) if collector.version else ""
    program = shutil.which(collector.command(["true"], Path("log"))[0])
    commit = commit_of(Path(program).resolve().parent) if collector.origin and program else ""
    return ", ".join(part for part in (said, f"commit {commit}" if commit else "") if part)


def describe(collectors: Sequence[Collector]) -> dict[str, object]:
    """Describes the kernel, the hardware, the distribution, and the versions of all programs."""
    release = Path("/etc/os-release")
    names = [x.partition("=")[2].strip('"') for x in release.read_text().splitlines() if x.startswith("PRETTY_NAME")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    flags = Path("/proc/cpuinfo").read_text()
    return {
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "distribution": names[0] if names else "",
        "processor": _cpu(),
        "processors": os.cpu_count(),
        "memory_bytes": memory,
        "virtual_machine": " hypervisor" in flags,
        "randomized": randomized(),
        "python": platform.python_version(),
        "compiler": _first_line(["gcc", "--version"]),
        "collectors": {c.name: version for c in collectors if (version := version_of(c))},
        "sources": {s.name: {"origin": s.origin, "known": s.commit, "found": s.found()} for s in SOURCES.values()},
    }
