"""FTP srv/client: three clients fetch from vsftpd. FTP srv/traffic: the server is recorded.

Both use the loopback interface.
"""

from __future__ import annotations

import os
from pathlib import Path

from .base import Instance, Need, free_port, program, tree

FILES = 10
_CONF = """listen=YES
listen_port={port}
listen_address=127.0.0.1
background=NO
anonymous_enable=YES
no_anon_password=YES
anon_root={root}/site
local_enable=NO
write_enable=NO
ftp_username=daemon
secure_chroot_dir={root}/empty
seccomp_sandbox=NO
xferlog_enable=NO
pasv_address=127.0.0.1
"""


def _prepare(root: Path) -> None:
    tree(root, "site", FILES, 200_000)
    (root / "empty").mkdir()
    free_port(root)
    (root / "vsftpd.conf").write_text(_CONF.format(root=root, port=(root / "port").read_text().strip()))
    for path in (root, root.parent):
        path.chmod(path.stat().st_mode | 0o111)


_START = """
read PORT <port
/usr/sbin/vsftpd "$PWD/vsftpd.conf" & server=$!
tries=0
until curl -sf -o probe.txt "ftp://127.0.0.1:$PORT/d000/f00000.txt"; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || exit 9
    sleep 0.05
done
mkdir -p got
"""

_ROOT = Need(lambda: None if os.geteuid() == 0 else "vsftpd needs root for its change of root")
_EACH = f"for i in $(seq -f %05.0f 0 {FILES - 1}); do {{}}; done"


def _client(group: str, name: str, fetch: str, need: str) -> Instance:
    return Instance(
        group,
        name,
        f"{need} fetches {FILES} files of 200 KB from vsftpd",
        _EACH.format(fetch),
        (program("vsftpd"), program(need), program("curl"), _ROOT),
        _prepare,
        ("got", "probe.txt"),
        ("got",),
        before=_START,
        after="kill $server; wait $server || true",
    )


CLIENTS = (
    ("curl", 'curl -s -o got/$i.txt "ftp://127.0.0.1:$PORT/d000/f$i.txt"', "curl"),
    ("wget", 'wget -q -O got/$i.txt "ftp://127.0.0.1:$PORT/d000/f$i.txt"', "wget"),
    ("lftp", 'lftp -c "get -O got ftp://127.0.0.1:$PORT/d000/f$i.txt"', "lftp"),
)
INSTANCES = [_client("FTP srv/client", name, fetch, need) for name, fetch, need in CLIENTS]
INSTANCES.append(_client("FTP srv/traffic", "vsftpd", CLIENTS[0][1], "curl"))
