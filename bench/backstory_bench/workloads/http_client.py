"""HTTP srv/client: clients that fetch files from a small server on the loopback interface."""

from __future__ import annotations

from pathlib import Path

from .base import Instance, free_port, program, python, tree

GROUP = "HTTP srv/client"
FILES = 20

_START = f"""
read PORT <port
{python()} -m http.server --bind 127.0.0.1 -d site $PORT 2>server.log >server.log & server=$!
tries=0
until [ -n "$(curl -sf http://127.0.0.1:$PORT/d000/f00000.txt)" ]; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || exit 9
    sleep 0.05
done
mkdir -p got
"""


def _prepare(root: Path) -> None:
    tree(root, "site", FILES, 100_000)
    free_port(root)


def _client(name: str, fetch: str) -> Instance:
    each = f'for i in $(seq -f %05.0f 0 {FILES - 1}); do {fetch} "http://127.0.0.1:$PORT/d000/f$i.txt"; done'
    return Instance(
        GROUP,
        name,
        f"{name} fetches {FILES} files of 100 KB",
        each,
        (program(name), program("curl")),
        _prepare,
        ("got", "server.log"),
        ("got",),
        before=_START,
        after="kill $server; wait $server || true",
    )


INSTANCES = [_client("curl", "curl -s -o got/$i.txt"), _client("wget", "wget -q -O got/$i.txt")]
