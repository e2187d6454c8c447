"""Servers of files to measure: nginx, Apache and lighttpd, each with a configuration of its own.

A server serves one directory on a free port of the loopback interface, in the foreground. It ends
with SIGTERM, or SIGQUIT where that lets requests end.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

PATIENCE_S = 120.0
MODULES = Path("/usr/lib/apache2/modules")

NGINX = """daemon off;
user {user};
worker_processes 2;
pid {top}/pid;
error_log {top}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log {top}/access.log;
  client_body_temp_path {top}/body;
  proxy_temp_path {top}/proxy;
  fastcgi_temp_path {top}/fastcgi;
  uwsgi_temp_path {top}/uwsgi;
  scgi_temp_path {top}/scgi;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port}; root {top}/files; }}
}}
"""

APACHE = """ServerRoot {top}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {top}/pid
ErrorLog {top}/error.log
LoadModule mpm_{kind}_module {modules}/mod_mpm_{kind}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {top}/files
TransferLog {top}/access.log
MaxKeepAliveRequests 0
User {user}
Group {group}
<Directory {top}/files>
  Require all granted
</Directory>
"""

LIGHTTPD = """server.document-root = "{top}/files"
server.bind = "127.0.0.1"
server.port = {port}
server.pid-file = "{top}/pid"
server.errorlog = "{top}/error.log"
server.modules = ("mod_accesslog")
accesslog.filename = "{top}/access.log"
server.max-keep-alive-requests = 10000
"""


def free_port() -> int:
    """Returns a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Running(NamedTuple):
    """A server that answers."""

    port: int
    """Its TCP port."""
    pid: int
    """The process that was started: the server's own, or that of the words before it."""


@dataclass(frozen=True)
class WebServer:
    """A kind of server."""

    name: str
    program: str
    settings: str
    options: tuple[str, ...]
    """With `{file}` for the path of the settings and `{top}` for the server's directory."""
    stop: signal.Signals = signal.SIGTERM

    def with_program(self, path: str) -> WebServer:
        """Returns the server with another executable."""
        return replace(self, program=path)

    def _program(self) -> str | None:
        return shutil.which(self.program, path=f"{os.environ['PATH']}:/usr/sbin")

    def missing(self) -> str | None:
        """Returns why the server cannot run here."""
        return None if self._program() else f"{self.program} is not installed"

    def prepare(self, top: Path, port: int) -> list[str]:
        """Writes the settings, and returns the command."""
        user, group = ("www-data", "www-data") if os.geteuid() == 0 else ("nobody", "nogroup")
        kind = self.name.removeprefix("apache-")
        values = {"top": top, "port": port, "user": user, "group": group, "kind": kind, "modules": MODULES}
        file = top / "settings"
        file.write_text(self.settings.format(**values))
        options = [option.format(file=file, top=top) for option in self.options]
        return [str(self._program()), *options]

    @contextmanager
    def running(self, top: Path, before: Sequence[str] = (), stops_child: bool = False) -> Iterator[Running]:
        """Runs the server behind the words `before`, and yields it.

        The process must end within `PATIENCE_S`, with whatever it does at its end. `stops_child`:
        the signal goes to the child of `before`, as strace ignores it.
        """
        port = free_port()
        command = [*before, *self.prepare(top, port)]
        with (top / "output.log").open("wb") as log:
            # Apache signals its whole process group when it ends.
            server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=top, start_new_session=True
            )
        try:
            _wait(server, port, top)
            yield Running(port, server.pid)
        finally:
            _signal(children(server.pid) if stops_child else [server.pid], self.stop)
            try:
                server.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                _signal([*children(server.pid), server.pid], signal.SIGKILL)
                server.wait()
                raise SystemExit(f"backstory-bench: {self.name} does not end") from None


def threads(pid: int) -> list[Path]:
    """Returns the directories of a process's threads in `/proc`; none if the process has ended."""
    with suppress(OSError):
        return list(Path(f"/proc/{pid}/task").glob("*"))
    return []


def children(pid: int) -> list[int]:
    """Returns the children that the threads of a process made."""
    found: list[int] = []
    for thread in threads(pid):
        with suppress(OSError):  # The thread has ended.
            found += map(int, (thread / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Returns all processes that descend from a process, parents first."""
    found = children(pid)
    for child in found:  # The list grows meanwhile.
        found += children(child)
    return found


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    """Sends a signal to those of the processes that have not ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait(server: subprocess.Popen[bytes], port: int, top: Path) -> None:
    """Waits until the server answers."""
    deadline = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/small", timeout=5).read()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.02)
    text = (top / "output.log").read_text(errors="replace")
    raise SystemExit(f"backstory-bench: a web server does not begin: {text[-800:]}")


WEB_SERVERS = {
    server.name: server
    for server in (
        WebServer("nginx", "nginx", NGINX, ("-c", "{file}", "-p", "{top}", "-e", "{top}/error.log")),
        WebServer("apache-prefork", "apache2", APACHE, ("-D", "FOREGROUND", "-f", "{file}")),
        WebServer("apache-event", "apache2", APACHE, ("-D", "FOREGROUND", "-f", "{file}")),
        WebServer("lighttpd", "lighttpd", LIGHTTPD, ("-D", "-f", "{file}")),
    )
}
