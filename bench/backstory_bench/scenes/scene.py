"""A case: a program to record, and the work for it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0


def found(program: str) -> str | None:
    """Returns the path of a program, also of one for administrators."""
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class Scene:
    """A case. The record of a server has many requests; that of a client is one run."""

    name = ""
    program = ""
    is_client = False
    user: str | None = None
    """The user that root runs the program as, if it refuses root."""
    stop = signal.SIGTERM
    most: int | None = None
    """Most requests that are made, where each one takes long."""
    why = ""
    """The known reason if the case cannot work."""

    def missing(self) -> str | None:
        """Returns why the case cannot run here."""
        return None if found(self.program) else f"{self.program} is not installed"

    def count(self, requests: int) -> int:
        """Returns how many requests are made if so many are asked for."""
        return requests if self.most is None else min(requests, self.most)

    def command(self, top: Path, port: int) -> list[str]:
        """Writes the settings, and returns the command."""
        raise NotImplementedError

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        """Makes requests of the server."""
        raise NotImplementedError

    def environment(self, top: Path) -> dict[str, str]:
        """Returns the variables of the program."""
        return {**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(top)}

    @contextmanager
    def running(self, top: Path, port: int, before: Sequence[str]) -> Iterator[None]:
        """Runs the server behind the words `before`, until it accepts connections."""
        command = [*before, *self.command(top, port)]
        owner = self.user if os.geteuid() == 0 else None
        with (top / "output.log").open("wb") as log:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=top,
                env=self.environment(top),
                user=owner,
                start_new_session=True,
            )
        try:
            wait_for(server, port, top)
            yield
        finally:
            server.send_signal(self.stop)
            try:
                server.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def wait_for(server: subprocess.Popen[bytes], port: int, top: Path) -> None:
    """Waits until a server accepts connections."""
    deadline = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            time.sleep(0.05)
    text = (top / "output.log").read_text(errors="replace")
    raise RuntimeError(f"the server does not begin: {text[-400:]}")
