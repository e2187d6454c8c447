"""Web servers: of files (nginx, Apache, lighttpd), and of programs (Python, Node)."""

from __future__ import annotations

import http.client
import json
import random
import shutil
from pathlib import Path

from ..web_servers import WEB_SERVERS, WebServer
from .scene import Scene, found

SIZES = (0, 1, 100, 1000, 8_000, 70_000, 300_000)
"""Bytes of the files that a server of files has."""

WSGI = """
import datetime, html, sys, urllib.parse
from wsgiref.simple_server import WSGIServer, WSGIRequestHandler, make_server
sessions = {}

class Quiet(WSGIRequestHandler):
    def log_message(self, *words): pass

def app(environ, start):
    path = environ["PATH_INFO"]
    query = urllib.parse.parse_qs(environ["QUERY_STRING"])
    status = "200 OK"
    if path == "/login":
        name = query["name"][0]
        sessions[name] = len(name)
        text = f"welcome {name}"
    elif path == "/page":
        name = query["name"][0]
        text = f"{name}: {sessions.get(name, 'unknown')}"
    elif path == "/now":
        text = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    elif path == "/save":
        size = int(environ.get("CONTENT_LENGTH") or 0)
        with open(sys.argv[2] + "/saved-" + query["name"][0], "wb") as file:
            file.write(environ["wsgi.input"].read(size))
        text = "saved"
    elif path == "/load":
        with open(sys.argv[2] + "/saved-" + query["name"][0], "rb") as file:
            text = file.read().decode()
    else:
        status, text = "404 Not Found", f"no page {html.escape(path)}"
    body = text.encode()
    start(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]

make_server("127.0.0.1", int(sys.argv[1]), app, handler_class=Quiet).serve_forever()
"""

APP = """
import json, sqlite3, sys, threading, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
base = sqlite3.connect(":memory:", check_same_thread=False)
base.execute("create table notes (id integer primary key, name text, text text)")
lock = threading.Lock()

class App(BaseHTTPRequestHandler):
    def log_message(self, *words): pass

    def do_POST(self):
        note = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            row = base.execute("insert into notes (name, text) values (?, ?)", (note["name"], note["text"]))
        self.answer(201, {"id": row.lastrowid})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        name = urllib.parse.parse_qs(url.query).get("name", [""])[0]
        if url.path == "/note":
            with lock:
                rows = base.execute("select text from notes where name = ?", (name,)).fetchall()
            self.answer(200 if rows else 404, {"name": name, "texts": [text for text, in rows]})
        elif url.path == "/sum":
            self.answer(200, {"sum": sum(int(digit) for digit in name if digit.isdigit())})
        else:
            self.answer(404, {"error": "no such page"})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
"""

NODE = """
const fs = require('fs'), http = require('http'), path = require('path');
const [port, top] = process.argv.slice(2);
http.createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/time') {
    response.end(new Date().toISOString().slice(0, 19));
  } else if (url.pathname === '/random') {
    response.end(require('crypto').randomBytes(8).toString('hex'));
  } else {
    fs.readFile(path.join(top, 'files', path.basename(url.pathname)), (error, bytes) => {
      response.statusCode = error ? 404 : 200;
      response.end(error ? 'none' : bytes);
    });
  }
}).listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
"""


def make_files(top: Path) -> list[str]:
    """Makes the files of a server, and returns their names."""
    files = top / "files"
    files.mkdir()
    rng = random.Random(1)
    for size in SIZES:
        (files / f"file-{size}").write_bytes(rng.randbytes(size))
    (files / "index.html").write_text("<html><body>index</body></html>\n")
    return sorted(path.name for path in files.iterdir())


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> int:
    """Makes one request on a connection, and returns the status."""

    def answered() -> http.client.HTTPResponse:
        connection.request(method, path, body=body)
        return connection.getresponse()

    try:
        response = answered()
    except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
        # A server may close a connection that was kept alive, after a time or many requests.
        connection.close()
        response = answered()
    response.read()
    return response.status


class FileServer(Scene):
    """A web server of files. Every third request uses a kept-alive connection."""

    def __init__(self, server: WebServer) -> None:
        self.name = server.name
        self.server = server
        self.program = self.server.program
        self.stop = self.server.stop

    def command(self, top: Path, port: int) -> list[str]:
        make_files(top)
        return self.server.prepare(top, port)

    def connection(self, port: int) -> http.client.HTTPConnection:
        """Returns a connection to the server, which the first request opens."""
        return http.client.HTTPConnection("127.0.0.1", port)

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        names = sorted(path.name for path in (top / "files").iterdir())
        kept = self.connection(port)
        for number in range(requests):
            path = rng.choice([*names, "missing", ""])
            method = "HEAD" if number % 7 == 0 else "GET"
            if number % 3 == 0:
                ask(kept, method, f"/{path}?n={number}")
                if number % 30 == 0:
                    kept.close()
                continue
            single = self.connection(port)
            ask(single, method, f"/{path}?n={number}")
            single.close()
        kept.close()


class PythonServer(Scene):
    """A Python program behind wsgiref. Some answers depend on earlier requests."""

    name = "wsgiref"
    program = "python3"

    def command(self, top: Path, port: int) -> list[str]:
        script = top / "server.py"
        script.write_text(WSGI)
        return [debian_python(), str(script), str(port), str(top)]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        known: list[str] = []
        saved: list[str] = []
        for number in range(requests):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            kind = rng.choice(["login", "page", "now", "save", "load", "missing"])
            if kind == "login":
                known.append(f"user{number}")
                ask(connection, "GET", f"/login?name=user{number}")
            elif kind == "page":
                ask(connection, "GET", f"/page?name={rng.choice(known or ['nobody'])}")
            elif kind == "save":
                saved.append(str(number))
                ask(connection, "POST", f"/save?name={number}", b"x" * rng.randrange(1, 5000))
            elif kind == "load" and saved:
                ask(connection, "GET", f"/load?name={rng.choice(saved)}")
            else:
                ask(connection, "GET", f"/{kind}?n={number}")
            connection.close()


def debian_python() -> str:
    """Returns Debian's Python, or else another one."""
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else str(found("python3"))


class PythonApp(Scene):
    """A Python application with a thread for each request. Its database is in its memory, and its
    start imports many modules."""

    name = "python-app"
    program = "python3"

    def command(self, top: Path, port: int) -> list[str]:
        script = top / "app.py"
        script.write_text(APP)
        return [debian_python(), str(script), str(port)]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        known: list[str] = []
        for number in range(requests):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            kind = rng.choice(["add", "note", "sum", "missing"])
            if kind == "add" or not known:
                known.append(f"note{number}")
                body = json.dumps({"name": known[-1], "text": "x" * rng.randrange(1, 500)})
                ask(connection, "POST", "/note", body.encode())
            else:
                ask(connection, "GET", f"/{kind}?name={rng.choice(known)}&n={number}")
            connection.close()


class NodeServer(FileServer):
    """A Node program. Files are read by its pool of threads."""

    def __init__(self) -> None:
        self.name = self.program = "node"

    def command(self, top: Path, port: int) -> list[str]:
        make_files(top)
        script = top / "server.js"
        script.write_text(NODE)
        return [str(shutil.which("node")), str(script), str(port), str(top)]

    def drive(self, top: Path, port: int, requests: int, rng: random.Random) -> None:
        names = sorted(path.name for path in (top / "files").iterdir())
        for number in range(requests):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            ask(connection, "GET", f"/{rng.choice([*names, 'missing', 'time', 'random'])}?n={number}")
            connection.close()


WEB: tuple[Scene, ...] = (
    FileServer(WEB_SERVERS["lighttpd"]),
    FileServer(WEB_SERVERS["nginx"]),
    PythonServer(),
    PythonApp(),
    FileServer(WEB_SERVERS["apache-prefork"]),
    FileServer(WEB_SERVERS["apache-event"]),
    NodeServer(),
)
