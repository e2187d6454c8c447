"""The cases: which programs are recorded, and by what they are driven."""

from __future__ import annotations

from .clients import CLIENTS
from .data_servers import DATA_SERVERS
from .scene import Scene
from .tls import TLS_CLIENTS, TLS_SERVERS
from .web import WEB
from .whole import WHOLE

CASES: dict[str, Scene] = {
    scene.name: scene for scene in (*WEB, *TLS_SERVERS, *DATA_SERVERS, *CLIENTS, *TLS_CLIENTS, *WHOLE)
}
