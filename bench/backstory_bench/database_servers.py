"""Servers of databases to measure: PostgreSQL and MariaDB, each in a directory of its own.

A server begins from a copy of its prepared data, so that each measurement has the same data. Both
refuse to run as root. Root runs them as the user of the Debian package.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PATIENCE_S = 120.0

POSTGRES_MEASURED = ("listen_addresses=127.0.0.1", "shared_buffers=256MB", "max_wal_size=2GB")
"""Settings of every server that is measured. Durability is that of the server's defaults."""
POSTGRES_STATEMENTS = (
    "logging_collector=on",
    "log_destination=jsonlog",
    "log_directory=log",
    "log_statement=all",
    "log_duration=on",
    "log_connections=on",
    "log_disconnections=on",
)
"""Settings that `watch postgres` needs or recommends for statements alone (`--rows off`)."""
POSTGRES_ROWS = ("wal_level=logical", *POSTGRES_STATEMENTS)
"""Settings that it needs or recommends for statements and rows."""
MARIADB_MEASURED = ("--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=256M")
MARIADB_STATEMENTS = (
    "--plugin-load-add=server_audit",
    "--server_audit_logging=ON",
    "--server_audit_events=CONNECT,QUERY,TABLE",
    "--server_audit_file_rotate_size=1000000000",
)
MARIADB_ROWS = ("--server-id=1", "--log-bin=binlog", "--binlog-format=ROW", *MARIADB_STATEMENTS)
USUAL_CLIENTS = 80
"""So many clients, and a watch, have enough connections by the default settings of both servers."""


def settings_for(clients: int) -> tuple[str, ...]:
    """Returns the settings of a server that needs connections for many clients."""
    return (f"max_connections={clients + 20}",) if clients > USUAL_CLIENTS else ()


class Recording(Enum):
    """For which record a server has settings."""

    NOTHING = "nothing"
    STATEMENTS = "statements"
    ROWS = "rows"


SETTINGS: dict[tuple[str, Recording], tuple[str, ...]] = {
    ("postgres", Recording.STATEMENTS): POSTGRES_STATEMENTS,
    ("postgres", Recording.ROWS): POSTGRES_ROWS,
    ("mariadb", Recording.STATEMENTS): MARIADB_STATEMENTS,
    ("mariadb", Recording.ROWS): MARIADB_ROWS,
}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class DatabaseServer:
    """A kind of server."""

    name: str
    """The word of `backstory watch`."""
    user: str
    """The user that root runs it as."""
    programs: tuple[str, ...]
    driver: str
    """The word of go-tpc."""

    def _owner(self) -> str | None:
        """Returns the user that the server needs, if it is another one."""
        return self.user if os.geteuid() == 0 else None

    def _program(self, name: str) -> str:
        found = shutil.which(name)
        if found is None or self.name == "postgres":
            packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
            found = str(packaged[-1]) if packaged else found
        if found is None:
            raise SystemExit(f"backstory-bench: {name} is not installed")
        return found

    def missing(self) -> str | None:
        """Returns why the server cannot run here."""
        for name in self.programs:
            if shutil.which(name) is None and not list(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")):
                return f"{name} is not installed"
        return None

    def make(self, data: Path) -> None:
        """Makes an empty server in a directory."""
        data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(data, self.user, self.user)
        if self.name == "postgres":
            words = [self._program("initdb"), "-A", "trust", "-U", "root", "--locale=C", "--encoding=UTF8", "-D", data]
        else:
            words = [
                self._program("mariadb-install-db"),
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                f"--datadir={data}",
            ]
        silent = subprocess.DEVNULL
        subprocess.run(
            [str(word) for word in words], check=True, stdout=silent, stderr=silent, user=self._owner(), cwd="/"
        )

    def _command(self, data: Path, port: int, recording: Recording, more: Sequence[str], clients: int) -> list[str]:
        """Returns the command of the server. `more` follows the settings of a watch."""
        watched = SETTINGS.get((self.name, recording), ())
        more = (*settings_for(clients), *(more if watched else ()))
        if self.name == "postgres":
            settings = [*POSTGRES_MEASURED, f"unix_socket_directories={data}", "lc_messages=C"]
            settings += (*watched, *more)
            options = [word for setting in settings for word in ("-c", setting)]
            words = [self._program("postgres"), "-D", data, "-p", port, *options]
            return [str(word) for word in words]
        words = [self._program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--tmpdir={data}"]
        words += [f"--port={port}", f"--socket={data / 'socket'}", f"--pid-file={data / 'pid'}", *MARIADB_MEASURED]
        words += (*watched, *(f"--{setting}" for setting in more))
        return [str(word) for word in words]

    def _wait(self, data: Path, port: int, server: subprocess.Popen[bytes]) -> None:
        """Waits until the server executes statements."""
        deadline = time.monotonic() + PATIENCE_S
        while server.poll() is None and time.monotonic() < deadline:
            words = self._client(data, port, "SELECT 1")
            if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
            time.sleep(0.05)
        log = (data.parent / "server.log").read_text(errors="replace")
        raise SystemExit(f"backstory-bench: {self.name} does not begin: {log[-800:]}")

    @contextmanager
    def running(self, data: Path, recording: Recording, more: Sequence[str] = (), clients: int = 1) -> Iterator[int]:
        """Runs the server for so many clients, and yields its TCP port.

        `recording`: with the settings for a watch of this kind, and `more` behind them.
        """
        port = _free_port()
        words = self._command(data, port, recording, more, clients)
        with (data.parent / "server.log").open("ab") as log:
            server = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=self._owner(), cwd="/"
            )
        try:
            self._wait(data, port, server)
            yield port
        finally:
            # For PostgreSQL, SIGINT does not wait for clients.
            server.send_signal(signal.SIGINT if self.name == "postgres" else signal.SIGTERM)
            server.wait(PATIENCE_S)

    def _client(self, data: Path, port: int, statement: str) -> list[str]:
        """Returns the command that executes a statement through the server's socket."""
        if self.name == "postgres":
            return ["psql", "-h", str(data), "-p", str(port), "-U", "root", "-qAtX", "-c", statement, "postgres"]
        return ["mariadb", "--no-defaults", "-u", "root", "-S", str(data / "socket"), "-e", statement]

    def execute(self, data: Path, port: int, statement: str) -> None:
        """Executes a statement."""
        subprocess.run(self._client(data, port, statement), check=True, stdout=subprocess.DEVNULL)

    def connection(self, port: int) -> str:
        """Returns the text that names the database for `backstory watch`."""
        scheme = "postgres" if self.name == "postgres" else "mysql"
        return f"{scheme}://root@127.0.0.1:{port}/tpcc"


SERVERS = {
    "postgres": DatabaseServer("postgres", "postgres", ("initdb", "postgres", "psql"), "postgres"),
    "mariadb": DatabaseServer("mariadb", "mysql", ("mariadb-install-db", "mariadbd", "mariadb"), "mysql"),
}
