"""Clients: each run makes one page view or many, of a server that is not recorded."""

from __future__ import annotations

import importlib.util
import random
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .scene import Scene, found
from .web import make_files

VIEWS = 200
"""Page views in one run of a client that makes many."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files with a connection for each request, and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


class KeptAlive(Quiet):
    """The same with kept-alive connections."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True


@contextmanager
def serving(top: Path, pem: Path | None = None, handler: type[Quiet] = Quiet) -> Iterator[int]:
    """Serves the directory `files`, over TLS if there is a key, and yields the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(top / "files")))
    if pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()


class Client(Scene):
    """A program that views a page."""

    is_client = True
    handler: type[Quiet] = Quiet
    """The server."""

    def __init__(self, name: str, program: str, words: tuple[str, ...], page: bool = False) -> None:
        self.name, self.program, self.words, self.page = name, program, words, page

    def missing(self) -> str | None:
        lacking = super().missing()
        if lacking is None and self.name == "requests" and importlib.util.find_spec("requests") is None:
            return "the Python package requests is not installed"
        return lacking

    def prepare(self, top: Path, rng: random.Random) -> str:
        """Makes the files of the server, and returns the path that is viewed."""
        names = make_files(top) if not (top / "files").exists() else [p.name for p in (top / "files").iterdir()]
        return "index.html" if self.page else rng.choice(sorted(names))

    def pem(self, top: Path) -> Path | None:
        """Returns the file with the server's key and certificate, if the client speaks TLS."""
        return None

    def words_for(self, top: Path, url: str) -> list[str]:
        """Returns the command for one page view."""
        program = sys.executable if self.program == "python3" else str(found(self.program))
        return [program, *(word.format(url=url, top=top) for word in self.words)]


class ManyPages(Client):
    """A program that views many pages in one run, which a list names."""

    def __init__(self, name: str, program: str, words: tuple[str, ...], line: str, handler: type[Quiet]) -> None:
        super().__init__(name, program, words)
        self.line, self.handler = line, handler

    def words_for(self, top: Path, url: str) -> list[str]:
        """Writes the list `urls` of the server's files in turn, and returns the command."""
        server = url.rpartition("/")[0]
        names = sorted(path.name for path in (top / "files").iterdir())
        lines = [self.line.format(url=f"{server}/{names[view % len(names)]}?n={view}") for view in range(VIEWS)]
        (top / "urls").write_text("".join(lines))
        return super().words_for(top, url)


class GitClient(Client):
    """`git ls-remote` over HTTP."""

    def prepare(self, top: Path, rng: random.Random) -> str:
        files = top / "files"
        if not files.exists():
            files.mkdir()
            work = top / "work"
            git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@localhost"]
            subprocess.run(["git", "init", "-q", str(work)], check=True)
            for number in range(5):
                (work / f"file{number}").write_text(f"{number}\n" * 100)
                subprocess.run([*git, "add", "."], check=True)
                subprocess.run([*git, "commit", "-qm", f"commit {number}"], check=True)
            subprocess.run(["git", "clone", "-q", "--bare", str(work), str(files / "repository.git")], check=True)
            subprocess.run(["git", "-C", str(files / "repository.git"), "update-server-info"], check=True)
        return "repository.git"


PYTHON = "import requests, sys; r = requests.get(sys.argv[1]); print(r.status_code, len(r.content))"

CLIENTS: tuple[Client, ...] = (
    Client("curl", "curl", ("-sS", "-i", "{url}")),
    Client("wget", "wget", ("-q", "-O", "-", "{url}")),
    Client("w3m", "w3m", ("-dump", "{url}"), page=True),
    GitClient("git", "git", ("ls-remote", "{url}")),
    Client("requests", "python3", ("-c", PYTHON, "{url}")),
    Client("chromium", "chromium", ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "{url}"), page=True),
    ManyPages("curl-many", "curl", ("-sS", "-i", "-K", "{top}/urls"), 'url = "{url}"\n', Quiet),
    ManyPages("wget-many", "wget", ("-q", "-O", "-", "-i", "{top}/urls"), "{url}\n", KeptAlive),
)
