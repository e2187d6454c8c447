"""HTTP srv/traffic: a server under load on the loopback interface. Both are recorded."""

from __future__ import annotations

from pathlib import Path

from .base import Instance, free_port, program, python, tree

GROUP = "HTTP srv/traffic"
REQUESTS = 400

_WAIT = """
tries=0
until curl -sf -o page.txt "http://127.0.0.1:$PORT/d000/f00000.txt"; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || { echo 'the server does not respond'; exit 9; }
    sleep 0.05
done
"""
_LOAD = f"""
ab -q -n $(({REQUESTS} * LOOPS)) -c 8 "http://127.0.0.1:$PORT/d000/f00007.txt" >ab.txt
failed=$(sed -n 's/^Failed requests: *//p' ab.txt)
[ "$failed" = 0 ] || {{ echo "failed requests: $failed"; exit 8; }}
"""
_STOP = "kill $server; wait $server || true"

NGINX = """daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events {{ }}
http {{ access_log access.log; client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp;
scgi_temp_path tmp; server {{ listen 127.0.0.1:{port}; root {root}/site; }} }}
"""
APACHE = """ServerRoot "{root}"
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {root}/apache.pid
Mutex file:{root}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
ErrorLog {root}/apache-error.log
DocumentRoot "{root}/site"
User nobody
Group nogroup
"""
LIGHTTPD = """server.document-root = "{root}/site"
server.port = {port}
server.bind = "127.0.0.1"
server.errorlog = "{root}/lighttpd-error.log"
"""


def _prepare(root: Path, files: dict[str, str]) -> None:
    tree(root, "site", 200, 4000)
    free_port(root)
    port = (root / "port").read_text().strip()
    (root / "tmp").mkdir()
    for path in (root, root.parent):
        path.chmod(path.stat().st_mode | 0o111)
    for name, text in files.items():
        (root / name).write_text(text.format(root=root, port=port))


def _server(
    name: str, start: str, package: str, files: dict[str, str], stop: str = _STOP, binary: str = ""
) -> Instance:
    return Instance(
        GROUP,
        name,
        f"{name} under ab, {REQUESTS} requests a loop",
        _LOAD,
        (program(binary or name, package), program("ab", "apache2-utils"), program("curl")),
        lambda root: _prepare(root, files),
        ("*.log", "*.pid", "ab.txt", "page.txt"),
        ("page.txt",),
        before=f"PATH=$PATH:/usr/sbin; read PORT <port\n{start} & server=$!\n{_WAIT}",
        after=stop,
        repeat=False,
    )


INSTANCES = [
    _server(
        "apache", 'apache2 -f "$PWD/apache.conf" -DFOREGROUND', "apache2", {"apache.conf": APACHE}, binary="apache2"
    ),
    _server("nginx", 'nginx -p "$PWD" -c nginx.conf', "nginx", {"nginx.conf": NGINX}),
    _server("lighttpd", "lighttpd -D -f lighttpd.conf", "lighttpd", {"lighttpd.conf": LIGHTTPD}),
    _server(
        "minihttpd",
        'mini_httpd -D -p $PORT -h 127.0.0.1 -d site -i "$PWD/mini.pid"',
        "mini-httpd",
        {},
        binary="mini_httpd",
    ),
    _server(
        "simplehttp",
        f"{python()} -m http.server --bind 127.0.0.1 -d site $PORT 2>server.log",
        "python3",
        {},
        binary="python3",
    ),
]
