"""Replays of deep records: the command, and what its answer says.

In: a store with a deep record. Out: a row of a table for each reconstruction. A replay without an
answer is a row with its reason.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from .. import backstory_program
from .verdicts import DIFFERENT, EQUAL

OF_EXECUTIONS = (
    "executed_in_copies",
    "executed_calls",
    "executed_start_calls",
    "start_calls",
    "start_s",
    "executed_s",
    "executed_start_s",
)
"""Columns of all attempts at a request, and of the start of the last one."""
CLIENT_SOCKET = re.compile(r"the socket to 127\.0\.0\.1:\d+|socket:\[\d+\]")
"""The other end of a connection, whose number differs from run to run."""
Row = dict[str, object]


def backstory(store: Path, *words: str) -> list[str]:
    """Returns a command of backstory with this store."""
    command, *rest = words
    return [backstory_program.chosen(), command, "--store", str(store), *rest]


def difference(answer: Mapping[str, Any], texts: bool = False) -> str:
    """Returns the first difference of a reconstruction in a few words. `texts`: with both sides."""
    found = answer["reconstruction"]
    if found is None:
        return "no reconstruction"
    if found["stopped"]:
        return str(found["stopped"])
    for process in found["processes"]:
        differs = process["difference"]
        if differs:
            words = f"{differs['kind']} of {differs['object']}, byte {differs['position']}"
            if texts:
                words += f": recorded {differs['recorded'][:60]}, came {differs['came'][:60]}"
            return words
    if found["not_started"]:
        return f"{found['not_started'][0]} was not started again"
    return ""


def differing_file(answer: Mapping[str, Any]) -> str:
    """Returns the first file that is not as recorded, in a few words; empty if all are."""
    for output in answer["outputs"]:
        if output["state"] in ("different", "missing"):
            return f"{output['state']} file {output['path']}"
    return ""


def judged(answer: Mapping[str, Any], texts: bool = False) -> tuple[str, str]:
    """Returns the verdict of a reconstruction, and its first difference in a few words.

    The verdict of the programs has their connections and pipes. A file that differs counts, too.
    """
    verdict = str(answer["reconstruction"]["verdict"])
    if verdict in EQUAL and not answer["identical"]:
        return DIFFERENT, differing_file(answer)
    return verdict, "" if verdict == "equal" else difference(answer, texts) or differing_file(answer)


def answer_row(answer: Mapping[str, Any], texts: bool = False) -> Row:
    """Returns the columns that an answer of `replay --deep --json` has."""
    found = answer["reconstruction"]
    verdict, why = judged(answer, texts)
    row: Row = {"verdict": verdict, "calls": found["calls"], "recorded_calls": found["recorded_calls"]}
    row |= {name: found[name] for name in ("tries", "clock_shift_ns")}
    request = found["request"]
    if request:
        row |= {"fed": len(request["fed"]), "request_calls": request["calls"]}
        # Earlier builds do not have all of them.
        row |= {name: request.get(name, "") for name in OF_EXECUTIONS}
        row["copy_obstacles"] = "; ".join(request["copy_obstacles"])
    row["share"] = f"{found['calls'] / max(found['recorded_calls'], 1):.6f}"
    row["bytes_compared"] = sum(process["bytes_compared"] for process in found["processes"])
    row["bytes_counted"] = sum(process["bytes_counted"] for process in found["processes"])
    row["files_compared"] = found["files"]["equal"] + found["files"]["different"]
    row["unsteady"] = found["unsteady"]
    row["why"] = why
    return row


@dataclass(frozen=True)
class Replay:
    """A replay that has ended or was ended."""

    row: Row
    served: bool = False
    """True if the programs worked on the chosen request."""
    stderr: str = ""


class Ownership(TypedDict):
    """The arguments of `subprocess` that say with whose rights and settings a command runs."""

    env: dict[str, str]
    user: str | None


def as_owner(owner: str | None) -> Ownership:
    """Returns the arguments for a command of this user. Its settings are those of its own home.

    A user cannot read the settings of root, and a filter that is not readable hides all names.
    """
    home = {"HOME": pwd.getpwnam(owner).pw_dir} if owner else {}
    return {"env": {**os.environ, **home}, "user": owner}


def completed(words: Sequence[str], limit: float, owner: str | None, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in a session of its own, so a signal to its group does not end this program.

    Raises
    ------
    subprocess.TimeoutExpired
        The command did not end in time. It was killed, with its group.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        errors="replace",
        cwd=cwd,
        start_new_session=True,
        **as_owner(owner),
    ) as running:
        try:
            out, err = running.communicate(timeout=limit)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(words, running.returncode, out, err)


def replayed(
    store: Path,
    run: str,
    more: Sequence[str],
    limit: float,
    out: Path,
    owner: str | None = None,
    texts: bool = False,
) -> Replay:
    """Reconstructs a run or a part of it into the directory `out`, as the owner of the store."""
    words = backstory(store, "replay", run, "--deep", "--json", "--output-dir", str(out), *more)
    began = time.monotonic()
    try:
        done = completed(words, limit, owner, out.parent)
    except subprocess.TimeoutExpired:
        return Replay({"verdict": "failed", "seconds": f"{limit:.1f}", "why": f"no result within {limit:.0f} s"})
    seconds = f"{time.monotonic() - began:.2f}"
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        why = done.stderr.strip()[-200:].replace("\n", " ")
        if done.returncode < 0:
            why = f"ended by {signal.Signals(-done.returncode).name}"
        return Replay({"verdict": "failed", "seconds": seconds, "why": why}, stderr=done.stderr)
    if answer["reconstruction"] is None:
        why = str(answer["not_started"] or difference(answer))
        return Replay({"verdict": "failed", "seconds": seconds, "why": why}, stderr=done.stderr)
    request = answer["reconstruction"]["request"]
    served = bool(request and request["served"])
    return Replay(answer_row(answer, texts) | {"seconds": seconds}, served, done.stderr)


def reconstruct(
    store: Path, run: str, more: Sequence[str], limit: float, owner: str | None = None, texts: bool = False
) -> Row:
    """Reconstructs a run or a part of it, as the owner of the store."""
    with output_directory(owner) as out:
        return replayed(store, run, more, limit, out, owner, texts).row


@contextmanager
def output_directory(owner: str | None) -> Iterator[Path]:
    """Yields the path of a directory that a replay can make, and removes it afterwards."""
    with tempfile.TemporaryDirectory(prefix="scene-") as top:
        if owner:
            shutil.chown(top, owner, owner)
        yield Path(top) / "replay"


def record_words(store: Path, name: str, *more: str) -> list[str]:
    """Returns the words before a command that is recorded deeply."""
    words = ("record", "--deep", "--outputs", "full", "--contents", "lazy", "--name", name)
    return [*backstory(store, *words), *more, "--"]


def index(store: Path, owner: str | None) -> None:
    """Waits until a run is in the store."""
    words = backstory(store, "index", "--wait")
    subprocess.run(words, check=True, capture_output=True, **as_owner(owner))
