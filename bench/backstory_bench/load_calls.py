"""The system calls of a server while one client makes requests, counted by `strace -f -c`.

In: the process that was started for a server, and a number of requests. Out: how often all
processes of the server made each system call, from the attachment of strace to its detachment. All
threads are traced before the first request. There are no rates here, because strace slows a server
down.

The edges are not exact. A wait that strace interrupts is made again. A server may close its last
connections when strace has detached.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .web_servers import descendants, threads

REQUESTS = 2000
FIELDS = ["server", "mode", "call", "calls"]
PATIENCE_S = 30.0
LEAST = 0.05
"""Calls for each request. Smaller differences are left out of the second table."""


class CannotAttachError(Exception):
    """strace did not attach to all threads of a server. The text says why."""


def note(requests: int) -> str:
    """Returns the line that says what the figures are."""
    return (
        f"strace -f -c of all processes of a server, while one client made {requests} requests for 1 KB,"
        " a connection each"
    )


def parsed(summary: str) -> Counter[str]:
    """Returns how often each call was made, of the output of `strace -c`.

    A line has the share, the seconds, those of a call, the calls, the errors if any, and the name.
    There are several tables if programs of several personalities ran.
    """
    calls: Counter[str] = Counter()
    for line in summary.splitlines():
        words = line.split()
        if len(words) in (5, 6) and words[3].isdigit() and words[-1] != "total":
            calls[words[-1]] += int(words[3])
    return calls


def _executable(pid: int) -> tuple[int, int] | None:
    """Returns the identity of the file that a process executes; `None` if it has ended."""
    try:
        found = Path(f"/proc/{pid}/exe").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def server_processes(started: int, recorded: bool) -> list[int]:
    """Returns the processes of a server: the started process, and all that descend from it.

    `recorded`: the started process is the recorder's. Its launcher, supervisor and keeper are
    between it and the server. They execute the same file as it, and are left out.
    """
    own = _executable(started) if recorded else None
    return [pid for pid in (started, *descendants(started)) if _executable(pid) not in (None, own)]


def _untraced(processes: Sequence[int], tracer: int) -> list[int]:
    """Returns the threads of the processes that another or no process traces."""
    found = []
    for thread in (thread for pid in processes for thread in threads(pid)):
        with suppress(OSError):  # The thread has ended.
            fields = dict(line.split(":", 1) for line in (thread / "status").read_text().splitlines())
            if fields["State"].split()[0] not in "ZX" and int(fields["TracerPid"]) != tracer:
                found.append(int(fields["Pid"]))
    return found


def _await_attached(strace: subprocess.Popen[bytes], processes: Callable[[], Sequence[int]], said: Path) -> None:
    """Waits until strace traces all threads. It follows those that begin later."""
    deadline = time.monotonic() + PATIENCE_S
    while rest := _untraced(processes(), strace.pid):
        if strace.poll() is not None or time.monotonic() > deadline:
            lines = said.read_text(errors="replace").strip().splitlines()
            raise CannotAttachError(lines[0] if lines else f"strace does not attach to threads {rest}")
        time.sleep(0.01)


def _await_end(strace: subprocess.Popen[bytes]) -> None:
    """Waits until strace has ended. One that does not is killed, which frees the server."""
    try:
        strace.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        strace.kill()
        raise


@contextmanager
def counting(processes: Callable[[], Sequence[int]]) -> Iterator[Counter[str]]:
    """Counts the system calls that processes make inside. The counts are there at the end.

    Raises
    ------
    CannotAttachError
        strace did not attach to all of their threads, or a process inside escaped it.
    """
    with tempfile.TemporaryDirectory(prefix="bench-calls-") as top:
        summary, said = Path(top) / "summary", Path(top) / "said"
        words = ["strace", "-q", "-f", "-c", "-o", str(summary)]
        words += [word for pid in processes() for word in ("-p", str(pid))]
        silent = subprocess.DEVNULL
        with said.open("wb") as err, subprocess.Popen(words, stdin=silent, stdout=silent, stderr=err) as strace:
            try:
                _await_attached(strace, processes, said)
                calls: Counter[str] = Counter()
                yield calls
                if rest := _untraced(processes(), strace.pid):
                    raise CannotAttachError(f"strace did not follow threads {rest}")
            finally:
                # strace detaches, and writes its table.
                strace.send_signal(signal.SIGINT)
                _await_end(strace)
        calls.update(parsed(summary.read_text()))


def missing() -> str | None:
    """Returns why no calls can be counted here."""
    if shutil.which("strace") is None:
        return "strace is not installed (Debian package strace)"
    # As a server, the process is no child of strace.
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            with counting(lambda: [other.pid]):
                pass
        except CannotAttachError as error:
            return f"{error} (root, or kernel.yama.ptrace_scope=0)"
        finally:
            other.kill()
    return None


def make_requests(port: int, path: str, number: int) -> None:
    """Requests a file so many times, one request after the other, each by a new connection."""
    request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode()
    for _ in range(number):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                first = answer.readline()
                answer.read()
        if first.split()[1:2] != [b"200"]:
            raise SystemExit(f"backstory-bench: a request failed: {first!r}")


def rows_of(server: str, mode: str, calls: Mapping[str, int]) -> list[dict[str, object]]:
    """Returns the rows of one measurement."""
    return [{"server": server, "mode": mode, "call": name, "calls": calls[name]} for name in sorted(calls)]


def _of_request(rows: Sequence[Mapping[str, object]], requests: int) -> dict[tuple[str, str], dict[str, float]]:
    """Returns the calls for each request, by server and mode, and by call."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        own = found.setdefault((str(row["server"]), str(row["mode"])), {})
        own[str(row["call"])] = int(str(row["calls"])) / requests
    return found


def summary(rows: Sequence[Mapping[str, object]], modes: Sequence[str], requests: int) -> list[str]:
    """Returns a table of all calls for each request, by server and mode."""
    found = _of_request(rows, requests)
    lines = ["| server | " + " | ".join(modes) + " |", "| --- |" + " ---: |" * len(modes)]
    for name in dict.fromkeys(name for name, _ in found):
        cells = [f"{sum(found[name, mode].values()):.1f}" if (name, mode) in found else "" for mode in modes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def differences(rows: Sequence[Mapping[str, object]], native: str, requests: int) -> list[str]:
    """Returns a table of the calls that each mode makes more or less often than the native one."""
    found = _of_request(rows, requests)
    lines = []
    for (name, mode), calls in found.items():
        if mode == native or (name, native) not in found:
            continue
        base = found[name, native]
        more = {call: calls.get(call, 0) - base.get(call, 0) for call in sorted({*calls, *base})}
        text = ", ".join(f"`{call}` {each:+.2f}" for call, each in more.items() if abs(each) >= LEAST)
        lines.append(f"| {name}, {mode} | {text or 'none'} |")
    return ["| server | calls of a request, beside native |", "| --- | --- |", *lines] if lines else []
