"""A server that stores uploads, with a mistake: a name with `../` leaves its directory.

usage: upload.py REQUESTS    serves so many requests, then ends. Its port is in the file `port`.
"""

import os
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

UPLOADS = "uploads"
CHECKED = False


class Silent(WSGIRequestHandler):
    """A handler that prints no line for each request."""

    def log_message(self, *words):
        """Prints nothing."""


def application(environ, start_response):
    """Stores the body of the request under the name in its query."""
    name = environ["QUERY_STRING"].partition("name=")[2]
    path = os.path.join(UPLOADS, name)
    inside = os.path.dirname(os.path.abspath(path)) == os.path.abspath(UPLOADS)
    if CHECKED and not inside:
        start_response("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"refused\n"]
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
    with open(path, "wb") as file:
        file.write(body)
    start_response("201 Created", [("Content-Type", "text/plain")])
    return [b"stored\n"]


def main():
    """Serves."""
    os.makedirs(UPLOADS, exist_ok=True)
    with make_server("127.0.0.1", 0, application, handler_class=Silent) as server:
        with open("port.new", "w", encoding="ascii") as file:
            file.write(str(server.server_port))
        os.rename("port.new", "port")
        for _ in range(int(sys.argv[1])):
            server.handle_request()


main()
