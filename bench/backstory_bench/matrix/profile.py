"""What a workload does, and what of it a collector's log names: syscall counts and quality, each measured once, never timed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..collectors import COLLECTORS, Collector, Log
from ..collectors.strace_log import read as read_strace
from ..workloads import Instance
from . import execute
from .cell import environment
from .execute import Limits
from .journal import Journal, Row

LIMITS = Limits(600.0)
TRUTH_CALLS = "%file,%process,fchdir"
_TEMPORARY = re.compile(r"^/tmp/(cc\w{6}|tmp\w+|sh-thd\S+)")
_NOT_FILES = re.compile(r"^/(proc|sys)/|^/dev/(?!shm/)|/ld-(linux|musl)[^/]*$")
# The loader is left out as well: the kernel opens it, and strace can't see that.


def _traced(instance: Instance, root: Path, scratch: Path, words: list[str]) -> bool:
    io = Path(tempfile.mkdtemp(prefix="io-", dir=scratch))
    instance.reset(root)
    env = environment(COLLECTORS["none"])
    return execute.run([*words, *instance.command(1)], root, env, LIMITS, None, io).status == 0


def counts(instance: Instance, root: Path, scratch: Path) -> Row:
    """Syscalls of one loop by name, as `strace -c` counts them."""
    out = scratch / "counts"
    head = {"kind": "counts", "workload": instance.key, "group": instance.group}
    if not _traced(instance, root, scratch, ["strace", "-f", "-qq", "-c", "-U", "name,calls", "-o", str(out)]):
        return {**head, "counts": {}, "why": "it does not run under strace"}
    found = {}
    for line in out.read_text().splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit() and words[0] != "total":
            found[words[0]] = int(words[1])
    return {**head, "counts": found}


def names(files: set[str], *apart: Path) -> set[str]:
    """Files as they can be compared across runs: links resolved, random names alike, kernel files and what lies `apart` (a log) left out."""
    found = set()
    for path in files:
        real = _TEMPORARY.sub("/tmp/(random)", os.path.realpath(path))
        if not _NOT_FILES.search(real) and not any(real.startswith(f"{p}/") for p in apart) and not os.path.isdir(real):
            found.add(real)
    return found


def truth(instance: Instance, root: Path, scratch: Path) -> tuple[Log, set[str] | None] | None:
    """What strace saw of a run, and what the workload itself states; None if it does not run under strace."""
    log = Path(tempfile.mkdtemp(prefix="truth-", dir=scratch))
    path = log / "strace.log"
    words = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", f"trace={TRUTH_CALLS}", "-o", str(path)]
    if not _traced(instance, root, scratch, words):
        return None
    seen = read_strace(path, str(root))
    stated = instance.truth(root) if instance.truth else None
    return Log(names(seen.files or set(), log), seen.starts), None if stated is None else names(stated, log)


def quality(
    instance: Instance, collector: Collector, root: Path, scratch: Path, true: tuple[Log, set[str] | None] | None
) -> Row:
    """How much of the truth a collector's log names, and how much else; why, where that can't be said."""
    head = {"kind": "quality", "workload": instance.key, "group": instance.group, "collector": collector.name}
    if true is None:
        return {**head, "why": "it does not run under strace"}
    log = Path(tempfile.mkdtemp(prefix="log-", dir=scratch))
    io = Path(tempfile.mkdtemp(prefix="io-", dir=scratch))
    try:
        instance.reset(root)
        argv = collector.command(instance.command(1), log)
        outcome = execute.run(argv, root, environment(collector), LIMITS, None, io)
        if outcome.status != 0:
            return {**head, "why": f"exit status {outcome.status}"}
        (log / "cwd").write_text(str(root))
        found = collector.read(log)
        if found.files is None:
            return {**head, "why": "its log is not read as a set of files"}
        seen, stated = true
        files, all_true = names(found.files, log, io), seen.files or set()
        wanted = stated if stated is not None else all_true
        row: Row = {
            **head,
            "truth_by": "workload" if stated is not None else "strace",
            "files_true": len(wanted),
            "files_found": len(files),
            "files_recalled": len(files & wanted),
            "files_right": len(files & (all_true | wanted)),
            "missed": sorted(wanted - files)[:5],
            "invented": sorted(files - all_true - wanted)[:5],
        }
        if found.starts is not None and seen.starts is not None:
            row |= {
                "starts_true": len(seen.starts),
                "starts_found": len(found.starts),
                "starts_right": len(found.starts & seen.starts),
            }
        return row
    except (OSError, ValueError, KeyError) as error:
        return {**head, "why": f"its log can't be read: {error}"}
    finally:
        shutil.rmtree(log, ignore_errors=True)
        shutil.rmtree(io, ignore_errors=True)


def _lacking(journal: Journal, instance: Instance, collectors: list[Collector]) -> tuple[bool, list[Collector]]:
    """Whether its calls are to be counted, and whose quality is to be found."""
    have = {
        (r["kind"], r["workload"], r.get("collector")) for r in journal.rows() if r.get("kind") in ("counts", "quality")
    }
    if instance.figure:
        collectors = []  # it runs for a time: what it does depends on how slow it is made
    named = [c for c in collectors if c.name != "none" and ("quality", instance.key, c.name) not in have]
    return ("counts", instance.key, None) not in have, named


def profile(journal: Journal, instance: Instance, collectors: list[Collector], work: Path) -> None:
    """Adds the counts and quality rows of one workload that the journal lacks; without strace there are none."""
    count, missing = _lacking(journal, instance, collectors)
    if not (count or missing) or not shutil.which("strace"):
        return
    scratch = Path(tempfile.mkdtemp(prefix="backstory-bench-", dir=work))
    scratch.chmod(0o755)
    try:
        root = scratch / "w"
        root.mkdir()
        instance.prepare(root)
        if count:
            journal.append(counts(instance, root, scratch))
        true = truth(instance, root, scratch) if missing else None
        for collector in missing:
            journal.append(quality(instance, collector, root, scratch, true))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"{instance.key}: not profiled: {error}", file=sys.stderr)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
