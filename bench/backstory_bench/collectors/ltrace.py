"""ltrace: calls to dynamic libraries. The paper could run it on some workloads only."""

from .base import Collector, apt, needs

COLLECTORS = [
    Collector(
        "ltrace",
        lambda log: ["ltrace", "-f", "-o", str(log / "ltrace.log"), "-e", "open*+fopen*+exec*+rename*+unlink*"],
        needs("ltrace", "Debian package ltrace"),
        what="library calls that open, run, rename and remove",
        install=apt("ltrace"),
        version=("ltrace", "-V"),
    )
]
