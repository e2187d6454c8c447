"""Servers and clients that speak TLS, with OpenSSL (nginx, curl) or GnuTLS (lighttpd, wget, git).

A handshake has random numbers of both ends. So a request can only be reconstructed if the program
computes its own ones again from what is in the record.
"""

from __future__ import annotations

import http.client
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

from ..web_servers import WEB_SERVERS
from .clients import Client, GitClient
from .scene import Scene, found
from .web import FileServer


def make_pem(top: Path) -> Path:
    """Makes a key and its certificate in one file, if they are not there."""
    pem = top / "tls.pem"
    if not pem.exists():
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
        key = top / "key"
        done = subprocess.run([*words, "-keyout", str(key)], check=True, capture_output=True)
        pem.write_bytes(key.read_bytes() + done.stdout)
    return pem


class TlsServer(FileServer):
    """A web server of files over TLS."""

    module: Path | None = None

    def missing(self) -> str | None:
        lacking = super().missing() or (None if found("openssl") else "openssl is not installed")
        absent = self.module and not self.module.exists()
        return lacking or (f"{self.module} is not installed" if absent else None)

    def command(self, top: Path, port: int) -> list[str]:
        make_pem(top)
        return super().command(top, port)

    def connection(self, port: int) -> http.client.HTTPConnection:
        # The certificate is the server's own.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection("127.0.0.1", port, context=context)


def nginx() -> TlsServer:
    """Returns nginx, with OpenSSL."""
    server = WEB_SERVERS["nginx"]
    listens = "listen 127.0.0.1:{port};"
    keys = "ssl_certificate {top}/tls.pem; ssl_certificate_key {top}/tls.pem;"
    settings = server.settings.replace(listens, f"listen 127.0.0.1:{{port}} ssl; {keys}")
    return TlsServer(replace(server, name="nginx-tls", settings=settings))


def lighttpd() -> TlsServer:
    """Returns lighttpd, with GnuTLS."""
    server = WEB_SERVERS["lighttpd"]
    lines = 'server.modules += ("mod_gnutls")\nssl.engine = "enable"\nssl.pemfile = "{top}/tls.pem"\n'
    scene = TlsServer(replace(server, name="lighttpd-gnutls", settings=server.settings + lines))
    scene.module = Path("/usr/lib/lighttpd/mod_gnutls.so")
    return scene


class TlsClient(Client):
    """A program that views a page over TLS."""

    def pem(self, top: Path) -> Path | None:
        return make_pem(top)


class TlsGitClient(GitClient):
    """`git ls-remote` over TLS."""

    def pem(self, top: Path) -> Path | None:
        return make_pem(top)


TLS_SERVERS: tuple[Scene, ...] = (nginx(), lighttpd())
TLS_CLIENTS: tuple[Client, ...] = (
    TlsClient("curl-tls", "curl", ("-sS", "-k", "-i", "{url}")),
    TlsClient("wget-gnutls", "wget", ("-q", "--no-check-certificate", "-O", "-", "{url}")),
    TlsGitClient("git-gnutls", "git", ("-c", "http.sslVerify=false", "ls-remote", "{url}")),
)
