"""Servers of data, files and logins: Redis, PostgreSQL, vsftpd, OpenSSH."""

from __future__ import annotations

import ftplib
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from ..database_servers import SERVERS
from .scene import Scene, found
from .web import make_files


class Redis(Scene):
    """Answers depend on keys that earlier connections set."""

    name = "redis"
    program = "redis-server"

    def command(self, top: Path, port: int) -> list[str]:
        words = [str(found(self.program)), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        return [str(word) for word in [*words, "--dir", top, "--daemonize", "no"]]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        known: list[str] = []
        kept = socket.create_connection(("127.0.0.1", port))
        for number in range(requests):
            kind = rng.choice(["set", "get", "incr", "ping", "push"])
            if kind == "set" or not known:
                known.append(f"key:{number}")
                words = ["SET", known[-1], f"value {number}"]
            elif kind == "get":
                words = ["GET", rng.choice(known)]
            elif kind == "incr":
                words = ["INCR", f"counter:{rng.randrange(50)}"]
            elif kind == "push":
                words = ["RPUSH", f"list:{rng.randrange(50)}", str(number)]
            else:
                words = ["PING", f"{number}"]
            text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            if number % 3 == 0:
                kept.sendall(text.encode())
                kept.recv(4096)
                continue
            with socket.create_connection(("127.0.0.1", port)) as single:
                single.sendall(text.encode())
                single.recv(4096)
        kept.close()


class Postgres(Scene):
    """A server of processes that share memory."""

    name = "postgres"
    program = "psql"
    user = "postgres"
    most = 2000
    stop = signal.SIGINT

    def missing(self) -> str | None:
        return super().missing() or SERVERS["postgres"].missing()

    def command(self, top: Path, port: int) -> list[str]:
        data = top / "data"
        if os.geteuid() == 0:
            shutil.chown(top, self.user, self.user)
        SERVERS["postgres"].make(data)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        settings = [f"unix_socket_directories={top}", "listen_addresses=127.0.0.1", "fsync=off", "lc_messages=C"]
        options = [word for setting in settings for word in ("-c", setting)]
        return [str(programs[-1]), "-D", str(data), "-p", str(port), *options]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        words = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "root", "-qAt", "postgres", "-c"]
        subprocess.run([*words, "create table t (a int, b text)"], check=True, capture_output=True)
        for number in range(requests):
            text = rng.choice(
                [
                    f"select {number} + 1",
                    f"insert into t values ({number}, 'row')",
                    f"select count(*) from t where a < {number}",
                    "select relname from pg_class order by 1 limit 5",
                ]
            )
            subprocess.run([*words, text], check=True, capture_output=True)


VSFTPD = """listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
anon_root={top}/files
local_enable=NO
no_anon_password=YES
isolate=NO
isolate_network=NO
seccomp_sandbox=NO
secure_chroot_dir={top}/empty
ftp_username={user}
nopriv_user={user}
pasv_address=127.0.0.1
xferlog_enable=NO
"""


class Vsftpd(Scene):
    """A process for each session, and a connection for each transfer."""

    name = program = "vsftpd"
    most = 2000

    def missing(self) -> str | None:
        return super().missing() or (None if os.geteuid() == 0 else "vsftpd needs root")

    def command(self, top: Path, port: int) -> list[str]:
        make_files(top)
        (top / "empty").mkdir()
        file = top / "vsftpd.conf"
        file.write_text(VSFTPD.format(top=top, port=port, user="daemon"))
        return [str(found("vsftpd")), str(file)]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        names = sorted(path.name for path in (top / "files").iterdir())
        for _ in range(requests // 8):
            with ftplib.FTP() as client:
                client.connect("127.0.0.1", port, timeout=30)
                client.login()
                client.voidcmd("TYPE I")
                client.retrbinary(f"RETR {rng.choice(names)}", lambda _: None)
                client.pwd()
                client.quit()


SSHD = """Port {port}
ListenAddress 127.0.0.1
HostKey {top}/host
PidFile {top}/pid
AuthorizedKeysFile {top}/key.pub
StrictModes no
UsePAM no
PermitRootLogin yes
"""


class Sshd(Scene):
    """It executes itself for each connection, and separates its privileges. Without root, it serves
    its own user."""

    name = program = "sshd"
    most = 60

    def command(self, top: Path, port: int) -> list[str]:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(top / name)]
            subprocess.run(words, check=True)
        file = top / "sshd.conf"
        file.write_text(SSHD.format(top=top, port=port))
        return [str(found("sshd")), "-D", "-e", "-f", str(file)]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        words = ["ssh", "-p", str(port), "-i", str(top / "key"), "-o", "StrictHostKeyChecking=no"]
        words += ["-o", f"UserKnownHostsFile={top}/known", "-o", "LogLevel=ERROR"]
        words.append(f"{getpass.getuser()}@127.0.0.1")
        for number in range(requests):
            subprocess.run([*words, f"echo session {number}"], check=True, capture_output=True)


DATA_SERVERS: tuple[Scene, ...] = (Redis(), Vsftpd(), Sshd(), Postgres())
