"""Profiles of all processors while a server is under load, by `perf`.

In: a directory, and the name of a measurement. Out: `NAME.data` of perf there, and `NAME.txt`: the
parts of all samples by process, object and function. Idle processors are a process of their own
(`swapper`). The event `cpu-clock` needs no counters of the processor, which virtual machines lack.
The rates of a profiled measurement are not those of one without.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FREQUENCY = 499
"""Samples in a second of each processor. No multiple of the kernel's timer."""
LEAST = 0.3
"""Smaller parts are left out of the text, in percent."""


def recording(data: Path) -> list[str]:
    """Returns the command that records until it is interrupted.

    By default, perf links each file that it saw into `~/.debug`. A link changes the file's ctime.
    Recorders recognize a file's contents by its ctime.
    """
    words = ["perf", "record", "-q", "-a", "--no-buildid-cache", "-e", "cpu-clock"]
    return [*words, "-F", str(FREQUENCY), "-o", str(data)]


def reporting(data: Path) -> list[str]:
    """Returns the command that prints the parts."""
    words = ["perf", "report", "-i", str(data), "--stdio", "--no-children"]
    return [*words, "--sort", "comm,dso,symbol", "--percent-limit", str(LEAST)]


def missing() -> str | None:
    """Returns why nothing can be profiled here."""
    if shutil.which("perf") is None:
        return "perf is not installed (Debian package linux-perf)"
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as top:
        words = [*recording(Path(top) / "data"), "--", "true"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return f"perf record -a: {said[0]} (root, or kernel.perf_event_paranoid=-1)"


def _await_begin(perf: subprocess.Popen[bytes], data: Path) -> None:
    """Waits until perf has made its file. It has set the handler of an interruption before."""
    while not data.exists():
        if perf.poll() is not None:
            raise subprocess.CalledProcessError(perf.returncode, perf.args)
        time.sleep(0.01)


@contextmanager
def profiled(directory: Path | None, name: str) -> Iterator[None]:
    """Profiles what happens inside. Without a directory, nothing is done."""
    if directory is None:
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    data = directory / f"{name}.data"
    data.unlink(missing_ok=True)
    said = subprocess.DEVNULL
    with subprocess.Popen(recording(data), stdin=said, stdout=said, stderr=said) as perf:
        _await_begin(perf, data)
        try:
            yield
        finally:
            perf.send_signal(signal.SIGINT)
    found = subprocess.run(reporting(data), stdin=said, stdout=subprocess.PIPE, stderr=said, check=True)
    (directory / f"{name}.txt").write_bytes(found.stdout)
